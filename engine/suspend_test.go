package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// numberChannel is a pairingChannel that identifies people by their numbers.
type numberChannel struct{ *pairingChannel }

const number = "+491511234567"

func newNumberChannel() numberChannel {
	l := newPairingChannel()
	l.Memory = connectortest.NewMemory(dialled(number, ""), nil)
	return numberChannel{l}
}

// dialled returns the identity of a number, as WhatsApp proves it.
func dialled(number, alias string) connectors.Identity {
	return connectors.Identity{Via: "whatsapp", UID: permissions.NoUID, Address: number, Alias: alias}
}

// personByNumber returns the person with a number, or empty.
func (s *env) personByNumber(number, alias string) string {
	name, _ := s.Who(dialled(number, alias))
	return name
}

// suspend suspends an account, which must succeed.
func (s *env) suspend(via, address string) {
	s.t.Helper()
	if err := s.Suspend(s.t.Context(), via, address); err != nil {
		s.t.Fatal(err)
	}
}

// numbered is fay with a number in the configuration and a Telegram account, and sam without any.
func numbered() engine.Settings {
	s := usual()
	person := fay
	person.Addresses = map[string]string{"whatsapp": number}
	person.Via = []string{"whatsapp", "telegram"}
	s.People = []connectors.Person{person, sam}
	return s
}

const enrolAgain = "fay's whatsapp account has changed its keys: enrol it again with daycared pair fay --via whatsapp"

func (s *env) suspensions() (n int) {
	s.t.Helper()
	entries, err := s.rows.Audit(s.t.Context(), "", 0, 100)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type == permissions.AccountSuspended && e.Actor == "fay" && e.Via == "whatsapp" {
			n++
		}
	}
	return n
}

func TestASuspendedAccountBelongsToNobody(t *testing.T) {
	t.Run("A8/a suspended account", func(t *testing.T) {
		w, telegram := newNumberChannel(), newPhone(fay, "telegram")
		st := newEnv(t, numbered(), w, telegram)
		call := st.ask(t.Context(), network("x"))
		id := st.shown(w.Memory, 1).Request.ID
		st.suspend("whatsapp", number)
		if _, err := w.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()}); err == nil || st.personByNumber(number, "") != "" {
			t.Errorf("she answers there: %v", err)
		}
		st.shown(telegram.Memory, 1)
		copies, err := st.rows.Copies(t.Context(), id)
		if err != nil || !slices.ContainsFunc(copies, func(c permissions.Copy) bool {
			return c.Connector == "whatsapp" && c.Failed == enrolAgain
		}) {
			t.Errorf("the copies: %+v, %v", copies, err)
		}
		telegram.must(t, id, allow())
		if r := st.get(call); r.State != permissions.Approved {
			t.Errorf("answered elsewhere: %s", r.State)
		}

		st.suspend("whatsapp", number) // the same again
		st.suspend("whatsapp", "+1")   // unknown
		st.suspend("pigeon", number)
		if n := st.suspensions(); n != 1 {
			t.Errorf("audited %d times", n)
		}
		w, telegram = newNumberChannel(), newPhone(fay, "telegram")
		st.restart(w, telegram)
		st.ask(t.Context(), network("y"))
		st.shown(telegram.Memory, 1)
		if len(w.Copies()) > 0 || st.personByNumber(number, "") != "" {
			t.Error("a restart forgets it")
		}
		if err := st.Health()["whatsapp"]; err == nil || err.Error() != enrolAgain {
			t.Errorf("its health: %v", err)
		}
		if p := st.People()[0]; p.Addresses["whatsapp"] != "" || !slices.Equal(p.Suspended, []string{"whatsapp"}) {
			t.Errorf("fay: %+v", p)
		}
	})
}

