package webhooks

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock-dev/penstock/policies"
)

// shortestHidden is how long a masked value is at least for it to be taken out of
// messages too, and a part of one that a message was cut in: what is shorter would
// take words apart.
const shortestHidden = 6

// shortestLine is the same for one line of many.
const shortestLine = 16

// cutMark is what ends a text of a rule that was too long.
const cutMark = "…"

// longestCut is how much of a value can stand before a cutMark, in bytes: no text
// of a rule is longer.
const longestCut = 4096

// hider takes values out of texts that may quote them.
type hider struct {
	secrets map[string]bool
	// spellings are the values as texts may hold them, in order; made with long and
	// replacer once all values are known.
	spellings []string
	// long are those that are looked for one by one, the longest first: what a
	// replacer prepares for one grows with its square.
	long     []string
	replacer *strings.Replacer
}

// add has a value hidden from now on, what is left of it without space around, as
// values that are read from files end in a line break, and long lines of it, as of
// keys.
func (h *hider) add(secret string) {
	if h.secrets == nil {
		h.secrets = map[string]bool{}
	}
	hide := func(text string, shortest int) {
		if len(text) >= shortest && text != redacted && !h.secrets[text] {
			h.secrets[text], h.replacer = true, nil
		}
	}
	hide(secret, shortestHidden)
	hide(strings.TrimSpace(secret), shortestHidden)
	for line := range strings.Lines(secret) {
		hide(strings.TrimSpace(line), shortestLine)
	}
}

// hide takes what was masked out of what a rule says: it may quote it, and be cut.
func (h *hider) hide(text string) string {
	if len(h.secrets) == 0 || text == "" {
		return text
	}
	h.prepare()
	return h.replace(h.hideCut(text)) // the cut first: pieces of a value are values too
}

// replace takes what was masked out of a text that holds all of it.
func (h *hider) replace(text string) string {
	if len(h.secrets) == 0 || text == "" {
		return text
	}
	h.prepare()
	for _, spelling := range h.long {
		if len(spelling) <= len(text) {
			text = strings.ReplaceAll(text, spelling, redacted)
		}
	}
	return h.replacer.Replace(text)
}

func (h *hider) prepare() {
	if h.replacer != nil {
		return
	}
	all := map[string]bool{}
	for secret := range h.secrets {
		for _, spelling := range spellingsOf(secret) {
			all[spelling] = true
		}
	}
	h.spellings = slices.Sorted(maps.Keys(all))
	var pairs []string
	h.long = nil
	// The longest first, as one may be a part of another.
	for _, spelling := range slices.SortedStableFunc(slices.Values(h.spellings), func(a, b string) int { return len(b) - len(a) }) {
		if len(spelling) > longestCut {
			h.long = append(h.long, spelling)
			continue
		}
		pairs = append(pairs, spelling, redacted)
	}
	h.replacer = strings.NewReplacer(pairs...)
}

// hideCut takes out beginnings of values that a text was cut in. The last cuts are
// looked at first, as a value may hold the mark itself.
func (h *hider) hideCut(text string) string {
	for end := len(text); ; {
		end = strings.LastIndex(text[:end], cutMark)
		if end < 0 {
			return text
		}
		said := h.withoutBeginning(text[:end])
		text, end = said+text[end:], len(said)
	}
}

// withoutBeginning takes the longest beginning of a value off the end of a text.
func (h *hider) withoutBeginning(text string) string {
	for at := max(0, len(text)-longestCut); at <= len(text)-shortestHidden; at++ {
		rest := text[at:]
		// The first spelling that is not before it begins with it if any does.
		if next, _ := slices.BinarySearch(h.spellings, rest); next < len(h.spellings) && strings.HasPrefix(h.spellings[next], rest) {
			return text[:at] + redacted
		}
	}
	return text
}

// spellingsOf are the ways in which a text stands in another: as it is, quoted as Go,
// Rego and JSON do, quoted once more within what is quoted, and in one line.
func spellingsOf(text string) []string {
	found := []string{text}
	for range 2 {
		for _, one := range slices.Clone(found) {
			found = append(found, inner(strconv.Quote(one)), inner(strconv.QuoteToASCII(one)), inner(jsonOf(one, true)), inner(jsonOf(one, false)))
		}
		slices.Sort(found)
		found = slices.Compact(found)
		if len(found) == 1 && !strings.Contains(text, "  ") {
			return found // most values need no quoting
		}
	}
	for _, one := range slices.Clone(found) {
		found = append(found, policies.Printable(one)) // as the engine has them
	}
	for _, one := range slices.Clone(found) {
		found = append(found, inOneLine(one)) // as warnings have them
	}
	words := strings.Join(strings.Fields(text), " ")
	return append(found, words, policies.Printable(words))
}

func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

func jsonOf(text string, escapeHTML bool) string {
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(escapeHTML)
	_ = encoder.Encode(text) // a text has no reason to fail
	return strings.TrimSuffix(written.String(), "\n")
}
