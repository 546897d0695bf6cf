package admin_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/internal/wire/wiretest"
	"github.com/daycared/daycared/permissions"
)

// sitting is a session that began at noon.
func sitting(id permissions.ID, person string, ended bool) permissions.Sitting {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := permissions.Sitting{Session: permissions.AgentSession{
		ID: id, Agent: "helper", Person: person, Status: permissions.Idle, Version: 1, CreatedAt: at, ChangedAt: at,
	}}
	if ended {
		s.Session.EndedAt = at
	}
	return s
}

// Somebody sees the sessions of their own agents, and the operator everybody's; of those that ended when they are asked for.
func TestSessionsAreListedToThoseWhoseTheyAre(t *testing.T) {
	socket, desk := wiretest.Socket(t), wiretest.NewDesk()
	serve(t, socket, desk)
	desk.Sittings = []permissions.Sitting{
		sitting("1", "fay", false), sitting("2", "sam", false), sitting("3", "fay", true), sitting("4", "fay", false),
	}
	fay, operator := newClient(t, socket, ""), newClient(t, socket, key)
	for _, c := range []struct {
		name  string
		ended bool
		after permissions.ID
		limit int
		all   bool
		want  string
	}{
		{"fay's", false, "", 0, false, "1 4"},
		{"with those that ended", true, "", 0, false, "1 3 4"},
		{"a page", true, "1", 1, false, "3"},
		{"everybody's", false, "", 0, true, "1 2 4"},
	} {
		client := fay
		if c.all {
			client = operator
		}
		list, err := client.Sessions(t.Context(), c.ended, c.after, c.limit)
		var ids []string
		for _, s := range list {
			ids = append(ids, string(s.ID))
		}
		if got := strings.Join(ids, " "); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
	one, err := fay.Session(t.Context(), "1")
	if want := wire.FromSitting(desk.Sittings[0]); err != nil || one.ID != want.ID || !one.Started.Equal(*want.Started) {
		t.Errorf("%+v, %v", one, err)
	}
	if _, err := fay.Session(t.Context(), "2"); !isRefusal(err, permissions.CodeUnknown) {
		t.Errorf("sam's: %v", err)
	}
	if one, err := operator.Session(t.Context(), "2"); err != nil || one.Person != "sam" {
		t.Errorf("%+v, %v", one, err)
	}
	if status, _ := wiretest.Do(t, wiretest.HTTP(t, socket), http.MethodGet, "/v1/sessions?state=closed", "", ""); status < 400 {
		t.Errorf("a state that there is not is answered with %d", status)
	}
}