func TestASuspensionEndsWithAnEnrolment(t *testing.T) {
	w := newNumberChannel()
	st := newEnv(t, numbered(), w)
	enrol := func(name, number, alias string) error {
		t.Helper()
		i, err := st.Invite(t.Context(), operator, name, "whatsapp")
		if err != nil {
			return err
		}
		w.come[i.Code] = connectors.PairingCandidate{Address: number, Alias: alias}
		if _, err := st.Guest(t.Context(), operator, i.Code); err != nil {
			return err
		}
		now, was, err := st.Pair(t.Context(), operator, i.Code, number)
		if err == nil && (now.Address != number || now.Alias != alias || was.Address != "") {
			t.Errorf("%s is %+v, was %+v", name, now, was)
		}
		return err
	}
	if err := enrol("fay", number, "7@lid"); err == nil || !strings.Contains(err.Error(), "stands in the configuration") {
		t.Errorf("without a suspension: %v", err)
	}
	for _, alias := range []string{"7@lid", "8@lid"} { // the second time with a pairing of that number
		st.suspend("whatsapp", number)
		if err := enrol("sam", number, alias); err == nil || !strings.Contains(err.Error(), "is fay's") {
			t.Errorf("her account for sam: %v", err)
		}
		if err := enrol("fay", "+1", alias); err == nil || !strings.Contains(err.Error(), "stands in the configuration") {
			t.Errorf("another account: %v", err)
		}
		if st.personByNumber(number, "") != "" || st.Health()["whatsapp"] == nil {
			t.Error("it is over before the end")
		}
		if err := enrol("fay", number, alias); err != nil || st.Health()["whatsapp"] != nil {
			t.Errorf("enrolled again: %v, %v", err, st.Health())
		}
		if st.personByNumber(number, alias) != "fay" || st.personByNumber(number, "") != "fay" || st.personByNumber(number, "9@lid") != "" {
			t.Error("what WhatsApp calls her besides is not compared")
		}
	}
	st.suspend("whatsapp", number)
	if err := enrol("fay", number, "8@lid"); err != nil || st.personByNumber(number, "8@lid") != "fay" {
		t.Errorf("enrolled as before: %v", err)
	}
	if _, err := st.Unpair(t.Context(), operator, "fay", "whatsapp"); err == nil || !strings.Contains(err.Error(), "stands in the") {
		t.Errorf("unpaired, and the file names it: %v", err)
	}
	w = newNumberChannel()
	st.restart(w)
	if st.personByNumber(number, "8@lid") != "fay" || st.personByNumber(number, "9@lid") != "" {
		t.Error("a restart forgets it")
	}
	call := st.ask(t.Context(), network("x"))
	p := st.shown(w.Memory, 1)
	if _, err := w.Do(t.Context(), connectors.Decision{Request: p.Request.ID, Answer: allow()}); err != nil {
		t.Error(err)
	}
	if r := st.get(call); r.State != permissions.Approved || p.To.Aliases["whatsapp"] != "8@lid" {
		t.Errorf("asked there again: %s, %+v", r.State, p.To)
	}
}

func TestASuspendedPairing(t *testing.T) {
	t.Run("A8/a suspended pairing", func(t *testing.T) {
		w, s := newNumberChannel(), usual()
		st := newEnv(t, s, w)
		if _, _, err := bringTo(st, w, "fay", "7@lid"); err != nil {
			t.Fatal(err)
		}
		st.suspend("whatsapp", number)
		if _, was, err := bringTo(st, w, "fay", "7@lid"); err != nil || was.Address != "" || st.personByNumber(number, "7@lid") != "fay" {
			t.Errorf("the same pairing again: %+v, %v", was, err)
		}
		st.suspend("whatsapp", number)
		if _, err := st.Unpair(t.Context(), operator, "fay", "whatsapp"); err != nil || st.Health()["whatsapp"] != nil {
			t.Errorf("unpaired: %v, %v", err, st.Health())
		}
		if last := w.told[len(w.told)-1]; last != number+" is fay" {
			t.Errorf("the account is told: %s", last)
		}
		s.People = numbered().People
		if st.Configure(s); st.personByNumber(number, "") != "" {
			t.Error("the file alone ends it")
		}
		w = newNumberChannel()
		st.settings = s
		st.restart(w)
		if _, _, err := bringTo(st, w, "fay", "9@lid"); err != nil || st.personByNumber(number, "9@lid") != "fay" {
			t.Errorf("enrolled again: %v", err)
		}
	})
}

// bringTo pairs the holder of the number with a person.
func bringTo(s *env, w numberChannel, name, alias string) (now, was permissions.Pairing, err error) {
	s.t.Helper()
	return s.pairCandidate(w.pairingChannel, name, connectors.PairingCandidate{Address: number, Alias: alias})
}

