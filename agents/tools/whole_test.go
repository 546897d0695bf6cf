package tools

import (
	"strings"
	"testing"

	"github.com/daycared/daycared/agents/sandbox"
)

func TestWhole(t *testing.T) { inBothModes(t, tryWhole) }

func tryWhole(t *testing.T) {
	long := strings.Repeat("y", 5000) + "\r\nend"
	_, p := tempFiles(t, map[string]string{
		"ws/a": "one\ntwo\nthree", "ws/empty": "", "ws/long": long, "ws/binary": "a\x00b", "ws/huge": strings.Repeat("x", maxFile+1),
		"out/secret": "secret",
	})
	tool := Whole(sandbox.New(sandbox.Options{Mode: mode}))
	if name := tool.Spec().Name; name != "read_file" {
		t.Errorf("it is called %s, and policy knows it by another name", name)
	}
	for _, c := range []struct {
		in     args
		failed bool
		says   string
	}{
		{args{"path": "a"}, false, "one\ntwo\nthree"},
		{args{"path": "a", "offset": 2, "limit": 1}, false, "two\n"},
		{args{"path": "a", "offset": 1, "limit": 2}, false, "one\ntwo\n"},
		{args{"path": "a", "offset": 3, "limit": 9}, false, "three"},
		{args{"path": "a", "offset": 4}, false, ""},
		{args{"path": "empty"}, false, ""},
		{args{"path": "long"}, false, long},
		{args{"path": "binary"}, true, "it is no text in UTF-8"},
		{args{"path": "huge"}, true, "more than the"},
		{args{"path": "missing"}, true, "there is no such file"},
		{args{"path": "../out/secret"}, true, "leads out of the workspace"},
		{args{"path": p.Workspace[:len(p.Workspace)-2] + "out/secret"}, true, "there is no"},
		{args{"file": "a"}, true, `has no "file"`},
	} {
		o := tool.Run(t.Context(), p, c.in.json(t), Plan{})
		exact := o.Text == c.says
		if c.failed {
			exact = strings.Contains(o.Text, c.says)
		}
		if o.Error != c.failed || !exact {
			t.Errorf("%v: failed is %v, and it says %q", c.in, o.Error, o.Text)
		}
	}
}
