package engine

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/daycared/daycared/engine/directory"
	"github.com/daycared/daycared/permissions"
)

// While a file system of one caller does not answer, neither the caller nor who decides waits for it long, and other callers not at all.
func TestAFileSystemThatDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, s, answers := &Engine{}, &directory.Settings{}, make(chan struct{})
		for range 4 {
			if e.looks.Run("uid:1001", new(atomic.Uint64), func() { <-answers }) {
				t.Fatal("what hangs is done")
			}
		}
		tag, err := permissions.ParseTag("@read:/srv/x")
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]permissions.Request{
			"a permission": {Kind: permissions.KindPermission, Tags: []permissions.Tag{tag}},
			"a call":       {Kind: permissions.KindTool, Tool: "Read", Input: []byte(`{"file_path":"/srv/x"}`)},
		} {
			r.Caller.Name = "uid:1001"
			if _, err := e.ownFiles(s, r); permissions.CodeOf(err) != permissions.CodeForbidden {
				t.Errorf("%s of the caller whose look-ups hang: %v", name, err)
			}
			r.Caller.Name = "uid:1002"
			if _, err := e.ownFiles(s, r); err != nil {
				t.Errorf("%s of another caller: %v", name, err)
			}
		}
		close(answers)
	})
}
