package conversation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// forgetful stores nothing, and nothing waits there.
type forgetful struct {
	connectors.Inbound
	why error
}

func (d forgetful) OnMessage(context.Context, connectors.Message) error { return d.why }

func (d forgetful) OnPermission(context.Context, connectors.Decision) (permissions.Request, error) {
	return permissions.Request{}, d.why
}

func (d forgetful) Pending(context.Context, connectors.Identity, permissions.ID, int) ([]permissions.RequestView, error) {
	return nil, nil
}

func (d forgetful) StopAll(context.Context, connectors.Identity) (int, error) { return 0, d.why }

func (d forgetful) Agents(context.Context, connectors.Identity) ([]permissions.Presence, error) {
	return nil, permissions.NoAgent()
}

func (d forgetful) Order(context.Context, connectors.Identity, permissions.Order, string) (string, error) {
	return "", permissions.NoAgent()
}

func (d forgetful) Grants(context.Context, connectors.Identity, permissions.ID, int) ([]permissions.Grant, error) {
	return nil, nil
}

func (d forgetful) Lock(context.Context, connectors.Identity, string, time.Time) (l permissions.Locked, err error) {
	return l, permissions.Invalid(errors.New("use: daycared lock NAME"))
}

func (d forgetful) StoppedBy() string { return "" }

func over(why error) *Reader {
	return New(Options{
		Inbound: forgetful{why: why}, Now: time.Now, Help: "Press a button.",
		Account: func(connectors.Identity, i18n.Language) string { return "Your number is 7." },
	})
}

func wrote(text string) Message {
	return Message{Message: connectors.Message{Text: text, Key: "1"}, Who: connectors.Person{Name: "fay"}, At: time.Now()}
}

// When a card was shown counts by the clock of the channel, which dates what people write.
func TestShownByTheChannelsClock(t *testing.T) {
	ours := time.Unix(1_700_000_000, 5e8)
	ahead := func(at time.Time) time.Time { return at.Add(time.Minute) }
	for _, c := range []struct {
		shown  permissions.Copy
		theirs func(time.Time) time.Time
		want   int64
	}{
		{permissions.Copy{DueAt: ours, SentAt: ours.Add(time.Hour), ChannelTime: ours.Add(-time.Hour)}, ahead, 1_700_000_000 - 3600},
		{permissions.Copy{DueAt: ours, SentAt: ours.Add(time.Hour)}, ahead, 1_700_000_060 + 3600},
		{permissions.Copy{DueAt: ours}, nil, 1_700_000_000},
	} {
		r := New(Options{Theirs: c.theirs})
		if got := r.shownAt(c.shown); !got.Equal(time.Unix(c.want, 0)) {
			t.Errorf("%+v was shown at %v; want %v", c.shown, got.Unix(), c.want)
		}
	}
}

// oneWaits is a desk with one pending request and one copy.
type oneWaits struct {
	forgetful
	copy permissions.Copy
}

func (d oneWaits) Pending(context.Context, connectors.Identity, permissions.ID, int) ([]permissions.RequestView, error) {
	return []permissions.RequestView{{Code: "K7F3Q", Copies: []permissions.Copy{d.copy}}}, nil
}

// A reply to a card that the daemon did not note, since it was killed in the moment of sending it, names what waits by the
// code on it, whether it was sent again or not. A card of something else names nothing, and neither does one at another's.
func TestAReplyToACardThatWasNotNoted(t *testing.T) {
	since := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		copy          permissions.Copy
		card          string
		quoted, shown bool
	}{
		"not sent again":    {permissions.Copy{Person: "fay", DueAt: since}, "K7F3Q", true, true},
		"sent again":        {permissions.Copy{Person: "fay", DueAt: since, SentAt: since, Ref: "7"}, "K7F3Q", true, true},
		"named before":      {permissions.Copy{Person: "fay", DueAt: since, Ref: "7"}, "K7F3Q", true, true},
		"of another":        {permissions.Copy{Person: "fay", DueAt: since, SentAt: since, Ref: "7"}, "K7F3R", false, true},
		"no card":           {permissions.Copy{Person: "fay", DueAt: since, SentAt: since, Ref: "7"}, "", false, true},
		"not shown":         {permissions.Copy{Person: "fay", DueAt: since}, "", false, false},
		"somebody else's":   {permissions.Copy{Person: "sam", DueAt: since, SentAt: since, Ref: "7"}, "K7F3Q", false, false},
		"another channel's": {permissions.Copy{Person: "fay", Connector: "web", DueAt: since, SentAt: since}, "K7F3Q", false, false},
	} {
		for _, via := range []string{"telegram", "whatsapp"} {
			if c.copy.Connector != "web" {
				c.copy.Connector = via
			}
			r := New(Options{Inbound: oneWaits{copy: c.copy}})
			open, quoted, err := r.Open(t.Context(), connectors.Identity{Via: via}, connectors.Person{Name: "fay"}, "3", c.card)
			if err != nil || len(open) != 1 || (quoted == "K7F3Q") != c.quoted || open[0].ShownAt.IsZero() == c.shown {
				t.Errorf("%s, %s: %q, %+v, %v", name, via, quoted, open, err)
			}
		}
	}
}

