package permissions

import (
	"slices"
	"strconv"
	"strings"

	"github.com/daycared/daycared/permissions/i18n"
)

// Answer is the id of an option, as in allow_once, deny, continue or option_2.
type Answer string

// The answers that are neither an allowance nor an option of a clarification.
const (
	Deny      Answer = "deny"
	Continue  Answer = "continue"
	Interrupt Answer = "interrupt"
	// Other answers a clarification in the person's own words, which are the comment. It is never one of the offered
	// options and never allows anything.
	Other Answer = "other"
)

const (
	allowPrefix  = "allow_"
	optionPrefix = "option_"
	withPrefix   = allowPrefix + "with_"
)

// Allow returns the answer that approves within s.
func Allow(s Scope) Answer { return Answer(allowPrefix + s.String()) }

// Choose returns the answer that takes the k-th option of a clarification, counted from 1.
func Choose(k int) Answer { return Answer(optionPrefix + strconv.Itoa(k)) }

// AllowWithSuggestion returns the answer that allows a hook's call once, and has its agent take the k-th of its own suggestions, counted
// from 1. What that changes is the agent's; daycared grants nothing for it.
func AllowWithSuggestion(k int) Answer { return Answer(withPrefix + strconv.Itoa(k)) }

// SuggestionNumber returns the number of the suggestion of an answer that [AllowWithSuggestion] made; 0 for every other answer.
func (a Answer) SuggestionNumber() int {
	k, err := strconv.Atoi(strings.TrimPrefix(string(a), withPrefix))
	if err != nil || k < 1 || k > MaxSuggestions || AllowWithSuggestion(k) != a {
		return 0
	}
	return k
}

// Scope returns what an approving answer allows; ok is false for every other answer.
func (a Answer) Scope() (s Scope, ok bool) {
	if a.SuggestionNumber() > 0 {
		return Once, true
	}
	text, found := strings.CutPrefix(string(a), allowPrefix)
	if !found {
		return Scope{}, false
	}
	s, err := ParseScope(text)
	return s, err == nil
}

// Option is one answer that a request offers, with the label of its button.
type Option struct {
	ID    Answer `json:"id"`
	Label string `json:"label"`
}

// The labels of buttons that are the same for every request.
const (
	labelContinue  i18n.Phrase = "Continue"
	labelInterrupt i18n.Phrase = "Interrupt"
	labelApprove   i18n.Phrase = "Approve"
	labelDeny      i18n.Phrase = "Deny"
	labelOnce      i18n.Phrase = "Allow once"
	labelStart     i18n.Phrase = "Start"
	labelStop      i18n.Phrase = "Stop"
)

// Offer lists the options for r: every configured scope that makes sense for this request and is not wider than widest
// (zero: no bound), once first, then deny.
func Offer(r Request, configured []Scope, widest Scope) []Option {
	if r.LeadsUnknown() || slices.ContainsFunc(r.ToolNames(), FollowsFiles) { // the same words may do something else next time
		widest = Once
	}
	switch r.Kind {
	case KindClarification:
		options := make([]Option, len(r.Choices))
		for i, c := range r.Choices {
			options[i] = Option{Choose(i + 1), c}
		}
		return options
	case KindPause:
		if r.Mode == ModeContinue {
			return []Option{{Continue, string(labelContinue)}, {Interrupt, string(labelInterrupt)}}
		}
		return []Option{
			{Allow(Once), string(labelApprove)}, {Deny, string(labelDeny)}, {Interrupt, string(labelInterrupt)},
		}
	}
	options := []Option{{Allow(Once), string(labelOnce)}}
	for _, s := range configured {
		if s != Once && Narrowest(s, widest) == s && isOffered(r, s) {
			options = append(options, Option{Allow(s), r.Label(s, i18n.English, strings.Join(r.ToolNames(), " and "))})
		}
	}
	if r.canTakeSuggestion() && slices.Contains(configured, Session) && Narrowest(Session, widest) == Session {
		for i, c := range r.Choices {
			options = append(options, Option{AllowWithSuggestion(i + 1), "Allow once, and " + c})
		}
	}
	if options = append(options, Option{Deny, string(labelDeny)}); r.Plans() {
		options[0].Label, options[len(options)-1].Label = string(labelStart), string(labelStop)
	}
	return options
}

// canTakeSuggestion reports whether what the agent of r suggests can be taken at all.
func (r Request) canTakeSuggestion() bool {
	return r.Kind == KindTool && r.Hook != "" && len(r.Calls) == 0 && !r.HighRisk && r.Caller.Name != Anonymous
}

// isOffered reports whether scope s, wider than once, can be given to r at all. High risk, and what a rule always asks about, is allowed
// only once.
func isOffered(r Request, s Scope) bool {
	k, _ := s.kind()
	tool := r.Kind == KindTool
	switch {
	case r.Caller.Name == Anonymous, r.HighRisk, k.ends == withSession && r.Session == "", r.DecidingRule(RuleAsks) != "":
		return false
	case k.ends == withSession && k.covers == thisTool:
		return tool
	case k.covers == allTools:
		return !tool || !r.callByCall()
	case k.covers == likeThis:
		return tool && len(r.Calls) == 0
	case k.covers == exactCall:
		return !tool || !slices.ContainsFunc(r.ToolNames(), RunsCode)
	}
	return true
}

// Label describes exactly what the grant of s, wider than once, will cover. The tools are the names of those of r, as the reader sees them.
func (r Request) Label(s Scope, in i18n.Language, tools string) string {
	k, _ := s.kind()
	exact := i18n.Phrase("this exact call")
	if len(r.Calls) > 1 {
		exact = "these exact calls"
	}
	switch {
	case k.button != "" && k.exactly != "" && r.Kind == KindTool:
		return in.Sprintf(k.button, exact)
	case k.button != "" && r.Kind == KindTool:
		return in.Text(k.button)
	case r.CoversExactCalls(s):
		return in.Sprintf("Allow %s %s", exact, s.Lasts(in))
	case r.Kind == KindTool:
		return in.Sprintf("Allow %s %s", tools, s.Lasts(in))
	}
	return in.Sprintf("Allow %s", s.Lasts(in))
}
