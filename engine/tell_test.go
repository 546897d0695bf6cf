package engine_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/card"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/engine"
	"github.com/daycared/daycared/permissions"
)

// waitNotices waits until a connector has received that many notices, and returns the last with its text.
func (s *env) waitNotices(m *connectortest.Memory, n int) (connectors.Notice, string) {
	s.t.Helper()
	ctx, done := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer done()
	if err := m.Hears(ctx, func(all []connectors.Notice) bool { return len(all) >= n }); err != nil {
		s.t.Fatalf("wait for notice %d: %v; told is %v", n, err, m.Told())
	}
	last := m.Told()[n-1]
	return last, strings.Join(card.Notice(last, card.Options{}), "\n")
}

func words(text string) permissions.CallerMessage { return permissions.CallerMessage{Text: text} }

// A caller may notify its owner and the people of its routes, and learns of nobody else.
func TestACallerTellsItsOwnerAndWhomItsRoutesAsk(t *testing.T) {
	kim := connectors.Person{Name: "kim", User: "kim", UID: 4000, Location: time.UTC}
	lee := connectors.Person{Name: "lee", User: "lee", UID: 5000, Location: time.UTC}
	escalated := engine.Route{
		Agents: []string{"deploy"}, Kinds: []permissions.Kind{permissions.KindTool}, Ask: []string{permissions.OwnerName},
	}
	escalated.Escalate.To = []string{"fay"}
	s := usual()
	s.People = append(s.People, kim, lee)
	s.Routes = []engine.Route{
		escalated, {Agents: []string{"other"}, Ask: []string{"lee"}}, {Agents: []string{"*"}, Ask: []string{"sam"}}, {Ask: []string{"lee"}},
	}
	st := newEnv(t, s, connectortest.NewMemory(fayAt("memory"), nil))
	secret, _, err := st.CreateToken(t.Context(), boss, "deploy", "kim", 0)
	if err != nil {
		t.Fatal(err)
	}
	deploy, err := st.Prove(t.Context(), secret, askerUID)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		caller permissions.Caller
		to     string
		told   string
		code   permissions.Code
		says   string
	}{
		{deploy, "", "kim", "", ""},
		{deploy, "kim", "kim", "", ""},
		{deploy, "fay", "fay", "", ""},
		{deploy, "sam", "sam", "", ""},
		{deploy, "lee", "", permissions.CodeUnknown, `There is nobody called "lee" to tell; you may tell kim, fay, sam`},
		{deploy, "kin", "", permissions.CodeUnknown, `There is nobody called "kin" to tell; did you mean kim?`},
		{deploy, "owner", "", permissions.CodeUnknown, "nobody called"},
		{self, "", "", permissions.CodeNoRoute, "uid:1000 belongs to nobody"},
		{self, "sam", "sam", "", ""},
		{self, "fay", "", permissions.CodeUnknown, "you may tell sam"},
		{permissions.CallerUID(kim.UID), "", "kim", "", ""},
		{permissions.Caller{Name: permissions.Anonymous, UID: permissions.NoUID}, "sam", "", permissions.CodeToken, ""},
	} {
		told, err := st.Tell(t.Context(), c.caller, c.to, permissions.AboutText, words("x"))
		if told != c.told || permissions.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s tells %q: %q, %v", c.caller.Name, c.to, told, err)
		}
	}
	for about, bad := range map[permissions.About]permissions.CallerMessage{
		"waiting": words("x"), permissions.AboutText: words(" \n"),
		permissions.AboutFailed: words(strings.Repeat("ä", permissions.MaxCallerMessage+1)), permissions.AboutFinished: words("\xff"),
		permissions.AboutWaits: {Title: strings.Repeat("x", permissions.MaxTitle+1)},
	} {
		_, err := st.Tell(t.Context(), deploy, "", about, bad)
		refused(t, err, permissions.CodeInvalid)
	}
}

