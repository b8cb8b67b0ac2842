package validation

import (
	"slices"
	"strings"
)

// Nearest returns the candidate that a misspelt word most likely stands for,
// or nothing if none is near: at most a third of its letters, case apart, may
// be wrong. Among equals the first in alphabetical order wins.
func Nearest(word string, candidates []string) string {
	if len(word) < 3 {
		return nearest(word, candidates, 1)
	}
	return nearest(word, candidates, len(word)/3)
}

// Misspelling is Nearest for words that may well be right: at most two letters may
// be wrong.
func Misspelling(word string, candidates []string) string {
	return nearest(word, candidates, min(len(word)/3, 2))
}

// nearest returns the candidate with the fewest wrong letters, up to a most.
func nearest(word string, candidates []string, most int) string {
	best, bestDistance := "", most+1
	sorted := slices.Clone(candidates)
	slices.Sort(sorted)
	for _, candidate := range sorted {
		// More letters than the bound apart in length is more than the bound
		// apart in all: long lists of fields cost little.
		if difference := len(candidate) - len(word); difference >= bestDistance || -difference >= bestDistance {
			continue
		}
		if distance := editDistance(strings.ToLower(word), strings.ToLower(candidate)); distance < bestDistance {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// editDistance counts the bytes to insert, delete, replace or swap with their
// neighbour that lie between two words (optimal string alignment).
func editDistance(a, b string) int {
	previous2, previous, current := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], previous2[j-2]+1)
			}
		}
		previous2, previous, current = previous, current, previous2
	}
	return previous[len(b)]
}
