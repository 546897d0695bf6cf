// Package reply parses what a person typed into an answer. It is pure and deliberately strict: a text is either completely
// one of the forms that the hints name, in any case, or it decides nothing and the reply says what would be right. Guessing
// what somebody meant is how "don't allow" becomes an approval.
//
// [Parse] reads a line typed at the prompt of one card: `y`, with a scope, the number of one call, or the code; for this
// session, `t` for the tool and `a` for all gated tools, or the permission; `l` for always like this; `n`, with a reason after
// because; `r` and a reason; Enter, `i` or Esc at a pause; a number or the option's own words at a clarification, or `o` and
// the person's own words; `s` for the card again.
//
// [Read] reads a message of a chat, where several requests may be pending and each is named by its code: `yes K7F3Q`, with
// a scope or `#2`; `always K7F3Q`; `yes K7F3Q M2P4R`; `no K7F3Q because …`; `K7F3Q yes`, `K7F3Q 2`, `K7F3Q other: …`, `other K7F3Q …`;
// `continue K7F3Q`; for high risk, `YES K7F3Q RUN`. Only in a reply to its card is the code left out, and may a thumb be the
// answer. A full stop, a comma or exclamation marks at the end of a word are nothing, and so is any white space; a question
// mark never is. [Guard] counts wrong codes.
//
// sentence.go has the words and the shapes of a message, chat.go classifies a message, and judge.go applies it to the
// pending requests.
package reply

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// Meaning is the kind of a line.
type Meaning int

// The meanings. The zero Meaning decides nothing.
const (
	Unclear Meaning = iota // not an answer; Reply.Say says what would be one
	Decides                // an answer: Reply's Answer, Call, Comment and Really
	Reason                 // Answer and Call, of which the reason or the words are the next line
	Asks                   // a request for help, which is in Reply.Say
	Shows                  // a request for the card with its secrets
)

// Reply is what a line says about one request.
type Reply struct {
	Meaning Meaning
	Answer  permissions.Answer
	Call    int // of a step; 0: all open calls
	Comment string
	Really  bool   // the request's code came with an approval of high risk
	Rule    string // the name of the rule that is given
	Say     string // for the person
}

// Esc is what the escape key sends.
const Esc = "\x1b"

// Parse parses one line as an answer to r, which has that code. r accepts every answer that it returns. Parse is pure and
// total; it allows nothing unless the whole line is an approval.
func Parse(line string, r permissions.Request, code string, in i18n.Language) Reply {
	text := strings.TrimSpace(line)
	if !utf8.ValidString(text) || (text != Esc && strings.ContainsFunc(text, unicode.IsControl)) {
		return unclear(r, code, in)
	}
	if r.Kind == permissions.KindClarification {
		return choice(text, r, code, in)
	}
	word, rest, _ := strings.Cut(text, " ")
	rest = strings.TrimSpace(rest)
	switch word := fold(word); {
	case isOneOf(helpWords, word):
		if rest == "" {
			return Reply{Meaning: Asks, Say: Help(r, code, in)}
		}
	case word == "s", word == "show":
		if rest == "" {
			return Reply{Meaning: Shows}
		}
	case word == "", word == "c", isOneOf(continueWords, word):
		if rest == "" {
			return offered(r, code, in, Reply{Answer: permissions.Continue})
		}
	case word == "i", word == "esc", word == Esc, isOneOf(interruptWords, word):
		if rest == "" {
			return offered(r, code, in, Reply{Answer: permissions.Interrupt})
		}
	case word == "y", word == "j", isYes(word):
		return allowance(rest, permissions.Once, r, code, in)
	case word == "n", isNo(word):
		return denial(rest, r, code, in)
	case word == "r":
		a := Reply{Answer: permissions.Deny, Comment: rest}
		token, more, _ := strings.Cut(rest, " ")
		if n, isCall := call(token, r); isCall {
			a.Call, a.Comment = n, strings.TrimSpace(more)
		}
		if a.Comment == "" {
			a.Meaning = Reason
		}
		return offered(r, code, in, a)
	}
	if s, ok := permissions.KeyScope(fold(word)); ok {
		return allowance(rest, s, r, code, in)
	}
	return unclear(r, code, in)
}

