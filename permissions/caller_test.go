package permissions

import "testing"

func TestCallers(t *testing.T) {
	for _, c := range []struct {
		caller Caller
		proven string
		ours   bool
		from   map[int]bool
	}{
		{CallerUID(1000), "uid:1000", false, map[int]bool{1000: true, 1001: false, 0: false, NoUID: false, AnyUID: false}},
		{CallerUID(0), "uid:0", false, map[int]bool{0: true, 1000: false, NoUID: false}},
		{CallerUID(1), "uid:1", false, map[int]bool{1: true, 2: false}}, // accounts as good as any
		{CallerUID(2), "uid:2", false, map[int]bool{2: true, 3: false}},
		{Caller{"token:deploy", NoUID}, "deploy", false, map[int]bool{0: false, 1000: false, NoUID: false, AnyUID: false}},
		{Caller{"token:deploy", AnyUID}, "deploy", false, map[int]bool{0: true, 1000: true, NoUID: false, AnyUID: false}},
		{Caller{"agent:helper", NoUID}, "helper", true, map[int]bool{1000: false, NoUID: false}},
		{Caller{Anonymous, AnyUID}, "anonymous", false, map[int]bool{1000: true, NoUID: false}},
	} {
		if got := c.caller.ProvenName(); got != c.proven {
			t.Errorf("%v is proven as %q, want %q", c.caller, got, c.proven)
		}
		if got := c.caller.IsOurs(); got != c.ours {
			t.Errorf("%v is ours: %v", c.caller, got)
		}
		for uid, want := range c.from {
			if got := c.caller.CameFrom(uid); got != want {
				t.Errorf("%v came from %d: %v, want %v", c.caller, uid, got, want)
			}
		}
	}
}

func TestWho(t *testing.T) {
	for _, c := range []struct {
		r    Request
		want string
	}{
		{Request{Caller: CallerUID(1000)}, "uid 1000"},
		{Request{Caller: CallerUID(1000), Agent: "deploy-1", Claimed: true}, "uid 1000, says it is deploy-1"},
		{Request{Caller: Caller{Name: "token:deploy"}, Agent: "deploy"}, "deploy"},
		{Request{Caller: Caller{Name: Anonymous}}, "anonymous"},
	} {
		if got := c.r.AgentLabel(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
