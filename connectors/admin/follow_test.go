package admin

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// settledMeanwhile is an env at which everything was settled while the connection was away.
type settledMeanwhile struct{ *wiretest.Env }

func (settledMeanwhile) Show(_ context.Context, _ connectors.Identity, name string) (permissions.RequestView, error) {
	return standingOf(permissions.ID(name), permissions.Denied), nil
}

func standingOf(id permissions.ID, state permissions.State) permissions.RequestView {
	q := wiretest.Question("x")
	q.ID, q.State = id, state
	return permissions.RequestView{Request: q, Code: "K7F3Q"}
}

// What was read as settled after the connection came back is not pending again because the stream is a little behind.
func TestAStreamThatIsBehind(t *testing.T) {
	socket := wiretest.Socket(t)
	door := New(Options{Socket: socket, Log: wiretest.Quiet}, settledMeanwhile{wiretest.NewEnv(t)})
	if err := door.Listen(); err != nil {
		t.Fatal(err)
	}
	wiretest.Run(t, door.Run)
	c := NewClient(socket, filepath.Join(t.TempDir(), "none"))
	defer c.Close()
	var told []string
	const gone, other permissions.ID = "01J0000000000000000000000A", "01J0000000000000000000000B"
	f := &inboxFollower{link: link{client: c}, known: map[permissions.ID]known{gone: {revision: 3}}}
	f.handle = func(s permissions.RequestView) error {
		told = append(told, string(s.Request.ID)+" "+string(s.Request.State))
		return nil
	}
	streams := func(revision int, id permissions.ID, state permissions.State) {
		t.Helper()
		row, err := wire.Encode(wire.From(standingOf(id, state), true))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.handOver(event{id: fmt.Sprintf("%s:%d", id, revision), kind: eventRequest, data: string(row)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.synced(t.Context()); err != nil {
		t.Fatal(err)
	}
	streams(4, gone, permissions.Pending)
	streams(1, other, permissions.Pending)
	streams(5, gone, permissions.Denied)
	want := []string{string(gone) + " denied", string(other) + " pending"}
	if !slices.Equal(told, want) || len(f.known) != 1 {
		t.Errorf("told %q, known %v; want %q", told, f.known, want)
	}
}
