package wire

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/daycared/daycared/permissions"
)

// TestTheContractOfEventsIsComplete: everything that exists is described, nothing else, and the page says the same.
func TestTheContractOfEventsIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, rest, found := strings.Cut(strings.TrimPrefix(line, "| `"), "` | "); found && strings.HasPrefix(line, "| `") {
			rows[name] = rest
		}
	}
	described := slices.Sorted(maps.Keys(Events.Events))
	if all := slices.Sorted(slices.Values(permissions.EventsOf())); !slices.Equal(described, all) {
		t.Errorf("described are %v\nthere are %v", described, all)
	}
	for name, e := range Events.Events {
		if row := rows[string(name)]; !strings.HasPrefix(row, e.About+" | ") {
			t.Errorf("the page says of %s: %s", name, row)
		}
		for member, s := range e.Payload {
			if s.Description == "" {
				t.Errorf("%s.%s is not described", name, member)
			}
			if !strings.Contains(rows[string(name)], "`"+member+"`") {
				t.Errorf("the page has no %s of %s", member, name)
			}
		}
		if n := strings.Count(rows[string(name)], "`") / 2; n != len(e.Payload) {
			t.Errorf("the page has %d members of %s, the contract %d", n, name, len(e.Payload))
		}
	}
	for name, members := range map[permissions.Type][]string{
		permissions.RunFinished: {"reason"}, permissions.AckRejected: {"reason"},
	} {
		for _, member := range members {
			if said := Events.Events[name].Payload[member].Description; !strings.Contains(rows[string(name)], "`"+member+"`: "+said) {
				t.Errorf("the page does not say of %s.%s: %s", name, member, said)
			}
		}
	}
	for view, columns := range Events.Views {
		if !strings.Contains(rows[view], "| `"+strings.Join(columns, "` `")+"` |") {
			t.Errorf("the page has other columns of %s: %s", view, rows[view])
		}
	}
	if !strings.Contains(strings.ReplaceAll(string(text), "\n", " "), Events.Order) {
		t.Error("the page has another order")
	}
	if got := len(Events.Schema().OneOf); got != len(described) {
		t.Errorf("the schema has %d events", got)
	}
}
