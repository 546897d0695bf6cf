package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
)

// questions are all that can be asked of an error, by name.
var questions = map[string]func(error) bool{
	"gone":         func(err error) bool { _, is := goneFor(err, "fay"); return is },
	"not modified": notModified,
	"cannot edit":  cannotEdit,
	"other poller": func(err error) bool { return means(err, meansPolled) },
	"webhook set":  func(err error) bool { return means(err, meansHooked) },
	"bad token":    badToken,
	"temporary":    temporary,
	"migrated":     func(err error) bool { _, is := migrated(err); return is },
}

func TestMeaningOfErrors(t *testing.T) {
	refused := func(code int, text string) error {
		return fmt.Errorf("edit a card: %w", &apiError{Method: "editMessageText", Code: code, Text: text})
	}
	for _, c := range []struct {
		err  error
		want string // the one question that is answered with yes
	}{
		{refused(400, "Bad Request: message is not modified: specified new message content and reply markup are exactly "+
			"the same as a current content and reply markup of the message"), "not modified"},
		{refused(400, "Bad Request: message to edit not found"), "cannot edit"},
		{refused(400, "Bad Request: message can't be edited"), "cannot edit"},
		{refused(400, "Bad Request: MESSAGE_ID_INVALID"), "cannot edit"},
		{refused(400, "Bad Request: there is no text in the message to edit"), "cannot edit"},
		{refused(400, "Bad Request: query is too old and response timeout expired or query ID is invalid"), ""},
		{refused(400, "Bad Request: QUERY_ID_INVALID"), ""},
		{refused(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"),
			"other poller"},
		{refused(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook "+
			"first"), "webhook set"},
		{refused(409, "Conflict: terminated by setWebhook request"), "webhook set"},
		{refused(401, "Unauthorized"), "bad token"},
		{refused(404, "Not Found"), "bad token"},
		{refused(404, "Not Found: method not found"), ""},
		{refused(429, "Too Many Requests: retry after 30"), "temporary"},
		{refused(500, "Internal Server Error"), "temporary"},
		{refused(502, "Bad Gateway"), "temporary"},
		{&lostError{"getMe", io.ErrUnexpectedEOF}, "temporary"},
		{&apiError{Code: 400, Text: "Bad Request: group chat was upgraded to a supergroup chat", MigrateTo: -100}, "migrated"},
		{refused(400, "Bad Request: chat not found"), "gone"},
		{refused(400, "Bad Request: BUTTON_DATA_INVALID"), ""},
		{refused(400, "Bad Request: message text is empty"), ""},
		{errors.New("bot was blocked by the user"), ""},
		{context.Canceled, ""},
		{nil, ""},
	} {
		for question, answer := range questions {
			if got := answer(c.err); got != (question == c.want) {
				t.Errorf("%v: %s: %v", c.err, question, got)
			}
		}
	}
}

func TestWhyNobodyCanBeReached(t *testing.T) {
	for _, c := range []struct {
		code       int
		text, want string
	}{
		{403, "Forbidden: bot was blocked by the user", "fay has blocked the bot"},
		{403, "Forbidden: user is deactivated", "fay has no Telegram account any more"},
		{403, "Forbidden: bot can't initiate conversation with a user", "fay never pressed Start"},
		{400, "Bad Request: chat not found", "fay never pressed Start"},
		{403, "Forbidden: bot can't send messages to bots", "fay is a bot"},
		{403, "Forbidden: bot was kicked from the group chat", "the bot was removed from the group"},
		{403, "Forbidden: bot was kicked from the supergroup chat", "the bot was removed from the group"},
		{403, "Forbidden: bot is not a member of the supergroup chat", "the bot is not in the group"},
		{403, "Forbidden: the group chat was deleted", "the group was deleted"},
		{400, "Bad Request: not enough rights to send text messages to the chat", "the bot may not write in the group"},
		{400, "Bad Request: message thread not found", "the topic in the group was deleted"},
		{400, "Bad Request: TOPIC_CLOSED", "the topic in the group was closed"},
		{403, "Forbidden: for a reason of next year", "Telegram does not let the bot write to fay"},
	} {
		why, is := goneFor(&apiError{Method: "sendMessage", Code: c.code, Text: c.text}, "fay")
		if !is || why != c.want {
			t.Errorf("%s: %v, %q, want %q", c.text, is, why, c.want)
		}
	}
}

func TestWhatRefusalsCarry(t *testing.T) {
	err := fmt.Errorf("send: %w", &apiError{Code: 429, Pause: 9 * time.Second, MigrateTo: -7})
	to, is := migrated(err)
	if !is || to != -7 || connectors.RetryAfter(err) != 9*time.Second {
		t.Errorf("%d, %v, %v", to, is, connectors.RetryAfter(err))
	}
	if connectors.RetryAfter(io.EOF) != 0 || connectors.RetryAfter(nil) != 0 {
		t.Error("a pause that nobody asked for")
	}
}
