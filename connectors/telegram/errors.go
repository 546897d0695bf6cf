package telegram

import (
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"strconv"
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
type meaning string

const (
	meansUnknown meaning = ""
	meansGone    meaning = "gone"   // nothing can be written there until a person acts
	meansSame    meaning = "same"   // the edit changes nothing
	meansFixed   meaning = "fixed"  // the message cannot be edited any more
	meansPolled  meaning = "polled" // another program polls with this token
	meansHooked  meaning = "hooked" // a webhook is set
	meansDenied  meaning = "denied" // the token is invalid
	meansBusy    meaning = "busy"   // or an error of their server: retry
	meansMoved   meaning = "moved"  // the group has a new id
)

// Reasons why a person cannot be written to, until they act or for good; as in errors.txt.
const (
	hasBlocked   = "has blocked the bot"
	neverStarted = "never pressed Start"
	noAccount    = "has no Telegram account any more"
)

// meanings has a row for each error: its code, its meaning, a part of the description, in any case, and words for people, which contain
// the recipient's name. The first row that matches counts. The texts are those of the Bot API server and of Telegram behind it.
//
//go:embed errors.txt
var meanings string

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
	for row := range strings.Lines(meanings) {
		cells := strings.Split(strings.TrimSuffix(row, "\n"), "\t")
		if strconv.Itoa(e.Code) == cells[0] && strings.Contains(text, strings.ToLower(cells[2])) {
			return meaning(cells[1]), cells[3]
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
