package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// groupChannel is a channel that reaches everybody, individually or in a group whose id begins with the channel's name.
type groupChannel struct {
	*connectortest.Memory

	mu   sync.Mutex
	lost map[string]bool // refs of messages that must be sent again
}

var _ connectors.GroupChannel = (*groupChannel)(nil)

func newGroupChannel() *groupChannel {
	m := connectortest.NewMemory(connectors.Identity{Via: "group", UID: fayUID}, nil)
	m.Identities = map[string]connectors.Identity{
		"fay": {Via: "group", UID: fayUID}, "sam": {Via: "group", UID: sam.UID}, "kim": {Via: "group", UID: kim.UID},
	}
	return &groupChannel{Memory: m, lost: map[string]bool{}}
}

func (h *groupChannel) IsGroup(place string) bool { return len(place) > 6 && place[:6] == "group:" }

func (h *groupChannel) Edit(ctx context.Context, ref string, p connectors.Prompt) error {
	h.mu.Lock()
	lost := h.lost[ref]
	h.mu.Unlock()
	if lost {
		return connectors.ErrResend
	}
	return h.Memory.Edit(ctx, ref, p)
}

// teamIn is a team whose route has a group.
func teamIn(place string) engine.Settings {
	s := team()
	s.Routes[0].Group = place
	return s
}

// soon is a context that ends a failing wait.
func soon(t *testing.T) context.Context {
	ctx, done := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(done)
	return ctx
}

// presses presses a button of a prompt as that person.
func (h *groupChannel) presses(t *testing.T, who string, c connectortest.Copy, a permissions.Answer) (permissions.Request, error) {
	t.Helper()
	return h.Do(t.Context(), connectors.Decision{Button: c.First.Button, Ref: c.Ref, Answer: a, From: h.Identities[who]})
}

// A group has one prompt for all recipients: each of them may press it, and nobody else.
func TestAGroupIsShownOneCardForAll(t *testing.T) {
	h := newGroupChannel()
	st := newEnv(t, teamIn("group:ops"), h)
	call := st.ask(t.Context(), network("together"))
	p := st.shown(h.Memory, 1)
	if p.Group != "group:ops" || p.To.Name != "fay" || p.Request.Group != "group:ops" {
		t.Errorf("sent to %s in %q", p.To.Name, p.Group)
	}
	card := h.Copies()[0]
	_, err := h.presses(t, "kim", card, allow())
	refused(t, err, permissions.CodeNotYours)
	h.Identities["eve"] = connectors.Identity{Via: "group", UID: 4711}
	_, err = h.presses(t, "eve", card, allow())
	refused(t, err, permissions.CodeNotYours)
	if _, err := h.presses(t, "sam", card, allow()); err != nil {
		t.Fatal(err)
	}
	look, err := st.Preview(t.Context(), connectors.Decision{Button: p.Button, Ref: card.Ref, From: h.Identities["sam"]})
	if err != nil || look.Group != "group:ops" || look.To.Name != "fay" || look.Button != p.Button {
		t.Errorf("sam looks at %+v, %v", look, err)
	}
	st.eventually("it is noted", func() bool {
		copies, err := st.rows.Copies(t.Context(), p.Request.ID)
		return err == nil && len(copies) == 2 && copies[0].Ref == card.Ref && copies[1].Ref == card.Ref
	})
	s := team() // a change of the routes does not move pending requests
	s.Routes[0].Group = "group:elsewhere"
	st.Configure(s)
	st.advance(8 * time.Minute)
	st.edited(h.Memory, 1, func(p connectors.Prompt) bool { return len(p.Request.Asked) == 3 })
	if err := h.Hears(soon(t), func(n []connectors.Notice) bool {
		return slices.ContainsFunc(n, func(n connectors.Notice) bool {
			return n.Group == "group:ops" && len(n.Waiting) == 1 && n.Waiting[0].Ref == card.Ref
		})
	}); err != nil {
		t.Error(err)
	}
	st.eventually("kim has a copy", func() bool {
		copies, err := st.rows.Copies(t.Context(), p.Request.ID)
		return err == nil && len(copies) == 3 && !slices.ContainsFunc(copies, func(c permissions.Copy) bool { return c.SentAt.IsZero() })
	})
	if _, err := h.presses(t, "kim", card, allow()); err != nil {
		t.Fatal(err)
	}
	if r := st.get(call); r.State != permissions.Approved || len(h.Copies()) != 1 {
		t.Errorf("%s, by %d cards", r.State, len(h.Copies()))
	}
	for _, n := range h.Told() {
		if n.Group == "" {
			t.Errorf("%s was told by themselves: %s", n.To.Name, said(n))
		}
	}
}

