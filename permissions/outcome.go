package permissions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Outcome is how a settled request is reported: with the same words in tools, hooks, the command line and transcripts.
type Outcome struct {
	Text  string
	Error bool // an error result to the model; a denial is a normal one
	Exit  int  // of ask, confirm and choose
}

// Exit codes of the commands that ask.
const (
	ExitYes           = 0
	ExitOther         = 1
	ExitUsage         = 2
	ExitNo            = 3
	ExitNobody        = 4 // nobody answered in time
	ExitCancelled     = 5 // or interrupted
	ExitUndeliverable = 6
	ExitUnreachable   = 7 // the daemon
	ExitUnknown       = 8 // a request, a grant, a token, …
)

// ending is how a request can end, for the table below.
type ending int

const (
	endAllowed ending = iota
	endHeld
	endNo
	endForbidden
	endLate
	endWithdrawn
	endTakenBack
	endLapsed
	endUndeliverable
	endContinued
	endInterrupted
	endChosen
	endAnswered
	endChosenLate
	endDefaulted
	endHookLate
	endHookDefaulted
)

// outcomes is the table of the contract. In the texts, {L} is what was asked for, {until} when a grant ends, {reason}
// the person's reason, {after} how long was waited, {why} why nobody was reached or what forbids it, {tool} the tool, {option} the option,
// {words} those of the person.
var outcomes = []struct {
	kind Kind
	mode Mode
	end  ending
	text string
	err  bool
	exit int
}{
	{KindPermission, "", endAllowed, "Permission granted for {L}{until}.", false, ExitYes},
	{KindPermission, "", endHeld, "Permission already granted for {L}.", false, ExitYes},
	{KindPermission, "", endNo, "Permission denied for {L}.{reason}", false, ExitNo},
	{KindPermission, "", endLate, "Permission request timed out after {after}.", true, ExitNobody},
	{KindPermission, "", endWithdrawn, "Permission request cancelled.", true, ExitCancelled},
	{KindPermission, "", endTakenBack, "Permission was given and taken back before it was used.", true, ExitCancelled},
	{KindPermission, "", endLapsed, "Permission was given, but nobody came for it in time.", true, ExitNobody},
	{KindPermission, "", endUndeliverable, "Permission request could not be delivered: {why}.", true, ExitUndeliverable},

	{KindTool, "", endAllowed, "Tool {tool} approved.", false, ExitYes},
	{KindTool, "", endHeld, "Tool {tool} approved.", false, ExitYes},
	{KindTool, "", endNo, "Tool {tool} denied by the user.{reason}", false, ExitNo},
	{KindTool, "", endForbidden, "Tool {tool} is forbidden here: {why}.", true, ExitOther},
	{KindTool, "", endLate, "Tool approval timed out after {after}.", true, ExitNobody},
	{KindTool, "", endWithdrawn, "Tool approval cancelled.", true, ExitCancelled},
	{KindTool, "", endTakenBack, "Tool approval was given and taken back before it was used.", true, ExitCancelled},
	{KindTool, "", endLapsed, "Tool approval was given, but nobody came for it in time.", true, ExitNobody},
	{KindTool, "", endUndeliverable, "Tool approval could not be delivered: {why}.", true, ExitUndeliverable},

	{KindPause, ModeContinue, endContinued, "Resumed.", false, ExitYes},
	{KindPause, ModeContinue, endInterrupted, "Interrupted by the user.", false, ExitCancelled},
	{KindPause, ModeContinue, endLate, "Nobody resumed within {after}; continuing.", false, ExitYes},
	{KindPause, ModeContinue, endUndeliverable, "Nobody to ask; continuing.", false, ExitYes},
	{KindPause, ModeContinue, endWithdrawn, "Pause cancelled.", true, ExitCancelled},

	{KindPause, ModeConfirm, endAllowed, "Approved.", false, ExitYes},
	{KindPause, ModeConfirm, endNo, "Denied.{reason}", false, ExitNo},
	{KindPause, ModeConfirm, endInterrupted, "Interrupted by the user.", false, ExitCancelled},
	{KindPause, ModeConfirm, endLate, "Confirmation timed out after {after}.", true, ExitNobody},
	{KindPause, ModeConfirm, endWithdrawn, "Confirmation cancelled.", true, ExitCancelled},
	{KindPause, ModeConfirm, endTakenBack, "Confirmation was given and taken back before it was used.", true, ExitCancelled},
	{KindPause, ModeConfirm, endLapsed, "Confirmation was given, but nobody came for it in time.", true, ExitNobody},
	{KindPause, ModeConfirm, endUndeliverable, "Confirmation could not be delivered: {why}.", true, ExitUndeliverable},

	{KindClarification, "", endChosen, "{option}", false, ExitYes},
	{KindClarification, "", endAnswered, "{words}", false, ExitYes},
	{KindClarification, "", endChosenLate,
		"{option}\n(nobody answered within {after}; first option taken)", false, ExitNobody},
	{KindClarification, "", endDefaulted,
		"{option}\n(no valid answer in three tries; first option taken)", false, ExitNobody},
	{KindClarification, "", endHookLate, "Nobody answered within {after}.", true, ExitNobody},
	{KindClarification, "", endHookDefaulted, "No valid answer in three tries.", true, ExitNobody},
	{KindClarification, "", endUndeliverable, "Question could not be delivered: {why}.", true, ExitUndeliverable},
	{KindClarification, "", endWithdrawn, "Question cancelled.", true, ExitCancelled},
}

