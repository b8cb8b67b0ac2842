package secrets

import (
	"encoding/base64"
	"regexp"
	"strings"
)

var (
	// aLiteral is a value of JSON and YAML that is no text.
	aLiteral = regexp.MustCompile(`^(?:null|true|false|~)(?:[\s,}\]]|$)`)
	// aList begins a list in YAML.
	aList = regexp.MustCompile(`\n\s*-\s+$`)
	// aDash begins one more element of it.
	aDash = regexp.MustCompile(`^\s*-\s+`)
)

// assignedTo finds what is assigned to the name from start to end.
func (s *secretScan) assignedTo(start, end, at int, separator string) int {
	from, to, quoted := s.word(at)
	if quoted {
		s.hide(from, to)
		return to
	}
	if next := s.collection(at, separator); next >= 0 {
		return next
	}
	if end := s.header(start, from, separator); end >= to {
		s.hide(from, end)
		return end
	}
	name, word := s.text[start:end], s.text[from:to]
	indent, first := s.indent(start, name)
	switch broken := strings.Contains(separator, "\n"); {
	case broken && (aKey.MatchString(word) || strings.Contains(separator, "=")), aLiteral.MatchString(s.text[from:min(len(s.text), from+8)]):
		return at
	case first && aBlock.MatchString(word):
		return s.block(indent, to)
	case aScheme.MatchString(word):
		from, to, quoted = s.word(len(s.text) - len(strings.TrimLeft(s.text[to:], " \t")))
	case first && !broken && (strings.HasSuffix(separator, " ") || strings.ToUpper(name) != name):
		// In YAML, and in files of properties.
		to = s.restOfLine(to)
		s.hide(from, to)
		return to
	}
	return s.found(from, to, quoted)
}

// collection reads a list or an object that is assigned to a name, and says where to
// read on, or -1 if there is none. Members of an object have names of their own.
func (s *secretScan) collection(at int, separator string) int {
	switch {
	case aList.MatchString(separator):
		return s.list(at)
	case !strings.Contains(separator, ":") || at == len(s.text):
	case s.text[at] == '{':
		return at + 1
	case s.text[at] == '[':
		for next := at + 1; ; {
			next = len(s.text) - len(strings.TrimLeft(s.text[next:], " \t\r\n,"))
			from, to, quoted := s.word(next)
			if !quoted {
				if next == at+1 {
					return -1
				}
				return next
			}
			s.hide(from, to)
			_, length := s.quoteAt(to)
			next = to + length
		}
	}
	return -1
}

// list hides the elements of a list in YAML, of which the first begins at a place.
func (s *secretScan) list(at int) int {
	for {
		from, to, quoted := s.word(at)
		if aKey.MatchString(s.text[from:to]) {
			return at // an object
		}
		if !quoted {
			to = s.restOfLine(to)
		}
		s.hide(from, to)
		end := strings.IndexByte(s.text[to:], '\n')
		if end < 0 {
			return to
		}
		next := to + end + 1
		dash := aDash.FindString(s.text[next:min(len(s.text), next+separatorRoom)])
		if dash == "" {
			return to
		}
		at = next + len(dash)
	}
}

// header is where an argument ends that is a header and has a name and a value, or -1.
func (s *secretScan) header(start, from int, separator string) int {
	mark, length := s.quoteBefore(start)
	if length == 0 || !strings.HasSuffix(separator, ": ") {
		return -1
	}
	end, _ := s.closing(from, mark)
	return end
}

// indent is how far into its line a name is, and whether it is the first there.
func (s *secretScan) indent(start int, name string) (int, bool) {
	line := max(0, start-separatorRoom)
	line += strings.LastIndexByte(s.text[line:start], '\n') + 1
	return start - line, lineBefore.MatchString(s.text[line:start]) && !aFlag.MatchString(name)
}

// restOfLine is where the line ends that a place is in, or what it stands in.
func (s *secretScan) restOfLine(from int) int {
	rest := s.text[from:]
	if end := strings.IndexAny(rest, "\n\"'`"); end >= 0 {
		rest = rest[:end]
	}
	return from + len(strings.TrimRight(rest, " \t\r\\"))
}

// block hides the lines of a text in YAML, which are further in than its name.
func (s *secretScan) block(indent, at int) int {
	for at < len(s.text) {
		line := s.text[at:]
		if length := strings.IndexByte(line, '\n'); length >= 0 {
			line = line[:length+1]
		}
		said := strings.TrimSpace(line)
		before := strings.Index(line, said)
		if said != "" && before <= indent {
			break
		}
		s.hide(at+before, at+before+len(said))
		at += len(line)
	}
	return at
}

// called finds what a call takes as the value of the name from start to end.
func (s *secretScan) called(start, end int) int {
	mark, length := s.quoteBefore(start)
	if length == 0 || start-length == 0 || s.text[start-length-1] != '(' {
		return -1
	}
	if again, length := s.quoteAt(end); length == 0 || again != mark {
		return -1
	}
	after := s.text[end+length : min(len(s.text), end+length+separatorRoom)]
	separator := len(after) - len(strings.TrimLeft(after, " ,"))
	from, to, quoted := s.word(end + length + separator)
	if separator == 0 || !quoted {
		return -1
	}
	s.hide(from, to)
	return to
}

// registry finds a user and a password as files for registries of images have them.
func (s *secretScan) registry(end int, after string) int {
	separator := bySign.FindString(after)
	from, to, _ := s.word(end + len(separator))
	plain, err := base64.StdEncoding.DecodeString(s.text[from:to])
	if separator == "" || err != nil || !strings.Contains(string(plain), ":") {
		return end
	}
	s.hide(from, to)
	return to
}

// keys finds private keys as PEM has them.
func (s *secretScan) keys() {
	const begin, end = "PRIVATE KEY-----", "-----END"
	for at := 0; ; {
		found := strings.Index(s.text[at:], begin)
		if found < 0 {
			return
		}
		before := s.text[max(0, at+found-32) : at+found]
		at += found + len(begin)
		if !strings.Contains(before, "-----BEGIN ") {
			continue
		}
		length := strings.Index(s.text[at:], end)
		if length < 0 {
			length = len(s.text) - at
		}
		s.hide(at, at+length)
		at += length
	}
}
