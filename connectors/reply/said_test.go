package reply_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/reply"
	"github.com/daycared/daycared/connectors/reply/replytest"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

func TestWhatADecisionOfAMessageHolds(t *testing.T) {
	said := reply.Read(reply.Message{Text: "no STEP2 #2 because why", At: noon}, waiting)
	want := reply.Result{Decisions: []connectors.Decision{{
		Request: "id of STEP2", Code: "STEP2", Answer: permissions.Deny, Call: 2, Comment: "why", Shown: permissions.Digest{5},
	}}}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}

func TestAMessageIsNewerThanItsPrompt(t *testing.T) {
	for _, m := range []reply.Message{
		{Text: "yes K7F3Q"}, {Text: "K7F3Q yes"}, {Text: "no K7F3Q"}, {Text: "yes", Quotes: "K7F3Q"}, {Text: "CH5SE 1"},
		{Text: "👍", Quotes: "K7F3Q", Reaction: true}, {Text: "yes M2P4R K7F3Q"}, {Text: "continue PAUSE"},
	} {
		m.At = noon.Add(-time.Nanosecond)
		said := reply.Read(m, waiting)
		if len(said.Decisions) > 0 || !strings.Contains(said.Reply, "older than the card") {
			t.Errorf("%q from before the card: %+v; want that it is older", m.Text, said)
		}
		m.At = noon
		if said := reply.Read(m, waiting); len(said.Decisions) == 0 {
			t.Errorf("%q as the card came: %s", m.Text, said.Reply)
		}
	}
}