// Result returns the outcome of r. A request that is still pending, or in a state that its kind cannot have, is not
// granted: its outcome is an error. For a step with any answers, every call has its own line.
func Result(r Request) Outcome {
	end, ok := r.ending()
	for _, row := range outcomes {
		if !ok || row.kind != r.Kind || row.mode != r.Mode || row.end != end {
			continue
		}
		o := Outcome{Text: r.fillTemplate(row.text), Error: row.err, Exit: row.exit}
		if (end == endAllowed || end == endHeld) && r.Kind == KindPermission && slices.Contains(r.Tags, Events) {
			o.Text += r.unopenedEvents()
		}
		if end == endLate && r.Kind == KindTool && r.Answer != "" { // see ForCall
			o.Text = r.fillTemplate("Tool {tool} approved. It is not run: another call of the step was not answered in time.")
		}
		if end == endAllowed || end == endNo || end == endLate && slices.ContainsFunc(r.Calls, Call.answered) {
			lines := make([]string, len(r.Calls))
			for i, c := range r.Calls {
				lines[i] = Result(r.ForCall(c)).Text
				if r.State == Denied && c.Answer != Deny {
					lines[i] += " It is not run: another call of the step was denied."
				}
			}
			o.Text = cmp.Or(strings.Join(lines, "\n"), o.Text)
			if end != endLate && slices.ContainsFunc(r.Calls, func(c Call) bool { return c.Answer == Deny }) {
				o.Exit = ExitNo // a reader of the exit code alone must not take it for a yes to all
			}
		}
		return o
	}
	return Outcome{Text: "Still waiting for an answer.", Error: true, Exit: ExitOther}
}

// unopenedEvents returns what an approval of [Events] does not open; empty if it opens the stream.
func (r Request) unopenedEvents() string {
	switch {
	case r.Caller.IsOurs():
		return " None of your tools follows them."
	case r.Scope == Once && r.DecidedVia != ViaGrant:
		return " For once nobody may follow them: ask for a time, or for your session."
	}
	return ""
}

// ForCall returns r as if it had asked about one of its calls alone; without calls, r itself. If r ended before each call
// was answered, a denied call is denied, and an allowed one has its answer and time but ended like r.
func (r Request) ForCall(c Call) Request {
	switch {
	case len(r.Calls) == 0:
		return r
	case r.State == Approved || r.State == Denied || c.Answer == Deny:
		return r.asSingleRequest(c)
	case c.answered():
		r.Answer, r.DecidedBy, r.DecidedAt = c.Answer, c.By, c.At
	}
	r.Calls, r.Tool = nil, c.Tool
	return r
}

func (c Call) answered() bool { return c.Answer != "" }

// asSingleRequest returns one call of an answered step, as if it had been asked by itself.
func (r Request) asSingleRequest(c Call) Request {
	r.Calls, r.Tool, r.Answer, r.Comment = nil, c.Tool, c.Answer, c.Comment
	r.State = Approved
	if _, allowed := c.Answer.Scope(); !allowed {
		r.State = Denied
	}
	r.Scope, _ = c.Answer.Scope()
	r.DecidedBy, r.DecidedAt = cmp.Or(c.By, r.DecidedBy), cmp.Or(c.At, r.DecidedAt)
	return r
}

