package policies

import (
	"regexp/syntax"
	"sync"
)

// maxPatterns is how many patterns are remembered; those that are used on large
// texts are few.
const maxPatterns = 256

// patternSizes remembers how many instructions patterns are.
var patternSizes = struct {
	sync.Mutex
	of map[string]int
}{of: map[string]int{}}

// instructionsOf is how many instructions a regular expression is, 1 at least.
func instructionsOf(pattern string) int {
	patternSizes.Lock()
	defer patternSizes.Unlock()
	if known, ok := patternSizes.of[pattern]; ok {
		return known
	}
	size := 1
	if parsed, err := syntax.Parse(pattern, syntax.Perl); err == nil {
		if program, err := syntax.Compile(parsed.Simplify()); err == nil {
			size = max(len(program.Inst), 1)
		}
	}
	if len(patternSizes.of) >= maxPatterns {
		clear(patternSizes.of)
	}
	patternSizes.of[pattern] = size
	return size
}
