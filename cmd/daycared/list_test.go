package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// TestAnExactCallIsSaid: a grant of an exact call is described by the call, or, if that is no longer kept, by where it was
// asked.
func TestAnExactCallIsSaid(t *testing.T) {
	secret := "ghp_" + strings.Repeat("0a1B", 9)
	asked := permissions.Request{
		Kind: permissions.KindTool, Cwd: "/srv", Calls: []permissions.Call{
			{N: 1, Tool: "write_file", Input: []byte(`{"path":"a"}`)}, {N: 2, Tool: "sh", Input: []byte(`{"command":"gh --token ` + secret + `"}`)},
			{N: 3, Tool: "sh", Input: []byte(`{"command":"` + strings.Repeat("0123456789", 9) + `"}`)},
		},
	}
	elsewhere := asked
	elsewhere.Cwd = "/home"
	for _, c := range []struct {
		n    int
		from permissions.RequestView
		want string
	}{
		{1, permissions.RequestView{Request: asked, Code: "K7F3Q"}, "this exact call: to use write_file path: a"},
		{2, permissions.RequestView{Request: asked}, "this exact call: to run gh --token ‹secret, 40 characters, sha256 5de243›"},
		{3, permissions.RequestView{Request: asked}, `this exact call: to run ` + strings.Repeat("0123456789", 5) + "012 …"},
		{1, permissions.RequestView{Request: elsewhere, Code: "K7F3Q"}, "this exact call of write_file, asked in request K7F3Q"},
		{1, permissions.RequestView{}, "this exact call of write_file, asked in request 01J"},
	} {
		call := asked.Calls[c.n-1]
		g := permissions.Grant{Tool: call.Tool, Call: permissions.CallDigest(asked, call), Request: "01J"}
		if got := covers(g, c.from); got != c.want {
			t.Errorf("covers %q, want %q", got, c.want)
		}
	}
}

// TestALockListsWhatARunStillHolds: what one of daycared's own agents was allowed until its run ends is not listed as used only.
func TestALockListsWhatARunStillHolds(t *testing.T) {
	for who, want := range map[permissions.Caller]string{
		permissions.AgentCaller("helper"): "used since, and held until its run ends: helper wants network access\n",
		permissions.CallerUID(1000):       "used since: helper wants network access\n",
	} {
		r := permissions.Request{
			Kind: permissions.KindPermission, Caller: who, Agent: "helper", Tags: []permissions.Tag{permissions.Network},
			State: permissions.Approved, Scope: permissions.Once,
		}
		var out strings.Builder
		c := &CLI{Out: &out}
		l := admin.Lock{Person: "fay", Used: []wire.Request{wire.From(permissions.RequestView{Request: r}, true)}}
		if err := c.printLock(l, time.Time{}, card.Options{}); err != nil || !strings.HasSuffix(out.String(), want) {
			t.Errorf("%s: %q, %v; want %q", who.Name, out.String(), err, want)
		}
	}
}

// TestPagesOfPendingAreOneList: later pages are aligned with the first, and JSON is one array.
func TestPagesOfPendingAreOneList(t *testing.T) {
	page := func(agents ...string) (all []permissions.RequestView) {
		for _, agent := range agents {
			all = append(all, permissions.RequestView{Code: "K7F3Q", Request: permissions.Request{
				Kind: permissions.KindPermission, Agent: agent, Tags: []permissions.Tag{permissions.Network},
				Quorum: 1, Deadline: time.Now().Add(time.Hour),
			}})
		}
		return all
	}
	for asJSON, pages := range map[bool][][]permissions.RequestView{
		false: {page("a", "the-longest-name"), page("b"), page("c", "d")}, true: {page("a"), page("b", "c")},
	} {
		var out strings.Builder
		l := pendingList{listPrinter: listPrinter{CLI: &CLI{Out: &out, Err: io.Discard}}}
		l.asJSON = asJSON
		for _, p := range pages {
			if err := l.print(p); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.end(); err != nil {
			t.Fatal(err)
		}
		if asJSON {
			var all []wire.Request
			if err := json.Unmarshal([]byte(out.String()), &all); err != nil || len(all) != 3 {
				t.Errorf("%d requests, %v: %s", len(all), err, out.String())
			}
			continue
		}
		rows := strings.Split(strings.TrimSpace(out.String()), "\n")
		for _, row := range rows {
			if at := strings.Index(row, "network"); len(rows) != 5 || at < 0 || at != strings.Index(rows[1], "network") {
				t.Errorf("%d rows, or not aligned:\n%s", len(rows), out.String())
			}
		}
	}
	var none strings.Builder
	l := pendingList{listPrinter: listPrinter{CLI: &CLI{Out: &none}}}
	l.asJSON = true
	if err := l.end(); err != nil || none.String() != "[]\n" {
		t.Errorf("none: %q, %v", none.String(), err)
	}
}

// TestALimitedListIsPrintedAsItIsRead: it is read from so many before its end on, and what comes meanwhile is left out.
func TestALimitedListIsPrintedAsItIsRead(t *testing.T) {
	c := &CLI{listing: listing{limit: 3}}
	pages := map[permissions.ID][]permissions.ID{"-3": {"b", "c"}, "c": {"d", "e"}, "e": nil}
	var did []string
	err := listed(c, time.Time{}, func(after permissions.ID) ([]permissions.ID, error) {
		did = append(did, "read after "+string(after))
		return pages[after], nil
	}, func(id permissions.ID) (permissions.ID, time.Time) { return id, time.Now() }, func(page []permissions.ID) error {
		did = append(did, fmt.Sprint("show ", page))
		return nil
	})
	want := []string{"read after -3", "show [b c]", "read after c", "show [d]"}
	if err != nil || !slices.Equal(did[:len(want)], want) {
		t.Errorf("%q, %v; want %q", did, err, want)
	}
}