func TestWhereNothingWaitsEverythingIsPassedOn(t *testing.T) {
	for _, text := range []string{"yes", "no", "👍", "2", "what now?", "don't allow K7F3Q", ""} {
		if diff := cmp.Diff(reply.Result{PassOn: true}, reply.Read(reply.Message{Text: text}, nil)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	if said := reply.Read(reply.Message{Text: "yes K7F3Q"}, nil); said.PassOn || said.Guesses != 1 {
		t.Errorf("an answer to nothing: %+v; want an unknown code", said)
	}
	if diff := cmp.Diff(reply.Result{}, reply.Read(reply.Message{Text: "👍", Reaction: true}, nil)); diff != "" {
		t.Errorf("a reaction to nothing: %s", diff)
	}
}

// A code that two requests have names neither of them.
func TestACodeHeldTwiceDecidesNothing(t *testing.T) {
	twice := append([]reply.Open{{Code: "k7f3q", Request: tool, ShownAt: noon}}, waiting...)
	for _, text := range []string{"yes K7F3Q", "K7F3Q no"} {
		t.Run("A5/"+text, func(t *testing.T) {
			if said := reply.Read(reply.Message{Text: text, At: noon}, twice); len(said.Decisions) > 0 || said.Reply == "" {
				t.Errorf("%q: %+v", text, said)
			}
		})
	}
}

func TestWhatAPersonIsTold(t *testing.T) {
	two, voted := waiting[:2], []reply.Open{waiting[0]}
	voted[0].Voted = true
	var many []reply.Open
	for n := range int64(12) {
		many = append(many, reply.Open{Code: permissions.Coder{}.Encode(n), Request: permission, ShownAt: noon})
	}
	const hint = "Reply YES K7F3Q or NO K7F3Q, or react 👍 / 👎"
	for _, c := range []struct {
		m    reply.Message
		open []reply.Open
		want string
	}{
		{reply.Message{Text: "yes"}, two[:1],
			"Nothing was decided: an answer names its request; 1 request waits: K7F3Q. " + hint + "."},
		{reply.Message{Text: "yes"}, two,
			"Nothing was decided: an answer names its request; 2 requests wait: K7F3Q, M2P4R. " + hint + "."},
		{reply.Message{Text: "yes"}, many, "12 requests wait: " + many[0].Code + ", "},
		{reply.Message{Text: "yes"}, many, ", and 2 more. "},
		{reply.Message{Text: "yes"}, many[:10], ", " + many[9].Code + ". "},
		{reply.Message{Text: "why?"}, two[:1],
			"This goes to the agent. It decides nothing and refuses nothing: 1 request still waits: K7F3Q. " + hint + "."},
		{reply.Message{Text: "don't allow K7F3Q"}, two, "Nothing was decided: an answer is a whole message and nothing else. " +
			hint + ", YES K7F3Q session (this session), YES K7F3Q 15m (for 15 minutes), YES K7F3Q always (until revoked), " +
			"NO K7F3Q because and your reason."},
		{reply.Message{Text: "continue PAUSE K7F3Q"}, waiting, "Nothing was decided: an answer is a whole message and nothing else."},
		{reply.Message{Text: "yes K7F3Q 20m"}, two,
			"Nothing was decided: K7F3Q can be allowed for: once, session, 15m, always."},
		{reply.Message{Text: "yes K7F3Q ZZZZ9 YYYY8"}, two,
			"Nothing was decided: nothing that waits for you has the code ZZZZ9 or YYYY8."},
		{reply.Message{Text: "yes K7F3Q R5SKY PAUSE"}, waiting, "R5SKY is high risk and takes a message of its own: " +
			"YES R5SKY RUN or NO R5SKY; PAUSE takes another answer. Reply CONTINUE PAUSE or INTERRUPT PAUSE."},
		{reply.Message{Text: "yes R5SKY 15m"}, waiting, "R5SKY is high risk; to allow it: YES R5SKY 15m RUN."},
		{reply.Message{Text: "yes RSTEP #2"}, waiting, "to allow it: YES RSTEP #2 RUN."},
		{reply.Message{Text: "yes NEW22"}, waiting, "NEW22 has not been shown to you yet; look at it first."},
		{reply.Message{Text: "yes M2P4R", Quotes: "K7F3Q"}, two,
			"Nothing was decided: you replied to the card of K7F3Q and named another code."},
		{reply.Message{Text: "yes?", Quotes: "K7F3Q"}, two, "Nothing was decided: an answer is a whole message and nothing else. " + hint},
		{reply.Message{Text: "CH5SE blgo"}, waiting, "CH5SE takes another answer. Reply CH5SE and a number from 1 to 5 or the " +
			"words of an option, or CH5SE other: and words of your own."},
		{reply.Message{Text: "", Quotes: "K7F3Q", Reaction: true}, two, "taking a reaction back undoes nothing. " + hint + "."},
		{reply.Message{Text: "", Quotes: "K7F3Q", Reaction: true}, voted, "Your answer to K7F3Q still counts: " +
			"taking it back or changing it undoes nothing. To stop the request, you or anybody else who is asked writes NO K7F3Q."},
		{reply.Message{Text: "❤", Quotes: "K7F3Q", Reaction: true}, voted, "Your answer to K7F3Q still counts: "},
		{reply.Message{Text: "K7F3Q please", Console: true}, two, "Type yes K7F3Q or no K7F3Q, yes"}, // nobody reacts there
		// Of high risk, a console has one form, in every hint: its prompt's.
		{reply.Message{Text: "R5SKY please", Console: true}, waiting, "High risk: type yes R5SKY or no R5SKY, " +
			"yes R5SKY session_tool (this tool, this session), yes R5SKY 15m (for 15 minutes), " +
			"yes R5SKY always (this exact call, always), no R5SKY because and your reason."},
		{reply.Message{Text: "RSTEP please", Console: true}, waiting,
			"High risk: type yes RSTEP or no RSTEP, or for one call yes RSTEP #2 or no RSTEP #2"},
		{reply.Message{Text: "yes K7F3Q M2P4R once", Console: true}, two, "and only once: yes K7F3Q M2P4R"},
	} {
		c.m.At, c.m.Thumbs = noon, !c.m.Console
		if said := reply.Read(c.m, c.open); !strings.Contains(said.Reply, c.want) {
			t.Errorf("%q is answered\n     %s\nwant %s", c.m.Text, said.Reply, c.want)
		}
	}
}

func TestChatHints(t *testing.T) {
	for code, want := range map[string]string{
		"K7F3Q": "Reply YES K7F3Q or NO K7F3Q, or react 👍 / 👎",
		"R5SKY": "High risk: reply YES R5SKY RUN or NO R5SKY",
		"STEP2": "Reply YES STEP2 or NO STEP2, or for one call YES STEP2 #2 or NO STEP2 #2, or react 👍 / 👎",
		"RSTEP": "High risk: reply YES RSTEP RUN or NO RSTEP, or for one call YES RSTEP #2 RUN or NO RSTEP #2",
		"PAUSE": "Reply CONTINUE PAUSE or INTERRUPT PAUSE",
		"CNFRM": "Reply YES CNFRM, NO CNFRM or INTERRUPT CNFRM, or react 👍 / 👎",
		"CH5SE": "Reply CH5SE and a number from 1 to 5 or the words of an option, or CH5SE other: and words of your own",
	} {
		for _, o := range waiting {
			if got := reply.ChatHelp(o.Request, o.Code, true, i18n.English); o.Code == code && !strings.HasPrefix(got, want) {
				t.Errorf("ChatHelp = %q; want %q first", got, want)
			}
		}
	}
	titled := waiting[0].Request.Title()
	if got := reply.ChatHelp(titled, "K7F3Q", true, i18n.English); strings.Contains(got, "👍") {
		t.Errorf("where a chat shows the title alone, ChatHelp = %q", got)
	}
	want := "High risk: reply YES R5SKY RUN or NO R5SKY, YES R5SKY session_tool RUN (this tool, this session), " +
		"YES R5SKY 15m RUN (for 15 minutes), YES R5SKY always RUN (this exact call, always), NO R5SKY because and your reason"
	if got := reply.ChatHelp(risky, "R5SKY", true, i18n.English); got != want {
		t.Errorf("ChatHelp = %q; want %q", got, want)
	}
}

// Nobody is told to react where nothing hears it.
func TestNoHintAtReactionsThatNobodyHears(t *testing.T) {
	for _, text := range []string{"yes", "why?", "don't allow K7F3Q", "K7F3Q no yes"} {
		said := reply.Read(reply.Message{Text: text, At: noon}, waiting[:2])
		if !strings.Contains(said.Reply, "YES K7F3Q") || strings.Contains(said.Reply, "react") {
			t.Errorf("%q is answered %q", text, said.Reply)
		}
	}
}

// What the help of every request says can be typed is an answer, whatever is on offer.
func TestEveryHintIsAnAnswer(t *testing.T) {
	for _, text := range []string{
		"YES K7F3Q", "NO K7F3Q", "YES K7F3Q session", "YES M2P4R session_tool", "YES M2P4R always", "NO K7F3Q because x",
		"YES R5SKY RUN", "NO R5SKY", "YES R5SKY 15m RUN", "YES STEP2 #2", "NO STEP2 #2", "YES RSTEP #2 RUN",
		"CONTINUE PAUSE", "INTERRUPT PAUSE", "INTERRUPT CNFRM", "CH5SE 5", "CH5SE other: words of your own",
	} {
		if said := reply.Read(reply.Message{Text: text, At: noon}, waiting); len(said.Decisions) != 1 {
			t.Errorf("%q decides nothing: %s", text, said.Reply)
		}
	}
}

func TestTenWrongCodesMuteForAMinute(t *testing.T) {
	type wrong struct {
		n  int
		at time.Duration
	}
	for _, c := range []struct {
		name  string
		wrong []wrong
		at    time.Duration
		want  time.Duration
	}{
		{"nine are forgiven", []wrong{{9, 0}}, 0, 0},
		{"the tenth is not", []wrong{{9, 0}, {1, time.Minute}}, time.Minute, time.Minute},
		{"ten in one message", []wrong{{10, 0}}, time.Second, 59 * time.Second},
		{"a hundred in one message", []wrong{{100, 0}}, 0, time.Minute},
		{"after the minute", []wrong{{10, 0}}, time.Minute, 0},
		{"after ten minutes the first do not count", []wrong{{9, 0}, {9, 10 * time.Minute}}, 10 * time.Minute, 0},
		{"just before they do", []wrong{{9, 0}, {1, 10*time.Minute - 1}}, 10 * time.Minute, time.Minute - 1},
		{"ten more are needed after it", []wrong{{10, 0}, {9, time.Minute}}, time.Minute, 0},
		{"a message a little older than the tenth", []wrong{{10, 0}}, -time.Second, time.Minute},
		{"a clock set back by a minute", []wrong{{10, 0}}, -time.Minute, time.Minute},
		{"a clock set back by more", []wrong{{10, 0}}, -time.Minute - 1, 0},
		{"none", nil, 0, 0},
	} {
		t.Run("A5/"+c.name, func(t *testing.T) {
			var g reply.Guard
			for _, w := range c.wrong {
				g.Wrong(w.n, noon.Add(w.at))
			}
			if got := g.Muted(noon.Add(c.at)); got != c.want {
				t.Errorf("%s: muted for %s; want %s", c.name, got, c.want)
			}
		})
	}
	want := "Nothing was decided: too many wrong codes. Text answers are read again in 59 seconds."
	if got := reply.SayMuted(58500*time.Millisecond, i18n.English); got != want {
		t.Errorf("SayMuted = %q; want %q", got, want)
	}
}

// One message names at most twenty requests: more are no answer, and no way to try codes.
func TestAMessageNamesAFewRequests(t *testing.T) {
	text := "yes"
	for n := range int64(20) {
		text += " " + permissions.Coder{}.Encode(n)
	}
	if said := reply.Read(reply.Message{Text: text, At: noon}, waiting); said.Guesses != 20 {
		t.Errorf("%d codes were typed; want 20", said.Guesses)
	}
	text += fmt.Sprintf(" %s", permissions.Coder{}.Encode(20))
	if said := reply.Read(reply.Message{Text: text, At: noon}, waiting); !said.PassOn {
		t.Errorf("%+v; want no answer", said)
	}
}

// Where an option begins like words of one's own, a typo in it is no answer, and the hint says the other form.
func TestAnOptionThatBeginsLikeWordsOfOnesOwn(t *testing.T) {
	open := []reply.Open{{Code: "K7F3Q", Request: colons, ShownAt: noon}}
	for text, want := range map[string]string{
		"K7F3Q other: later": "K7F3Q option_1", "K7F3Q o": "K7F3Q option_2", "K7F3Q other: lat": replytest.Told,
		"other K7F3Q lat": `K7F3Q other "lat"`,
	} {
		said := reply.Read(reply.Message{Text: text, At: noon}, open)
		if got := outcome(said); got != want {
			t.Errorf("%q is %s; want %s", text, got, want)
		}
		if quoted, found := strings.CutPrefix(text, "K7F3Q "); found && strings.HasPrefix(quoted, "other:") {
			said := reply.Read(reply.Message{Text: quoted, Quotes: "K7F3Q", At: noon}, open)
			if got := outcome(said); got != want {
				t.Errorf("%q to the card is %s; want %s", quoted, got, want)
			}
		}
		if hint := "or other K7F3Q and words of your own."; want == replytest.Told && !strings.HasSuffix(said.Reply, hint) {
			t.Errorf("%q is told %q; want %q", text, said.Reply, hint)
		}
	}
}

// TestATimeIsSaidWithWhatItCovers: the calls of other programs are allowed one by one, also for a time.
func TestATimeIsSaidWithWhatItCovers(t *testing.T) {
	quarter := permissions.For(15 * time.Minute)
	for name, want := range map[string]string{"uid:1000": "(this exact call, for 15 minutes)", "agent:scribe": "(for 15 minutes)"} {
		t.Run("B6/"+name, func(t *testing.T) {
			r := permissions.Request{Kind: permissions.KindTool, Tool: "write_file", Caller: permissions.Caller{Name: name, UID: 1000}}
			r.Options = permissions.Offer(r, []permissions.Scope{quarter}, permissions.Scope{})
			if got := reply.Help(r, "K7F3Q", i18n.English); !strings.Contains(got, want) {
				t.Errorf("%q does not say %q", got, want)
			}
		})
	}
}

// A yes by text takes nothing of what an agent suggests, and no text does; a hint says what does.
func TestNoTextTakesASuggestion(t *testing.T) {
	r := permissions.Request{ID: "id", Kind: permissions.KindTool, Tool: "Bash", Hook: "claude-code", Session: "s"}
	r.Caller.Name, r.Digest, r.Choices = "uid:1", permissions.Digest{1}, []string{"add a", "add b"}
	r.Options = permissions.Offer(r, []permissions.Scope{permissions.Once, permissions.Session}, permissions.Scope{})
	if !r.Offers(permissions.AllowWithSuggestion(2)) {
		t.Fatalf("it offers %v", r.Options)
	}
	open := []reply.Open{{Code: "K7F3Q", Request: r, ShownAt: noon}}
	for text, want := range map[string]permissions.Answer{
		"yes K7F3Q": permissions.Allow(permissions.Once), "K7F3Q yes": permissions.Allow(permissions.Once),
		"K7F3Q 1": "", "K7F3Q 2": "", "yes K7F3Q 1": "", "yes K7F3Q with_1": "", "K7F3Q allow_with_1": "", "K7F3Q Allow once, and add a": "",
	} {
		said := reply.Read(reply.Message{Text: text, At: noon}, open)
		if len(said.Decisions) > 1 || (want == "") != (len(said.Decisions) == 0) || want != "" && said.Decisions[0].Answer != want {
			t.Errorf("%q decides %+v", text, said.Decisions)
		}
	}
	for _, line := range []string{"1", "y 1", "yes with_1", "allow_with_1", "y allow_with_1"} {
		if got := reply.Parse(line, r, "K7F3Q", i18n.English); got.Meaning == reply.Decides {
			t.Errorf("%q at the prompt decides %+v", line, got)
		}
	}
	const does = "daycared answer K7F3Q allow_with_1"
	if help := reply.Help(r, "K7F3Q", i18n.English); strings.Count(help, "allow once") != 1 || !strings.Contains(help, does) {
		t.Error(help)
	}
	if help := reply.ChatHelp(r, "K7F3Q", true, i18n.English); !strings.Contains(help, does) {
		t.Error(help)
	}
}

// TestAReplyToACardLeavesItsCodeOut: what may follow the code is an answer, stops, commas, exclamation marks and white space
// are nothing, and a question mark or a further word is no answer.
func TestAReplyToACardLeavesItsCodeOut(t *testing.T) {
	for code, texts := range map[string]map[string]string{
		"K7F3Q": {
			"yes": "allow_once", "Yes.": "allow_once", "yes!": "allow_once", "YES ,": "allow_once", "yes 15m": "allow_15m", "15m": "allow_15m",
			"15m.": "allow_15m", "session": "allow_session", "yes,\u00a015m!": "allow_15m", "no.": "deny", "No, because it is late.": "deny",
			"yes?": "", "15m?": "", "yes but": "", "yes, please": "", "yes...": "", "not 15m": "", "15m no": "",
			"2": "", "no no": "", "continue": "",
		},
		"CH5SE": {
			"2": "option_2", "2.": "option_2", "2 !": "option_2", "blog": "option_1", "Blog.": "option_1", "other: why, then?": "other",
			"2?": "", "22": "", "2 please": "", "yes": "option_5", "15m": "", "what is meant": "",
		},
		"PAUSE": {"continue": "continue", "Continue!": "continue", "interrupt.": "interrupt", "continue?": "", "yes": ""},
		"STEP2": {"yes #2": "allow_once", "yes #2.": "allow_once", "no #2": "deny", "#2": ""},
		"R5SKY": {"yes": "", "yes run": "", "15m": "", "session_tool": ""},
	} {
		for text, want := range texts {
			t.Run("B1/"+code+" "+text, func(t *testing.T) {
				said := reply.Read(reply.Message{Text: text, Quotes: code, At: noon}, waiting)
				got := ""
				for _, d := range said.Decisions {
					got += string(d.Answer)
				}
				if got != want {
					t.Errorf("%q to %s is %q, not %q: %s", text, code, got, want, said.Reply)
				}
			})
		}
	}
	for _, text := range []string{"yes", "2", "15m", "no."} { // too late, which whoever asks knows better
		if said := reply.Read(reply.Message{Text: text, Quotes: "ZZZZ9", At: noon}, waiting); len(said.Unknown) != 1 || said.Guesses != 0 {
			t.Errorf("%q to a card that is settled: %+v", text, said)
		}
	}
}

// allows reports whether a message allows anything.
func allows(said reply.Result) bool {
	return slices.ContainsFunc(said.Decisions, func(d connectors.Decision) bool {
		_, allowing := d.Answer.Scope()
		return allowing
	})
}

// TestNegationsAllowNothing: in no language and whatever the person's, as a message, as a reply to an ordinary card or to one of high risk,
// and at a prompt. No language has a smaller corpus than English, whose messages are not sent as replies: there some of them answer.
func TestNegationsAllowNothing(t *testing.T) {
	for _, l := range i18n.Languages() {
		corpus, ways, prompts := replytest.Negations[string(l)], []reply.Message{{}}, []reply.Open(nil)
		if len(corpus) < len(replytest.Negations["en"]) {
			t.Errorf("%s has %d negations, fewer than English with %d", l, len(corpus), len(replytest.Negations["en"]))
		}
		if l != i18n.English {
			ways, prompts = append(ways, reply.Message{Quotes: "K7F3Q"}, reply.Message{Quotes: "R5SKY"}, reply.Message{Quotes: "STEP2"},
				reply.Message{Console: true}), waiting
		}
		for _, text := range corpus {
			for _, how := range ways {
				how.Text, how.At, how.Language = text, noon, l
				if said := reply.Read(how, waiting); allows(said) {
					t.Errorf("%q allows %v (%+v)", text, said.Decisions, how)
				}
			}
			for _, o := range prompts {
				a := reply.Parse(text, o.Request, o.Code, l)
				if _, allowing := a.Answer.Scope(); allowing {
					t.Errorf("%q allows %s at its prompt", text, o.Code)
				}
			}
		}
	}
}

// TestAnswersToAList: an answer to all of a list is two words of one language or another and how many requests the list has. Whatever
// else is written answers no list.
func TestAnswersToAList(t *testing.T) {
	once := permissions.Allow(permissions.Once)
	for text, want := range map[string]struct {
		all permissions.Answer
		n   int
		ok  bool
	}{
		"allow all 4":           {once, 4, true},
		"alle erlauben 4":       {once, 4, true},
		"Alle Erlauben 12.":     {once, 12, true},
		"alle 4 erlauben":       {once, 4, true},
		"4 alle ablehnen":       {permissions.Deny, 4, true},
		"alle 4 erlauben 4":     {"", 0, false},
		"alle 4 von 5 erlauben": {"", 0, false},
		"erlaube alle 4":        {once, 4, true},
		"deny all 4":            {permissions.Deny, 4, true},
		"alle ablehnen 4":       {permissions.Deny, 4, true},
		"nein alle":             {permissions.Deny, 0, true},
		"alle erlauben":         {once, 0, true},
		"3":                     {"", 3, true},
		"ja":                    {"", 0, true},
		"deny":                  {"", 0, true},
		"alle 4":                {"", 0, false},
		"alle alle 4":           {"", 0, false},
		"ja ja 4":               {"", 0, false},
		"alle fragen 4":         {"", 0, false},
		"nicht alle erlauben 4": {"", 0, false},
		"alle erlauben 4 nicht": {"", 0, false},
		"alle erlauben 4000":    {"", 0, false},
		"":                      {"", 0, false},
	} {
		all, n, ok := reply.ReadListReply(text)
		if ok != want.ok || ok && (all != want.all || n != want.n) {
			t.Errorf("%q is %q %d %t; want %q %d %t", text, all, n, ok, want.all, want.n, want.ok)
		}
	}
}

// TestAlwaysNamesARule: the word and a code show a rule, with the rule's name they give it; a reaction never does, nor where none is
// offered.
func TestAlwaysNamesARule(t *testing.T) {
	r := permissions.Request{ID: "01J", Kind: permissions.KindTool, Tool: "Bash", State: permissions.Pending, Options: []permissions.Option{
		{ID: permissions.Allow(permissions.Once)}, {ID: permissions.Allow(permissions.Rule)}, {ID: permissions.Deny},
	}}
	narrow := r
	narrow.Options = []permissions.Option{r.Options[0], r.Options[2]}
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	rule := permissions.Allow(permissions.Rule)
	for text, want := range map[string]connectors.Decision{
		"ALWAYS K7F3Q": {Answer: rule}, "immer k7f3q": {Answer: rule}, "yes K7F3Q rule": {Answer: rule}, "ja K7F3Q Regel": {Answer: rule},
		"always K7F3Q 1F0C9A2E.": {Answer: rule, Rule: "1f0c9a2e"},
		"always K7F3Q 1f0c9a2":   {}, "always K7F3Q 1f0c9a2g": {}, "always K7F3Q M2P4R": {}, "always K7F3Q 1f0c9a2e please": {}, "always": {},
	} {
		said := reply.Read(reply.Message{Text: text, At: at}, []reply.Open{{Request: r, Code: "K7F3Q", ShownAt: at}})
		var got connectors.Decision
		if len(said.Decisions) == 1 {
			got = connectors.Decision{Answer: said.Decisions[0].Answer, Rule: said.Decisions[0].Rule}
		}
		if got != want || len(said.Decisions) > 1 {
			t.Errorf("%s: %+v; %s", text, said.Decisions, said.Reply)
		}
		said = reply.Read(reply.Message{Text: text, At: at}, []reply.Open{{Request: narrow, Code: "K7F3Q", ShownAt: at}})
		if len(said.Decisions) > 0 {
			t.Errorf("%s, not offered: %+v", text, said.Decisions)
		}
	}
	ever, both := narrow, []reply.Open{{Request: r, Code: "K7F3Q", ShownAt: at}, {Request: r, Code: "M2P4R", ShownAt: at}}
	ever.Options = append([]permissions.Option{{ID: permissions.Allow(permissions.Always)}}, narrow.Options...)
	for text, want := range map[string]permissions.Answer{
		"always": permissions.Allow(permissions.Always), "always 1f0c9a2e": "", "yes 15m": "", "always K7F3Q 1f0c9a2e": "",
	} {
		said := reply.Read(reply.Message{Text: text, Quotes: "K7F3Q", At: at}, []reply.Open{{Request: ever, Code: "K7F3Q", ShownAt: at}})
		if got := len(said.Decisions) == 1; got != (want != "") || got && said.Decisions[0].Answer != want {
			t.Errorf("%q to a card that can be allowed always: %+v; %s", text, said.Decisions, said.Reply)
		}
	}
	if said := reply.Read(reply.Message{Text: "always K7F3Q M2P4R", At: at}, both); len(said.Decisions) > 0 ||
		!strings.Contains(said.Reply, "several requests at once can only be allowed, and only once: YES K7F3Q M2P4R") {
		t.Errorf("one rule for two: %+v; %s", said.Decisions, said.Reply)
	}
	said := reply.Read(reply.Message{Text: "👍", Quotes: "K7F3Q", Reaction: true, At: at},
		[]reply.Open{{Request: r, Code: "K7F3Q", ShownAt: at}})
	if len(said.Decisions) != 1 || said.Decisions[0].Answer != permissions.Allow(permissions.Once) {
		t.Errorf("a reaction: %+v", said.Decisions)
	}
	for line, want := range map[string]reply.Reply{
		"l": {Meaning: reply.Decides, Answer: rule}, "l 1f0c9a2e": {Meaning: reply.Decides, Answer: rule, Rule: "1f0c9a2e"},
		"y rule": {Meaning: reply.Decides, Answer: rule}, "y 1f0c9a2e": {}, "l 1f0c9a2e 1f0c9a2e": {}, "l x": {},
	} {
		got := reply.Parse(line, r, "K7F3Q", "en")
		if got.Say = ""; got != want {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
