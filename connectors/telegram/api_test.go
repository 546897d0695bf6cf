package telegram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
)

const testToken Token = "123456:SECRET_of-the-Bot"

func TestParametersAreWritten(t *testing.T) {
	type word string
	var got url.Values
	a := dialed(t, testToken, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		got = r.PostForm
		fmt.Fprint(w, `{"ok":true,"result":true}`)
	})
	err := a.call(t.Context(), "sendMessage", map[string]any{
		"text": `<"ü">`, "kind": word("plain"), "chat_id": int64(-100123), "limit": 5, "silent": true,
		"entities": []entity{{Type: "bold", Length: 2}}, "none": []entity(nil), "nil": nil, "pointer": (*keyboard)(nil),
		"reply_markup": keyboard{},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := url.Values{
		"text": {`<"ü">`}, "kind": {"plain"}, "chat_id": {"-100123"}, "limit": {"5"}, "silent": {"true"},
		"entities": {`[{"type":"bold","offset":0,"length":2}]`}, "none": {"[]"}, "reply_markup": {`{"inline_keyboard":[]}`},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestResultsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		result, wrong string
		want          message
	}{
		"with what is not used":       {`{"message_id":7,"text":"a","new_in_11":{"x":[1]}}`, "", message{ID: 7, Text: "a"}},
		"with bytes that are no text": {"{\"message_id\":7,\"text\":\"a\xff\"}", "", message{ID: 7, Text: "a\ufffd"}},
		"of another kind":             {`{"message_id":"seven"}`, "getMe: read the result: ", message{}},
		"missing":                     {``, "getMe: read the result: ", message{}},
	} {
		t.Run(name, func(t *testing.T) {
			a := dialed(t, testToken, func(w http.ResponseWriter, _ *http.Request) {
				if c.result == "" {
					fmt.Fprint(w, `{"ok":true}`)
					return
				}
				fmt.Fprintf(w, `{"ok":true,"result":%s}`, c.result)
			})
			var got message
			err := a.call(t.Context(), "getMe", nil, &got)
			if (err != nil) != (c.wrong != "") || err != nil && !strings.HasPrefix(err.Error(), c.wrong) {
				t.Fatalf("error %v, want %q", err, c.wrong)
			}
			if diff := cmp.Diff(c.want, got); err == nil && diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUpload(t *testing.T) {
	var name, text, chat string
	var length int64
	a := dialed(t, testToken, func(w http.ResponseWriter, r *http.Request) {
		f, header, err := r.FormFile("document")
		if err != nil {
			t.Error(err)
			return
		}
		body, _ := io.ReadAll(f)
		name, text, chat, length = header.Filename, string(body), r.FormValue("chat_id"), r.ContentLength
		fmt.Fprint(w, `{"ok":true,"result":{"message_id":9}}`)
	})
	var sent message
	f := file{Field: "document", Name: "details.txt", Body: []byte("all of it")}
	err := a.upload(t.Context(), "sendDocument", map[string]any{"chat_id": 5}, f, &sent)
	if err != nil || sent.ID != 9 || name != "details.txt" || text != "all of it" || chat != "5" || length < 100 {
		t.Errorf("message %d, %q with %q to %s, %d bytes, %v", sent.ID, name, text, chat, length, err)
	}
}

func TestRefusalsOfTheBotAPI(t *testing.T) {
	const answer = `{"ok":false,"error_code":%d,"description":%q,"parameters":{"retry_after":7,"migrate_to_chat_id":-1009}}`
	text := "Bad Request: of " + string(testToken)
	want := &apiError{
		Method: "sendDocument", Code: 400, Text: "Bad Request: of ‹bot token›", Pause: 7 * time.Second, MigrateTo: -1009,
	}
	a := dialed(t, testToken, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, answer, 400, text)
	})
	for name, err := range map[string]error{
		"call":   a.call(t.Context(), "sendDocument", nil, nil),
		"upload": a.upload(t.Context(), "sendDocument", nil, file{Field: "document", Name: "a", Body: []byte("a")}, nil),
	} {
		t.Run("E1/"+name, func(t *testing.T) {
			var got *apiError
			if !errors.As(err, &got) {
				t.Fatalf("%s: %v", name, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		})
	}
	if text := want.Error(); text != "sendDocument: 400 Bad Request: of ‹bot token›" {
		t.Error(text)
	}
}

func TestCallsThatAreLost(t *testing.T) {
	secret := string(testToken)
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		want   string
	}{
		"a page of a proxy": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<html>Bad Gateway "+secret+"</html>")
		}, "getMe: answered with 502 Bad Gateway, which is not the Bot API"},
		"something else": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"hello":"`+secret+`"}`)
		}, "getMe: answered with 200 OK, which is not the Bot API"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/bot"+secret+"/elsewhere", http.StatusTemporaryRedirect)
		}, "getMe: answered with 307 Temporary Redirect, which is not the Bot API"},
		"a reset": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "getMe: the connection ended without an answer"},
		"cut short": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"ok":true,"result":`)
		}, "getMe: the connection ended before the answer was whole"},
		"without an end": {func(w http.ResponseWriter, _ *http.Request) {
			for zeros, err := make([]byte, 1<<20), error(nil); err == nil; {
				_, err = w.Write(zeros)
			}
		}, "getMe: the answer is longer than 16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			a := dialed(t, testToken, c.answer)
			err := a.call(t.Context(), "getMe", nil, nil)
			var lost *lostError
			if !errors.As(err, &lost) || err.Error() != c.want || !temporary(err) {
				t.Errorf("%T %v, temporary: %v", err, err, temporary(err))
			}
		})
	}
}

