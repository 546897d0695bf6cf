package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
)

// compareRun compares the text of a run with the recorded one.
func compareRun(t *testing.T, file string, now []byte) {
	if *replay {
		if err := os.WriteFile(file, now, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	is, was := strings.Split(string(now), "\n"), strings.Split(string(want), "\n")
	for i := 0; i < max(len(is), len(was)); i++ {
		if from := max(0, i-2); i >= len(is) || i >= len(was) || is[i] != was[i] {
			t.Errorf("%s is not what happens from line %d on; write it anew with -behaviours, and look at it. It has\n%s\nand now it is\n%s",
				file, i+1, strings.Join(was[from:min(i+4, len(was))], "\n"), strings.Join(is[from:min(i+4, len(is))], "\n"))
			return
		}
	}
}

// naming replaces values that differ from run to run.
type naming struct {
	dir   string
	known map[string]string // by value
	count map[string]int
}

func newNaming(dir string) naming { return naming{dir, map[string]string{}, map[string]int{}} }

func (n naming) add(kind, value string) string {
	if n.known[value] == "" {
		n.count[kind]++
		n.known[value] = fmt.Sprintf("<%s-%d>", kind, n.count[kind])
	}
	return n.known[value]
}

// learn names the values of an event.
func (n naming) learn(h happening) {
	if h.Session != nil {
		n.add("session", *h.Session)
	}
	if h.Request != nil {
		n.add("request", *h.Request)
	}
	var id string
	if json.Unmarshal(h.Payload["grant"], &id) == nil && id != "" {
		n.add("grant", id)
	}
}

var (
	anyID     = regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b`)
	anyDigest = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	anyCode   = regexp.MustCompile("(?m)(^`?|\"code\":\")([2-9A-HJKMNP-Z]{5})(`? · until |$|\")")
	someTimes = []struct {
		is   *regexp.Regexp
		text string
	}{
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "<time>"},
		{regexp.MustCompile(`(\d\d? [A-Z][a-z]{2} (\d{4} )?)?\b\d\d:\d\d(:\d\d)?( [A-Z]{3,4}\b)?`), "<time>"},
		{regexp.MustCompile(`sha256 [0-9a-f]{4}…[0-9a-f]{2}`), "sha256 <digest>"},
		{regexp.MustCompile(`after \d+ (s|min|h)\b( \d+ (s|min)\b)?`), "after <duration>"},
		{regexp.MustCompile(`"waiting":\d+`), `"waiting":"<number>"`},
		{regexp.MustCompile(`\buid([: ])\d+`), "uid${1}<uid>"},
	}
)

// in replaces the values in a text by their names.
func (n naming) in(text string) string {
	text = strings.ReplaceAll(text, n.dir, "<dir>")
	for _, m := range anyCode.FindAllStringSubmatch(text, -1) {
		n.add("code", m[2])
	}
	text = anyDigest.ReplaceAllStringFunc(text, func(d string) string { return n.add("digest", d) })
	text = anyID.ReplaceAllStringFunc(text, func(id string) string { return n.add("id", id) })
	for value, name := range n.known {
		if len(value) == permissions.CodeLength {
			text = regexp.MustCompile(`\b`+value+`\b`).ReplaceAllString(text, name)
		}
	}
	for _, t := range someTimes {
		text = t.is.ReplaceAllString(text, t.text)
	}
	return text
}