// What cannot be stored is no answer: the message has to come again, whatever it was.
func TestAMessageThatIsNotStoredComesAgain(t *testing.T) {
	disk := errors.New("the disk is full")
	for _, text := range []string{"hello", "yes K7F3Q", "/stop all"} {
		if did, err := over(disk).Read(t.Context(), wrote(text)); !errors.Is(err, disk) || len(did.Say) > 0 {
			t.Errorf("%s: %+v, %v", text, did, err)
		}
	}
	broken := permissions.Broken("free some space")
	if did, err := over(broken).Read(t.Context(), wrote("hello")); !errors.Is(err, broken) {
		t.Errorf("%+v, %v", did, err)
	}
}

func TestWhatIsSaid(t *testing.T) {
	for _, c := range []struct {
		why        error
		text, want string
	}{
		{permissions.NoAgent(), "hello", "nobody reads this."},
		{permissions.InboxFull("helper"), "hello", "was not taken"},
		{permissions.Unknown("K7F3Q"), "yes K7F3Q", `There is no request K7F3Q.`},
		{permissions.NotYours(), "/stop all", "not yours"},
		{nil, " /stop all\n", "0 requests were cancelled"},
		{nil, "/whoami", "You are fay here. Your number is 7."},
		{nil, "/help@a_bot", "Press a button."},
		{nil, "/" + strings.Repeat("x", 99), "There is no command /" + strings.Repeat("x", 38) + "…. Write /help to see those that there are."},
		{nil, "/revoke", "Say which"},
		{nil, "/lock fay", "use: daycared lock NAME"},
		{nil, "/\u202e", `There is no command /\u{202E}.`},
	} {
		did, err := over(c.why).Read(t.Context(), wrote(c.text))
		if err != nil || len(did.Say) != 1 || !strings.Contains(did.Say[0], c.want) {
			t.Errorf("%s: %q, %v; want %q", c.text, did.Say, err, c.want)
		}
	}
}

// Ten codes of nothing mute the answers of their author for a minute, and nobody else's.
func TestGuessing(t *testing.T) {
	r := over(permissions.Unknown("x"))
	for range 10 {
		if _, err := r.Read(t.Context(), wrote("yes K7F3Q")); err != nil {
			t.Fatal(err)
		}
	}
	if did, err := r.Read(t.Context(), wrote("yes K7F3R")); err != nil || !strings.Contains(did.Say[0], "too many wrong codes") {
		t.Errorf("%q, %v", did.Say, err)
	}
	if left := r.Muted(connectors.Person{Name: "sam"}); left != 0 {
		t.Errorf("sam is muted for %s", left)
	}
}

// crowded has many requests that wait for fay, in pages.
type crowded struct {
	forgetful
	all     []permissions.RequestView
	decided *[]permissions.ID
}

func (d crowded) Pending(
	_ context.Context, _ connectors.Identity, after permissions.ID, limit int,
) ([]permissions.RequestView, error) {
	from := 1 + slices.IndexFunc(d.all, func(v permissions.RequestView) bool { return v.Request.ID == after })
	return d.all[from:min(from+limit, len(d.all))], nil
}

func (d crowded) OnPermission(_ context.Context, dec connectors.Decision) (permissions.Request, error) {
	*d.decided = append(*d.decided, dec.Request)
	return permissions.Request{ID: dec.Request, Kind: permissions.KindPermission, State: permissions.Denied}, nil
}