func TestSuspendedAndNobodyElseToAsk(t *testing.T) {
	w := newNumberChannel()
	st := newEnv(t, numbered(), w)
	call := st.ask(t.Context(), network("x"))
	st.shown(w.Memory, 1)
	st.suspend("whatsapp", number)
	if r := st.get(call); r.State != permissions.Undeliverable || !strings.Contains(r.Failure, enrolAgain) {
		t.Errorf("%s: %s", r.State, r.Failure)
	}
	r := st.get(st.ask(t.Context(), network("y")))
	if r.State != permissions.Undeliverable || !strings.Contains(r.Failure, enrolAgain) || len(w.Copies()) != 1 {
		t.Errorf("the next: %s: %s", r.State, r.Failure)
	}
	if c := w.Copies()[0]; c.Edits != 0 {
		t.Error("what was sent there is edited")
	}
}

func TestVotesOfBeforeTheSuspensionStay(t *testing.T) {
	w, sams := newNumberChannel(), newPhone(sam, "sams-phone")
	settings := numbered()
	settings.People[0].Via = nil
	settings.Routes = []engine.Route{{Ask: []string{"fay", "sam"}, Quorum: 2}}
	w.UnreachFor("sam", &connectors.UnreachableError{Reason: "sam has no number"})
	st := newEnv(t, settings, w, sams)
	call := st.ask(t.Context(), network("x"))
	id := st.shown(w.Memory, 1).Request.ID
	st.shown(sams.Memory, 1)
	if _, err := w.Do(t.Context(), connectors.Decision{Request: id, Answer: allow()}); err != nil {
		t.Fatal(err)
	}
	st.suspend("whatsapp", number)
	st.eventually("her copy is not given up", func() bool {
		copies, err := st.rows.Copies(t.Context(), id)
		return err == nil && slices.ContainsFunc(copies, func(c permissions.Copy) bool { return c.Failed == enrolAgain })
	})
	sams.must(t, id, allow())
	if r := st.get(call); r.State != permissions.Approved {
		t.Errorf("sam is the second: %s", r.State)
	}
}

// A daemon that stops right after a suspension examines the pending requests when it starts.
func TestASuspensionThatNobodyLookedAt(t *testing.T) {
	w := newNumberChannel()
	st := newEnv(t, numbered(), w, newPhone(fay, "telegram"))
	st.ask(t.Context(), network("x"))
	st.shown(w.Memory, 1)
	if err := st.rows.Suspend(t.Context(), "whatsapp", number, "fay", st.now()); err != nil {
		t.Fatal(err)
	}
	telegram := newPhone(fay, "telegram")
	st.restart(newNumberChannel(), telegram)
	st.shown(telegram.Memory, 1)
}

func TestASuspensionThatCannotBeStored(t *testing.T) {
	f := &flakyStore{}
	f.suspend.Store(1)
	st := newEnvOver(t, f, numbered(), newNumberChannel())
	if err := st.Suspend(t.Context(), "whatsapp", number); err == nil || st.personByNumber(number, "") != "" {
		t.Errorf("it is fay's until it is stored: %v", err)
	}
	st.suspend("whatsapp", number)
	st.restart(newNumberChannel())
	if st.personByNumber(number, "") != "" || st.suspensions() != 1 {
		t.Error("once more, and not stored")
	}
}

// pairingGroupChannel is a groupChannel with pairing.
type pairingGroupChannel struct {
	*groupChannel
	connectors.Pairer
}