// Outcome returns r as it is reported to the asker: an approval that was taken back is cancelled, an uncollected one is
// expired, and neither has an answer any more. The row keeps both.
func (r Request) Outcome() Request {
	switch {
	case r.State != Approved:
		return r
	case !r.VoidAt.IsZero():
		r.State = Cancelled
	case r.lapsed():
		r.State = Expired
	default:
		return r
	}
	r.Answer, r.Scope, r.Calls = "", Scope{}, slices.Clone(r.Calls)
	for i := range r.Calls {
		r.Calls[i].Answer = ""
	}
	return r
}

// lapsed reports whether nobody collected an approval in time. With a key it may have been used nevertheless.
func (r Request) lapsed() bool { return !r.LapsedAt.IsZero() && r.UsedAt.IsZero() }

// ending returns how r ended; ok is false while it is pending.
func (r Request) ending() (end ending, ok bool) {
	switch r = r.Outcome(); r.State {
	case Approved:
		if r.DecidedVia == ViaGrant {
			return endHeld, true
		}
		return endAllowed, true
	case Denied:
		if r.DecidedVia == ViaRule {
			return endForbidden, true
		}
		return endNo, true
	case Expired:
		if r.lapsed() {
			return endLapsed, true
		}
		return endLate, true
	case Cancelled:
		if !r.VoidAt.IsZero() {
			return endTakenBack, true
		}
		return endWithdrawn, true
	case Undeliverable:
		return endUndeliverable, true
	case Answered:
		switch {
		case r.TimedOut && r.DeniedIfUnanswered():
			return endHookLate, true
		case r.Defaulted && r.DeniedIfUnanswered():
			return endHookDefaulted, true
		case r.TimedOut:
			return endChosenLate, true
		case r.Defaulted:
			return endDefaulted, true
		case r.Answer == Continue:
			return endContinued, true
		case r.Answer == Interrupt:
			return endInterrupted, true
		case r.Answer == Other:
			return endAnswered, true
		}
		return endChosen, true
	}
	return 0, false
}

func (r Request) fillTemplate(text string) string {
	until, reason := "", ""
	if r.Scope.Span() > 0 {
		until = " until " + r.DecidedAt.Add(r.Scope.Span()).UTC().Format(time.RFC3339)
	}
	if r.Comment != "" {
		reason = " " + r.DecidedBy + ": " + `"` + EscapeControls(r.Comment) + `"`
	}
	return strings.NewReplacer(
		"{L}", DescribeTags(r.Tags),
		"{until}", until,
		"{reason}", reason,
		"{after}", FormatDuration(r.Timeout().Round(time.Second)),
		"{why}", strings.TrimSuffix(r.Failure, "."),
		"{tool}", strings.Join(r.ToolNames(), ", "),
		"{option}", r.Choice(),
		"{words}", r.Comment,
	).Replace(text)
}

// Shortened says how much less time people have than the caller of a request wanted; empty if they have as much.
func (r Request) Shortened(wanted time.Duration) string {
	if wanted <= r.Timeout() || r.DecidedVia == ViaGrant {
		return ""
	}
	return "the timeout was shortened from " + FormatDuration(wanted) + " to " + FormatDuration(r.Timeout().Round(time.Second))
}

// EscapeControls escapes control and format characters, as in \u{1B}, so that none of them affects a terminal or reorders the
// text. Newlines and tabs are kept, and so is text that was escaped before.
func EscapeControls(text string) string {
	var b strings.Builder
	for i, c := range text {
		switch _, size := utf8.DecodeRuneInString(text[i:]); {
		case c == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x{%x}`, text[i])
		case c != '\n' && c != '\t' && unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			fmt.Fprintf(&b, `\u{%X}`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

// AllowedByPolicy reports whether policy alone let r go: nobody was asked, and no grant was needed.
func (r Request) AllowedByPolicy() bool {
	return r.State == Approved && r.DecidedVia == ViaGrant && len(r.Grants) == 0
}

// Choice returns the chosen option of a clarification, in the asker's own words; empty if none was.
func (r Request) Choice() string {
	for i, c := range r.Choices {
		if r.Answer == Choose(i+1) {
			return c
		}
	}
	return ""
}

// DeniedIfUnanswered reports whether r is a question that an agent's hook asks: if nobody answers it, the hook denies the call and
// does not use the first option, which is only stored.
func (r Request) DeniedIfUnanswered() bool { return r.Kind == KindClarification && r.Hook != "" }
