package i18n

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestGerman(t *testing.T) {
	const de Language = "de"
	at := time.Date(2026, 3, 30, 18, 5, 0, 0, time.UTC)
	const waits = " One request still waits for your answer: /pending| %d requests still wait for your answer: /pending"
	for got, want := range map[string]string{
		de.Sprintf("%s wants %s", "scribe", Phrase("network access")):      "scribe möchte Netzwerkzugriff",
		English.Sprintf("%s wants %s", "scribe", Phrase("network access")): "scribe wants network access",
		Language("").Text("once"):                            "once",
		de.Text("what no file has"):                          "what no file has",
		de.Plural(1, "%d row|%d rows"):                       "1 Zeile",
		de.Plural(2, "%d row|%d rows"):                       "2 Zeilen",
		English.Plural(0, "%d row|%d rows"):                  "0 rows",
		de.Plural(1, waits):                                  " Eine Anfrage wartet noch auf Antwort: /pending",
		de.Plural(2, "%d file, %s|%d files, %s", 2, "+1 −1"): "2 Dateien, +1 −1",
		de.Duration(15 * time.Minute):                        "15 Minuten",
		de.Duration(59500 * time.Millisecond):                "60 Sekunden",
		English.Duration(time.Minute):                        "1 minute",
		English.Duration(90 * time.Second):                   "90 seconds",
		English.Duration(time.Second):                        "1 second",
		de.Time(at, "2 Jan 15:04"):                           "30. März, 18:05",
		English.Time(at, "2 Jan 15:04"):                      "30 Mar 18:05",
		de.Time(at.AddDate(0, 2, 0), "2 Jan 2006 15:04"):     "30. Mai 2026, 18:05",
	} {
		if got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}

// What follows the words between a permission and its path is shown as code.
func TestAPermissionWithoutAPathHasNone(t *testing.T) {
	for _, l := range Languages() {
		for _, p := range []Phrase{"network access", "workspace write access", "events access", "nothing"} {
			if text := l.Text(p); strings.Contains(text, l.Text(" to ")) {
				t.Errorf("%s: %q looks as if it had a path", l, text)
			}
		}
	}
}

func TestKnown(t *testing.T) {
	for code, want := range map[string]Language{
		"de": "de", "de-AT": "de", "DE": "de", "en-US": "en", "fr": "", "": "", "de_AT": "", "deu": "",
	} {
		if got := Known(code); got != want {
			t.Errorf("%q is %q; want %q", code, got, want)
		}
	}
	if all := All("yes allow approve"); !slices.Contains(all, "yes") || !slices.Contains(all, "ja") {
		t.Errorf("a yes is one of %q", all)
	}
}
