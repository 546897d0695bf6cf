package telegram

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
)

type apiError struct {
	Method    string
	Code      int
	Text      string        // as Telegram wrote it
	Pause     time.Duration // that it asks for; 0: none
	MigrateTo int64         // the chat's new id, or 0
}

var _, _ connectors.RetryLater = (*apiError)(nil), (*pausedError)(nil)

func (e *apiError) RetryAfter() time.Duration { return e.Pause }

func (e *apiError) Error() string { return fmt.Sprintf("%s: %d %s", e.Method, e.Code, e.Text) }

// lostError is a call whose outcome is unknown: there was no response, or it was not the Bot API's.
type lostError struct {
	Method string
	Err    error
}

func (e *lostError) Error() string { return e.Method + ": " + e.Err.Error() }
func (e *lostError) Unwrap() error { return e.Err }

// pausedError is a call that was not made because the chat is paused.
type pausedError struct{ left time.Duration }

func (e *pausedError) Error() string {
	return fmt.Sprintf("the chat is paused for %v", e.left.Round(time.Millisecond))
}

func (e *pausedError) RetryAfter() time.Duration { return e.left }

// errSkip is returned (wrapped) by an update's handler if the update can never be handled.
var errSkip = errors.New("the update cannot be handled")

// meaning classifies a Bot API error.
type meaning int

const (
	meansUnknown meaning = iota
	meansGone            // nothing can be written there until a person acts
	meansSame            // the edit changes nothing
	meansFixed           // the message cannot be edited any more
	meansPolled          // another program polls with this token
	meansHooked          // a webhook is set
	meansDenied          // the token is invalid
	meansBusy            // or an error of their server: retry
	meansMoved           // the group has a new id
)

// Reasons why a person cannot be written to, until they act or for good.
const (
	hasBlocked   = "has blocked the bot"
	neverStarted = "never pressed Start"
	noAccount    = "has no Telegram account any more"
)

// meanings maps error codes and parts of the description, in any case, to their meaning; the first match counts. The texts
// are those of the Bot API server and of Telegram behind it. words are for people and contain the recipient's name.
var meanings = []struct {
	code  int
	text  string
	means meaning
	words string
}{
	{403, "bot was blocked by the user", meansGone, "{name} " + hasBlocked},
	{400, "USER_IS_BLOCKED", meansGone, "{name} " + hasBlocked},
	{403, "user is deactivated", meansGone, "{name} " + noAccount},
	{400, "INPUT_USER_DEACTIVATED", meansGone, "{name} " + noAccount},
	{403, "bot can't initiate conversation with a user", meansGone, "{name} " + neverStarted},
	{400, "chat not found", meansGone, "{name} " + neverStarted},
	{400, "PEER_ID_INVALID", meansGone, "{name} " + neverStarted},
	{403, "bot can't send messages to bots", meansGone, "{name} is a bot"},
	{403, "bot was kicked from", meansGone, "the bot was removed from the group"},
	{403, "bot is not a member of", meansGone, "the bot is not in the group"},
	{403, "the group chat was deleted", meansGone, "the group was deleted"},
	{400, "have no rights to send a message", meansGone, "the bot may not write in the group"},
	{400, "not enough rights to send", meansGone, "the bot may not write in the group"},
	{400, "need administrator rights in the channel chat", meansGone, "the bot may not write in the channel"},
	{400, "CHAT_WRITE_FORBIDDEN", meansGone, "the bot may not write in the group"},
	{400, "CHAT_RESTRICTED", meansGone, "the bot may not write in the group"},
	{400, "message thread not found", meansGone, "the topic in the group was deleted"},
	{400, "TOPIC_DELETED", meansGone, "the topic in the group was deleted"},
	{400, "TOPIC_CLOSED", meansGone, "the topic in the group was closed"},
	{403, "", meansGone, "Telegram does not let the bot write to {name}"},

	{400, "message is not modified", meansSame, ""},
	{400, "message to edit not found", meansFixed, ""},
	{400, "message can't be edited", meansFixed, ""},
	{400, "MESSAGE_ID_INVALID", meansFixed, ""},
	{400, "there is no text in the message to edit", meansFixed, ""},

	{409, "webhook is active", meansHooked, ""},
	{409, "terminated by setWebhook request", meansHooked, ""},
	{409, "", meansPolled, ""},
	{401, "", meansDenied, ""},
	{429, "", meansBusy, ""},
}

func meaningOf(err error) (m meaning, words string) {
	var lost *lostError
	var e *apiError
	switch {
	case errors.As(err, &lost):
		return meansBusy, ""
	case !errors.As(err, &e):
		return meansUnknown, ""
	case e.MigrateTo != 0:
		return meansMoved, ""
	case e.Code >= http.StatusInternalServerError:
		return meansBusy, ""
	case e.Code == http.StatusNotFound && e.Text == "Not Found": // a missing method has a longer text
		return meansDenied, ""
	}
	text := strings.ToLower(e.Text)
	for _, row := range meanings {
		if e.Code == row.code && strings.Contains(text, strings.ToLower(row.text)) {
			return row.means, row.words
		}
	}
	return meansUnknown, ""
}

func means(err error, m meaning) bool {
	got, _ := meaningOf(err)
	return got == m
}

// goneFor reports whether a chat cannot be written to until a person acts, and why, in words with the recipient's name.
func goneFor(err error, name string) (why string, is bool) {
	m, words := meaningOf(err)
	return strings.ReplaceAll(words, "{name}", name), m == meansGone
}

// goneIn is goneFor for a group.
func goneIn(err error) (why string, is bool) {
	m, words := meaningOf(err)
	if strings.Contains(words, "{name}") {
		words = "the bot is not in the group, or may not write there"
	}
	return words, m == meansGone
}

func notModified(err error) bool { return means(err, meansSame) }
func cannotEdit(err error) bool  { return means(err, meansFixed) }
func badToken(err error) bool    { return means(err, meansDenied) }
func temporary(err error) bool   { return means(err, meansBusy) } // a lost call may have succeeded already

// migrated returns the new id of a group that became a supergroup.
func migrated(err error) (to int64, is bool) {
	if e, is := errors.AsType[*apiError](err); is {
		to = e.MigrateTo
	}
	return to, to != 0
}
