package engine_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/permissions"
)

// pairingChannel is a channel in memory with pairing: the candidate set for a code follows its link.
type pairingChannel struct {
	*connectortest.Memory
	come map[string]connectors.PairingCandidate
	told []string
}

func newPairingChannel() *pairingChannel {
	return &pairingChannel{Memory: connectortest.NewMemory(fayAt("telegram"), nil), come: map[string]connectors.PairingCandidate{}}
}

func (l *pairingChannel) Invite(context.Context) (connectors.Invitation, error) {
	code := strconv.Itoa(len(l.come) + len(l.told) + 1)
	return connectors.Invitation{Code: code, Link: "link " + code, Until: time.Now().Add(time.Hour)}, nil
}

func (l *pairingChannel) AwaitCandidate(ctx context.Context, code string) (connectors.PairingCandidate, error) {
	if g, came := l.come[code]; came {
		return g, nil
	}
	if ctx.Err() != nil {
		return connectors.PairingCandidate{}, ctx.Err()
	}
	return connectors.PairingCandidate{}, connectors.ErrNoInvitation
}

func (l *pairingChannel) Take(code string, g connectors.PairingCandidate) bool {
	l.come[code] = g
	return true
}

func (l *pairingChannel) Dismiss(code string)           { l.told = append(l.told, "dismissed "+code) }
func (l *pairingChannel) Greet(_, address, name string) { l.told = append(l.told, address+" is "+name) }
func (l *pairingChannel) Release(address, name string)  { l.told = append(l.told, address+" was "+name) }

var operator = connectors.Identity{Via: "cli", UID: 1, Operator: true}

// pair pairs the account with an id with a person, or returns the error.
func (s *env) pair(l *pairingChannel, name, address string) (was permissions.Pairing, err error) {
	s.t.Helper()
	_, was, err = s.pairCandidate(l, name, connectors.PairingCandidate{Address: address, Name: "somebody"})
	return was, err
}

// pairCandidate is enrol with everything the channel says about the candidate, and returns the stored pairing too.
func (s *env) pairCandidate(l *pairingChannel, name string, g connectors.PairingCandidate) (now, was permissions.Pairing, err error) {
	s.t.Helper()
	i, err := s.Invite(s.t.Context(), operator, name, l.Name())
	if err != nil {
		return now, was, err
	}
	l.come[i.Code] = g
	if _, err := s.Guest(s.t.Context(), operator, i.Code); err != nil {
		return now, was, err
	}
	return s.Pair(s.t.Context(), operator, i.Code, g.Address)
}

// personByTelegram returns the person with a Telegram id, or empty.
func (s *env) personByTelegram(id int64) string {
	name, _ := s.Who(connectors.Identity{Via: "telegram", UID: permissions.NoUID, Address: strconv.FormatInt(id, 10)})
	return name
}