// However many requests others put to a person, an answer to the newest counts, is no wrong code, and all of them are counted.
func TestAnAnswerToTheNewestOfManyCounts(t *testing.T) {
	coder, d := permissions.Coder{}, crowded{decided: new([]permissions.ID)}
	for n := range 250 {
		q := permissions.Request{
			ID: permissions.NewID(time.Now()), Kind: permissions.KindPermission, State: permissions.Pending,
			Options: []permissions.Option{{ID: permissions.Deny}},
		}
		d.all = append(d.all, permissions.RequestView{Request: q, Code: coder.Encode(int64(n + 1)), Copies: []permissions.Copy{
			{Person: "fay", SentAt: time.Now().Add(-time.Minute)},
		}})
	}
	r := over(nil)
	r.Inbound = d
	for _, v := range []permissions.RequestView{d.all[249], d.all[100], d.all[0]} {
		did, err := r.Read(t.Context(), wrote("no "+v.Code))
		if err != nil || len(did.Decided) != 1 || (*d.decided)[len(*d.decided)-1] != v.Request.ID {
			t.Errorf("%s: %+v, %v", v.Code, did, err)
		}
	}
	did, err := r.Read(t.Context(), wrote("/pending"))
	if err != nil || !strings.Contains(did.Say[0], "250") {
		t.Errorf("%.300q, %v", did.Say, err)
	}
}

func TestHowMuchStillWaits(t *testing.T) {
	for n, want := range map[int]string{0: "nobody reads this. /help says", 1: "One request still waits", 3: "3 requests still wait"} {
		if words := nobodyBound(n, i18n.English); !strings.Contains(words, want) {
			t.Errorf("%d: %q", n, words)
		}
	}
}

// Every command is known as one, and does something; what only begins as one is none.
func TestCommands(t *testing.T) {
	for _, name := range commands {
		if !IsCommand(" " + strings.ToUpper(name) + " x\n") {
			t.Errorf("%s is no command", name)
		}
		did, err := over(nil).Read(t.Context(), wrote(name))
		if err != nil || len(did.Say) != 1 || strings.Contains(did.Say[0], "There is no command") {
			t.Errorf("%s: %q, %v", name, did.Say, err)
		}
	}
	for _, other := range []string{"/", "/stops", "/srv/www", "stop", "", "// stop"} {
		if IsCommand(other) {
			t.Errorf("%q is a command", other)
		}
	}
}

// TestWhenAnAbsenceEnds: each form of a time is read in the person's time zone.
func TestWhenAnAbsenceEnds(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 26, 23, 30, 0, 0, time.UTC) // Friday, 00:30, in Berlin
	for text, want := range map[string]string{
		"until Monday": "2026-11-30 00:00", "Mon": "2026-11-30 00:00", "UNTIL friday": "2026-12-04 00:00", "fri": "2026-12-04 00:00",
		"tomorrow": "2026-11-28 00:00", "until 18:00": "2026-11-27 18:00", "0:10": "2026-11-28 00:10",
		"2026-12-01": "2026-12-01 00:00", "until 2026-12-01 09:15": "2026-12-01 09:15", "Monday 9:00": "2026-11-30 09:00",
		"bis Montag": "2026-11-30 00:00", "mo.": "2026-11-30 00:00", "bis Fr": "2026-12-04 00:00", "morgen": "2026-11-28 00:00",
		"für 90m": "2026-11-27 02:00", "bis Samstag 9:00": "2026-11-28 09:00", "aus": "",
		"2h": "2026-11-27 02:30", "for 90m": "2026-11-27 02:00", "3d": "2026-11-30 00:30", "1w": "2026-12-04 00:30", "off": "",
	} {
		for suffix, name := range map[string]string{"": "", " to sam": "sam", " TO Sam": "Sam", " an sam": "sam"} {
			if want == "" && suffix != "" {
				continue
			}
			until, to, err := ParseAway(text+suffix, now, berlin)
			got := ""
			if !until.IsZero() {
				got = until.In(berlin).Format("2006-01-02 15:04")
			}
			if got != want || to != name || err != nil {
				t.Errorf("%q: %s, %q, %v; want %s", text+suffix, got, to, err, want)
			}
		}
	}
	for _, text := range []string{
		"", "until", "to sam", "until to sam", "someday", "Monday to", "Monday to sam kim", "Monday sam", "25:00", "2026-13-01", "-2h", "0d",
		"2h 3h", "off to sam", "Monday Tuesday", "x Monday", "until until", "aus an sam", "Montag an", "9999999999999d9",
	} {
		if until, to, err := ParseAway(text, now, berlin); permissions.CodeOf(err) != permissions.CodeInvalid || !until.IsZero() {
			t.Errorf("%q: %v, %q, %v", text, until, to, err)
		} else if said := permissions.AsRefusal(err); !strings.Contains(said.Text, "a weekday, a date such as 2026-12-01") ||
			!strings.Contains(said.TextIn("de"), "ist keine Zeit, die hier verstanden wird. Bitte schreiben, bis wann") {
			t.Errorf("%q: %v, %s", text, err, said.TextIn("de"))
		}
	}
}

