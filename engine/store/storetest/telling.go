package storetest

import (
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// testTell: a newer notice about a session of a caller's agent replaces an unsent one, other notices are kept,
// and their number per caller is bounded.
func testTell(t *testing.T, b Backend) {
	s := b.Open(t)
	at := noon
	tell := func(to, by string, about permissions.About, said permissions.CallerMessage) permissions.Notice {
		t.Helper()
		at = at.Add(time.Second)
		n := permissions.Notice{To: to, By: by, About: about, CreatedAt: at, CallerMessage: said}
		if err := s.AddCallerMessage(t.Context(), n, 4); err != nil {
			t.Fatal(err)
		}
		return n
	}
	tell("fay", "uid:1", permissions.AboutWaits, permissions.CallerMessage{Agent: "codex", Session: "s", Text: "old"})
	newer := tell("fay", "uid:1", permissions.AboutFinished, permissions.CallerMessage{
		Agent: "codex", Session: "s", Title: "title", Text: "new \u202e \x00", Silent: true,
	})
	told(t, "about the session", s, newer)
	all := []permissions.Notice{
		newer,
		tell("fay", "uid:1", permissions.AboutText, permissions.CallerMessage{Agent: "codex", Session: "s", Text: "one"}),
		tell("fay", "uid:1", permissions.AboutFinished, permissions.CallerMessage{Agent: "gemini", Session: "s"}),
		tell("fay", "uid:1", permissions.AboutFinished, permissions.CallerMessage{Agent: "codex"}),
		tell("fay", "uid:2", permissions.AboutFinished, permissions.CallerMessage{Agent: "codex", Session: "s"}),
		tell("sam", "uid:2", permissions.AboutFinished, permissions.CallerMessage{Agent: "codex", Session: "s"}),
	}
	if got := notices(t, s); len(got) != len(all) || got[0].CallerMessage != newer.CallerMessage || got[0].By != "uid:1" {
		t.Errorf("kept are %+v", got)
	}
	err := s.AddCallerMessage(t.Context(), permissions.Notice{To: "fay", By: "uid:1", About: permissions.AboutFailed, CreatedAt: at}, 4)
	refusedWith(t, err, permissions.CodeLimit)
	again := tell("fay", "uid:1", permissions.AboutFailed, permissions.CallerMessage{Agent: "codex", Session: "s"})
	if got := notices(t, s); len(got) != len(all) || got[len(got)-1].About != again.About {
		t.Errorf("in place of another: %+v", got)
	}
	for _, n := range notices(t, s) {
		if err := s.DeleteNotice(t.Context(), n.ID); err != nil {
			t.Fatal(err)
		}
	}
	told(t, "in the end", s)
}
