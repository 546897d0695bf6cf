package terminal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors/reply"
)

func TestEditor(t *testing.T) {
	long := strings.Repeat("y", longest+1)
	for _, c := range []struct {
		name  string
		raw   bool
		read  string
		want  []entry
		echo  string
		after string // what is still on the line
	}{
		{"a line of a pipe", false, "y\nno", []entry{{line: "y"}}, "", "no"},
		{"keys mean nothing in a pipe", false, "\x1b[A\x7f\x04\x15\n", []entry{{line: "\x1b[A\x7f\x04\x15"}}, "", ""},
		{"carriage return in a pipe", false, "y\r\n", []entry{{line: "y\r"}}, "", ""},
		{"too long", false, long + "\ny\n", []entry{{long: true}, {line: "y"}}, "", ""},
		{"a typed line", true, "yes\n", []entry{{line: "yes"}}, "yes", ""},
		{"other scripts", true, "né 漢\n", []entry{{line: "né 漢"}}, "né 漢", ""},
		{"backspace", true, "yex\x7fs", nil, "yex\b \bs", "yes"},
		{"backspace of two bytes", true, "é\x08", nil, "é\b \b", ""},
		{"backspace of a wide one", true, "漢\x7f", nil, "漢\b \b\b \b", ""},
		{"backspace of a mark", true, "e\u0301\x7f", nil, "e\u0301", "e"},
		{"backspace of nothing", true, "\x7f\x7f", nil, "", ""},
		{"backspace of a broken byte", true, "\xff\x7f", nil, "", ""},
		{"begin again", true, "no\x15y", nil, "no\b \b\b \by", "y"},
		{"end", true, "\x04", []entry{{end: true}}, "", ""},
		{"end within a line", true, "y\x04", nil, "y", "y"},
		{"arrows", true, "\x1b[Ay\x1b[1;5C\x1bOP\n", []entry{{line: "y"}}, "y", ""},
		{"Alt and a letter", true, "\x1bxy\n", []entry{{line: "y"}}, "y", ""},
		{"Esc and Enter", true, "\x1b\n", []entry{{line: reply.Esc}}, "", ""},
		{"a half key and Enter", true, "\x1b[\n", []entry{{line: ""}}, "", ""},
		{"other control characters", true, "a\x01\x0cb", nil, "ab", "ab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := editor{raw: c.raw}
			var got []entry
			echo := ""
			for _, b := range []byte(c.read) { // one by one, as slow as can be
				entries, shown := e.feed([]byte{b})
				got, echo = append(got, entries...), echo+shown
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(entry{})); diff != "" {
				t.Error(diff)
			}
			if echo != c.echo || string(e.line) != c.after {
				t.Errorf("echo %q, line %q; want %q, %q", echo, e.line, c.echo, c.after)
			}
		})
	}
}

func TestEscAlone(t *testing.T) {
	e := editor{raw: true}
	if e.feed([]byte("\x1b")); !e.half() {
		t.Fatal("Esc is not waited after")
	}
	got, echo := e.pause()
	if diff := cmp.Diff([]entry{{line: reply.Esc}}, got, cmp.AllowUnexported(entry{})); diff != "" || echo != "" {
		t.Errorf("echo %q, %s", echo, diff)
	}
	e.feed([]byte("no\x1b"))
	if got, echo := e.pause(); got != nil || echo != "\b \b\b \b" || e.half() || len(e.line) > 0 {
		t.Errorf("Esc on a line gives %v, %q; want that the line is cleared", got, echo)
	}
}
