package api_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// A question is submitted without waiting and answered with the result of an editor's dialog; the continuing call gets that
// answer.
func TestAnEditorAnswersOverTheSocket(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	c := newClient(t, socket)
	q := permissions.Request{Kind: permissions.KindClarification, Message: "where?", Choices: []string{"blog", "mail"}, Call: "call-1"}
	s, err := c.Begin(t.Context(), q)
	if err != nil || s.Request.State != permissions.Pending || s.Request.ID == "" {
		t.Fatalf("%+v, %v", s, err)
	}
	q.ID = s.Request.ID
	_, done := background(t.Context(), c, q)
	wiretest.Eventually(t, "it waits", func() bool { return env.Waiters(q.ID) == 1 })

	refused := func(err error, code permissions.Code) {
		t.Helper()
		if refusal := (*permissions.Refusal)(nil); !errors.As(err, &refusal) || refusal.Code != code {
			t.Errorf("got %v, want a refusal of the code %s", err, code)
		}
	}
	_, err = c.Reply(t.Context(), q.ID, permissions.Choose(3), s.Request.Digest)
	refused(err, permissions.CodeNoAnswer)
	for body, want := range map[string]int{
		`{"answer":"option_2","digest":"sha256:12"}`: http.StatusUnprocessableEntity, `{"answer":"option_2"}`: http.StatusUnprocessableEntity,
		`{"answer":"option_2","digest":"` + permissions.Digest{1}.String() + `"}`:                 http.StatusForbidden,
		`{"answer":"option_2","digest":"` + s.Request.Digest.String() + `","by":"fay"}`:           http.StatusUnprocessableEntity,
		`{"answer":"option_2","answer":"option_1","digest":"` + s.Request.Digest.String() + `"}`:  http.StatusBadRequest,
		`{"Answer":"option_2","digest":"` + s.Request.Digest.String() + `"}`:                      http.StatusUnprocessableEntity,
		`{"answer":"option_2","comment":"and more","digest":"` + s.Request.Digest.String() + `"}`: http.StatusUnprocessableEntity,
	} {
		path := "/v1/requests/" + string(q.ID) + "/answer"
		if status, text := wiretest.Do(t, wiretest.HTTP(t, socket), http.MethodPost, path, "application/json", body); status != want {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	if s, err = c.Reply(t.Context(), q.ID, permissions.Choose(2), s.Request.Digest); err != nil || s.Request.Choice() != "mail" {
		t.Errorf("%+v, %v", s.Request, err)
	}
	if got := <-done; got.err != nil || got.r.Choice() != "mail" || got.r.DecidedVia != permissions.ViaEditor || got.r.DecidedBy != "" {
		t.Errorf("%+v, %v", got.r, got.err)
	}
	_, err = c.Reply(t.Context(), q.ID, permissions.Choose(1), s.Request.Digest)
	refused(err, permissions.CodeSettled)
	_, err = c.Begin(t.Context(), permissions.Request{Kind: "wish"})
	refused(err, permissions.CodeInvalid)
}

// Refusals are audited, so an invalid answer is rejected before that.
func TestAnInvalidAnswerIsRefusedBeforeItIsAudited(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	body := `{"answer":"` + strings.Repeat("a", 65) + `","digest":"` + permissions.Digest{1}.String() + `"}`
	status, text := wiretest.Do(t, wiretest.HTTP(t, socket), http.MethodPost, "/v1/requests/x/answer", "application/json", body)
	if status != http.StatusUnprocessableEntity || !strings.Contains(text, `"code":"invalid"`) {
		t.Errorf("%d %s", status, text)
	}
}