func TestTokenIsInNoError(t *testing.T) {
	half := strings.TrimPrefix(string(testToken), "123456:")
	for name, dial := range map[string]error{
		"refused":       &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")},
		"in clear":      errors.New("dial http://host/bot" + string(testToken) + "/getMe"),
		"escaped":       errors.New("dial " + url.QueryEscape(string(testToken))),
		"by a proxy":    &url.Error{Op: "Get", URL: "http://host/bot" + string(testToken), Err: io.ErrUnexpectedEOF},
		"while it ends": fmt.Errorf("%w at %s", context.Canceled, testTokenText()),
	} {
		t.Run("G3/"+name, func(t *testing.T) {
			var logged bytes.Buffer
			a := newAPI(testToken, "http://telegram.invalid", slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{
				Level: slog.LevelDebug,
			})))
			transportOf(a).DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, dial }
			for _, err := range []error{
				a.call(t.Context(), "getMe", nil, nil),
				a.upload(t.Context(), "sendDocument", nil, file{Field: "document", Body: []byte("a")}, nil),
			} {
				if errors.Is(dial, context.Canceled) != errors.Is(err, context.Canceled) {
					t.Errorf("%v is an end: %v", err, errors.Is(err, context.Canceled))
				}
				all := fmt.Sprintf("%+v %+v", a, logged.String())
				for ; err != nil; err = errors.Unwrap(err) {
					all += fmt.Sprintf("\n%v %+v %#v", err, err, err)
				}
				if strings.Contains(all, half) || strings.Contains(all, "telegram.invalid") {
					t.Errorf("an address or a token:\n%s", all)
				}
			}
		})
	}
}

func testTokenText() string { return string(testToken) }

func TestHide(t *testing.T) {
	for _, c := range []struct {
		token      Token
		text, want string
	}{
		{"12:aB-_", "/bot12:aB-_/getMe", "/bot‹bot token›/getMe"},
		{"12:aB-_", "12%3AaB-_ 12%3aaB%2D_ %31%32%3A%61%42%2d%5F", "‹bot token› ‹bot token› ‹bot token›"},
		{"12:aB-_", "12%253AaB-_ and aB-_ alone", "‹bot token› and ‹bot token› alone"},
		{"12:aB-_", "bot 12, AB-_", "bot 12, AB-_"},
		{"plain", "a plain word", "a ‹bot token› word"},
		{"12:", "12: and 12", "‹bot token› and 12"},
		{"12:ü.", "12:ü. %C3%BC. üx", "‹bot token› ‹bot token› üx"},
		{"", "nothing", "nothing"},
	} {
		if got := newAPI(c.token, "", slog.New(slog.DiscardHandler)).hide(c.text); got != c.want {
			t.Errorf("%s: %s, want %s", string(c.token), got, c.want)
		}
	}
}

func TestTokenDoesNotPrint(t *testing.T) {
	t.Run("G3/a bot's token", func(t *testing.T) {
		var b bytes.Buffer
		slog.New(slog.NewJSONHandler(&b, nil)).Info("a", "token", testToken)
		fmt.Fprintf(&b, "%v %+v %#v %s %q %x", testToken, testToken, struct{ Token Token }{testToken}, testToken, testToken, testToken)
		if strings.Contains(b.String(), "SECRET") || strings.Contains(b.String(), fmt.Sprintf("%x", "SECRET")) {
			t.Error(b.String())
		}
	})
}