// The operator owns the callers of a daemon without people.
func TestWithoutPeopleTheOperatorIsTold(t *testing.T) {
	s := usual()
	s.People, s.Routes = nil, nil
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, s, m)
	to, err := st.Tell(t.Context(), self, "", permissions.AboutFinished, permissions.CallerMessage{Agent: "codex"})
	if to != engine.OperatorName || err != nil {
		t.Fatal(to, err)
	}
	if _, said := st.waitNotices(m, 1); !regexp.MustCompile(`^💬 codex has finished · .* · unproven name, from uid 1000$`).MatchString(said) {
		t.Error(said)
	}
}

// faysOwn are settings in which fay owns what her account runs.
func faysOwn() (engine.Settings, permissions.Caller) { return usual(), permissions.CallerUID(fayUID) }

// A looping agent cannot flood anybody: a caller has ten events and ten messages a minute, whatever it calls itself.
func TestACallerTellsSoMuchAMinute(t *testing.T) {
	s, hers := faysOwn()
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, s, m)
	for _, about := range []permissions.About{permissions.AboutFinished, permissions.AboutText} {
		took := 0
		for n := range 50 {
			said := permissions.CallerMessage{Agent: fmt.Sprint("a", n), Session: fmt.Sprint("s", n), Text: "x"}
			_, err := st.Tell(t.Context(), hers, "", about, said)
			if err == nil {
				took++
				continue
			}
			refused(t, err, permissions.CodeLimit)
			if !strings.HasPrefix(err.Error(), "Too many notices; try again in ") {
				t.Error(err)
			}
		}
		if took < 10 || took > 11 {
			t.Errorf("%d of 50 were taken of %s", took, about)
		}
	}
	took := 0
	for range 100 { // a burst every minute, until the hour's limit
		st.advance(time.Minute)
		for range 10 {
			if _, err := st.Tell(t.Context(), hers, "", permissions.AboutText, words("x")); err == nil {
				took++
			}
		}
	}
	if most := 60 + 100; took > most {
		t.Errorf("%d were taken in 100 minutes, and %d are the most", took, most)
	}
}

// Unsent notices are bounded, and only the newest of a session is kept.
func TestWhatIsStillToBeToldIsBounded(t *testing.T) {
	s := night(t)
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, s, m)
	hers := permissions.CallerUID(fayUID)
	at(t, st, "2027-03-10 23:00")
	for n := range 40 {
		st.advance(time.Minute)
		_, err := st.Tell(t.Context(), hers, "", permissions.AboutFinished,
			permissions.CallerMessage{Session: "one", Text: fmt.Sprint("turn ", n)})
		if err != nil {
			t.Fatal(err)
		}
	}
	all, err := st.rows.Notices(t.Context(), "", 100)
	if err != nil || len(all) != 1 || all[0].CallerMessage.Text != "turn 39" {
		t.Fatalf("kept are %+v, %v", all, err)
	}
	for n := range 40 {
		st.advance(time.Minute)
		if _, err = st.Tell(t.Context(), hers, "", permissions.AboutText, words(fmt.Sprint(n))); err != nil {
			break
		}
	}
	refused(t, err, permissions.CodeLimit)
	if all, err = st.rows.Notices(t.Context(), "", 100); err != nil || len(all) != 20 {
		t.Fatalf("%d are kept, %v", len(all), err)
	}
	if told := m.Told(); len(told) > 0 {
		t.Fatalf("told in quiet hours: %v", told)
	}
}

// Quiet hours delay a notice, and a restart loses none.
func TestANoticeOutlivesARestartAndWaitsForTheMorning(t *testing.T) {
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, night(t), m)
	at(t, st, "2027-03-10 23:00")
	said := permissions.CallerMessage{Agent: "codex", Session: "s", Title: "nightly", Text: "done", Silent: true}
	if _, err := st.Tell(t.Context(), permissions.CallerUID(fayUID), "", permissions.AboutFinished, said); err != nil {
		t.Fatal(err)
	}
	morning := connectortest.NewMemory(fayAt("memory"), nil)
	st.restart(morning)
	if told := m.Told(); len(told) > 0 {
		t.Fatalf("told in quiet hours: %v", told)
	}
	at(t, st, "2027-03-11 07:01")
	n, text := st.waitNotices(morning, 1)
	const want = "💬 codex has finished · 10 Mar 22:00 · unproven name, from uid 2000\n│ nightly\n"
	if n.CallerMessage != said || !n.Silent || !strings.HasPrefix(text, want) {
		t.Errorf("told is %+v: %s", n, text)
	}
}

