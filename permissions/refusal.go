package permissions

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
)

// Refusal is why a question was not asked, or an answer not taken: nothing was stored, and nothing was granted. Its
// text is meant for whoever tried.
type Refusal struct {
	Code  Code
	Text  string
	Exit  int
	After time.Duration // when to try again, 0 if that would not help
}

func (r *Refusal) Error() string { return r.Text }

// Code names a refusal for programs.
type Code string

// The refusals.
const (
	CodeInvalid   Code = "invalid"
	CodeForbidden Code = "forbidden"
	CodeOwnFiles  Code = "own-files"
	CodeKeyTaken  Code = "key-taken"
	CodeStopped   Code = "stopped"
	CodeOwnAsk    Code = "own-request"
	CodeLimit     Code = "limit"
	CodeRest      Code = "rest" // denied twice
	CodeNotYours  Code = "not-yours"
	CodeUnknown   Code = "unknown"
	CodeSettled   Code = "settled"
	CodeMoved     Code = "moved"
	CodeReally    Code = "high-risk"
	CodeTooBig    Code = "too-big"
	CodeNoAnswer  Code = "no-such-answer"
	CodeNoUse     Code = "not-usable"
	CodeEditor    Code = "editor"
	CodeToken     Code = "token"
	CodeGone      Code = "gone"
	CodeNoAgent   Code = "no-agent"
	CodeBroken    Code = "broken"
	CodeNoRoute   Code = "no-route"
	CodeLocked    Code = "locked"
)

// AsRefusal is the refusal that an error is or wraps, nil for any other.
func AsRefusal(err error) *Refusal {
	refusal, _ := errors.AsType[*Refusal](err)
	return refusal
}

// CodeOf is the code of the refusal that an error is or wraps, empty for any other.
func CodeOf(err error) Code {
	if refusal := AsRefusal(err); refusal != nil {
		return refusal.Code
	}
	return ""
}

func refuse(code Code, exit int, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Exit: exit, Text: fmt.Sprintf(format, args...)}
}

// Invalid refuses what was asked wrongly.
func Invalid(err error) *Refusal { return refuse(CodeInvalid, ExitUsage, "%s", err) }

// Forbidden refuses a tool that policy never allows.
func Forbidden(tool string) *Refusal {
	return refuse(CodeForbidden, ExitOther, "Tool %s is forbidden here.", tool)
}

// NotHeld refuses a caller that uses what nobody granted it, or not any more.
func NotHeld(t Tag) *Refusal {
	return refuse(CodeForbidden, ExitOther, "You do not hold %s: ask for it, for a time or for your session.", t)
}

// OwnFiles refuses what reaches the daemon itself: "@write:/var/lib/daycared covers", "Tool read_file reaches".
func OwnFiles(what string) *Refusal {
	return refuse(CodeOwnFiles, ExitOther, "%s daycared's own files and cannot be granted.", what)
}

// KeyTaken refuses other content under a key in use.
func KeyTaken() *Refusal {
	return refuse(CodeKeyTaken, ExitOther, "This key belongs to another request.")
}

// NoRoute refuses what no route of the configuration puts to anybody; asker is who would ask.
func NoRoute(asker string) *Refusal {
	return refuse(CodeNoRoute, ExitUndeliverable, "No route asks anybody for %s.", asker)
}

// NoOwner refuses what would be put to whoever the asking agent belongs to, where that is nobody.
func NoOwner(asker string) *Refusal {
	return refuse(CodeNoRoute, ExitUndeliverable, "The route for %s asks its owner, and it has none; make its token with --person.", asker)
}

// OwnAsk refuses an account that would decide what it asked itself.
func OwnAsk(uid int) *Refusal {
	return refuse(CodeOwnAsk, ExitOther,
		"You (uid %d) asked this yourself; answer from another channel, or set api.allow_same_user.", uid)
}

// OwnAskElsewhere says where whoever got [OwnAsk] may answer instead.
const OwnAskElsewhere = "From your account, the terminal of daycared serve or a phone can allow it; here it can be denied."

// Limit refuses one request too many, by the limits of those keys; after is rounded up to whole seconds.
func Limit(after time.Duration, keys ...string) *Refusal {
	after = (max(after, time.Second) + time.Second - 1).Truncate(time.Second)
	wait := plural(int64(after/time.Second), "second")
	by := ""
	if len(keys) > 0 {
		by = " by limits." + strings.Join(keys, " or ")
	}
	r := refuse(CodeLimit, ExitOther, "Too many requests%s; try again in %s.", by, wait)
	r.After = after
	return r
}

