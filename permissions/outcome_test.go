package permissions

import (
	"testing"
	"time"
)

// The table of outcomes, line by line: what happens to a request, and how it is reported.
func TestOutcomes(t *testing.T) {
	minutes := func(r Request, d time.Duration) Request {
		r.Deadline = r.CreatedAt.Add(d)
		return r
	}
	held := func(r Request) Request {
		r.State, r.Answer, r.Scope, r.DecidedVia, r.DecidedAt = Approved, Allow(Once), Once, ViaGrant, noon
		return r
	}
	pair := pending(Request{Kind: KindTool, Calls: []Call{{N: 1, Tool: "write_file"}, {N: 2, Tool: "fetch_url"}}})
	both := "network access, write access to /srv/www"
	until := noon.Add(16 * time.Minute).UTC().Format(time.RFC3339)
	blocked := GiveUp{Reason: "fay has blocked the bot", At: soon}
	for _, c := range []struct {
		name   string
		r      Request
		events []Transition
		want   Outcome
	}{
		{"permission allowed", permissionRequest(), []Transition{vote("fay", Allow(Once))},
			Outcome{"Permission granted for " + both + ".", false, 0}},
		{"permission allowed for a session", permissionRequest(), []Transition{vote("fay", Allow(Session))},
			Outcome{"Permission granted for " + both + ".", false, 0}},
		{"permission allowed for a time", permissionRequest(), []Transition{vote("fay", Allow(For(15*time.Minute)))},
			Outcome{"Permission granted for " + both + " until " + until + ".", false, 0}},
		{"permission already held", held(permissionRequest()), nil,
			Outcome{"Permission already granted for " + both + ".", false, 0}},
		{"permission denied", permissionRequest(), []Transition{vote("fay", Deny)},
			Outcome{"Permission denied for " + both + ".", false, 3}},
		{"permission denied with a reason", permissionRequest(), []Transition{comment(vote("fay", Deny), "not on a {L}")},
			Outcome{"Permission denied for " + both + `. fay: "not on a {L}"`, false, 3}},
		{"permission denied with what controls a terminal", permissionRequest(), []Transition{comment(vote("fay", Deny), "no\x1b[2J\u202e\n לא")},
			Outcome{"Permission denied for " + both + `. fay: "no\u{1B}[2J\u{202E}` + "\n לא\"", false, 3}},
		{"permission time over", permissionRequest(), []Transition{Expire{At: dusk}},
			Outcome{"Permission request timed out after 15 minutes.", true, 4}},
		{"permission time over, one minute", minutes(permissionRequest(), time.Minute), []Transition{Expire{At: dusk}},
			Outcome{"Permission request timed out after 1 minute.", true, 4}},
		{"permission time over, seconds", minutes(permissionRequest(), 90*time.Second), []Transition{Expire{At: dusk}},
			Outcome{"Permission request timed out after 90 seconds.", true, 4}},
		{"permission time over, one second", minutes(permissionRequest(), time.Second), []Transition{Expire{At: dusk}},
			Outcome{"Permission request timed out after 1 second.", true, 4}},
		{"permission withdrawn", permissionRequest(), []Transition{Withdraw{At: soon}},
			Outcome{"Permission request cancelled.", true, 5}},
		{"permission taken back", permissionRequest(), []Transition{vote("fay", Allow(Once)), Void{At: soon}},
			Outcome{"Permission was given and taken back before it was used.", true, 5}},
		{"permission nobody came for", permissionRequest(), []Transition{vote("fay", Allow(Once)), Lapse{At: dusk}},
			Outcome{"Permission was given, but nobody came for it in time.", true, 4}},
		{"permission, nobody reachable", permissionRequest(), []Transition{blocked},
			Outcome{"Permission request could not be delivered: fay has blocked the bot.", true, 6}},
		{"permission, nobody reachable, with a full stop", permissionRequest(), []Transition{GiveUp{Reason: "No.", At: soon}},
			Outcome{"Permission request could not be delivered: No.", true, 6}},
		{"permission pending", permissionRequest(), nil, Outcome{"Still waiting for an answer.", true, 1}},

		{"tool allowed", toolRequest(), []Transition{vote("fay", Allow(SessionTool))},
			Outcome{"Tool write_file approved.", false, 0}},
		{"tool opened already", held(toolRequest()), nil, Outcome{"Tool write_file approved.", false, 0}},
		{"tool denied", toolRequest(), []Transition{vote("sam", Deny)},
			Outcome{"Tool write_file denied by the user.", false, 3}},
		{"tool denied with a reason", toolRequest(), []Transition{comment(vote("sam", Deny), "keep old/")},
			Outcome{`Tool write_file denied by the user. sam: "keep old/"`, false, 3}},
		{"tool time over", toolRequest(), []Transition{Expire{At: dusk}},
			Outcome{"Tool approval timed out after 15 minutes.", true, 4}},
		{"tool withdrawn", toolRequest(), []Transition{Withdraw{At: soon}}, Outcome{"Tool approval cancelled.", true, 5}},
		{"tool taken back", toolRequest(), []Transition{vote("fay", Allow(Once)), Void{At: soon}},
			Outcome{"Tool approval was given and taken back before it was used.", true, 5}},
		{"tool forbidden since", toolRequest(), []Transition{Forbid{Rule: `rule 3, "no"`, At: soon}},
			Outcome{`Tool write_file is forbidden here: rule 3, "no".`, true, 1}},
		{"step forbidden since, after a denial", pair, []Transition{
			Cast{Vote: Vote{By: "fay", Call: 2, Answer: Deny, At: soon}}, Forbid{Rule: "rule 3", At: soon},
		},
			Outcome{"Tool write_file, fetch_url is forbidden here: rule 3.", true, 1}},
		{"tool, nobody reachable", toolRequest(), []Transition{blocked},
			Outcome{"Tool approval could not be delivered: fay has blocked the bot.", true, 6}},

		{"step allowed", pair, []Transition{vote("fay", Allow(Once))},
			Outcome{"Tool write_file approved.\nTool fetch_url approved.", false, 0}},
		{"step opened already", held(pair), nil, Outcome{"Tool write_file, fetch_url approved.", false, 0}},
		{"step allowed in part", pair,
			[]Transition{comment(voteOn(2, "sam", Deny), "no net"), comment(vote("fay", Allow(Once)), "fine")},
			Outcome{"Tool write_file approved.\n" + `Tool fetch_url denied by the user. sam: "no net"`, false, 3}},
		{"step denied, each for a reason", pair,
			[]Transition{comment(voteOn(1, "fay", Deny), "a"), comment(vote("sam", Deny), "b")},
			Outcome{`Tool write_file denied by the user. fay: "a"` + "\n" +
				`Tool fetch_url denied by the user. sam: "b"`, false, 3}},
		{"step time over after one answer", pair, []Transition{voteOn(1, "fay", Allow(Once)), Expire{At: dusk}},
			Outcome{"Tool write_file approved. It is not run: another call of the step was not answered in time.\n" +
				"Tool approval timed out after 15 minutes.", true, 4}},
		{"step taken back", pair, []Transition{vote("fay", Allow(Once)), Void{At: soon}},
			Outcome{"Tool approval was given and taken back before it was used.", true, 5}},

		{"pause resumed", pauseRequest(), []Transition{vote("fay", Continue)}, Outcome{"Resumed.", false, 0}},
		{"pause interrupted", pauseRequest(), []Transition{vote("fay", Interrupt)},
			Outcome{"Interrupted by the user.", false, 5}},
		{"pause time over", pauseRequest(), []Transition{Expire{At: dusk}},
			Outcome{"Nobody resumed within 15 minutes; continuing.", false, 0}},
		{"pause, nobody to ask", pauseRequest(), []Transition{blocked}, Outcome{"Nobody to ask; continuing.", false, 0}},
		{"pause cancelled", pauseRequest(), []Transition{Withdraw{At: soon}}, Outcome{"Pause cancelled.", true, 5}},

		{"confirm yes", confirmRequest(), []Transition{vote("fay", Allow(Once))}, Outcome{"Approved.", false, 0}},
		{"confirm no", confirmRequest(), []Transition{comment(vote("fay", Deny), "wait")},
			Outcome{`Denied. fay: "wait"`, false, 3}},
		{"confirm interrupted", confirmRequest(), []Transition{vote("fay", Interrupt)},
			Outcome{"Interrupted by the user.", false, 5}},
		{"confirm time over", confirmRequest(), []Transition{Expire{At: dusk}},
			Outcome{"Confirmation timed out after 15 minutes.", true, 4}},
		{"confirm cancelled", confirmRequest(), []Transition{Withdraw{At: soon}},
			Outcome{"Confirmation cancelled.", true, 5}},
		{"confirm taken back", confirmRequest(), []Transition{vote("fay", Allow(Once)), Void{At: soon}},
			Outcome{"Confirmation was given and taken back before it was used.", true, 5}},
		{"confirm, nobody reachable", confirmRequest(), []Transition{blocked},
			Outcome{"Confirmation could not be delivered: fay has blocked the bot.", true, 6}},

		{"clarification chosen", clarification(), []Transition{vote("fay", Choose(2))}, Outcome{"mail", false, 0}},
		{"clarification answered in words", clarification(), []Transition{comment(vote("sam", Other), " none {option} of\nthem ")},
			Outcome{"none {option} of\nthem", false, 0}},
		{"clarification time over", minutes(clarification(), 5*time.Minute), []Transition{Expire{At: dusk}},
			Outcome{"blog\n(nobody answered within 5 minutes; first option taken)", false, 4}},
		{"a hook's clarification time over", hooked(minutes(clarification(), 5*time.Minute)), []Transition{Expire{At: dusk}},
			Outcome{"Nobody answered within 5 minutes.", true, 4}},
		{"a hook's clarification, three wrong tries", hooked(clarification()), []Transition{Default{By: "fay", Via: "terminal", At: soon}},
			Outcome{"No valid answer in three tries.", true, 4}},
		{"clarification, three wrong tries", clarification(), []Transition{Default{By: "fay", Via: "terminal", At: soon}},
			Outcome{"blog\n(no valid answer in three tries; first option taken)", false, 4}},
		{"clarification, nobody reachable", clarification(), []Transition{blocked},
			Outcome{"Question could not be delivered: fay has blocked the bot.", true, 6}},
		{"clarification cancelled", clarification(), []Transition{Withdraw{At: soon}},
			Outcome{"Question cancelled.", true, 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Result(after(t, c.r, c.events...)); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// A state that the kind cannot have is never a yes.
func TestOutcomesOfWhatCannotBe(t *testing.T) {
	for _, kind := range kinds {
		for _, s := range []State{Pending, Approved, Denied, Answered, Expired, "", "other"} {
			r := kind.make()
			r.State, r.Mode = s, "other"
			if got := Result(r); !got.Error || got.Exit != ExitOther {
				t.Errorf("%s %s of no known mode: %+v", s, kind.name, got)
			}
		}
	}
	for _, r := range []Request{
		{Kind: KindClarification, State: Approved}, {Kind: KindPermission, State: Answered, Answer: Continue},
		{Kind: KindPause, Mode: ModeContinue, State: Approved}, {Kind: KindTool, State: Answered}, {State: Approved},
	} {
		if got := Result(r); !got.Error || got.Exit != ExitOther {
			t.Errorf("%s %s: %+v", r.State, r.Kind, got)
		}
	}
}

func TestATimeoutThatWasShortenedIsTold(t *testing.T) {
	r, held := permissionRequest(), permissionRequest()
	held.DecidedVia = ViaGrant // nobody was asked
	for _, c := range []struct {
		r      Request
		wanted time.Duration
		want   string
	}{
		{r, time.Hour, "the timeout was shortened from 60 minutes to 15 minutes"},
		{r, 15 * time.Minute, ""}, {r, time.Minute, ""}, {r, 0, ""}, {held, time.Hour, ""},
	} {
		if got := c.r.Shortened(c.wanted); got != c.want {
			t.Errorf("%s, by %q: %q, want %q", c.wanted, c.r.DecidedVia, got, c.want)
		}
	}
}

func TestChoice(t *testing.T) {
	r := clarification()
	for answer, want := range map[Answer]string{
		Choose(1): "blog", Choose(3): "nowhere",
		Other: "", Choose(0): "", Choose(4): "", "": "", "2": "", "option_02": "", "option_": "",
	} {
		if r.Answer = answer; r.Choice() != want {
			t.Errorf("%q chooses %q, want %q", answer, r.Choice(), want)
		}
	}
}

func TestHarmless(t *testing.T) {
	for text, want := range map[string]string{
		"plain, as ever: /a  b\n\tand é, 日本 ✅ ":  "plain, as ever: /a  b\n\tand é, 日本 ✅ ",
		"\x1b]0;owned\a\x7f\r":                   `\u{1B}]0;owned\u{7}\u{7F}\u{D}`,
		"\u009b31m \u202egpj\u2066 \u200b\u2028": `\u{9B}31m \u{202E}gpj\u{2066} \u{200B}\u{2028}`,
		"\x9b31m":                                `\x{9b}31m`,
		`\u{202E}⟨3 spaces⟩`:                     `\u{202E}⟨3 spaces⟩`,
	} {
		if got := EscapeControls(text); got != want {
			t.Errorf("Harmless(%q) = %q, want %q", text, got, want)
		}
	}
}

// hooked returns r as an agent's hook asks it.
func hooked(r Request) Request {
	r.Hook = "claude-code"
	return r
}
