package secrets

import (
	"regexp"
	"slices"
	"strings"
)

// A secretScan finds the secrets in a text: a name that says secret, what parts it
// from its value, and the value, in whatever quotes. It is read once from its
// beginning to its end, so that the time grows with the text.
type secretScan struct {
	text  string
	parts [][2]int
	// open are the quotes that do not end any more.
	open map[quote]bool
}

// quote is a mark around a text, and how many backslashes stand before it as it is
// itself within quoted text.
type quote struct {
	mark      byte
	backslash int
}

// mostBackslashes are before a quote that is one: four levels of quoting.
const mostBackslashes = 15

// separatorRoom is how much of a text a separator may take, in bytes.
const separatorRoom = 256

var (
	// bySign parts a name from its value by a sign, or as name and value of a variable.
	bySign = regexp.MustCompile("^\\\\*[\"'`]?\\]?(?:\\s*[:=]=?>?|(?:\\s|\\\\[ntr])*,?(?:\\s|\\\\[ntr])*\\\\*[\"']?value\\\\*[\"']?\\s*:)(?:\\s|\\\\[ntr])*(?:-\\s+)?")
	// bySpace parts an argument from the next one, in a command or a list.
	bySpace = regexp.MustCompile("^\\\\*[\"'`]?(?:\\s*,\\s*|(?:\\s|\\\\[ntr])+(?:-\\s+)?)")
	// byBlank parts a word from the next one.
	byBlank = regexp.MustCompile("^\\\\*[\"'`]?[ \\t]+")
	// lineBefore is what may stand before a name in its line.
	lineBefore = regexp.MustCompile("^[\\s\"'-]*$")
	// aScheme is what says how a header proves who asks.
	aScheme = regexp.MustCompile(`(?i)^(bearer|basic|token|digest|apikey|negotiate)$`)
	// aBlock begins a text of several lines in YAML.
	aBlock = regexp.MustCompile(`^[|>][-+0-9]{0,2}$`)
	// aKey is the name of another member.
	aKey = regexp.MustCompile(`^[\w./-]+:$`)
	// aFlag is an argument that has a name.
	aFlag = regexp.MustCompile(`^--?[A-Za-z]`)
	// userFlag takes a user and a password.
	userFlag = regexp.MustCompile(`^(-u|-U|--user|--proxy-user)$`)
	// imageTag is what follows the name of an image.
	imageTag = regexp.MustCompile(`^:[\w.-]`)
	// aWord is one that means what it says.
	aWord = regexp.MustCompile(`^[a-z]+[.,;:!?)]*$`)
	// prose follows a name that is only spoken of.
	prose = regexp.MustCompile(`^(a|an|and|are|as|at|authentication|be|been|by|can|cannot|file|for|from|has|have|if|in|into|is|it|may|must|not|of|on|or|should|that|the|to|was|when|which|will|with)[.,;:!?)]*$`)
)

// Parts finds secrets within a text: where each begins and ends, in bytes, in
// order.
func Parts(text string) [][2]int {
	if !strings.ContainsAny(text, "=: \t\n,\"'<") {
		return nil // most texts
	}
	scan := &secretScan{text: text, open: map[quote]bool{}}
	scan.addresses()
	scan.keys()
	for at := 0; at < len(text); {
		if !inName(text[at]) {
			at++
			continue
		}
		end := at + 1
		for end < len(text) && inName(text[end]) {
			end++
		}
		at = max(end, scan.named(at, end))
	}
	return scan.merged()
}

func inName(one byte) bool {
	return one == '_' || one == '-' || one == '.' || '0' <= one && one <= '9' || 'a' <= one && one <= 'z' || 'A' <= one && one <= 'Z'
}

// merged are the parts in order, those that overlap as one.
func (s *secretScan) merged() [][2]int {
	slices.SortFunc(s.parts, func(a, b [2]int) int {
		if a[0] != b[0] {
			return a[0] - b[0]
		}
		return a[1] - b[1]
	})
	var all [][2]int
	for _, part := range s.parts {
		if last := len(all) - 1; last >= 0 && part[0] <= all[last][1] {
			all[last][1] = max(all[last][1], part[1])
		} else {
			all = append(all, part)
		}
	}
	return all
}

