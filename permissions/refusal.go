package permissions

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"

	"github.com/daycared/daycared/permissions/i18n"
)

// Refusal is why a question was not asked, or an answer not taken: nothing was stored, and nothing was granted. Its text
// is for the person or program that tried.
type Refusal struct {
	Code  Code
	Text  string
	Exit  int
	After time.Duration // when to try again, 0 if that would not help
	Row   bool          // one row of the store cannot be read; the others can

	// ForPerson is Text in the language of the person who is told; nil for what only programs and operators are told.
	ForPerson *FilledPhrase
	// Proposal is the rule that a second step would give, with CodeRule; nil without one.
	Proposal *Proposal
}

// FilledPhrase is a phrase with what its placeholders stand for.
type FilledPhrase struct {
	Phrase i18n.Phrase
	Args   []any
}

// TextIn is the text in a language, or in English if it is not for people.
func (r *Refusal) TextIn(in i18n.Language) string {
	if r.ForPerson == nil {
		return r.Text
	}
	return in.Sprintf(r.ForPerson.Phrase, r.ForPerson.Args...)
}

func (r *Refusal) Error() string { return r.Text }

// Is matches [ErrRow] if Row is set, and [ErrAway] if the store can be used again later.
func (r *Refusal) Is(target error) bool {
	return r.Row && target == ErrRow || r.Code == CodeBroken && r.After > 0 && target == ErrAway
}

// Code identifies a refusal for programs.
type Code string

// The refusals.
const (
	CodeInvalid     Code = "invalid"
	CodeForbidden   Code = "forbidden"
	CodeOwnFiles    Code = "own-files"
	CodeKeyTaken    Code = "key-taken"
	CodeStopped     Code = "stopped"
	CodeOwnAsk      Code = "own-request"
	CodeLimit       Code = "limit"
	CodeCoolingDown Code = "rest"  // denied twice
	CodeMuted       Code = "muted" // too much was denied or ignored
	CodeTooSoon     Code = "too-soon"
	CodeNotYours    Code = "not-yours"
	CodeUnknown     Code = "unknown"
	CodeSettled     Code = "settled"
	CodeMoved       Code = "moved"
	CodeReally      Code = "high-risk"
	CodeRule        Code = "rule" // it needs a second step, which names the rule that was shown
	CodeTooBig      Code = "too-big"
	CodeNoAnswer    Code = "no-such-answer"
	CodeNoUse       Code = "not-usable"
	CodeEditor      Code = "editor"
	CodeToken       Code = "token"
	CodeGone        Code = "gone"
	CodeNoAgent     Code = "no-agent"
	CodeBroken      Code = "broken"
	CodeNoRoute     Code = "no-route"
	CodeLocked      Code = "locked"
)

// AsRefusal returns the refusal that an error is or wraps, nil for any other.
func AsRefusal(err error) *Refusal {
	refusal, _ := errors.AsType[*Refusal](err)
	return refusal
}

// CodeOf returns the code of the refusal that an error is or wraps, empty for any other.
func CodeOf(err error) Code {
	if refusal := AsRefusal(err); refusal != nil {
		return refusal.Code
	}
	return ""
}

func refuse(code Code, exit int, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Exit: exit, Text: fmt.Sprintf(format, args...)}
}

// refuseIn is refuse for people.
func refuseIn(code Code, exit int, p i18n.Phrase, args ...any) *Refusal {
	return &Refusal{Code: code, Exit: exit, Text: i18n.English.Sprintf(p, args...), ForPerson: &FilledPhrase{p, args}}
}

// Invalid refuses an invalid request.
func Invalid(err error) *Refusal { return refuse(CodeInvalid, ExitUsage, "%s", err) }

// InvalidInput refuses what a person wrote, and says what is wrong with it.
func InvalidInput(p i18n.Phrase, args ...any) *Refusal {
	return refuseIn(CodeInvalid, ExitUsage, p, args...)
}

// Forbidden refuses a tool that policy never allows.
func Forbidden(tool string) *Refusal {
	return refuseIn(CodeForbidden, ExitOther, "Tool %s is forbidden here.", tool)
}

// ForbiddenBy refuses a call that a rule denies, or a tool that policy never allows.
func ForbiddenBy(v Verdict) *Refusal {
	if v.Ruling.Effect != RuleDenies {
		return Forbidden(v.Forbidden)
	}
	return refuseIn(CodeForbidden, ExitOther, "This call of %s is forbidden here: %s.", v.Forbidden, v.Ruling.Name())
}