// allowance parses what may follow y, in any order: a scope, one call, the code.
func allowance(rest string, scope permissions.Scope, r permissions.Request, code string, in i18n.Language) Reply {
	var named, coded bool
	a := Reply{}
	for tokens := strings.Fields(rest); len(tokens) > 0; {
		token := tokens[0]
		n, isCall := call(token, r)
		id, used := readScope(tokens)
		switch {
		case isCall && a.Call == 0:
			a.Call, used = n, 1
		case scope == permissions.Rule && a.Rule == "" && isRule(token):
			a.Rule, used = fold(token), 1
		case !coded && code != "" && fold(token) == fold(code):
			coded, used = true, 1
		case used > 0 && !named && scope == permissions.Once:
			scope, _ = permissions.ParseScope(id) // which readScope has parsed
			named = true
		default:
			return unclear(r, code, in)
		}
		tokens = tokens[used:]
	}
	a.Answer, a.Really = permissions.Allow(scope), coded && r.HighRisk
	if r.HighRisk && !coded && r.Offers(a.Answer) {
		typed := yes(scope, r, code, in)
		if a.Call != 0 {
			typed += " #" + strconv.Itoa(a.Call)
		}
		return Reply{Say: in.Sprintf("Nothing was decided: this is high risk. Type  %s  to allow it.", typed)}
	}
	return offered(r, code, in, a)
}

// yes is how an approval of r is typed: at high risk with the code, which confirms it.
func yes(s permissions.Scope, r permissions.Request, code string, in i18n.Language) string {
	text := in.Text("yes")
	if r.HighRisk {
		text += " " + code
	}
	if s == permissions.Once {
		return text
	}
	return text + " " + scopeName(s, in)
}

// denial parses what may follow n: the code, one call, and a reason after because.
func denial(rest string, r permissions.Request, code string, in i18n.Language) Reply {
	a := Reply{Answer: permissions.Deny}
	for rest != "" {
		token, more, _ := strings.Cut(rest, " ")
		more = strings.TrimSpace(more)
		n, isCall := call(token, r)
		switch {
		case isCall && a.Call == 0:
			a.Call = n
		case code != "" && fold(token) == fold(code):
		case isOneOf(becauseWords, fold(token)) && more == "":
			return offered(r, code, in, Reply{Meaning: Reason, Answer: permissions.Deny, Call: a.Call})
		case isOneOf(becauseWords, fold(token)):
			a.Comment, more = more, ""
		default:
			return unclear(r, code, in)
		}
		rest = more
	}
	return offered(r, code, in, a)
}

// choice parses an option's number or words, or the person's own words. A text that names two options names none.
func choice(text string, r permissions.Request, code string, in i18n.Language) Reply {
	switch meant := ChosenOptions(text, r); {
	case len(meant) == 1:
		return offered(r, code, in, Reply{Answer: permissions.Choose(meant[0])})
	case len(meant) > 1:
		return Reply{Say: in.Sprintf("Nothing was chosen: that names two options. Type %s.", optionForms("", meant, in))}
	case isOneOf(helpWords, fold(text)):
		return Reply{Meaning: Asks, Say: Help(r, code, in)}
	case slices.Contains([]string{"s", "show"}, fold(text)):
		return Reply{Meaning: Shows}
	}
	own, ok := parseOwnWords(text, r)
	switch {
	case ok && own != "":
		return Reply{Meaning: Decides, Answer: permissions.Other, Comment: own}
	case ok:
		return Reply{Meaning: Reason, Answer: permissions.Other}
	}
	return unclear(r, code, in)
}

// call parses the number of one of r's calls, as in #2.
func call(token string, r permissions.Request) (n int, ok bool) {
	for _, c := range r.Calls {
		if token == "#"+strconv.Itoa(c.N) {
			return c.N, true
		}
	}
	return 0, false
}

// offered is a if r offers its answer; it decides unless a has another meaning.
func offered(r permissions.Request, code string, in i18n.Language, a Reply) Reply {
	if !r.Offers(a.Answer) {
		return unclear(r, code, in)
	}
	if a.Meaning == Unclear {
		a.Meaning = Decides
	}
	return a
}

func unclear(r permissions.Request, code string, in i18n.Language) Reply {
	return Reply{Say: in.Sprintf("Nothing was decided. %s", Help(r, code, in))}
}
