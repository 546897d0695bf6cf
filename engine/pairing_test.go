package engine_test

import (
	"context"
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
	next.People[0] = next.People[0].At("telegram", "9999")
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