// NotHeld refuses a caller that uses a permission it does not hold, or no longer.
func NotHeld(t Tag) *Refusal {
	return refuse(CodeForbidden, ExitOther, "You do not hold %s: ask for it, for a time or for your session.", t)
}

// OwnFiles refuses a tag that covers the daemon's own files.
func OwnFiles(tag string) *Refusal {
	return refuseIn(CodeOwnFiles, ExitOther, "%s covers daycared's own files and cannot be granted.", tag)
}

// ReachesOwn refuses a call of a tool that reaches the daemon's own files.
func ReachesOwn(tool string) *Refusal {
	return refuseIn(CodeOwnFiles, ExitOther, "Tool %s reaches daycared's own files and cannot be granted.", tool)
}

// FilesHang refuses what names a file whose file system does not answer: where it leads is not known.
func FilesHang() *Refusal {
	return refuseIn(CodeForbidden, ExitOther, "A file system that this names does not answer, so nothing was allowed; try again when it does.")
}

// KeyTaken refuses different content under a key in use.
func KeyTaken() *Refusal {
	return refuse(CodeKeyTaken, ExitOther, "This key belongs to another request.")
}

// NoRoute refuses a request without a route; asker is who would ask.
func NoRoute(asker string) *Refusal {
	return refuse(CodeNoRoute, ExitUndeliverable, "No route asks anybody for %s.", asker)
}

// NoOwner refuses a request to the owner of an agent that has none.
func NoOwner(asker string) *Refusal {
	return refuse(CodeNoRoute, ExitUndeliverable, "The route for %s asks its owner, and it has none; make its token with --person.", asker)
}

// OwnAsk refuses an account that would decide its own request.
func OwnAsk(uid int) *Refusal {
	return refuseIn(CodeOwnAsk, ExitOther,
		"You (uid %d) asked this yourself; answer from another channel, or set api.allow_same_user.", uid)
}

// OwnAskElsewhere says where a person refused with [OwnAsk] may answer instead.
const OwnAskElsewhere = "From your account, the terminal of daycared serve or a phone can allow it; here it can be denied."

// Limit refuses a request beyond the limits of those keys; after is rounded up to whole seconds.
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

// CoolingDown refuses to ask again what was denied repeatedly; after is rounded up to whole seconds.
func CoolingDown(after time.Duration) *Refusal {
	r := Limit(after)
	r.Code, r.Exit = CodeCoolingDown, ExitNo
	r.Text = fmt.Sprintf("Denied twice; not asked again for %s.", FormatDuration(r.After))
	return r
}

// TooManyNotices refuses a notice beyond the limit; after is rounded up to whole seconds.
func TooManyNotices(after time.Duration) *Refusal {
	r := Limit(after)
	r.Text = strings.Replace(r.Text, "requests", "notices", 1)
	return r
}

// CannotNotify refuses a notice to a person who cannot be reached on any channel, and says why.
func CannotNotify(why string) *Refusal {
	return refuse(CodeNoRoute, ExitUndeliverable, "Notice could not be delivered: %s.", why)
}

// NoOwnerToNotify refuses a notice to the owner of a caller that has none.
func NoOwnerToNotify(caller string) *Refusal {
	return refuse(CodeNoRoute, ExitUndeliverable, "%s belongs to nobody, so there is nobody to tell; make its token with --person.", caller)
}

