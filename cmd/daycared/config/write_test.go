package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func draftOf(t *testing.T, text string) *Draft {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if text != "" {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := ReadDraft(file)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// furnish is what setup changes.
func furnish(d *Draft) {
	d.SetPerson("fay", "telegram", int64(4242), "pressed Start")
	d.SetPerson("fay", "timezone", "Europe/Berlin", "deadlines")
	d.Set("connectors.telegram.enabled", true, "on")
	d.Set("connectors.telegram.token_file", "/etc/daycared/telegram.token", "the token")
}

func TestADraftKeepsExistingSettings(t *testing.T) {
	const wanted = "connectors:\n  telegram:\n    enabled: true\n    token_file: /etc/daycared/telegram.token\n"
	tests := []struct{ name, text, want string }{
		{"no file", "", "people:\n  - name: fay\n    telegram: 4242\n    timezone: Europe/Berlin\n" + wanted},
		{"only comments", "# mine", "# mine\npeople:\n  - name: fay\n    telegram: 4242\n    timezone: Europe/Berlin\n" + wanted},
		{"empty values", "people: []\nconnectors:\n",
			"people:\n  - name: fay\n    telegram: 4242\n    timezone: Europe/Berlin\n" + wanted},
		{"comments and others",
			"# top\npeople:\n  # the boss\n  - name: sam # first\n    telegram: 1\n  - {name: fay, timezone: UTC} # me\n" +
				"log: {level: debug} # loud\n# the end\n",
			"# top\npeople:\n  # the boss\n  - name: sam # first\n    telegram: 1\n" +
				"  - {name: fay, timezone: Europe/Berlin, telegram: 4242} # me\nlog: {level: debug} # loud\n# the end\n\n" + wanted},
		{"right already",
			"people: [{name: fay,   telegram: 4242, timezone: Europe/Berlin}]\n\n" + wanted,
			"people: [{name: fay,   telegram: 4242, timezone: Europe/Berlin}]\n\n" + wanted},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := draftOf(t, test.text)
			furnish(d)
			text, err := d.Text()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if d.Exists() != (test.text != "") {
				t.Error("it does not know whether there is a file")
			}
			cfg, err := d.Check(nil)
			if err != nil {
				t.Fatal(err)
			}
			if fay := cfg.People[len(cfg.People)-1]; fay.Addresses["telegram"] != "4242" || fay.Location.String() != "Europe/Berlin" {
				t.Errorf("read back: %+v", fay)
			}
		})
	}
}

func TestADraftListsItsEdits(t *testing.T) {
	d := draftOf(t, "people: [{name: fay, timezone: UTC}]\n")
	furnish(d)
	d.Ask("fay", "all")
	want := []Edit{
		{Key: "people[fay].telegram", Value: "4242", Why: "pressed Start"},
		{Key: "people[fay].timezone", Value: "Europe/Berlin", Was: "UTC", Why: "deadlines"},
		{Key: "connectors.telegram.enabled", Value: "true", Why: "on"},
		{Key: "connectors.telegram.token_file", Value: "/etc/daycared/telegram.token", Why: "the token"},
		{Key: "routes", Value: "ask: [fay]", Why: "all"},
	}
	if diff := cmp.Diff(want, d.Edits()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if d.Person("fay", "telegram") != "4242" || d.Person("fay", "user") != "" || d.Person("sam", "telegram") != "" {
		t.Error("what stands there of people is not told")
	}
	cfg, err := d.Check(nil)
	if err != nil || len(cfg.Routes) != 1 || cfg.Routes[0].Ask[0] != "fay" {
		t.Errorf("read back: %+v, %v", cfg, err)
	}
}