// Rest refuses to ask once more what was denied again and again; after is rounded up to whole seconds.
func Rest(after time.Duration) *Refusal {
	r := Limit(after)
	r.Code, r.Exit = CodeRest, ExitNo
	r.Text = fmt.Sprintf("Denied twice; not asked again for %s.", SayDuration(r.After))
	return r
}

// TooMuchTold refuses one notice too many; after is rounded up to whole seconds.
func TooMuchTold(after time.Duration) *Refusal {
	r := Limit(after)
	r.Text = strings.Replace(r.Text, "requests", "notices", 1)
	return r
}

// Untellable refuses a notice to somebody who can be reached on no channel, and says why.
func Untellable(why string) *Refusal {
	return refuse(CodeNoRoute, ExitUndeliverable, "Notice could not be delivered: %s.", why)
}

// NobodyOwns refuses what is told to whoever a caller belongs to, where that is nobody.
func NobodyOwns(caller string) *Refusal {
	return refuse(CodeNoRoute, ExitUndeliverable, "%s belongs to nobody, so there is nobody to tell; make its token with --person.", caller)
}

// NobodyToTell refuses a name that is none of the people whom a caller may tell something.
func NobodyToTell(name string, people []string) *Refusal {
	meant := "you may tell nobody here anything"
	if len(people) > 0 {
		meant = "you may tell " + strings.Join(people, ", ")
	}
	if near := Nearest(name, people); near != "" {
		meant = "did you mean " + near + "?"
	}
	return refuse(CodeUnknown, ExitUnknown, "There is nobody called %q to tell; %s", name, meant)
}

// Stopped refuses everything after the kill switch.
func Stopped(by string) *Refusal {
	return refuse(CodeStopped, ExitOther, "Stopped by %s; nothing is asked until resume.", by)
}

// StopUnsaved says that everything is stopped, that this could not be stored, and why.
func StopUnsaved(why string) *Refusal {
	return refuse(CodeBroken, ExitOther, "Everything is stopped now: nothing is asked, allowed or used until resume. But that is not "+
		"saved yet: %s; it is saved as soon as that is possible, and what waits is cancelled then. A restart before it is saved forgets it.", why)
}

// StopLeft says that everything is stopped, and what that could not cancel.
func StopLeft(what string) *Refusal {
	return refuse(CodeBroken, ExitOther, "Everything is stopped: nothing is asked, allowed or used until resume. But %s.", what)
}

// RevokedBasis refuses an approval that rests on what is not granted any more.
func RevokedBasis() *Refusal {
	return refuse(CodeNoUse, ExitOther, "What this approval rests on is not granted any more; ask again.")
}

// NotYours refuses somebody who was not asked.
func NotYours() *Refusal { return refuse(CodeNotYours, ExitOther, "This is not yours to decide.") }

// NotConfigured refuses an account that is no person of the configuration and did not prove to be the operator's.
func NotConfigured(uid int) *Refusal {
	return refuse(CodeNotYours, ExitOther,
		"Nobody here has the account with uid %d; set people[].user, or use the daemon's own account, with its "+
			"configuration (--config) and admin.key in reach.", uid)
}

// OperatorOnly refuses what only the operator may read.
func OperatorOnly() *Refusal {
	return refuse(CodeNotYours, ExitOther, "Only the operator may read this: use the daemon's own account, with its admin.key in reach.")
}

// Moved refuses a button on a card that was sent again since.
func Moved() *Refusal {
	return refuse(CodeMoved, ExitOther, "This card was shown again below; please answer there.")
}

// TooBig refuses to allow what the channel cannot have shown whole.
func TooBig() *Refusal {
	return refuse(CodeTooBig, ExitOther, "This is too big to be shown here whole, so it cannot be allowed here. It can be denied.")
}

// OtherShown refuses an answer to something else than what is asked.
func OtherShown() *Refusal {
	return refuse(CodeNotYours, ExitOther, "What you were shown is not what is asked now; look at it again.")
}

// EditorOff refuses what an editor's dialog brought, where that is not switched on.
func EditorOff() *Refusal {
	return refuse(CodeEditor, ExitOther,
		"Answers from editors are not taken here; whoever runs the daemon allows them with connectors.editor.enabled.")
}