// MayNotNotify refuses a person whom the caller may not notify.
func MayNotNotify(name string, people []string) *Refusal {
	meant := "there is nobody whom you may tell"
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

// StopUnsaved says that everything is stopped, but that this could not be stored, and why. With others, there may be other daemons on the
// same store, which do not know of it yet.
func StopUnsaved(why string, others bool) *Refusal {
	if others {
		return refuseIn(CodeBroken, ExitOther, "This daemon is stopped now: here nothing is asked, allowed or used until resume. But that is "+
			"not saved yet: %s; it is saved as soon as that is possible. Until then other daemons on the same database go on: stop them at "+
			"one of them. A restart before it is saved forgets it.", why)
	}
	return refuseIn(CodeBroken, ExitOther, "Everything is stopped now: nothing is asked, allowed or used until resume. But that is not "+
		"saved yet: %s; it is saved as soon as that is possible, and what waits is cancelled then. A restart before it is saved forgets it.", why)
}

// PairElsewhere refuses to pair an account where its chat cannot be heard.
func PairElsewhere() *Refusal {
	return refuseIn(CodeBroken, ExitOther, "Another daemon on the same database has the chats: pair accounts there; "+
		"daycared status says where it runs. Nothing was changed.")
}

// StopIncomplete says that everything is stopped, and what could not be cancelled.
func StopIncomplete(what string) *Refusal {
	return refuseIn(CodeBroken, ExitOther, "Everything is stopped: nothing is asked, allowed or used until resume. But %s.", what)
}

// RevokedBasis refuses an approval that depends on a revoked permission.
func RevokedBasis() *Refusal {
	return refuseIn(CodeNoUse, ExitOther, "What this approval rests on is not granted any more; ask again.")
}

// ApprovalOver refuses to tell of an approval that nobody has used in time.
func ApprovalOver() *Refusal {
	return refuseIn(CodeNoUse, ExitOther, "The time of this approval is over; ask again.")
}

// NotYours refuses a person who was not asked.
func NotYours() *Refusal {
	return refuseIn(CodeNotYours, ExitOther, "This is not yours to decide.")
}

// OtherStop refuses to end a stop that is no longer in force.
func OtherStop() *Refusal {
	return refuseIn(CodeSettled, ExitOther, "That stop is over already. Nothing was changed.")
}

// NotConfigured refuses an account that is no configured person's and has not proven to be the operator's.
func NotConfigured(uid int) *Refusal {
	return refuse(CodeNotYours, ExitOther,
		"Nobody here has the account with uid %d; set people[].user, or use the daemon's own account, with its "+
			"configuration (--config) and admin.key in reach.", uid)
}

// OperatorOnly refuses what only the operator may read.
func OperatorOnly() *Refusal {
	return refuse(CodeNotYours, ExitOther, "Only the operator may read this: use the daemon's own account, with its admin.key in reach.")
}

// AskingAccount refuses an account that would end what holds agents that ask from it.
func AskingAccount(uid int) *Refusal {
	return refuseIn(CodeNotYours, ExitOther,
		"Agents ask from your account (uid %d) and could do the same: do it from a phone, or the operator does it.", uid)
}

// ShownElsewhere refuses to show a card again in a chat that did not have it, as one of a group.
func ShownElsewhere() *Refusal {
	return refuseIn(CodeMoved, ExitOther, "This is not shown in this chat; answer it where it is.")
}

// ButtonMoved refuses a button on a prompt that was sent again since.
func ButtonMoved() *Refusal {
	return refuseIn(CodeMoved, ExitOther, "This card was shown again below; please answer there.")
}

// OnlyTitle refuses to allow what a chat shows only the title of.
func OnlyTitle() *Refusal {
	return refuseIn(CodeTooBig, ExitOther, "This chat shows no more than the title, so it cannot be allowed here; daycared inbox shows all.")
}

// TooBig refuses to allow what the channel cannot have shown whole.
func TooBig() *Refusal {
	return refuseIn(CodeTooBig, ExitOther, "This is too big to be shown here whole, so it cannot be allowed here. It can be denied.")
}

// ShownDiffers refuses an answer to something other than what is asked.
func ShownDiffers() *Refusal {
	return refuseIn(CodeNotYours, ExitOther, "What you were shown is not what is asked now; look at it again.")
}

// ListChanged refuses one answer to everything on a list that is another one by now.
func ListChanged() *Refusal {
	return refuseIn(CodeMoved, ExitOther,
		"The list has changed since it was shown, or was only just sent, so nothing was decided. Look at it again.")
}

// NotAllShown refuses to allow everything on a list as long as not all of it was shown whole; at are the positions of what was not.
func NotAllShown(at []int) *Refusal {
	return refuseIn(CodeNotYours, ExitOther, "Nothing was allowed: open %s first; not all of it stands in the list.", Positions(at))
}

// Positions names positions, which count from 0, as people do: "2, 3".
func Positions(at []int) string {
	words := make([]string, len(at))
	for i, n := range at {
		words[i] = strconv.Itoa(n + 1)
	}
	return strings.Join(words, ", ")
}

// EditorOff refuses an answer from an editor's dialog if that is not enabled.
func EditorOff() *Refusal {
	return refuse(CodeEditor, ExitOther,
		"Answers from editors are not taken here; whoever runs the daemon allows them with connectors.editor.enabled.")
}

// AskerMayNotPermit refuses an answer through the asker's own side that would permit something.
func AskerMayNotPermit() *Refusal {
	return refuse(CodeEditor, ExitOther,
		"Only a clarification, or a pause that continues, may be answered in the asker's editor; this is for people.")
}

// TooSoon refuses to allow a card that was hardly read, by a person who has just approved many.
func TooSoon(after time.Duration) *Refusal {
	r := refuseIn(CodeTooSoon, ExitOther, "You approved five within 20 s: read this one, and tap or answer again in 2 s. Nothing was allowed.")
	r.After = after
	return r
}

// ConfirmRule refuses the first of the two steps that give a rule, and tells the rule.
func ConfirmRule(p Proposal) *Refusal {
	r := refuseIn(CodeRule, ExitOther, "Nothing is allowed yet: this is the rule that a second step gives.")
	r.Proposal = &p
	return r
}

// NoProposal refuses a rule where none can be proposed, and says why.
func NoProposal(why string) *Refusal {
	return refuseIn(CodeNoAnswer, ExitOther, "No rule can be proposed for this: %s.", why)
}

// WouldNotCount refuses to allow more than once what the configuration has others decide by now, or more people, or for less.
func WouldNotCount() *Refusal {
	return refuseIn(CodeNoAnswer, ExitOther, "Since this was asked, the configuration has come to want others, or more people, for that, or "+
		"less to be given: it can only be allowed once.")
}

// RuleNotGiven refuses to give a rule that was suggested, and says why.
func RuleNotGiven(why string) *Refusal {
	return refuseIn(CodeNoAnswer, ExitOther, "This rule cannot be given: %s.", why)
}

// NotTrusted refuses to trust an agent for a time, and says why.
func NotTrusted(why i18n.Phrase) *Refusal {
	return refuseIn(CodeNoAnswer, ExitOther, "Nothing is trusted: %s.", why)
}

// ConfirmTrust refuses the first of the two steps that trust an agent for a time, and says what the second gives.
func ConfirmTrust(agent, folder, span string) *Refusal {
	return refuseIn(CodeRule, ExitOther, "Nothing is trusted yet. "+
		"What %[1]s does for %[3]s that is read completely, stays in %[2]s, needs no network "+
		"and is not high risk would run without asking; a denial ends that. To give it: /trust %[1]s %[3]s yes", agent, folder, span)
}

// Unknown refuses an id, code or button that denotes nothing (or nothing of this caller's).
func Unknown(name string) *Refusal {
	return refuseIn(CodeUnknown, ExitUnknown, "There is no request %s.", quoteName(name))
}

// quoteName returns a user-supplied name unquoted if it cannot be misread.
func quoteName(name string) string {
	for _, c := range name {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_' && c != '.' {
			return strconv.Quote(name)
		}
	}
	return cmp.Or(name, `""`)
}