func (s *secretScan) hide(from, to int) {
	if from < to {
		s.parts = append(s.parts, [2]int{from, to})
	}
}

// named finds what belongs to the name from start to end, if that says secret, and
// says where to read on.
func (s *secretScan) named(start, end int) int {
	if start > 0 && s.text[start-1] == '\\' && strings.IndexByte("ntr", s.text[start]) >= 0 {
		start++ // a line break within quoted text
	}
	name := s.text[start:end]
	flag := aFlag.MatchString(name)
	after := s.text[end:min(len(s.text), end+separatorRoom)]
	switch {
	case flag && userFlag.MatchString(name):
		return s.user(end, after)
	case flag && strings.HasPrefix(name, "-u") && strings.HasPrefix(after, ":"):
		return s.attached(start+len("-u"), end)
	case name == "auth" || name == "_auth":
		return s.registry(end, after)
	case !Named(name[max(0, len(name)-separatorRoom):]) || s.inPath(start, after):
		return end
	case strings.HasSuffix(s.text[:start], "<") && strings.HasPrefix(after, ">"):
		return s.element(end + 1)
	}
	return s.value(start, end, after)
}

// value finds what belongs to the name of a secret from start to end.
func (s *secretScan) value(start, end int, after string) int {
	if separator := bySign.FindString(after); separator != "" && !strings.HasPrefix(after, "://") {
		return s.assignedTo(start, end, end+len(separator), separator)
	}
	if next := s.called(start, end); next >= 0 {
		return next
	}
	name := s.text[start:end]
	flag := aFlag.MatchString(name)
	separator := byBlank.FindString(after)
	if flag {
		separator = bySpace.FindString(after)
	}
	if separator == "" {
		return end
	}
	return s.follows(name, end+len(separator), flag)
}

// inPath reports whether the name that starts at a place is a user in an address, or an
// image with a tag.
func (s *secretScan) inPath(start int, after string) bool {
	before := s.text[:start]
	return strings.HasSuffix(before, "://") || strings.HasSuffix(before, "/") && imageTag.MatchString(after)
}

// element hides the text of an element of XML.
func (s *secretScan) element(from int) int {
	to := strings.IndexByte(s.text[from:], '<')
	if to < 0 {
		to = len(s.text) - from
	}
	s.hide(from, from+to)
	return from + to
}

// follows finds a secret that is the next argument, or the next word.
func (s *secretScan) follows(name string, at int, flag bool) int {
	from, to, quoted := s.word(at)
	word := s.text[from:to]
	switch {
	case quoted:
	case prose.MatchString(word), !flag && !strings.ContainsFunc(word, func(one rune) bool { return one < 128 && inName(byte(one)) || one >= 128 }):
		return at
	case !flag && aWord.MatchString(word) && !namesPassword.MatchString(name):
		return at // it is spoken of a token
	}
	return s.found(from, to, quoted)
}

// found hides a value, and says where to read on: within it where it is the name of
// another one.
func (s *secretScan) found(from, to int, quoted bool) int {
	s.hide(from, to)
	word := s.text[from:to]
	switch {
	case quoted || word == "":
	case strings.HasSuffix(word, ":") || strings.HasSuffix(word, "="):
		start := to - 1
		for start > from && inName(s.text[start-1]) {
			start--
		}
		return start
	case aFlag.MatchString(word) && strings.IndexByte(word, '=') < 0:
		return from
	}
	return to
}

// user finds the password of a user and a password that follow.
func (s *secretScan) user(end int, after string) int {
	separator := bySpace.FindString(after)
	if strings.HasPrefix(after, "=") {
		separator = "="
	}
	if separator == "" {
		return end
	}
	from, to, _ := s.word(end + len(separator))
	if part, holds := passwordOf(s.text[from:to]); holds {
		s.hide(from+part, to)
		return to
	}
	return end
}