// AskersSide refuses an answer through the asker's own side to what permits something.
func AskersSide() *Refusal {
	return refuse(CodeEditor, ExitOther,
		"Only a clarification, or a pause that continues, may be answered in the asker's editor; this is for people.")
}

// Unknown refuses an id, code or button that names nothing (or nothing of this caller's).
func Unknown(name string) *Refusal {
	return refuse(CodeUnknown, ExitUnknown, "There is no request %s.", bare(name))
}

// bare is a name that anybody may have written: as it is, where that cannot be taken for anything else.
func bare(name string) string {
	for _, c := range name {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_' && c != '.' {
			return strconv.Quote(name)
		}
	}
	return cmp.Or(name, `""`)
}

// UnknownGrant refuses an id that names no grant (or none of this person's).
func UnknownGrant(id ID) *Refusal {
	return refuse(CodeUnknown, ExitUnknown, "There is no grant %s.", bare(string(id)))
}

// UnknownSession refuses an id that names no session (or none of this person's, or one that has ended).
func UnknownSession(id string) *Refusal {
	return refuse(CodeUnknown, ExitUnknown, "There is no session %s.", bare(id))
}

// NoToken refuses an id or a name that names no token.
func NoToken(name string) *Refusal {
	return refuse(CodeUnknown, ExitUnknown, "There is no token %s.", bare(name))
}

// NoPairing refuses to unpair whoever is not paired.
func NoPairing(person, via string) *Refusal {
	return refuse(CodeUnknown, ExitUnknown, "%s has no account at %s that was paired.", person, via)
}

// OthersAccount refuses an account that is another person's: no two share one.
func OthersAccount(address, person string) *Refusal {
	return refuse(CodeNotYours, ExitOther, "The account %s is %s's; no two people share one.", address, person)
}

// UnknownToken refuses a token that is not known, not any more, or not yet.
func UnknownToken() *Refusal {
	return refuse(CodeToken, ExitOther, "This token is not valid here: it is unknown, over or revoked.")
}

// SuspendedToken refuses a token that the operator has to confirm first.
func SuspendedToken(id ID) *Refusal {
	return refuse(CodeToken, ExitOther,
		"This token is suspended since the store was restored from a copy; the operator confirms it with: daycared reinstate %s", id)
}

// NotSuspended refuses to reinstate what is not suspended.
func NotSuspended(name string) *Refusal {
	return refuse(CodeUnknown, ExitUnknown, "Nothing that is suspended is called %s; daycared suspended lists what is.", name)
}

// TokenNeeded refuses whoever presents no token where only that proves anything.
func TokenNeeded() *Refusal {
	return refuse(CodeToken, ExitOther,
		"Only a token proves here who asks; whoever runs the daemon makes one with: daycared token create NAME")
}

// KeyWithoutName refuses a key of callers who cannot be told apart: it would find what another of them asked.
func KeyWithoutName() *Refusal {
	return refuse(CodeInvalid, ExitUsage, "A key needs somebody whose it is; present a token, or ask without a key.")
}

// Pruned refuses to list what is no longer kept; first is where the list begins now.
func Pruned(first int64) *Refusal {
	return refuse(CodeGone, ExitOther, "What happened before seq %d is no longer kept; read what is there and go on from it.", first)
}

// NoAgent refuses what is for an agent, where none is bound.
func NoAgent() *Refusal {
	return refuse(CodeNoAgent, ExitOther, "No agent is bound to this chat yet, so nobody reads this.")
}

// UnknownAgent refuses a name that is none of this person's agents', and names the one that may be meant.
func UnknownAgent(name string, agents []string) *Refusal {
	meant := "."
	if near := Nearest(name, agents); near != "" {
		meant = "; did you mean " + near + "?"
	}
	return refuse(CodeUnknown, ExitUnknown, "None of your agents here is called %q%s See /agents.", name, meant)
}

// InboxFull refuses one message more to an agent that does not take those that wait.
func InboxFull(agent string) *Refusal {
	return refuse(CodeLimit, ExitOther, "Too many messages wait for %s; this one was not taken. Write again later.", agent)
}

// OrderNotTaken refuses an order that an agent did not take.
func OrderNotTaken(agent string) *Refusal {
	return refuse(CodeLimit, ExitOther, "%s did not take this just now; try again.", agent)
}