// askedOfOne is a team whose route asks everybody in a group, and takes one of them; the agent is fay's.
func askedOfOne() engine.Settings {
	s := teamIn("group:ops")
	s.Routes[0].Quorum = 1
	s.Bindings = map[string]permissions.Binding{ours.Name: {Agent: "helper", Person: "fay", Via: "group"}}
	return s
}

// TestAnOrdinaryRequestGoesToTheOwnerBeforeTheGroup: the group sees how it ended, and until then nothing.
func TestAnOrdinaryRequestGoesToTheOwnerBeforeTheGroup(t *testing.T) {
	h := newGroupChannel()
	st := newEnv(t, askedOfOne(), h)
	r := st.submit(ours, keyed(network("x"), "1"))
	if p := st.shown(h.Memory, 1); p.Group != "" || p.To.Name != "fay" || len(p.Besides) != 0 {
		t.Fatalf("sent to %s in %q, and %v are asked, too", p.To.Name, p.Group, p.Besides)
	}
	st.advance(time.Minute)
	if n := len(h.Copies()); n != 1 {
		t.Errorf("%d cards were sent", n)
	}
	if _, err := h.presses(t, "fay", h.Copies()[0], allow()); err != nil {
		t.Fatal(err)
	}
	p := st.shown(h.Memory, 2)
	if p.Group != "group:ops" || p.Request.ID != r.ID || p.Request.State != permissions.Approved || !p.Silent {
		t.Errorf("in %q comes a card that is %s, silent %v", p.Group, p.Request.State, p.Silent)
	}
	withdrawn := st.submit(ours, keyed(network("y"), "2"))
	st.shown(h.Memory, 3)
	if _, err := st.Cancel(t.Context(), fayAt("group"), string(withdrawn.ID)); err != nil {
		t.Fatal(err)
	}
	st.edited(h.Memory, 3, func(p connectors.Prompt) bool { return p.Request.State == permissions.Cancelled })
	st.submit(ours, keyed(network("z"), "3"))
	if p := st.shown(h.Memory, 4); p.Request.State != permissions.Pending || p.Group != "" {
		t.Errorf("a card that is %s comes in %q", p.Request.State, p.Group)
	}
}