// In a group the prompt stays for the others; the suspended account does not count there.
func TestASuspendedAccountInAGroup(t *testing.T) {
	h := pairingGroupChannel{newGroupChannel(), newNumberChannel()}
	h.Identities["fay"] = connectors.Identity{Via: "group", UID: permissions.NoUID, Address: number}
	settings := teamIn("group:ops")
	settings.People[0] = settings.People[0].WithAddress("group", number)
	settings.Routes[0].Escalate.To = nil
	st := newEnv(t, settings, h)
	call := st.ask(t.Context(), network("x"))
	st.shown(h.Memory, 1)
	st.suspend("group", number)
	if r := st.get(call); r.State != permissions.Undeliverable || !strings.Contains(r.Failure, "fay's group account has changed") {
		t.Errorf("two it takes, and one is left: %s: %s", r.State, r.Failure)
	}

	settings.Routes[0].Quorum = 1
	st.Configure(settings)
	call = st.ask(t.Context(), network("y"))
	card := func() connectortest.Copy { st.shown(h.Memory, 2); return h.Copies()[1] }()
	if card.First.Group != "group:ops" {
		t.Errorf("sent to %q", card.First.Group)
	}
	_, err := h.presses(t, "fay", card, allow())
	refused(t, err, permissions.CodeNotYours)
	if _, err := h.presses(t, "sam", card, allow()); err != nil {
		t.Fatal(err)
	}
	if r := st.get(call); r.State != permissions.Approved {
		t.Errorf("sam's press: %s", r.State)
	}
}

// A request that was settled meanwhile is not shown at a suspended account.
func TestNothingIsEditedAtASuspendedAccount(t *testing.T) {
	w := newNumberChannel()
	st := newEnv(t, numbered(), w)
	st.ask(t.Context(), network("x"))
	id := st.shown(w.Memory, 1).Request.ID
	if err := st.rows.Suspend(t.Context(), "whatsapp", number, "fay", st.now()); err != nil {
		t.Fatal(err)
	}
	if _, err := st.rows.Apply(t.Context(), id, permissions.Expire{At: st.now(), Spent: true}); err != nil {
		t.Fatal(err)
	}
	st.restart(w)
	st.eventually("the copy is not given up", func() bool {
		copies, err := st.rows.Copies(t.Context(), id)
		return err == nil && copies[0].Failed == enrolAgain
	})
	if n := w.Copies()[0].Edits; n != 0 {
		t.Errorf("edited %d times", n)
	}
}

func TestAgentsSayNothingToASuspendedAccount(t *testing.T) {
	w, helper := newNumberChannel(), newEchoAgent("helper", "fay", "whatsapp")
	st := newEnvWithAgents(t, numbered(), []agents.Resident{helper}, w)
	if err := helper.voice().Say(t.Context(), "", "before"); err != nil {
		t.Fatal(err)
	}
	if err := w.Sees(soon(t), "before"); err != nil {
		t.Fatal(err)
	}
	st.suspend("whatsapp", number)
	helper.voice().Working(true)
	if err := helper.voice().Say(t.Context(), "", "afterwards"); err != nil {
		t.Fatal(err)
	}
	st.eventually("it still waits", func() bool {
		left, err := st.rows.UnsentAgentMessages(t.Context(), "helper", 1)
		return err == nil && len(left) == 0
	})
	if strings.Contains(w.Seen(), "afterwards") {
		t.Error("it is said to whoever has the account now")
	}
}

// slow is a numberChannel that sends slowly.
type slow struct {
	numberChannel
	begun, goOn chan struct{}
}

func (s slow) Send(ctx context.Context, p connectors.Prompt) (string, error) {
	close(s.begun)
	<-s.goOn
	return s.numberChannel.Send(ctx, p)
}

func TestSuspendedWhileACardIsSent(t *testing.T) {
	w := slow{newNumberChannel(), make(chan struct{}), make(chan struct{})}
	settings := numbered()
	settings.Routes = []engine.Route{{Ask: []string{"fay", "sam"}}}
	w.UnreachFor("sam", &connectors.UnreachableError{Reason: "sam has no number"})
	sams := newPhone(sam, "sams-phone")
	st := newEnv(t, settings, w, sams)
	st.ask(t.Context(), network("x"))
	id := st.shown(sams.Memory, 1).Request.ID
	<-w.begun
	st.suspend("whatsapp", number)
	failed := func(sent bool) func() bool {
		return func() bool {
			copies, err := st.rows.Copies(t.Context(), id)
			return err == nil && slices.ContainsFunc(copies, func(c permissions.Copy) bool {
				return c.Connector == "whatsapp" && c.Failed == enrolAgain && !c.SentAt.IsZero() == sent
			})
		}
	}
	st.eventually("her copy is not given up", failed(false))
	close(w.goOn)
	st.eventually("the card counts as one that she can answer", failed(true))
}
