package telegramtest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var fayUser = User{ID: 42, FirstName: "Fay", Username: "fay", LanguageCode: "de"}

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// lenient is a server whose violations do not fail the test.
func lenient(t *testing.T) *Server {
	t.Helper()
	s, err := Serve(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// started is a server and a person who pressed Start, with nothing left to poll.
func started(t *testing.T, s *Server) *Person {
	t.Helper()
	fay := s.Person(fayUser)
	fay.Start("")
	drain(t, s)
	return fay
}

// drain confirms all updates.
func drain(t *testing.T, s *Server) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.waiting, s.queue.echoes = nil, nil
}

// reply is an answer of the Bot API.
type reply struct {
	OK          bool            `json:"ok"`
	Result      json.RawMessage `json:"result"`
	ErrorCode   int             `json:"error_code"`
	Description string          `json:"description"`
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
	status int
}

// form is parameters: names and values in turn.
func form(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return v
}

// try calls a method with a form.
func try(ctx context.Context, s *Server, method string, pairs ...string) (reply, error) {
	return post(ctx, s.URL()+"/bot"+s.Token()+"/"+method, "application/x-www-form-urlencoded", form(pairs...).Encode())
}

func post(ctx context.Context, address, kind, body string) (r reply, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return r, err
	}
	q.Header.Set("Content-Type", kind)
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return r, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return r, err
	}
	r.status = answer.StatusCode
	return r, json.Unmarshal(text, &r)
}

// call is try that must get an answer.
func call(t *testing.T, s *Server, method string, pairs ...string) reply {
	t.Helper()
	r, err := try(within(t), s, method, pairs...)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return r
}

// must is call that must be granted; it decodes the result into to.
func must(t *testing.T, s *Server, to any, method string, pairs ...string) {
	t.Helper()
	r := call(t, s, method, pairs...)
	if !r.OK {
		t.Fatalf("%s: %d %s", method, r.ErrorCode, r.Description)
	}
	if to != nil {
		if err := json.Unmarshal(r.Result, to); err != nil {
			t.Fatalf("%s: %v in %s", method, err, r.Result)
		}
	}
}

// sent is what a bot looks at in a message.
type sent struct {
	ID         int    `json:"message_id"`
	Date       int64  `json:"date"`
	EditDate   int64  `json:"edit_date"`
	Thread     int    `json:"message_thread_id"`
	Topic      bool   `json:"is_topic_message"`
	Text       string `json:"text"`
	Caption    string `json:"caption"`
	From       *User  `json:"from"`
	SenderChat *struct {
		ID int64 `json:"id"`
	} `json:"sender_chat"`
	Chat struct {
		ID   int64  `json:"id"`
		Type string `json:"type"`
	} `json:"chat"`
	Entities    []Entity `json:"entities"`
	ReplyTo     *sent    `json:"reply_to_message"`
	NewMembers  []User   `json:"new_chat_members"`
	MigrateTo   int64    `json:"migrate_to_chat_id"`
	MigrateFrom int64    `json:"migrate_from_chat_id"`
	Document    *struct {
		FileID string `json:"file_id"`
		Name   string `json:"file_name"`
		MIME   string `json:"mime_type"`
		Size   int    `json:"file_size"`
	} `json:"document"`
	Markup *struct {
		Rows [][]Button `json:"inline_keyboard"`
	} `json:"reply_markup"`
	Forward json.RawMessage `json:"forward_origin"`
	Through *User           `json:"via_bot"`
}

// got is what a bot looks at in an update.
type got struct {
	ID       int   `json:"update_id"`
	Message  *sent `json:"message"`
	Edited   *sent `json:"edited_message"`
	Post     *sent `json:"channel_post"`
	Callback *struct {
		ID       string `json:"id"`
		From     User   `json:"from"`
		Data     string `json:"data"`
		Instance string `json:"chat_instance"`
		Message  *sent  `json:"message"`
	} `json:"callback_query"`
	Member *struct {
		From User `json:"from"`
		New  struct {
			Status string `json:"status"`
		} `json:"new_chat_member"`
	} `json:"my_chat_member"`
	Reaction *struct {
		ID  int   `json:"message_id"`
		By  *User `json:"user"`
		Was []struct {
			Emoji string `json:"emoji"`
		} `json:"old_reaction"`
		Is []struct {
			Emoji string `json:"emoji"`
		} `json:"new_reaction"`
	} `json:"message_reaction"`
}

// poll gets updates. The clock is put forward first, so that no poll is too soon after another.
func getUpdates(t *testing.T, s *Server, pairs ...string) []got {
	t.Helper()
	s.Advance(impatient)
	var found []got
	must(t, s, &found, "getUpdates", pairs...)
	return found
}

func itoa(n int) string { return strconv.Itoa(n) }
