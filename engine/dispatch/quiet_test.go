package dispatch

import (
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// TestADigestComesAtTheTimeOfItsOwnNotice: the one that it replaces may still count, for a later time.
func TestADigestComesAtTheTimeOfItsOwnNotice(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	d := &Dispatch{clock: timing.Clock{Now: func() time.Time { return now }}}
	quiet := func(span time.Duration) (n permissions.Notice) {
		n = permissions.Notice{To: "fay", About: permissions.AboutQuiet, By: "uid:1", CreatedAt: now}
		n.CallerMessage.Text = now.Add(span).Format(time.RFC3339Nano)
		return n
	}
	d.NoteQuiet(quiet(time.Hour))
	later, err := d.digest(t.Context(), quiet(30*time.Minute), &connectors.Notice{})
	if err != nil || later != 30*time.Minute {
		t.Errorf("it comes in %s, %v", later, err)
	}
}