// UnknownGrant refuses an id that denotes no grant (or none of this person's).
func UnknownGrant(id ID) *Refusal {
	return refuseIn(CodeUnknown, ExitUnknown, "There is no grant %s.", quoteName(string(id)))
}

// NoTime refuses a text as the time of an absence; forms says how one is written.
func NoTime(text string, forms i18n.Phrase) *Refusal {
	return refuseIn(CodeInvalid, ExitUsage, "%s is no time that is understood here. %s", strconv.Quote(text), forms)
}

// maxCandidates limits the ids that [Ambiguous] lists.
const maxCandidates = 10

// Ambiguous refuses a part of the ids of several.
func Ambiguous(name string, all []ID) *Refusal {
	var names []string
	for _, id := range all[:min(len(all), maxCandidates)] {
		short := id.Short()
		if slices.ContainsFunc(all, func(other ID) bool { return other != id && other.Short() == short }) {
			short = string(id)
		}
		names = append(names, short)
	}
	if len(all) > maxCandidates {
		names = append(names, "…")
	}
	return refuseIn(CodeInvalid, ExitUsage, "Nothing was changed: %s can be any of %s. Write one of them.",
		quoteName(name), strings.Join(names, ", "))
}

// UnknownSession refuses an id that denotes no session (or none of this person's, or an ended one).
func UnknownSession(id string) *Refusal {
	return refuseIn(CodeUnknown, ExitUnknown, "There is no session %s.", quoteName(id))
}

// NoToken refuses an id or a name that denotes no token.
func NoToken(name string) *Refusal {
	return refuse(CodeUnknown, ExitUnknown, "There is no token %s.", quoteName(name))
}

// ClosedMissing says that rows that somebody deleted were closed in the audit. Unlike a revocation it has nothing else to show.
func ClosedMissing(all []Record) *Refusal {
	var names []string
	for _, r := range all {
		names = append(names, r.RowName())
	}
	return refuseIn(CodeGone, ExitOther, "Somebody deleted %s from the store. It is closed now in the audit: who puts it back opens "+
		"nothing with it from the next start on. Look at the store with: daycared audit verify", strings.Join(names, ", "))
}