func TestLibraryIsSilent(t *testing.T) {
	if os.Getenv("DAYCARED_TEST_LIBRARY") != "" {
		bot := tgbotapi.BotAPI{Token: string(testToken), Debug: true, Client: doer(func(*http.Request) (*http.Response, error) {
			return nil, errors.New("no network")
		})}
		bot.SetAPIEndpoint("http://telegram.invalid/bot%s/%s")
		_, _ = bot.MakeRequest("getMe", tgbotapi.Params{"text": string(testToken)})
		return
	}
	self := exec.Command(os.Args[0], "-test.run=^TestLibraryIsSilent$", "-test.v")
	self.Env = append(os.Environ(), "DAYCARED_TEST_LIBRARY=1")
	out, err := self.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PASS: TestLibraryIsSilent") || strings.Contains(string(out), "SECRET") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestCallsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		params map[string]any
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		after  time.Duration
		want   string
		is     error
	}{
		"a call": {nil, context.WithCancel, 20 * time.Second, "getUpdates: no answer within 20s", nil},
		"a poll": {map[string]any{"timeout": 50}, context.WithCancel, 70 * time.Second, "getUpdates: no answer within 1m10s", nil},
		"at a deadline": {nil, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 3*time.Second)
		}, 3 * time.Second, "getUpdates: it did not answer in time", context.DeadlineExceeded},
		"with their ctx": {map[string]any{"timeout": 50}, func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, time.Second, "getUpdates: context canceled", context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := dialed(t, testToken, func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body) // only then is it seen that the client is gone
					<-r.Context().Done()
				})
				ctx, cancel := c.ctx(t.Context())
				defer cancel()
				began := time.Now()
				err := a.call(ctx, "getUpdates", c.params, nil)
				if err == nil || err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("%v, want %s", err, c.want)
				}
				if took := time.Since(began); took != c.after {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

func TestBaseOfTheAPI(t *testing.T) {
	for base, want := range map[string]string{
		"":                            "https://api.telegram.org/bot12:a%2Fb/getMe",
		"http://127.0.0.1:8081/":      "http://127.0.0.1:8081/bot12:a%2Fb/getMe",
		"https://proxy.example/a%20b": "https://proxy.example/a%20b/bot12:a%2Fb/getMe",
	} {
		a := newAPI("12:a/b", base, slog.New(slog.DiscardHandler))
		got := ""
		bot := a.bot()
		bot.Client = doer(func(r *http.Request) (*http.Response, error) {
			got = r.URL.String()
			return nil, io.EOF
		})
		if _, err := bot.MakeRequest("getMe", nil); got != want {
			t.Errorf("%s: %s, %v", base, got, err)
		}
	}
}

func TestCallsOfARealServer(t *testing.T) {
	server := telegramtest.New(t)
	fay := server.Person(telegramtest.User{ID: fayChat, FirstName: "Fay"})
	a := newAPI(Token(server.Token()), server.URL(), slog.New(slog.DiscardHandler))
	t.Cleanup(a.close)
	text := map[string]any{
		"chat_id": fayChat, "text": "May I? 🙂", "entities": []entity{{Type: "bold", Length: 3}},
		"reply_markup": keyboard{Rows: [][]key{{{Text: "Yes", Data: "x.once", Style: "success"}}}},
	}
	err := a.call(t.Context(), "sendMessage", text, nil)
	if why, is := goneFor(err, "fay"); !is || why != "fay never pressed Start" {
		t.Fatal(err)
	}
	fay.Start("")
	var sent message
	if err := a.call(t.Context(), "sendMessage", text, &sent); err != nil {
		t.Fatal(err)
	}
	text["message_id"] = sent.ID
	if err := a.call(t.Context(), "editMessageText", text, nil); !notModified(err) {
		t.Errorf("the same again: %v", err)
	}
	f := file{Field: "document", Name: "details.txt", Body: []byte("all of it")}
	if err := a.upload(t.Context(), "sendDocument", map[string]any{"chat_id": fayChat}, f, nil); err != nil {
		t.Error(err)
	}
	fay.Blocks()
	err = a.upload(t.Context(), "sendDocument", map[string]any{"chat_id": fayChat}, f, nil)
	if why, is := goneFor(err, "fay"); !is || why != "fay has blocked the bot" {
		t.Error(err)
	}
	seen := fay.Messages()
	if last := seen[len(seen)-1]; last.Document == nil || string(last.Document.Bytes) != "all of it" || len(seen) != 3 {
		t.Errorf("fay sees %+v", seen)
	}
	for fault, fits := range map[telegramtest.Fault]func(error) bool{
		telegramtest.TooManyRequests(7 * time.Second): func(err error) bool { return connectors.RetryAfter(err) == 7*time.Second },
		telegramtest.BadGateway():                     temporary,
		telegramtest.Reset():                          temporary,
	} {
		server.FailNext("getMe", 1, fault)
		if err := a.call(t.Context(), "getMe", nil, nil); !fits(err) {
			t.Errorf("%v: %v", fault, err)
		}
	}
	other := newAPI("123456789:"+Token(strings.Repeat("x", 35)), server.URL(), slog.New(slog.DiscardHandler))
	t.Cleanup(other.close)
	if err := other.call(t.Context(), "getMe", nil, nil); !badToken(err) {
		t.Errorf("another token: %v", err)
	}
}
