package permissions

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions/i18n"
)

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		got  *Refusal
		code Code
		exit int
		text string
	}{
		{Forbidden("delete_repository"), CodeForbidden, ExitOther, "Tool delete_repository is forbidden here."},
		{OwnFiles("@write:/var/lib/daycared"), CodeOwnFiles, ExitOther,
			"@write:/var/lib/daycared covers daycared's own files and cannot be granted."},
		{KeyTaken(), CodeKeyTaken, ExitOther, "This key belongs to another request."},
		{OwnAsk(1000), CodeOwnAsk, ExitOther,
			"You (uid 1000) asked this yourself; answer from another channel, or set api.allow_same_user."},
		{Limit(30 * time.Second), CodeLimit, ExitOther, "Too many requests; try again in 30 seconds."},
		{Limit(0, "a", "b"), CodeLimit, ExitOther, "Too many requests by limits.a or b; try again in 1 second."},
		{Limit(0), CodeLimit, ExitOther, "Too many requests; try again in 1 second."},
		{Limit(90*time.Second + 1), CodeLimit, ExitOther, "Too many requests; try again in 91 seconds."},
		{ApprovalOver(), CodeNoUse, ExitOther, "The time of this approval is over; ask again."},
		{RevokedBasis(), CodeNoUse, ExitOther, "What this approval rests on is not granted any more; ask again."},
		{NotYours(), CodeNotYours, ExitOther, "This is not yours to decide."},
		{NotConfigured(1000), CodeNotYours, ExitOther,
			"Nobody here has the account with uid 1000; set people[].user, or use the daemon's own account, with its " +
				"configuration (--config) and admin.key in reach."},
		{OperatorOnly(), CodeNotYours, ExitOther, "Only the operator may read this: use the daemon's own account, with its admin.key in reach."},
		{ShownDiffers(), CodeNotYours, ExitOther, "What you were shown is not what is asked now; look at it again."},
		{Unknown("K7F3Q"), CodeUnknown, ExitUnknown, `There is no request K7F3Q.`},
		{Unknown("number 17"), CodeUnknown, ExitUnknown, `There is no request "number 17".`},
		{Unknown(""), CodeUnknown, ExitUnknown, `There is no request "".`},
		{NoRoute("uid 1000"), CodeNoRoute, ExitUndeliverable, "No route asks anybody for uid 1000."},
		{Unreadable(errors.New("the row is damaged")), CodeBroken, ExitOther, "daycared cannot read this: the row is damaged."},
		{Broken("the disk is full; free some space"), CodeBroken, ExitOther,
			"daycared cannot store anything just now, so nothing is granted: the disk is full; free some space."},
		{CoolingDown(10 * time.Minute), CodeCoolingDown, ExitNo,
			"Denied twice; not asked again for 10 minutes."},
		{Stopped("fay"), CodeStopped, ExitOther, "Stopped by fay; nothing is asked until resume."},
		{StopIncomplete("1 of what waits is left"), CodeBroken, ExitOther,
			"Everything is stopped: nothing is asked, allowed or used until resume. But 1 of what waits is left."},
		{UnknownGrant("01J"), CodeUnknown, ExitUnknown, `There is no grant 01J.`},
		{TooBig(), CodeTooBig, ExitOther,
			"This is too big to be shown here whole, so it cannot be allowed here. It can be denied."},
		{ButtonMoved(), CodeMoved, ExitOther, "This card was shown again below; please answer there."},
		{NoPairing("fay", "telegram"), CodeUnknown, ExitUnknown, "fay has no account at telegram that was paired."},
		{OthersAccount("4242", "fay"), CodeNotYours, ExitOther, "The account 4242 is fay's; no two people share one."},
		{UnknownSession("01J"), CodeUnknown, ExitUnknown, `There is no session 01J.`},
		{NoToken("x"), CodeUnknown, ExitUnknown, `There is no token x.`},
		{NoAgent(), CodeNoAgent, ExitOther, "No agent is bound to this chat yet, so nobody reads this."},
		{UnknownAgent("sam", []string{"coder", "helper"}), CodeUnknown, ExitUnknown,
			`None of your agents here is called "sam". See /agents.`},
		{UnknownAgent("hlper", []string{"coder", "helper"}), CodeUnknown, ExitUnknown,
			`None of your agents here is called "hlper"; did you mean helper? See /agents.`},
		{InboxFull("helper"), CodeLimit, ExitOther,
			"Too many messages wait for helper; this one was not taken. Write again later."},
		{OrderNotTaken("helper"), CodeLimit, ExitOther, "helper did not take this just now; try again."},
		{OutboxFull(time.Minute), CodeLimit, ExitOther,
			"Too much of what you said is still to be sent; say less, or try again later."},
		{TokenNeeded(), CodeToken, ExitOther,
			"Only a token proves here who asks; whoever runs the daemon makes one with: daycared token create NAME"},
		{KeyWithoutName(), CodeInvalid, ExitUsage, "A key needs somebody whose it is; present a token, or ask without a key."},
		{EditorOff(), CodeEditor, ExitOther,
			"Answers from editors are not taken here; whoever runs the daemon allows them with connectors.editor.enabled."},
		{UnknownToken(), CodeToken, ExitOther, "This token is not valid here: it is unknown, over or revoked."},
		{Pruned(17), CodeGone, ExitOther, "What happened before seq 17 is no longer kept; read what is there and go on from it."},
		{Invalid(errors.New("a pause needs a message at 100%")), CodeInvalid, ExitUsage, "a pause needs a message at 100%"},
	} {
		if c.got.Code != c.code || c.got.Exit != c.exit || c.got.Error() != c.text {
			t.Errorf("got %+v, want %s, %d, %q", c.got, c.code, c.exit, c.text)
		}
	}
	if got := Limit(1500 * time.Millisecond).After; got != 2*time.Second {
		t.Errorf("try again after %s, want whole seconds", got)
	}
}