// attached finds the password in a user and a password right behind their flag.
func (s *secretScan) attached(from, end int) int {
	_, to, _ := s.word(end)
	if part, holds := passwordOf(s.text[from:to]); holds {
		s.hide(from+part, to)
		return to
	}
	return end
}

// passwordOf says where the password begins in a user and a password.
func passwordOf(text string) (int, bool) {
	colon := strings.IndexByte(text, ':')
	if colon < 0 || strings.HasPrefix(text[colon:], "://") || strings.Trim(text[colon+1:], "0123456789") == "" {
		return 0, false // a user and a group, most likely
	}
	return colon + 1, true
}

// word finds the value that begins at a place, as a shell does: quotes around it are
// none of it, those within are. Without any it ends before a space.
func (s *secretScan) word(at int) (from, to int, quoted bool) {
	from = at
	if mark, length := s.quoteAt(at); length > 0 {
		from = at + length
		to, at = s.closing(from, mark)
		if to < 0 {
			return from, len(s.text), true
		}
		quoted = true
	}
	for at < len(s.text) {
		next, ends := s.letter(at, quoted)
		if ends {
			break
		}
		at, to = next, next
	}
	return from, max(from, to), quoted
}

// letter is where the next one begins of a word that goes on at a place, which are
// those in quotes together; or says that the word ends there. After quotes it ends
// sooner, as in lists.
func (s *secretScan) letter(at int, quoted bool) (next int, ends bool) {
	one := s.text[at]
	if mark, length := s.quoteAt(at); length > 0 {
		next = at + length
		if next == len(s.text) || strings.IndexByte(" \t\r\n,;:)]}>&|\"'`\\", s.text[next]) >= 0 && !strings.HasPrefix(s.text[at:], `\''`) {
			return at, true // it ends what all this stands in
		}
		if _, end := s.closing(next, mark); end >= 0 {
			next = end
		}
		return next, false
	}
	switch {
	case strings.HasPrefix(s.text[at:], "$("): // what a command writes
		next = at + len("$(")
		if _, end := s.closing(next, quote{mark: ')'}); end >= 0 {
			next = end
		}
		return next, false
	case isSpace(one), quoted && strings.IndexByte(",;:)]}>&|<\\", one) >= 0:
		return at, true
	case strings.HasPrefix(s.text[at:], `\ `):
		return at + 2, false
	}
	return at + 1, false
}

func isSpace(one byte) bool { return one == ' ' || one == '\t' || one == '\n' || one == '\r' }

// quoteAt is the quote at a place, and how long it is.
func (s *secretScan) quoteAt(at int) (quote, int) {
	end := at
	for end < len(s.text) && s.text[end] == '\\' && end-at <= mostBackslashes {
		end++
	}
	if end == len(s.text) || strings.IndexByte("\"'`", s.text[end]) < 0 || end-at > mostBackslashes {
		return quote{}, 0
	}
	return quote{s.text[end], end - at}, end - at + 1
}

// quoteBefore is the quote right before a place, and how long it is.
func (s *secretScan) quoteBefore(at int) (quote, int) {
	if at == 0 || strings.IndexByte("\"'`", s.text[at-1]) < 0 {
		return quote{}, 0
	}
	before := 0
	for before <= mostBackslashes && at-before >= 2 && s.text[at-before-2] == '\\' {
		before++
	}
	return quote{s.text[at-1], before}, before + 1
}

// closing finds the end of what begins at a place within quotes, and where to read on
// after them; both are -1 if they do not end.
func (s *secretScan) closing(from int, mark quote) (to, next int) {
	if s.open[mark] {
		return -1, -1
	}
	for at := from; ; at++ {
		found := strings.IndexByte(s.text[at:], mark.mark)
		if found < 0 {
			s.open[mark] = true
			return -1, -1
		}
		at += found
		before := 0
		for at-before > from && s.text[at-before-1] == '\\' {
			before++
		}
		if mark.backslash == 0 && before%2 == 0 {
			return at, at + 1
		}
		if mark.backslash > 0 && before <= mark.backslash {
			return at - before, at + 1
		}
	}
}
