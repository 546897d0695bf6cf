package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// notSent is the phrase for people, which channels translate in the daemon.
var notSent = cmpopts.IgnoreFields(permissions.Refusal{}, "ForPerson")

// refusing is a client of a server whose only route answers with err, and that is not ready for the same reason.
func refusing(t *testing.T, err error) *wire.Client {
	t.Helper()
	socket := wiretest.Socket(t)
	door := New("test", func(context.Context) error { return err }, quiet)
	huma.Register(door.API, huma.Operation{OperationID: "x", Method: http.MethodGet, Path: "/x"},
		func(context.Context, *struct{}) (*struct{ Body int }, error) { return nil, door.Refuse(err) })
	serveDoor(t, socket, door, 0)
	return client(t, socket)
}

func TestARefusalComesBackAsItWas(t *testing.T) {
	own := permissions.Invalid(errors.New("wrong"))
	for status, refusals := range map[int][]*permissions.Refusal{
		http.StatusUnprocessableEntity: {own, permissions.OwnFiles("@write:/x"), refusalOf(t, permissions.ErrNoOption)},
		http.StatusForbidden:           {permissions.Forbidden("rm"), permissions.OwnAsk(1000), permissions.NotYours()},
		http.StatusConflict: {
			permissions.KeyTaken(), refusalOf(t, &permissions.SettledError{}), refusalOf(t, permissions.ErrReally),
			refusalOf(t, permissions.ErrNoUse),
		},
		http.StatusTooManyRequests: {permissions.Limit(90 * time.Second), permissions.Limit(time.Millisecond)},
		http.StatusNotFound:        {permissions.Unknown("K7F3Q"), permissions.UnknownGrant("01J")},
		http.StatusUnauthorized:    {permissions.UnknownToken()},
		http.StatusGone:            {permissions.Pruned(7)},
		http.StatusServiceUnavailable: {
			permissions.Broken("make room"), {Code: permissions.CodeStopped, Text: "Stopped by fay.", Exit: 1},
		},
	} {
		for _, want := range refusals {
			if got := wire.ProblemOf(fmt.Errorf("ask: %w", want)).Status; got != status {
				t.Errorf("%s: status %d, want %d", want.Code, got, status)
			}
			err := refusing(t, want).Call(t.Context(), http.MethodGet, "/x", nil, nil, 0, nil)
			var got *permissions.Refusal
			if !errors.As(err, &got) {
				t.Errorf("%s: came back as %v", want.Code, err)
			} else if diff := cmp.Diff(want, got, notSent); diff != "" {
				t.Errorf("%s (-sent +read):\n%s", want.Code, diff)
			}
			if err.Error() != want.Text {
				t.Errorf("%s says %q", want.Code, err)
			}
		}
	}
}

func refusalOf(t *testing.T, err error) *permissions.Refusal {
	t.Helper()
	var r *permissions.Refusal
	if !errors.As(permissions.ToRefusal(err), &r) {
		t.Fatalf("%v is no refusal", err)
	}
	return r
}

func TestOtherErrorsAreToldWithoutTheirText(t *testing.T) {
	var refusal *permissions.Refusal
	var problem *wire.Problem

	err := refusing(t, errors.New("secret path")).Call(t.Context(), http.MethodGet, "/x", nil, nil, 0, nil)
	if errors.As(err, &refusal) || !errors.As(err, &problem) || problem.Code != wire.CodeInternal {
		t.Errorf("an error of ours came back as %v", err)
	}
	stuck := fmt.Errorf("write: %w", permissions.ErrBroken)
	err = refusing(t, stuck).Call(t.Context(), http.MethodGet, "/x", nil, nil, 0, nil)
	if !errors.As(err, &refusal) || refusal.Code != permissions.CodeBroken {
		t.Errorf("a broken store came back as %v", err)
	}
	err = refusing(t, context.Canceled).Call(t.Context(), http.MethodGet, "/x", nil, nil, 0, nil)
	if !errors.Is(err, wire.ErrLost) || !wire.IsConnectionError(err) {
		t.Errorf("a daemon that stops came back as %v", err)
	}
	if p := wire.ProblemOf(&permissions.Refusal{Code: "new", Text: "no"}); p.Status != http.StatusForbidden || p.Title == "" {
		t.Errorf("an unknown refusal is %+v", p)
	}
}

func TestReadinessSaysWhatToDo(t *testing.T) {
	for _, err := range []error{
		permissions.Broken("make room"), fmt.Errorf("make room: %w", permissions.ErrBroken), errors.New("make room"),
		permissions.Invalid(errors.New("make room")), context.DeadlineExceeded,
	} {
		p := notReady(err)
		if p.Status != http.StatusServiceUnavailable || p.Detail == "" {
			t.Errorf("%v: %+v", err, p)
		}
	}
	c := refusing(t, permissions.Broken("make room"))
	var refusal *permissions.Refusal
	if err := c.Call(t.Context(), http.MethodGet, "/readyz", nil, nil, 0, nil); !errors.As(err, &refusal) {
		t.Errorf("not ready: %v", err)
	}
	if err := c.Call(t.Context(), http.MethodGet, "/healthz", nil, nil, 0, nil); err != nil {
		t.Errorf("alive all the same: %v", err)
	}
}

func TestProblemsHaveTheShapeOfTheRFC(t *testing.T) {
	w := httptest.NewRecorder()
	wire.ProblemOf(permissions.Limit(time.Minute)).Write(w)
	want := `{"type":"urn:daycared:limit","title":"Too many requests","status":429,` +
		`"detail":"Too many requests; try again in 60 seconds.","code":"limit","exit":1}` + "\n"
	body, err := io.ReadAll(w.Result().Body)
	if err != nil || string(body) != want {
		t.Errorf("%s, %v\nwant %s", body, err, want)
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("content type %q", got)
	}
	if got := w.Header().Get("Retry-After"); got != "60" {
		t.Errorf("Retry-After %q", got)
	}
	if got := wire.ProblemOf(permissions.UnknownToken()).GetHeaders().Get("WWW-Authenticate"); got != "Bearer" {
		t.Errorf("WWW-Authenticate %q", got)
	}
	p := invalidBody(http.StatusInternalServerError, "boom", errors.New("secret"))
	if p.Error() == "boom" || p.GetStatus() != http.StatusInternalServerError {
		t.Errorf("%v", p)
	}
	if p := invalidBody(http.StatusBadRequest, "request body is required"); p.Error() != "request body is required" {
		t.Errorf("%v", p)
	}
}

func TestAnAnswerThatIsNoneIsAnError(t *testing.T) {
	socket := wiretest.Socket(t)
	answers := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/html" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.WriteString(w, "<html>")
	})
	serveHandler(t, socket, answers, 0)
	c := client(t, socket)
	var out wire.Request
	var refusal *permissions.Refusal
	for _, path := range []string{"/html", "/"} {
		t.Run("D9/"+path, func(t *testing.T) {
			err := c.Call(t.Context(), http.MethodGet, path, nil, nil, 0, &out)
			if err == nil || wire.IsConnectionError(err) || errors.As(err, &refusal) {
				t.Errorf("%s: %v", path, err)
			}
		})
	}
	if _, err := c.Stream(t.Context(), "/html", nil); err == nil {
		t.Error("streamed")
	}
}