// OutboxFull refuses an agent that says more than can be sent; after is when to try again.
func OutboxFull(after time.Duration) *Refusal {
	r := refuse(CodeLimit, ExitOther, "Too much of what you said is still to be sent; say less, or try again later.")
	r.After = after
	return r
}

// Broken refuses because the store cannot be trusted or reached just now; advice says what to do.
func Broken(advice string) *Refusal {
	return refuse(CodeBroken, ExitOther, "daycared cannot store anything just now, so nothing is granted: %s.", advice)
}

// Unreadable refuses because a row of the store, or all of it, cannot be read; why says what to do.
func Unreadable(why string) *Refusal {
	return refuse(CodeBroken, ExitOther, "daycared cannot read this: %s.", why)
}

// Refused puts what [Step] refused into words, for programs. Any other error is returned as it is.
func Refused(err error) error { return RefusedIn(nil, err) }

// RefusedIn is Refused for somebody in a zone; nil: for programs.
func RefusedIn(zone *time.Location, err error) error {
	var settled *SettledError
	var none noCall
	switch {
	case errors.As(err, &settled):
		return refuse(CodeSettled, ExitOther, "%s", SayLate(settled.Request, zone))
	case errors.Is(err, ErrLate):
		return refuse(CodeSettled, ExitOther, "Too late: the time is over. Nothing was changed.")
	case errors.Is(err, ErrCall):
		return refuse(CodeSettled, ExitOther, "Too late: that call has been answered already. Nothing was changed.")
	case errors.Is(err, ErrNotAsked):
		return NotYours()
	case errors.Is(err, ErrAsker):
		return AskersSide()
	case errors.Is(err, ErrReally):
		return refuse(CodeReally, ExitOther, "This is high risk and needs a second yes (approve --really).")
	case errors.As(err, &none):
		return refuse(CodeInvalid, ExitUsage, "%s", none)
	case errors.Is(err, ErrNoOption):
		return refuse(CodeNoAnswer, ExitUsage, "This request does not offer that answer.")
	case errors.Is(err, ErrWords):
		return refuse(CodeInvalid, ExitUsage,
			"An answer in words of one's own has 1 to %d characters, and no control characters.", MaxReason)
	case errors.Is(err, ErrVoted):
		return refuse(CodeNoAnswer, ExitOther, "You have allowed this already; an allowance can only become a denial.")
	case errors.Is(err, ErrNoUse):
		return refuse(CodeNoUse, ExitOther, "There is no unused approval here.")
	}
	return err
}

// SayLate tells somebody in a zone whose answer came too late how the request ended; without one, times have an offset.
func SayLate(r Request, zone *time.Location) string {
	at := r.DecidedAt.UTC().Format(time.RFC3339)
	if zone != nil {
		at = r.DecidedAt.In(zone).Format("15:04:05 MST")
	}
	switch r.State {
	case Approved, Denied, Answered:
		if r.DecidedVia == ViaEditor {
			return fmt.Sprintf("Too late: already answered in the editor at %s. Nothing was changed.", at)
		}
		if r.DecidedBy == "" {
			return fmt.Sprintf("Too late: settled at %s without anybody's answer. Nothing was changed.", at)
		}
		return fmt.Sprintf("Too late: already %s by %s at %s. Nothing was changed.", r.State, r.DecidedBy, at)
	}
	return fmt.Sprintf("Too late: %s at %s. Nothing was changed.", r.State, at)
}

// Nearest is the one of known that a mistyped word was probably meant to be, or empty when none is near: one letter
// was mistyped, left out, added or swapped with its neighbour, in a word of five letters or more also two. Case does
// not count. A prefix alone is not near: nobody who types stop means stop-all.
func Nearest(word string, known []string) string {
	word = strings.ToLower(word)
	best, least := "", 2
	if len(word) >= 5 {
		least = 3
	}
	for _, k := range known {
		if d := distance(word, strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is how many letters of a have to change to give b. Two neighbours that were swapped are one.
func distance(a, b string) int {
	d := levenshtein.ComputeDistance(a, b)
	if d != 2 || len(a) != len(b) {
		return d
	}
	i := 0
	for a[i] == b[i] { // they differ, and not in the last alone
		i++
	}
	if a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:] {
		return 1
	}
	return d
}

// Cause is a file's error without its path, which the sentence around it names already.
func Cause(err error) error {
	if of, is := errors.AsType[*fs.PathError](err); is {
		return of.Err
	}
	return err
}