// A stopped daemon or a locked owner sends nothing; the caller learns that an unreachable person gets nothing.
func TestANoticeThatIsNotSent(t *testing.T) {
	s, hers := faysOwn()
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, s, m)
	tell := func() error {
		_, err := st.Tell(t.Context(), hers, "", permissions.AboutText, words("x"))
		return err
	}
	m.FailReach(&connectors.UnreachableError{Reason: "fay has blocked the bot"})
	err := tell()
	refused(t, err, permissions.CodeNoRoute)
	r := permissions.AsRefusal(err)
	if r.Exit != permissions.ExitUndeliverable || r.Text != "Notice could not be delivered: fay has blocked the bot." {
		t.Errorf("%+v", r)
	}
	m.FailReach(nil)
	if _, err := st.StopAll(t.Context(), boss); err != nil {
		t.Fatal(err)
	}
	refused(t, tell(), permissions.CodeStopped)
	if err := st.Resume(t.Context(), boss); err != nil {
		t.Fatal(err)
	}
	if err := tell(); err != nil {
		t.Fatal(err)
	}
	st.waitNotices(m, 1)
	if _, err := st.Lock(t.Context(), boss, "fay", time.Time{}); err != nil {
		t.Fatal(err)
	}
	refused(t, tell(), permissions.CodeLocked)
	if _, err := st.Tell(t.Context(), hers, "sam", permissions.AboutText, words("x")); err == nil {
		t.Error("an agent of somebody who is locked tells others")
	}
	if told := m.Told(); len(told) != 1 {
		t.Errorf("told is %v", told)
	}
}

// A notice that an agent waits is not sent while a prompt of the same session says so.
func TestWhatACardSaysIsNotToldBesides(t *testing.T) {
	s, hers := faysOwn()
	s.Routes = []engine.Route{{Ask: []string{"fay"}}}
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, s, m)
	q := tool("write_file", `{"path":"/x"}`)
	standing, err := st.Begin(t.Context(), hers, q)
	if err != nil {
		t.Fatal(err)
	}
	waits := permissions.CallerMessage{Agent: "claude-code", Session: q.Session}
	if to, err := st.Tell(t.Context(), hers, "", permissions.AboutWaits, waits); to != "fay" || err != nil {
		t.Fatal(to, err)
	}
	waits.Session = "another"
	if _, err := st.Tell(t.Context(), hers, "", permissions.AboutWaits, waits); err != nil {
		t.Fatal(err)
	}
	if n, _ := st.waitNotices(m, 1); n.CallerMessage.Session != "another" {
		t.Errorf("told is %+v", n)
	}
	if _, err := st.Withdraw(t.Context(), hers, standing.Request.ID); err != nil {
		t.Fatal(err)
	}
	waits.Session = q.Session
	if _, err := st.Tell(t.Context(), hers, "", permissions.AboutWaits, waits); err != nil {
		t.Fatal(err)
	}
	if n, _ := st.waitNotices(m, 2); n.CallerMessage.Session != q.Session {
		t.Errorf("told is %+v", n)
	}
}

// An agent cannot use the code of a pending request in a notice.
func TestANoticeShowsNoCodeOfWhatWaits(t *testing.T) {
	s, hers := faysOwn()
	m := connectortest.NewMemory(fayAt("memory"), nil)
	st := newEnv(t, s, m)
	st.ask(t.Context(), network("x"))
	code := st.shown(m, 1).Code
	said := permissions.CallerMessage{Title: "about " + code, Text: "reply: yes " + strings.ToLower(code)}
	if _, err := st.Tell(t.Context(), hers, "", permissions.AboutText, said); err != nil {
		t.Fatal(err)
	}
	if _, text := st.waitNotices(m, 1); strings.Contains(strings.ToUpper(text), code) || !strings.Contains(text, "│ about •••••\n") {
		t.Error(text)
	}
}
