package permissions

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"ask", "serve", "stop", "stop-all", "show", "pair", "unpair", "config", "Ärger"}
	for word, want := range map[string]string{
		"srve": "serve", "aks": "ask", "ASK": "ask", "confg": "config", "conifg": "config", "cofnig": "config", "cnofgi": "",
		"stopp": "stop", "stop-al": "stop-all", "stopall": "stop-all", "sto": "stop", "stpo": "stop", "unpiar": "unpair",
		"pari": "pair", "ärger": "Ärger", "st": "", "stop-everything": "", "sh": "", "x": "", "": "", "grants": "", "shop": "stop",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if got := Nearest("word", nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	// The last letters may differ alone.
	if got := Nearest("abcxy", []string{"abcyz"}); got != "abcyz" {
		t.Errorf("two at the end: %q", got)
	}
}
