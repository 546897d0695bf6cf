package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/permissions"
)

// An account comes in at the door that is its own. Only one that comes in at neither is told to become somebody.
func TestWhatTheDoorsMeanForAnAccount(t *testing.T) {
	shut, away := door{err: errors.New("permission denied"), shut: true}, door{err: errors.New("no such file")}
	fay := door{me: admin.Me{Name: "fay"}, open: 2}
	stopped := fay
	by := "sam"
	stopped.me.StoppedBy = &by
	nobody := door{err: permissions.Nobody(7), shut: true}
	for _, c := range []struct {
		name          string
		asks, decides door
		want          []string
	}{
		{"an approver", shut, fay, []string{
			"note this account answers as fay; it cannot ask here, which is as it should be", "ok this account answers as fay; 2 waiting",
		}},
		{"an agent", door{}, shut, []string{
			"ok the daemon takes questions", "note this account asks; it cannot answer here, which is as it should be for agents",
		}},
		{"an agent that people's door knows", door{}, nobody, []string{
			"ok the daemon takes questions", "note this account asks; it cannot answer here, which is as it should be for agents",
		}},
		{"a stranger", shut, shut, []string{"wrong this account, uid 7, neither asks nor answers here: permission denied"}},
		{"nobody", shut, nobody, []string{"wrong this account, uid 7, neither asks nor answers here: permission denied"}},
		{"both", door{}, stopped, []string{
			"ok the daemon takes questions", "note everything is stopped by sam, and nothing is asked",
			"ok this account answers as fay; 2 waiting",
		}},
		{"no daemon", away, away, []string{"wrong the daemon cannot take questions: no such file"}},
		{"half a daemon", door{}, away, []string{"ok the daemon takes questions", "wrong people cannot answer here: no such file"}},
	} {
		var got []string
		for _, f := range atDoors(c.asks, c.decides, 7) {
			got = append(got, f.level+" "+f.what)
			if c.decides.err == nil && strings.Contains(f.mend, "group") {
				t.Errorf("%s is told to %s", c.name, f.mend)
			}
			if c.asks.shut && c.decides.shut && !strings.Contains(f.mend, "people") {
				t.Errorf("%s is told to %q", c.name, f.mend)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s is told\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}