// NoPairing refuses to unpair a person who is not paired.
func NoPairing(person, via string) *Refusal {
	return refuse(CodeUnknown, ExitUnknown, "%s has no account at %s that was paired.", person, via)
}

// OthersAccount refuses an account that is another person's: no two share one.
func OthersAccount(address, person string) *Refusal {
	return refuse(CodeNotYours, ExitOther, "The account %s is %s's; no two people share one.", address, person)
}

// UnknownToken refuses a token that is unknown, revoked or expired.
func UnknownToken() *Refusal {
	return refuse(CodeToken, ExitOther, "This token is not valid here: it is unknown, over or revoked.")
}

// SuspendedToken refuses a token that the operator has to confirm first.
func SuspendedToken(id ID) *Refusal {
	return refuse(CodeToken, ExitOther,
		"This token is suspended since the store was restored from a copy; the operator confirms it with: daycared reinstate %s", id.Short())
}

// NotSuspended refuses to reinstate what is not suspended.
func NotSuspended(name string) *Refusal {
	return refuse(CodeUnknown, ExitUnknown, "Nothing that is suspended is called %s; daycared suspended lists what is.", name)
}

// TokenNeeded refuses a caller without a token where only a token proves anything.
func TokenNeeded() *Refusal {
	return refuse(CodeToken, ExitOther,
		"Only a token proves here who asks; whoever runs the daemon makes one with: daycared token create NAME")
}

// KeyWithoutName refuses a key of anonymous callers: it would find the request of another one.
func KeyWithoutName() *Refusal {
	return refuse(CodeInvalid, ExitUsage, "A key needs somebody whose it is; present a token, or ask without a key.")
}

// Pruned refuses to list what is no longer kept; first is where the list begins now.
func Pruned(first int64) *Refusal {
	return refuse(CodeGone, ExitOther, "What happened before seq %d is no longer kept; read what is there and go on from it.", first)
}

// NoAgent refuses a message for an agent if none is bound.
func NoAgent() *Refusal {
	return refuseIn(CodeNoAgent, ExitOther, "No agent is bound to this chat yet, so nobody reads this.")
}

// UnknownAgent refuses a name that none of this person's agents has, and suggests the likely one.
func UnknownAgent(name string, agents []string) *Refusal {
	if near := Nearest(name, agents); near != "" {
		return refuseIn(CodeUnknown, ExitUnknown, "None of your agents here is called %q; did you mean %s? See /agents.", name, near)
	}
	return refuseIn(CodeUnknown, ExitUnknown, "None of your agents here is called %q. See /agents.", name)
}

// InboxFull refuses another message to an agent with too many undelivered ones.
func InboxFull(agent string) *Refusal {
	return refuseIn(CodeLimit, ExitOther, "Too many messages wait for %s; this one was not taken. Write again later.", agent)
}

// OrderNotTaken refuses an order that an agent did not take.
func OrderNotTaken(agent string) *Refusal {
	return refuseIn(CodeLimit, ExitOther, "%s did not take this just now; try again.", agent)
}

// OutboxFull refuses an agent that says more than can be sent; after is when to try again.
func OutboxFull(after time.Duration) *Refusal {
	r := refuse(CodeLimit, ExitOther, "Too much of what you said is still to be sent; say less, or try again later.")
	r.After = after
	return r
}

// Broken refuses because the store is unusable now; advice says what to do.
func Broken(advice string) *Refusal {
	return refuseIn(CodeBroken, ExitOther, "daycared cannot store anything just now, so nothing is granted: %s.", advice)
}

// Unreadable refuses because a row of the store, or all of it, cannot be read; the text of why says what to do. The refusal matches
// [ErrRow] if why does.
func Unreadable(why error) *Refusal {
	r := refuseIn(CodeBroken, ExitOther, "daycared cannot read this: %s.", why)
	r.Row = errors.Is(why, ErrRow)
	return r
}

// ToRefusal turns an error of [Step] into a refusal for programs. Any other error is returned unchanged.
func ToRefusal(err error) error { return ToRefusalIn(nil, err) }

