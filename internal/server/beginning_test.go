package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/daycared/daycared/engine/wiretest"
)

// However many calls of one peer are begun, that of another is begun as well.
func TestOnePeerDoesNotTakeEveryTurn(t *testing.T) {
	d := New("test", nil, wiretest.Quiet)
	read, proceed := make(chan string), make(chan struct{})
	RegisterDeferred(d, huma.Operation{OperationID: "x", Method: http.MethodGet, Path: "/x"},
		func(ctx context.Context, _ *struct{}) (Deferred[string], error) {
			read <- PeerName(ctx)
			<-proceed
			return Resolved("told", nil)
		})
	h := d.Handler(Listener{})
	var calls sync.WaitGroup
	call := func(name string) {
		calls.Go(func() {
			ctx := context.WithValue(t.Context(), peerKey{}, peer{name: name})
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/x", nil))
		})
	}
	for range 2 * maxBeginning {
		call("many")
	}
	for range maxBeginning / 2 {
		<-read
	}
	call("another")
	if name := <-read; name != "another" {
		t.Errorf("one more of %s was begun", name)
	}
	close(proceed)
	for range 2*maxBeginning - maxBeginning/2 {
		<-read
	}
	calls.Wait()
}

// Of many calls, a few at a time are decoded and begun, however many wait for people; a call whose caller is gone is not decoded.
func TestAFewCallsAreBegunAtATime(t *testing.T) {
	d := New("test", nil, wiretest.Quiet)
	read, answer := make(chan struct{}), make(chan struct{})
	names := []string{"one", "two"}
	proceed := map[string]chan struct{}{"one": make(chan struct{}), "two": make(chan struct{})}
	RegisterDeferred(d, huma.Operation{OperationID: "x", Method: http.MethodGet, Path: "/x"},
		func(ctx context.Context, _ *struct{}) (Deferred[string], error) {
			read <- struct{}{}
			by, _ := ctx.Value(peerKey{}).(peer)
			may := proceed[by.name]
			return func(begun func()) func() (string, error) {
				<-may
				begun()
				<-answer
				return func() (string, error) { return "told", nil }
			}, nil
		})
	h := d.Handler(Listener{})
	call := func(ctx context.Context) int {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/x", nil))
		return w.Code
	}
	var calls sync.WaitGroup
	of := func(name string) context.Context { return context.WithValue(t.Context(), peerKey{}, peer{name: name}) }
	for n := range 2 * maxBeginning {
		calls.Go(func() {
			if code := call(of(names[n%2])); code != http.StatusOK {
				t.Errorf("answered with %d", code)
			}
		})
	}
	for range maxBeginning {
		<-read
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if code := call(gone); code != http.StatusServiceUnavailable {
		t.Errorf("a call that left before its turn: %d", code)
	}
	select {
	case <-read:
		t.Error("one more was read before any had begun")
	default:
	}
	for n := range maxBeginning {
		proceed[names[n%2]] <- struct{}{}
		<-read // one of the same peer, while all that have begun wait
	}
	for _, may := range proceed {
		close(may)
	}
	close(answer)
	calls.Wait()
}
