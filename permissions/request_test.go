package permissions

import (
	"slices"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
)

func TestNewID(t *testing.T) {
	a, b := NewID(noon), NewID(noon.Add(time.Millisecond))
	if a >= b || a == NewID(noon) || len(a) != 26 {
		t.Errorf("%s, then %s: ids grow with time and are never the same", a, b)
	}
	// A clock that is odd makes an id all the same.
	for at, want := range map[time.Time]uint64{
		noon: uint64(noon.UnixMilli()),
		{}:   0,
		time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC):  0,
		time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC): ulid.MaxTime(),
	} {
		if id := must(ulid.ParseStrict(string(NewID(at)))); id.Time() != want {
			t.Errorf("the id of %s has time %d, want %d", at, id.Time(), want)
		}
	}
}

func TestToolCalls(t *testing.T) {
	one := toolRequest()
	one.AffectedPath, one.Answer, one.Comment = "/a", Deny, "no"
	want := Call{N: 1, Tool: "write_file", Input: one.Input, AffectedPath: "/a", Answer: Deny, Comment: "no"}
	if got := one.ToolCalls(); len(got) != 1 || CallDigest(got[0]) != CallDigest(want) || got[0].Comment != "no" ||
		got[0].N != 1 || got[0].Answer != Deny {
		t.Errorf("got %+v", got)
	}
	if got := stepRequest().ToolCalls(); len(got) != 3 || got[2].N != 3 {
		t.Errorf("got %+v", got)
	}
	if got := permissionRequest().ToolCalls(); got != nil {
		t.Errorf("a permission calls %+v", got)
	}
	if got := stepRequest().ToolNames(); !slices.Equal(got, []string{"write_file", "fetch_url"}) {
		t.Errorf("got %v", got)
	}
}

func TestRequestMissingAndTimeout(t *testing.T) {
	r := permissionRequest()
	r.Held = tags("@write:/srv")
	if got := r.Missing(); !slices.Equal(got, tags("@network")) {
		t.Errorf("missing %v", got)
	}
	if r.Timeout() != 15*time.Minute {
		t.Errorf("it waits %s", r.Timeout())
	}
}