// ToRefusalIn is Refused for a person in a zone; nil: for programs.
func ToRefusalIn(zone *time.Location, err error) error {
	var settled *SettledError
	var none noCall
	switch {
	case errors.As(err, &settled):
		return TooLate(settled.Request, zone)
	case errors.Is(err, ErrLate):
		return refuseIn(CodeSettled, ExitOther, "Too late: the time is over. Nothing was changed.")
	case errors.Is(err, ErrCall):
		return refuseIn(CodeSettled, ExitOther, "Too late: that call has been answered already. Nothing was changed.")
	case errors.Is(err, ErrNotAsked):
		return NotYours()
	case errors.Is(err, ErrAsker):
		return AskerMayNotPermit()
	case errors.Is(err, ErrReally):
		return refuseIn(CodeReally, ExitOther, "This is high risk and needs a second yes (approve --really).")
	case errors.As(err, &none):
		return none.refusal()
	case errors.Is(err, ErrNoRule):
		return refuseIn(CodeRule, ExitUsage, "A rule is given by a second step, which names the rule that was shown.")
	case errors.Is(err, ErrNoOption):
		return refuseIn(CodeNoAnswer, ExitUsage, "This request does not offer that answer.")
	case errors.Is(err, ErrWords):
		return refuseIn(CodeInvalid, ExitUsage,
			"An answer in words of one's own has 1 to %d characters, and no control characters.", MaxReason)
	case errors.Is(err, ErrVoted):
		return refuseIn(CodeNoAnswer, ExitOther, "You have allowed this already; an allowance can only become a denial.")
	case errors.Is(err, ErrNoUse):
		return refuseIn(CodeNoUse, ExitOther, "There is no unused approval here.")
	}
	return err
}

// tooLateTexts say how a request ended, to whose answer came too late.
var tooLateTexts = map[State]i18n.Phrase{
	Approved: "Too late: already approved by %s at %s. Nothing was changed.",
	Denied:   "Too late: already denied by %s at %s. Nothing was changed.",
	Answered: "Too late: already answered by %s at %s. Nothing was changed.",
	Expired:  "Too late: expired at %s. Nothing was changed.", Cancelled: "Too late: cancelled at %s. Nothing was changed.",
	Undeliverable: "Too late: undeliverable at %s. Nothing was changed.",
}

// TooLate tells a person in a zone whose answer came too late how the request ended; without a zone, times have an offset.
func TooLate(r Request, zone *time.Location) *Refusal {
	when := func(at time.Time) string {
		if zone != nil {
			return at.In(zone).Format("15:04:05 MST")
		}
		return at.UTC().Format(time.RFC3339)
	}
	at := when(r.DecidedAt)
	switch is := r.Outcome(); {
	case is.State == Cancelled && r.State == Approved:
		return refuseIn(CodeSettled, ExitOther, "Too late: approved by %s, and taken back at %s. Nothing was changed.",
			r.DecidedBy, when(r.VoidAt))
	case is.State == Expired && r.State == Approved:
		return refuseIn(CodeSettled, ExitOther, "Too late: approved by %s, and not collected until %s. Nothing was changed.",
			r.DecidedBy, when(r.LapsedAt))
	}
	switch r.State {
	case Approved, Denied, Answered:
		if r.DecidedVia == ViaEditor {
			return refuseIn(CodeSettled, ExitOther, "Too late: already answered in the editor at %s. Nothing was changed.", at)
		}
		if r.DecidedVia == ViaRule {
			r.DecidedBy = r.Failure
		}
		if r.DecidedBy == "" {
			return refuseIn(CodeSettled, ExitOther, "Too late: settled at %s without anybody's answer. Nothing was changed.", at)
		}
		return refuseIn(CodeSettled, ExitOther, tooLateTexts[r.State], r.DecidedBy, at)
	}
	return refuseIn(CodeSettled, ExitOther, tooLateTexts[r.State], at)
}

// Nearest returns the one of known that a mistyped word was probably meant to be, or empty if none is near: one letter
// was mistyped, left out, added or swapped with its neighbour, in a word of five letters or more also two. Case does not
// count. A prefix alone is not near: a person who types stop does not mean stop-all.
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

// distance returns how many letters of a have to change to give b. Two swapped neighbours count as one.
func distance(a, b string) int {
	d := levenshtein.ComputeDistance(a, b)
	if d != 2 || len(a) != len(b) {
		return d
	}
	i := 0
	for a[i] == b[i] { // they differ, and not only at the end
		i++
	}
	if a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:] {
		return 1
	}
	return d
}

// Cause returns a file error without its path, which the surrounding sentence names already.
func Cause(err error) error {
	if of, is := errors.AsType[*fs.PathError](err); is {
		return of.Err
	}
	return err
}
