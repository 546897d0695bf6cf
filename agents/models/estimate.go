package models

import "unicode/utf8"

// Estimate is about how many tokens a prompt is, rather too many than too few. It knows no provider's tokens.
func Estimate(p Prompt) int64 {
	n := tokens(p.System)
	for _, m := range p.Messages {
		n += EstimateMessage(m)
	}
	for _, t := range p.Tools {
		n += 10 + tokens(t.Name) + tokens(t.Description) + tokens(string(t.Schema))
	}
	return n
}

// EstimateMessage is [Estimate] of one message.
func EstimateMessage(m Message) int64 {
	const frame = 5 // what says whose it is
	n := frame + tokens(m.Text)
	for _, c := range m.Calls {
		n += frame + tokens(c.Tool) + tokens(string(c.Input))
	}
	for _, r := range m.Results {
		n += frame + tokens(r.Text)
	}
	return n
}

// tokens estimates a text: seven tokens for two dozen letters of ASCII, and one for each of any other writing.
func tokens(text string) int64 {
	runes := int64(utf8.RuneCountInString(text))
	wide := (int64(len(text)) - runes + 1) / 2 // about: a rune beyond ASCII has one to three bytes more than one
	wide = min(wide, runes)
	return (runes-wide)*7/24 + wide
}

// Measured is what is known of the size of a conversation: its first so many messages, with the system's words and the
// tools, are so many tokens. After a reply to n messages that is n+1 messages, and all that was read and written. The
// zero value knows nothing.
type Measured struct {
	Messages int   `json:"messages"`
	Tokens   int64 `json:"tokens"`
}

// Size is about how many tokens p is, given what is known.
func Size(p Prompt, known Measured) int64 {
	if known.Tokens <= 0 || known.Messages <= 0 || known.Messages > len(p.Messages) {
		return Estimate(p)
	}
	n := known.Tokens
	for _, m := range p.Messages[known.Messages:] {
		n += EstimateMessage(m)
	}
	return n
}

// Near tells whether p has to be made shorter, by [Compact], before m is asked: it leaves less than a fifth of the window
// to the reply.
func Near(m Model, p Prompt, known Measured) bool {
	return Size(p, known) > m.Window()-m.Window()/5
}