// absent keeps the last absence.
type absent struct {
	forgetful
	until *time.Time
	to    *string
}

func (a absent) SetAway(_ context.Context, _ connectors.Identity, until time.Time, to string) error {
	*a.until, *a.to = until, to
	return a.why
}

// TestSayingThatOneIsAway: the answer says until when, who is asked, and what ends it; /status and /whoami say it, too.
func TestSayingThatOneIsAway(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	in := absent{until: &time.Time{}, to: new(string)}
	r := over(nil)
	r.Inbound, r.Now = in, func() time.Time { return now }
	says := func(text string, who connectors.Person, want ...string) {
		t.Helper()
		m := wrote(text)
		m.Who = who
		did, err := r.Read(t.Context(), m)
		if err != nil || len(did.Say) != 1 {
			t.Fatalf("%s: %v, %v", text, did.Say, err)
		}
		for _, part := range want {
			if !strings.Contains(did.Say[0], part) {
				t.Errorf("%s says %q, not %q", text, did.Say[0], part)
			}
		}
	}
	fay := connectors.Person{Name: "fay", Location: time.UTC}
	says("/away", fay, "You are not away.", "/away until Monday to sam")
	says("/away until Monday to sam", fay, "away until Mon 30 Nov.", "goes to sam where a route lets sam decide", "/away off")
	if !in.until.Equal(time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)) || *in.to != "sam" {
		t.Errorf("away until %v to %s", in.until, *in.to)
	}
	says("/away 2h", fay, "away until Thu 26 Nov 14:00.", "goes to whom the route of a request escalates to, at once")
	fay.Away = permissions.Absence{Person: "fay", Until: *in.until, To: "sam"}
	for _, command := range []string{"/away", "/status", "/whoami"} {
		says(command, fay, "You are away until Thu 26 Nov 14:00, and sam is asked instead", "/away off ends that.")
	}
	says("/away off", fay, "You are back")
	if !in.until.IsZero() {
		t.Errorf("away until %v", in.until)
	}
	says("/away off to sam", fay, "no time that is understood here")
	in.why = permissions.NoPerson("eve", "there are fay, sam")
	r.Inbound = in
	says("/away 2h to eve", fay, "eve")
}

// granted has many grants.
type granted struct{ forgetful }

func (granted) Grants(context.Context, connectors.Identity, permissions.ID, int) ([]permissions.Grant, error) {
	return slices.Repeat([]permissions.Grant{{ID: permissions.NewID(time.Now()), Caller: "uid:1000", Tool: "read"}}, shownGrants+3), nil
}

// TestManyGrantsFitIntoAMessage: it has the first ones, and says where the others are.
func TestManyGrantsFitIntoAMessage(t *testing.T) {
	r := over(nil)
	r.Inbound = granted{}
	did, err := r.Read(t.Context(), wrote("/grants"))
	if err != nil || len(did.Say) != 1 || strings.Count(did.Say[0], "/revoke ") != shownGrants ||
		!strings.HasSuffix(did.Say[0], "and 3 more; "+
			"daycared grants lists all of them on the machine.") {
		t.Errorf("%q, %v", did.Say, err)
	}
}

// Only a reply to a request's own file shows that its author has read it: not to that of another one, or to a file without a code.
func TestAnotherFileIsNotRead(t *testing.T) {
	r := New(Options{Unread: func(connectors.Prompt) bool { return true }})
	open := []reply.Open{{Request: permissions.Request{ID: "1"}, Code: "AAAAA"}}
	for _, c := range []struct {
		card   string
		file   bool
		answer permissions.Answer
		says   bool
	}{
		{"AAAAA", true, permissions.Allow(permissions.Once), false},
		{"BBBBB", true, permissions.Allow(permissions.Once), true}, {"", true, permissions.Allow(permissions.Once), true},
		{"AAAAA", false, permissions.Allow(permissions.Once), true}, {"BBBBB", true, permissions.Deny, false},
	} {
		d := connectors.Decision{Request: "1", Code: "AAAAA", Answer: c.answer}
		if words := r.NotRead(Message{Card: c.card, File: c.file}, d, open); (words != "") != c.says {
			t.Errorf("%s in reply to %q (a file: %v): %q", c.answer, c.card, c.file, words)
		}
	}
}