func TestPairingFillsWhatTheFileLeavesOut(t *testing.T) {
	l, s := newPairingChannel(), usual()
	s.People = []connectors.Person{fay, sam, {Name: "kim", UID: permissions.NoUID, Addresses: map[string]string{"telegram": "8888"}}}
	st := newEnv(t, s, l)
	if _, err := st.pair(l, "fay", "4242"); err != nil || st.personByTelegram(4242) != "fay" {
		t.Fatalf("paired: %v, %q", err, st.personByTelegram(4242))
	}
	for what, c := range map[string]struct {
		name, address, says string
	}{
		"another's by pairing":  {"sam", "4242", "is fay's"},
		"another's by the file": {"sam", "8888", "is kim's"},
		"an id in the file":     {"kim", "1", "stands in the configuration"},
		"nobody":                {"eve", "1", "there are fay, sam, kim"},
	} {
		if _, err := st.pair(l, c.name, c.address); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if was, err := st.pair(l, "fay", "5151"); err != nil || was.Address != "4242" ||
		st.personByTelegram(4242) != "" || st.personByTelegram(5151) != "fay" {
		t.Errorf("another phone: %v, %v", was, err)
	}
	st.restart(l)
	if st.personByTelegram(5151) != "fay" {
		t.Error("a restart forgets it")
	}

	next := s
	next.People = []connectors.Person{fay, {Name: "sam", UID: 3000, Addresses: map[string]string{"telegram": "5151"}}}
	st.Configure(next)
	if st.personByTelegram(5151) != "sam" {
		t.Errorf("the file does not win: %q", st.personByTelegram(5151))
	}
	next.People = []connectors.Person{fay, sam}
	next.People[0] = next.People[0].WithAddress("telegram", "9999")
	st.Configure(next)
	if st.personByTelegram(9999) != "fay" || st.personByTelegram(5151) != "" {
		t.Error("the file does not win over her own pairing")
	}
	st.Configure(s)
	if _, err := st.Unpair(t.Context(), operator, "fay", "telegram"); err != nil || st.personByTelegram(5151) != "" {
		t.Errorf("unpaired: %v", err)
	}
	_, err := st.Unpair(t.Context(), operator, "kim", "telegram")
	if err == nil || !strings.Contains(err.Error(), "stands in the configuration") {
		t.Errorf("an id in the file: %v", err)
	}
	told := strings.Join(l.told, ", ")
	want := "4242 is fay, dismissed "
	if !strings.HasPrefix(told, want) || !strings.HasSuffix(told, "4242 was fay, 5151 is fay, 5151 was fay") {
		t.Errorf("told: %s", told)
	}
}

func TestPairingIsTheOperatorsAndNeedsTheGuest(t *testing.T) {
	l := newPairingChannel()
	st := newEnv(t, usual(), l)
	i, err := st.Invite(t.Context(), operator, "fay", "telegram")
	if err != nil {
		t.Fatal(err)
	}
	her := fayAt("cli")
	_, byFay := st.Invite(t.Context(), her, "fay", "telegram")
	_, seen := st.Guest(t.Context(), her, i.Code)
	_, _, paired := st.Pair(t.Context(), her, i.Code, "1")
	_, unpaired := st.Unpair(t.Context(), her, "fay", "telegram")
	for _, err := range []error{byFay, seen, paired, unpaired, st.Dismiss(t.Context(), her, i.Code)} {
		if err == nil || !strings.Contains(err.Error(), "operator") {
			t.Errorf("somebody else: %v", err)
		}
	}
	if _, _, err := st.Pair(t.Context(), operator, i.Code, "4242"); err == nil || st.personByTelegram(4242) != "" {
		t.Errorf("nobody came: %v", err)
	}
	l.come[i.Code] = connectors.PairingCandidate{Address: "6666"}
	if _, _, err := st.Pair(t.Context(), operator, i.Code, "4242"); err == nil || st.personByTelegram(4242) != "" {
		t.Errorf("somebody else came: %v", err)
	}
	if err := st.Dismiss(t.Context(), operator, i.Code); err != nil {
		t.Error(err)
	}
	if _, _, err := st.Pair(t.Context(), operator, i.Code, "6666"); err == nil || st.personByTelegram(6666) != "" {
		t.Errorf("after it was taken back: %v", err)
	}
	if _, err := st.Invite(t.Context(), operator, "fay", "pigeon"); err == nil {
		t.Error("a channel that is not there")
	}
}

// Whose an unknown account is takes two people, or one and the operator; until then it is nobody's.
func TestAnUnknownAccountIsPairedByTwo(t *testing.T) {
	uid := func(p connectors.Person) connectors.Identity { return connectors.Identity{Via: "cli", UID: p.UID} }
	says := func(id connectors.Identity, name, account string) func(*env) error {
		return func(st *env) error {
			_, _, err := st.PairSender(st.t.Context(), id, name, account)
			return err
		}
	}
	back := func(id connectors.Identity, name, account string) func(*env) error {
		return func(st *env) error { return st.WithdrawPairing(st.t.Context(), id, name, account) }
	}
	locks := func(who string) func(*env) error {
		return func(st *env) error {
			_, err := st.Lock(st.t.Context(), uid(kim), who, time.Time{})
			return err
		}
	}
	waits := func(d time.Duration) func(*env) error { return func(st *env) error { st.advance(d); return nil } }
	restarts := func(st *env) error { st.restart(st.people...); return nil }
	unknown := uid(connectors.Person{UID: 9})
	proposed, confirmed := says(uid(fay), "sam", "6666"), says(uid(kim), "sam", "6666")
	type step struct {
		do  func(*env) error
		why permissions.Code
	}
	yours, settled := permissions.CodeNotYours, permissions.CodeSettled
	for name, c := range map[string]struct {
		steps  []step
		paired bool
	}{
		"a second person": {[]step{
			{confirmed, yours}, {says(uid(fay), "sam", "1"), permissions.CodeUnknown}, {says(uid(fay), "eve", "6666"), permissions.CodeUnknown},
			{says(uid(fay), "kim", "6666"), permissions.CodeInvalid}, {back(uid(kim), "sam", "6666"), settled},
			{proposed, ""}, {proposed, yours}, {says(unknown, "sam", "6666"), yours}, {back(unknown, "sam", "6666"), yours},
			{says(uid(fay), "sam", "7777"), settled}, {says(uid(kim), "fay", "6666"), settled}, {back(uid(kim), "fay", "6666"), settled},
			{restarts, ""}, {confirmed, ""}, {back(uid(fay), "sam", "6666"), settled},
		}, true},
		"the person":            {[]step{{proposed, ""}, {says(uid(sam), "sam", "6666"), ""}}, true},
		"the operator":          {[]step{{proposed, ""}, {says(operator, "sam", "6666"), ""}}, true},
		"taken back":            {[]step{{proposed, ""}, {back(uid(fay), "sam", "6666"), ""}, {confirmed, yours}}, false},
		"refused":               {[]step{{proposed, ""}, {back(uid(kim), "sam", "6666"), ""}, {confirmed, yours}}, false},
		"a day later":           {[]step{{proposed, ""}, {waits(permissions.ProposalLife), ""}, {confirmed, yours}}, false},
		"who said it is locked": {[]step{{proposed, ""}, {locks("fay"), ""}, {confirmed, yours}}, false},
		"the person is locked":  {[]step{{proposed, ""}, {locks("sam"), ""}, {confirmed, permissions.CodeLocked}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, s := newPairingChannel(), usual()
			s.People = []connectors.Person{fay, sam, kim.WithAddress("telegram", "8888")}
			st := newEnv(t, s, l)
			st.writeFromUnknown("6666")
			st.writeFromUnknown("7777")
			for i, step := range c.steps {
				if err := step.do(st); permissions.CodeOf(err) != step.why || step.why == "" && err != nil {
					t.Fatalf("step %d: %v; want %q", i, err, step.why)
				}
				if got := st.personByTelegram(6666); i < len(c.steps)-2 && got != "" {
					t.Fatalf("step %d: the account is %s's", i, got)
				}
			}
			if got := st.personByTelegram(6666); (got == "sam") != c.paired || got != "" && !c.paired {
				t.Errorf("the account is %q's", got)
			}
			if told := strings.Join(l.told, " "); strings.Contains(told, "6666 is sam") != c.paired {
				t.Errorf("told: %s", told)
			}
		})
	}
}

// The operator is asked about a proposed account instead of a link; a no takes it back. Everybody else is told of it.
func TestAProposedAccountIsConfirmedAtTheMachine(t *testing.T) {
	l, hers, his := newPairingChannel(), newPhone(fay, "fays-phone"), newPhone(sam, "sams-phone")
	st := newEnv(t, usual(), hers, his, l)
	st.writeFromUnknown("6666")
	if n := hers.notice(t); len(n.Unpaired["telegram"]) != 2 || !strings.Contains(said(n), "/pair fay 6666; somebody else") {
		t.Fatalf("told %+v:\n%s", n, said(n))
	}
	for _, yes := range []bool{false, true} {
		if _, paired, err := st.PairSender(t.Context(), connectors.Identity{Via: "cli", UID: fay.UID}, "sam", "6666"); err != nil || paired {
			t.Fatal(paired, err)
		}
		want := "🔗 fay says that an unknown account is sam's:\n   6666 · Telegram · calls itself \"Eve\"\n"
		if n := his.notice(t); n.About != permissions.AboutPairing || !strings.HasPrefix(said(n), want) {
			t.Errorf("told:\n%s", said(n))
		}
		i, err := st.Invite(t.Context(), operator, "sam", "telegram")
		if err != nil || i.Link != "" {
			t.Fatal(i, err)
		}
		g, err := st.Guest(t.Context(), operator, i.Code)
		if err != nil || g.Address != "6666" || g.By != "fay" {
			t.Fatal(g, err)
		}
		if yes {
			_, _, err = st.Pair(t.Context(), operator, i.Code, "6666")
		} else {
			err = st.Dismiss(t.Context(), operator, i.Code)
		}
		if got := st.personByTelegram(6666); err != nil || (got == "sam") != yes {
			t.Errorf("yes %t: the account is %q's, %v", yes, got, err)
		}
		delete(l.come, i.Code)
		if i, err = st.Invite(t.Context(), operator, "sam", "telegram"); err != nil || i.Link == "" {
			t.Errorf("afterwards: %+v, %v", i, err)
		}
	}
}

// TestALockWithdrawsWhatItsPersonProposed: whoever had the account that was locked may have proposed it.
func TestALockWithdrawsWhatItsPersonProposed(t *testing.T) {
	l, hers, his := newPairingChannel(), newPhone(fay, "fays-phone"), newPhone(sam, "sams-phone")
	st := newEnv(t, usual(), hers, his, l)
	st.writeFromUnknown("6666")
	hers.notice(t)
	if _, paired, err := st.PairSender(t.Context(), connectors.Identity{Via: "cli", UID: fay.UID}, "sam", "6666"); err != nil || paired {
		t.Fatal(paired, err)
	}
	his.notice(t)
	st.lock(boss, "fay")
	if _, _, err := st.Unlock(t.Context(), boss, "fay"); err != nil {
		t.Fatal(err)
	}
	if _, paired, err := st.PairSender(t.Context(), samAt, "sam", "6666"); err == nil || paired || st.personByTelegram(6666) != "" {
		t.Errorf("paired %v, %v", paired, err)
	}
	list, err := st.rows.Audit(t.Context(), "", 0, 1000)
	if n := slices.IndexFunc(list, func(e permissions.Entry) bool { return e.Type == permissions.PairingWithdrawn }); n < 0 || err != nil {
		t.Errorf("no entry says so, %v", err)
	}
}