// TestAGroupIsAsked: at once, where it concerns several people or nobody can be asked in private, and else once that takes too long.
func TestAGroupIsAsked(t *testing.T) {
	gone := &connectors.UnreachableError{Reason: "fay has blocked the bot"}
	brief := network("x")
	brief.WantedTimeout = 20 * time.Second // a card is held back by real time
	alone := func(s *engine.Settings, _ *groupChannel) { s.Routes[0].Escalate.To = nil }
	for name, c := range map[string]struct {
		changes func(*engine.Settings, *groupChannel)
		request permissions.Request
		caller  permissions.Caller
		first   bool // in private
		after   time.Duration
	}{
		"a quorum":              {func(s *engine.Settings, _ *groupChannel) { s.Routes[0].Quorum = 2 }, network("x"), ours, false, 0},
		"high risk":             {nil, tool("run_command", `{"command":"ls"}`), ours, false, 0},
		"nobody's agent":        {nil, network("x"), self, false, 0},
		"no answer, escalating": {nil, network("x"), ours, true, 8 * time.Minute},
		"no answer":             {alone, brief, ours, true, 0},
		"she blocked it":        {func(_ *engine.Settings, h *groupChannel) { h.FailSend(1, gone) }, network("x"), ours, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := newGroupChannel(), askedOfOne()
			if c.changes != nil {
				c.changes(&s, h)
			}
			st := newEnv(t, s, h)
			r := st.submit(c.caller, keyed(c.request, "1"))
			n := 1
			if c.first {
				if p := st.shown(h.Memory, 1); p.Group != "" {
					t.Fatalf("asked in %q", p.Group)
				}
				n = 2
			}
			st.advance(c.after)
			p := st.shown(h.Memory, n)
			if p.Group != "group:ops" || p.Request.State != permissions.Pending {
				t.Errorf("asked in %q, %s", p.Group, p.Request.State)
			}
			st.eventually("all have it", func() bool {
				copies, err := st.rows.Copies(t.Context(), r.ID)
				return err == nil && !slices.ContainsFunc(copies, func(cp permissions.Copy) bool { return cp.Group != "" && cp.SentAt.IsZero() })
			})
			d := connectors.Decision{Button: p.Button, Ref: h.Copies()[n-1].Ref, Answer: allow(), From: h.Identities["sam"], Really: true}
			if _, err := h.Do(t.Context(), d); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAPersonAskedInPrivateIsRemindedThere: and those who are to be asked in the group later are not reminded of what they never saw.
func TestAPersonAskedInPrivateIsRemindedThere(t *testing.T) {
	h, s := newGroupChannel(), askedOfOne()
	s.Approvals.Remind = []engine.Moment{{Percent: 20}}
	st := newEnv(t, s, h)
	st.submit(ours, keyed(network("x"), "1"))
	st.shown(h.Memory, 1)
	ref := h.Copies()[0].Ref
	st.advance(4 * time.Minute)
	if err := h.Hears(soon(t), func(n []connectors.Notice) bool { return len(n) == 1 }); err != nil {
		t.Fatal(err)
	}
	if n := h.Told()[0]; n.To.Name != "fay" || n.Group != "" || len(n.Waiting) != 1 || n.Waiting[0].Ref != ref {
		t.Errorf("%s is reminded in %q of %+v", n.To.Name, n.Group, n.Waiting)
	}
	st.eventually("nobody else is to be reminded", func() bool {
		n, err := st.rows.Notices(t.Context(), "", 9)
		return err == nil && len(n) == 0
	})
	if n := len(h.Told()); n != 1 {
		t.Errorf("%d reminders were sent", n)
	}
}

// When a group can no longer be written to, each recipient is asked individually: at once, at the next edit, or at the
// next reminder.
func TestAGroupThatIsGone(t *testing.T) {
	gone := &connectors.UnreachableError{Reason: "the bot was removed from the group"}
	for name, open := range map[string]func(*testing.T) (*env, *groupChannel){
		"before": func(t *testing.T) (*env, *groupChannel) {
			h := newGroupChannel()
			h.FailSend(1, gone)
			st := newEnv(t, teamIn("group:ops"), h)
			st.ask(t.Context(), network("x"))
			return st, h
		},
		"while it is reminded": func(t *testing.T) (*env, *groupChannel) {
			h := newGroupChannel()
			s := teamIn("group:ops")
			s.Approvals.Remind = []engine.Moment{{Percent: 10}}
			st := newEnv(t, s, h)
			st.ask(t.Context(), network("x"))
			st.shown(h.Memory, 1)
			st.eventually("it is noted", func() bool {
				copies, err := st.rows.Copies(t.Context(), st.pending(1)[0].ID)
				return err == nil && !copies[0].SentAt.IsZero()
			})
			h.FailSend(1, gone)
			st.advance(2 * time.Minute)
			return st, h
		},
	} {
		t.Run(name, func(t *testing.T) {
			st, h := open(t)
			st.pending(1)
			var own []string
			if err := h.Wait(soon(t), func(c []connectortest.Copy) bool {
				own = nil
				for _, one := range c {
					if one.First.Group == "" {
						own = append(own, one.First.To.Name)
					}
				}
				return len(own) == 2
			}); err != nil {
				t.Fatal(err)
			}
			if slices.Sort(own); !slices.Equal(own, []string{"fay", "sam"}) {
				t.Errorf("asked by themselves were %v", own)
			}
			for _, c := range h.Copies() {
				if c.First.Group != "" {
					continue
				}
				other := map[string]string{"fay": "sam", "sam": "fay"}[c.First.To.Name]
				_, err := h.presses(t, other, c, allow())
				refused(t, err, permissions.CodeNotYours)
			}
		})
	}
}

// A group may be renamed: pending requests are sent again, and later ones go there as well.
func TestAGroupThatGetsANewID(t *testing.T) {
	h := newGroupChannel()
	st := newEnv(t, teamIn("group:ops"), h)
	h.FailSend(1, &connectors.GroupRenamedError{Now: "group:super"})
	st.ask(t.Context(), network("first"))
	if p := st.shown(h.Memory, 1); p.Group != "group:super" {
		t.Errorf("sent to %q", p.Group)
	}
	st.eventually("it is noted", func() bool {
		copies, err := st.rows.Copies(t.Context(), st.pending(1)[0].ID)
		return err == nil && copies[0].Ref != ""
	})
	h.mu.Lock()
	h.lost[h.Copies()[0].Ref] = true
	h.mu.Unlock()
	for _, name := range []string{"group:super", "group:ops", "elsewhere"} { // known, back, and not ours
		if err := st.RenameGroup(t.Context(), "group:super", name); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.RenameGroup(t.Context(), "group:super", "group:giant"); err != nil {
		t.Fatal(err)
	}
	again := st.shown(h.Memory, 2)
	if again.Group != "group:giant" || again.Request.Group != "group:ops" {
		t.Errorf("sent again to %q", again.Group)
	}
	places, err := st.Groups(t.Context())
	if err != nil || !slices.Equal(places, []connectors.Group{{Name: "group:ops", Now: "group:giant", Routed: true}}) {
		t.Errorf("places are %+v, %v", places, err)
	}
	h = newGroupChannel()
	st.restart(h)
	st.Configure(team())
	places, err = st.Groups(t.Context())
	if err != nil || !slices.Equal(places, []connectors.Group{{Name: "group:ops", Now: "group:giant"}}) {
		t.Errorf("where something still waits is %+v, %v", places, err)
	}
}

// Reminders in a group wait while all recipients there have quiet hours; high risk does not.
func TestAGroupIsRemindedInTheMorning(t *testing.T) {
	h := newGroupChannel()
	s := teamIn("group:ops")
	for i := range s.People {
		s.People[i].Quiet = connectors.Hours{To: 24*60 - 1}
	}
	s.Approvals.Remind = []engine.Moment{{Percent: 10}}
	st := newEnv(t, s, h)
	st.ask(t.Context(), network("quietly"))
	if p := st.shown(h.Memory, 1); !p.Silent {
		t.Error("it made a sound")
	}
	st.eventually("it is noted", func() bool {
		copies, err := st.rows.Copies(t.Context(), st.pending(1)[0].ID)
		return err == nil && !copies[0].SentAt.IsZero()
	})
	st.advance(2 * time.Minute)
	st.eventually("a reminder waits", func() bool {
		n, err := st.rows.Notices(t.Context(), "", 9)
		return err == nil && len(n) > 0 && slices.ContainsFunc(n, func(n permissions.Notice) bool { return n.Group != "" })
	})
	if n := len(h.Told()); n != 0 {
		t.Errorf("%d reminders came in the night", n)
	}
	awake := teamIn("group:ops")
	awake.Approvals.Remind = s.Approvals.Remind
	st.Configure(awake)
	if err := h.Hears(soon(t), func(n []connectors.Notice) bool { return len(n) == 1 && n[0].Group == "group:ops" }); err != nil {
		t.Error(err)
	}
}

// A person with named channels is asked in the group as well, and in a channel of their own before that one.
func TestAGroupAndPrivateChannels(t *testing.T) {
	h, own := newGroupChannel(), newPhone(fay, "own")
	s := teamIn("group:ops")
	s.People[0].Via, s.People[1].Via = []string{"own", "group"}, []string{"group", "own"}
	st := newEnv(t, s, h, own)
	st.ask(t.Context(), network("x"))
	st.shown(h.Memory, 1)
	st.shown(own.Memory, 1)
	copies, err := st.rows.Copies(t.Context(), st.pending(1)[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, c := range copies {
		all = append(all, c.Person+" "+c.Connector+" "+c.Group)
	}
	if !slices.Equal(all, []string{"fay group group:ops", "fay own ", "sam group group:ops"}) {
		t.Errorf("copies are %q", all)
	}
}

// crossingStore is a store over which a channel replies right after a prompt that it was sending is given up, before anybody
// learns of that.
type crossingStore struct {
	engine.Store
	once   sync.Once
	answer chan struct{}
	noted  chan struct{}
}

func (c *crossingStore) MarkFailed(ctx context.Context, cp permissions.Copy) error {
	err := c.Store.MarkFailed(ctx, cp)
	c.once.Do(func() {
		close(c.answer)
		<-c.noted
	})
	return err
}

func (c *crossingStore) MarkShown(ctx context.Context, cp permissions.Copy, was string) error {
	err := c.Store.MarkShown(ctx, cp, was)
	select {
	case <-c.noted:
	default:
		close(c.noted)
	}
	return err
}

// slowGroupChannel is a groupChannel that holds the first Send back.
type slowGroupChannel struct {
	*groupChannel
	sent, answer chan struct{}
}

func (h slowGroupChannel) Send(ctx context.Context, p connectors.Prompt) (string, error) {
	ref, err := h.groupChannel.Send(ctx, p)
	select {
	case <-h.sent:
	default:
		close(h.sent)
		<-h.answer
	}
	return ref, err
}

// A chat is lost at the very moment its channel confirms the prompt: others are asked anyway.
func TestAChatThatIsLostAsItsCardIsNoted(t *testing.T) {
	for name, c := range map[string]struct {
		place, person, asked string
	}{"a place": {place: "group:ops", asked: "fay"}, "a person's own": {person: "fay", asked: "kim"}} {
		t.Run(name, func(t *testing.T) {
			rows := &crossingStore{answer: make(chan struct{}), noted: make(chan struct{})}
			h := slowGroupChannel{newGroupChannel(), make(chan struct{}), rows.answer}
			s := teamIn(c.place)
			if s.Routes[0].Quorum = 1; c.person != "" {
				s.Routes[0].Ask = []string{c.person}
			}
			st := &env{t: t, dir: t.TempDir(), settings: s, people: []connectors.Connector{h}, through: func(s engine.Store) engine.Store {
				rows.Store = s
				return rows
			}}
			st.open()
			t.Cleanup(func() { st.stop() })
			call := st.ask(t.Context(), network("x"))
			<-h.sent
			if c.person != "" {
				h.UnreachFor(c.person, &connectors.UnreachableError{Reason: "blocked", Lost: true})
			}
			if err := st.ChatLost(t.Context(), "group", c.person, c.place, "the bot was removed"); err != nil {
				t.Fatal(err)
			}
			if err := h.Wait(soon(t), func(copies []connectortest.Copy) bool {
				return slices.ContainsFunc(copies, func(is connectortest.Copy) bool { return is.First.Group == "" && is.First.To.Name == c.asked })
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := st.StopAll(t.Context(), h.Identities["sam"]); err != nil {
				t.Fatal(err)
			}
			st.get(call)
		})
	}
}