func TestRefusedSaysWhatStepRefused(t *testing.T) {
	settled := after(t, permissionRequest(), vote("fay", Deny))
	for _, c := range []struct {
		err  error
		code Code
		exit int
		text string
	}{
		{&SettledError{settled}, CodeSettled, ExitOther,
			"Too late: already denied by fay at " + settled.DecidedAt.UTC().Format(time.RFC3339) + ". Nothing was changed."},
		{ErrLate, CodeSettled, ExitOther, "Too late: the time is over. Nothing was changed."},
		{ErrCall, CodeSettled, ExitOther, "Too late: that call has been answered already. Nothing was changed."},
		{ErrNotAsked, CodeNotYours, ExitOther, "This is not yours to decide."},
		{ErrAsker, CodeEditor, ExitOther,
			"Only a clarification, or a pause that continues, may be answered in the asker's editor; this is for people."},
		{ErrReally, CodeReally, ExitOther, "This is high risk and needs a second yes (approve --really)."},
		{ErrWords, CodeInvalid, ExitUsage,
			"An answer in words of one's own has 1 to 2000 characters, and no control characters."},
		{ErrNoOption, CodeNoAnswer, ExitUsage, "This request does not offer that answer."},
		{ErrVoted, CodeNoAnswer, ExitOther, "You have allowed this already; an allowance can only become a denial."},
		{ErrNoUse, CodeNoUse, ExitOther, "There is no unused approval here."},
	} {
		var got *Refusal
		if err := ToRefusal(fmt.Errorf("decide: %w", c.err)); !errors.As(err, &got) {
			t.Errorf("%v is no refusal: %v", c.err, err)
			continue
		}
		if got.Code != c.code || got.Exit != c.exit || got.Text != c.text {
			t.Errorf("%v: got %+v, want %s, %d, %q", c.err, got, c.code, c.exit, c.text)
		}
	}
	for _, err := range []error{io.EOF, ErrBroken, ErrNotDue, ErrEvent, nil} {
		if got := ToRefusal(err); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestTooLate(t *testing.T) {
	east := time.FixedZone("EET", 7200)
	at := noon.In(east).Format("15:04:05 MST")
	if late := TooLate(Request{State: Expired, DecidedAt: noon.In(east)}, nil).Text; !strings.Contains(late, noon.UTC().Format("T15:04:05Z")) {
		t.Errorf("programs are told %q", late)
	}
	for _, c := range []struct {
		r    Request
		want string
	}{
		{Request{State: Approved, DecidedBy: "fay"}, "Too late: already approved by fay at " + at + ". Nothing was changed."},
		{Request{State: Denied, DecidedBy: "sam"}, "Too late: already denied by sam at " + at + ". Nothing was changed."},
		{Request{State: Approved, DecidedBy: "fay", VoidAt: noon},
			"Too late: approved by fay, and taken back at " + at + ". Nothing was changed."},
		{Request{State: Approved, DecidedBy: "fay", LapsedAt: noon},
			"Too late: approved by fay, and not collected until " + at + ". Nothing was changed."},
		{Request{State: Denied, DecidedVia: ViaRule, Failure: "rule 3"},
			"Too late: already denied by rule 3 at " + at + ". Nothing was changed."},
		{Request{State: Answered, DecidedBy: "sam"}, "Too late: already answered by sam at " + at + ". Nothing was changed."},
		{Request{State: Answered}, "Too late: settled at " + at + " without anybody's answer. Nothing was changed."},
		{Request{State: Answered, DecidedVia: ViaEditor}, "Too late: already answered in the editor at " + at + ". Nothing was changed."},
		{Request{State: Expired}, "Too late: expired at " + at + ". Nothing was changed."},
		{Request{State: Cancelled, DecidedBy: "uid:1000"}, "Too late: cancelled at " + at + ". Nothing was changed."},
		{Request{State: Undeliverable}, "Too late: undeliverable at " + at + ". Nothing was changed."},
	} {
		c.r.DecidedAt = noon
		if got := TooLate(c.r, east).Text; got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestSettledError(t *testing.T) {
	for want, r := range map[string]Request{
		"decide: already expired by nobody":      {State: Expired},
		"decide: already denied by fay":          {State: Denied, DecidedBy: "fay"},
		"decide: already answered in the editor": {State: Answered, DecidedVia: ViaEditor},
	} {
		err := fmt.Errorf("decide: %w", &SettledError{r})
		if !errors.Is(err, ErrSettled) || errors.Is(err, ErrLate) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A name that cannot be misread stays as it is; any other is quoted.
func TestQuoteUnlessPlain(t *testing.T) {
	for name, want := range map[string]string{
		"0189": "0189", "AMZ": "AMZ", "amz": "amz", "a-b_c.d": "a-b_c.d", "": `""`,
		"/": `"/"`, ":": `":"`, "@": `"@"`, "[": `"["`, "`": "\"`\"", "{": `"{"`, "a b": `"a b"`, "é": `"é"`,
	} {
		if got := quoteName(name); got != want {
			t.Errorf("bare(%q) is %s, want %s", name, got, want)
		}
	}
}

// TestPositionsCountFromOne, as people do.
func TestPositionsCountFromOne(t *testing.T) {
	if got := Positions([]int{1, 2}); got != "2, 3" {
		t.Error(got)
	}
}

func TestSuspendedCount(t *testing.T) {
	s := Suspended{Grants: make([]Grant, 1), Tokens: make([]Token, 2), Pairings: make([]Pairing, 4)}
	if n := s.Count(); n != 7 {
		t.Errorf("%d are counted", n)
	}
}

// TestRefusalsOfPeopleAndRules: what is refused to one caller or person is put in the words of the rule, or with the name that was meant.
func TestRefusalsOfPeopleAndRules(t *testing.T) {
	for _, c := range []struct {
		got  *Refusal
		code Code
		text string
	}{
		{MayNotNotify("kim", nil), CodeUnknown, `There is nobody called "kim" to tell; there is nobody whom you may tell`},
		{MayNotNotify("kim", []string{"fay", "sam"}), CodeUnknown, `There is nobody called "kim" to tell; you may tell fay, sam`},
		{MayNotNotify("samm", []string{"fay", "sam"}), CodeUnknown, `There is nobody called "samm" to tell; did you mean sam?`},
		{ForbiddenBy(Verdict{Forbidden: "Bash"}), CodeForbidden, "Tool Bash is forbidden here."},
		{ForbiddenBy(Verdict{Forbidden: "Bash", Ruling: Ruling{Effect: RuleDenies, Rule: 3, Why: "no pushes"}}), CodeForbidden,
			`This call of Bash is forbidden here: rule 3, "no pushes".`},
	} {
		if c.got.Text != c.text || CodeOf(c.got) != c.code || CodeOf(fmt.Errorf("ask: %w", c.got)) != c.code {
			t.Errorf("got %+v, want %s, %q", c.got, c.code, c.text)
		}
	}
	if code := CodeOf(io.EOF); code != "" {
		t.Errorf("the end of a file is refused with %s", code)
	}
}

// TestOneUnreadableRowIsToldFromABrokenStore: only the refusal of a row matches ErrRow, and
// only one that says when to try again is of a store out of reach.
func TestOneUnreadableRowIsToldFromABrokenStore(t *testing.T) {
	row, all := Unreadable(fmt.Errorf("request 7: %w", ErrRow)), Unreadable(io.EOF)
	if !errors.Is(row, ErrRow) || errors.Is(all, ErrRow) || errors.Is(row, io.EOF) {
		t.Errorf("a row: %+v, the store: %+v", row, all)
	}
	for _, c := range []struct {
		r    Refusal
		away bool
	}{{Refusal{Code: CodeBroken, After: 1}, true}, {Refusal{Code: CodeBroken}, false}, {Refusal{Code: CodeForbidden, After: 1}, false}} {
		if errors.Is(&c.r, ErrAway) != c.away || errors.Is(&c.r, io.EOF) {
			t.Errorf("%+v is of a store that can be used again later: %t", c.r, !c.away)
		}
	}
}

// TestRefusalsAreSaidInThePersonsLanguage: a refusal for programs has one text; a person's is in their language.
func TestRefusalsAreSaidInThePersonsLanguage(t *testing.T) {
	if own := NotYours(); own.TextIn(i18n.English) != own.Text || own.TextIn("de") == own.Text {
		t.Errorf("a person is told %q in English and %q in German", own.TextIn(i18n.English), own.TextIn("de"))
	}
	for _, own := range []*Refusal{
		ForbiddenBy(Verdict{Forbidden: "Bash"}), ForbiddenBy(Verdict{Forbidden: "Bash", Ruling: Ruling{Effect: RuleDenies, Rule: 3}}),
		OwnFiles("@write:/srv"), ReachesOwn("Bash"), AgentStoppedBy(Lock{}), InvalidInput("you are not away"),
	} {
		if own.TextIn("de") == own.Text {
			t.Errorf("an approver is told %q in German", own.Text)
		}
	}
	if key := KeyTaken(); key.TextIn("de") != key.Text {
		t.Errorf("a program is told %q", key.TextIn("de"))
	}
}
