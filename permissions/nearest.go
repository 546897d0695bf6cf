package permissions

import (
	"strings"

	"github.com/agnivade/levenshtein"
)

// Nearest is the one of known that a mistyped word was probably meant to be, or empty when none is near: one letter
// was mistyped, left out, added or swapped with its neighbour, in a word of five letters or more also two. Case does
// not count. A prefix alone is not near: nobody who types stop means stop-all.
func Nearest(word string, known []string) string {
	word = strings.ToLower(word)
	best, least := "", 2
	if len(word) >= 5 {
		least = 3
	}
	for _, k := range known {
		if d := distance(word, strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is how many letters of a have to change to give b. Two neighbours that were swapped are one.
func distance(a, b string) int {
	d := levenshtein.ComputeDistance(a, b)
	if d != 2 || len(a) != len(b) {
		return d
	}
	i := 0
	for a[i] == b[i] { // they differ
		i++
	}
	if i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:] {
		return 1
	}
	return d
}
