package policies

import (
	"crypto/sha256"
	"encoding/json"
	"runtime"
	"sync"
	"weak"
)

// compiledRules are the rules of the process by their text, so that the same
// text is compiled once: of a policy that is validated, previewed and put in
// force, of one whose parameters change, of policies that differ in what they
// match, and of many engines.
var compiledRules = ruleTable{known: map[ruleKey]weak.Pointer[rule]{}}

// recentRules is how many rules are kept that no engine may have: a policy is put
// in force a moment after it was validated.
const recentRules = 4

// ruleKey identifies the text of a rule and of its libs.
type ruleKey [sha256.Size]byte

// A ruleTable holds no rule but the last few: a rule lives as long as somebody
// has it.
type ruleTable struct {
	mu     sync.Mutex
	known  map[ruleKey]weak.Pointer[rule]
	recent [recentRules]*rule
	next   int
}

// compile gives the rule of a text, which is compiled unless somebody has it.
func (t *ruleTable) compile(text string, libs []string) (*rule, []RegoFault) {
	// Texts encode always.
	raw, _ := json.Marshal(append([]string{text}, libs...))
	key := ruleKey(sha256.Sum256(raw))
	if known := t.find(key); known != nil {
		return known, nil
	}
	compiled, faults := compileRule(text, libs...)
	if faults != nil {
		return nil, faults
	}
	return t.keep(key, compiled), nil
}

func (t *ruleTable) find(key ruleKey) *rule {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := t.known[key].Value()
	if found != nil {
		t.touch(found)
	}
	return found
}

// keep notes a rule, and gives the one that another goroutine compiled meanwhile.
func (t *ruleTable) keep(key ruleKey, compiled *rule) *rule {
	t.mu.Lock()
	defer t.mu.Unlock()
	if other := t.known[key].Value(); other != nil {
		return other
	}
	t.known[key] = weak.Make(compiled)
	runtime.AddCleanup(compiled, t.forget, key)
	t.touch(compiled)
	return compiled
}

// touch makes a rule the last one. Its caller holds mu.
func (t *ruleTable) touch(last *rule) {
	if t.recent[(t.next+recentRules-1)%recentRules] == last {
		return
	}
	t.recent[t.next] = last
	t.next = (t.next + 1) % recentRules
}

// forget drops a rule that nobody has any more.
func (t *ruleTable) forget(key ruleKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[key].Value() == nil {
		delete(t.known, key)
	}
}
