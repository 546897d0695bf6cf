package admin_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// allow puts a question of that account, and has it allowed by a person.
func allow(t *testing.T, env *wiretest.Env, uid int, reason string, s permissions.Scope, by string) permissions.Request {
	t.Helper()
	r := putAs(t, env, uid, wiretest.Question(reason))
	_, err := env.OnPermission(t.Context(), connectors.Decision{From: env.As(by), Request: r.ID, Answer: permissions.Allow(s)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestGrantsAreListedAndTakenBack(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	mine := allow(t, env, wiretest.OfBoth, "mine", permissions.For(15*time.Minute), "fay")
	theirs := allow(t, env, wiretest.OfSam, "theirs", permissions.For(15*time.Minute), "sam")
	fay, operator := newClient(t, socket, ""), newClient(t, socket, key)

	list, err := fay.Grants(t.Context(), connectors.Identity{}, "", 99)
	if err != nil || len(list) != 1 || list[0].Request != mine.ID || list[0].Until.IsZero() || list[0].By != "fay" {
		t.Fatalf("fay's grants: %+v, %v", list, err)
	}
	all, err := operator.Grants(t.Context(), connectors.Identity{}, "", 99)
	if err != nil || len(all) != 2 {
		t.Fatalf("the operator's grants: %+v, %v", all, err)
	}
	for after, want := range map[permissions.ID][]permissions.Grant{"": all[:1], all[0].ID: all[1:], all[1].ID: {}} {
		if page, err := operator.Grants(t.Context(), connectors.Identity{}, after, 1); err != nil || !reflect.DeepEqual(page, want) {
			t.Errorf("a page of one after %q: %+v, %v", after, page, err)
		}
	}
	other := all[1].ID
	if all[1].Request != theirs.ID {
		other = all[0].ID
	}
	if _, err := fay.Revoke(t.Context(), connectors.Identity{}, other); !isRefusal(err, permissions.CodeUnknown) {
		t.Errorf("fay takes back what was not put to her: %v", err)
	}
	ran, err := env.Ask(t.Context(), permissions.CallerUID(wiretest.OfBoth), wiretest.Question("under the grant"))
	if err != nil || ran.State != permissions.Approved {
		t.Fatalf("under the grant: %v, %v", ran.State, err)
	}
	past, err := fay.History(t.Context(), permissions.HistoryQuery{})
	if err != nil || len(past) != 1 || past[0].ID != mine.ID || past[0].Caller.Name != mine.Caller.Name {
		t.Fatalf("what was put to fay: %+v, %v", past, err)
	}
	past, err = operator.History(t.Context(), permissions.HistoryQuery{After: theirs.ID, Limit: 1})
	if err != nil || len(past) != 1 || past[0].ID != ran.ID || past[0].State != permissions.Approved {
		t.Fatalf("what came after: %+v, %v", past, err)
	}
	if past, err := operator.History(t.Context(), permissions.HistoryQuery{}); err != nil || len(past) != 3 || past[1].ID != theirs.ID {
		t.Fatalf("everything: %+v, %v", past, err)
	}
	took, err := fay.Revoke(t.Context(), connectors.Identity{}, list[0].ID)
	if err != nil || took.Grant.ID != list[0].ID || len(took.Ran) != 1 || took.Ran[0].ID != ran.ID ||
		took.Ran[0].Reason != "under the grant" {
		t.Errorf("taken back: %+v, %v", took, err)
	}
	if left, err := fay.Grants(t.Context(), connectors.Identity{}, "", 99); err != nil || len(left) != 0 {
		t.Errorf("left: %+v, %v", left, err)
	}
	if _, text := wiretest.Do(t, wiretest.HTTP(t, socket), http.MethodGet, "/v1/grants", "", ""); text != "[]\n" {
		t.Errorf("no grants are %s", text)
	}
	if took, err := operator.Revoke(t.Context(), connectors.Identity{}, other); err != nil || took.Grant.Request != theirs.ID {
		t.Errorf("the operator takes back: %+v, %v", took, err)
	}
}

func TestAnApprovalIsTakenBack(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	used, unused := allow(t, env, 1, "used", permissions.Once, "fay"), allow(t, env, 1, "unused", permissions.Once, "fay")
	wide := allow(t, env, 2, "wide", permissions.For(15*time.Minute), "fay")
	theirs := allow(t, env, wiretest.OfSam, "theirs", permissions.Once, "sam")
	if r, err := env.Ask(t.Context(), permissions.CallerUID(1), wiretest.Question("used")); err != nil || r.UsedAt.IsZero() {
		t.Fatalf("used: %+v, %v", r, err)
	}
	fay := newClient(t, socket, "")
	shown, err := fay.Show(t.Context(), string(unused.ID))
	if err != nil {
		t.Fatal(err)
	}
	after, err := fay.Void(t.Context(), connectors.Identity{}, shown.Code)
	if err != nil || after.Request.ID != unused.ID || after.Request.VoidAt.IsZero() {
		t.Errorf("taken back: %+v, %v", after.Request, err)
	}
	for id, code := range map[permissions.ID]permissions.Code{
		unused.ID: permissions.CodeNoUse, used.ID: permissions.CodeNoUse, theirs.ID: permissions.CodeUnknown,
		"01J": permissions.CodeUnknown,
	} {
		if _, err := fay.Void(t.Context(), connectors.Identity{}, string(id)); !isRefusal(err, code) {
			t.Errorf("%s: %v, want %s", id, err, code)
		}
	}
	if _, err := fay.Void(t.Context(), connectors.Identity{}, string(wide.ID)); err != nil {
		t.Error(err)
	}
	if left, err := fay.Grants(t.Context(), connectors.Identity{}, "", 99); err != nil || len(left) != 0 {
		t.Errorf("what a taken back approval left behind: %+v, %v", left, err)
	}
}

func TestStopEndsEverythingUntilResume(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	fay, operator := newClient(t, socket, ""), newClient(t, socket, key)
	one := put(t, env, wiretest.Question("one"))
	put(t, env, wiretest.Question("two"))
	if err := fay.Resume(t.Context(), connectors.Identity{}); err != nil {
		t.Errorf("resume where nothing is stopped: %v", err)
	}
	if n, err := fay.StopAll(t.Context(), connectors.Identity{}); n != 2 || err != nil {
		t.Errorf("stopped %d, %v", n, err)
	}
	if s, err := fay.Show(t.Context(), string(one.ID)); err != nil || s.Request.State != permissions.Cancelled {
		t.Errorf("one is %v, %v", s.Request.State, err)
	}
	me, err := operator.WhoAmI(t.Context())
	if err != nil || me.StoppedBy == nil || *me.StoppedBy != "fay" {
		t.Errorf("stopped by %v, %v", me.StoppedBy, err)
	}
	if _, err := env.Ask(t.Context(), permissions.CallerUID(1), wiretest.Question("x")); !isRefusal(err, permissions.CodeStopped) {
		t.Errorf("asked: %v", err)
	}
	env.GiveAccount("sam")
	if err := newClient(t, socket, "").Resume(t.Context(), connectors.Identity{}); !isRefusal(err, permissions.CodeNotYours) {
		t.Errorf("another person resumes: %v", err)
	}
	if err := operator.Resume(t.Context(), connectors.Identity{}); err != nil {
		t.Error(err)
	}
	if me, err := operator.WhoAmI(t.Context()); err != nil || me.StoppedBy != nil {
		t.Errorf("stopped by %v, %v", me.StoppedBy, err)
	}
	_, text := wiretest.Do(t, wiretest.HTTP(t, socket), http.MethodPost, "/v1/stop-all", "", "")
	if text != `{"cancelled":0}`+"\n" {
		t.Errorf("stopping where nothing waits says %s", text)
	}
}

// TestAStopOfThousands: ten thousand pending requests are cancelled by one call over the socket, in a few commits. Meanwhile a
// decision waits for one of them at most, and is refused.
func TestAStopOfThousands(t *testing.T) {
	const waiting, perCommit = 10_000, 500
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	var last permissions.Request
	var asking errgroup.Group
	asking.SetLimit(256) // which share commits
	for n := range waiting {
		asking.Go(func() error {
			r := wiretest.Question(strconv.Itoa(n))
			r.ID, r.Revision, r.Version, r.Quorum = permissions.NewID(time.Now()), 1, 1, 1
			r.Caller, r.Asked = permissions.CallerUID(n), []string{"fay"}
			r.CreatedAt, r.Deadline, r.State = time.Now(), time.Now().Add(time.Hour), permissions.Pending
			r.Session, r.Options = string(r.ID), permissions.Offer(r, nil, r.Widest)
			r.Digest = permissions.ComputeDigest(r)
			opened, _, err := env.Store.Open(t.Context(), permissions.Opening{Request: r, RedeemWindow: time.Hour})
			if n == waiting-1 {
				last = opened
			}
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		t.Fatal(err)
	}
	fay := newClient(t, socket, "")
	_, before, _, err := env.Store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	commits := 0 // of the audit, as somebody who follows it sees
	watched, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for seq := before; ; commits++ {
			changed := env.Store.Changed()
			_, now, _, err := env.Store.Head(context.Background())
			if err != nil || now == seq {
				select {
				case <-changed:
				case <-ended:
					return
				}
			}
			seq = now
		}
	}()
	stopped, cancelled := make(chan error, 1), 0
	start := time.Now()
	go func() {
		n, err := fay.StopAll(t.Context(), connectors.Identity{})
		cancelled = n
		stopped <- err
	}()
	wiretest.Eventually(t, "it is stopped", func() bool { return env.StoppedBy() != "" })
	asked := time.Now()
	said := connectors.Decision{Request: last.ID, Answer: permissions.Allow(permissions.Once)}
	_, refused := newClient(t, socket, "").Decide(t.Context(), said)
	t.Logf("a decision meanwhile took %s", time.Since(asked))
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	decided := 0 // with PostgreSQL, the decision may be committed before the stop
	if code := permissions.CodeOf(refused); refused == nil {
		decided = 1
	} else if code != permissions.CodeStopped && code != permissions.CodeSettled {
		t.Errorf("a decision meanwhile: %v", refused)
	}
	if cancelled != waiting-decided {
		t.Errorf("%d were cancelled, and %d decided", cancelled, decided)
	}
	t.Logf("it took %s", time.Since(start))
	close(ended)
	if <-watched; commits > 3*waiting/perCommit {
		t.Errorf("it took %d commits", commits)
	}
}

func TestTokensAreTheOperators(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	serve(t, socket, env)
	fay, operator := newClient(t, socket, ""), newClient(t, socket, key)
	_, _, err := fay.CreateToken(t.Context(), "deploy", "", 0)
	_, listErr := fay.Tokens(t.Context())
	_, revokeErr := fay.RevokeToken(t.Context(), "deploy")
	for _, err := range []error{err, listErr, revokeErr} {
		if !isRefusal(err, permissions.CodeNotYours) {
			t.Errorf("a person and tokens: %v", err)
		}
	}
	secret, token, err := operator.CreateToken(t.Context(), "deploy", "", time.Hour)
	if err != nil || token.Name != "deploy" || token.ExpiresAt.Sub(token.CreatedAt) != time.Hour {
		t.Fatalf("created %+v, %v", token, err)
	}
	if c, err := env.Prove(t.Context(), secret, 7); err != nil || c.Name != "token:deploy" {
		t.Errorf("the secret proves %+v, %v", c, err)
	}
	_, second, err := operator.CreateToken(t.Context(), "deploy", "", 0)
	if err != nil || second.ExpiresAt != nil {
		t.Errorf("a second of the name: %+v, %v", second, err)
	}
	list, err := operator.Tokens(t.Context())
	if err != nil || len(list) != 2 || list[0].ID != token.ID {
		t.Errorf("tokens: %+v, %v", list, err)
	}
	if gone, err := operator.RevokeToken(t.Context(), string(token.ID)); err != nil || len(gone) != 1 || gone[0].RevokedAt == nil {
		t.Errorf("revoked by id: %+v, %v", gone, err)
	}
	if _, err := env.Prove(t.Context(), secret, 7); !isRefusal(err, permissions.CodeToken) {
		t.Errorf("a revoked secret: %v", err)
	}
	if gone, err := operator.RevokeToken(t.Context(), "deploy"); err != nil || len(gone) != 1 || gone[0].ID != second.ID {
		t.Errorf("revoked by name: %+v, %v", gone, err)
	}
	if _, err := operator.RevokeToken(t.Context(), "deploy"); !isRefusal(err, permissions.CodeUnknown) {
		t.Errorf("none left: %v", err)
	}
}

func TestATokenIsAskedForInWords(t *testing.T) {
	socket := wiretest.Socket(t)
	serve(t, socket, wiretest.NewEnv(t))
	c := wiretest.HTTP(t, socket)
	for body, status := range map[string]int{
		`{"name":"deploy","expires":"-1h"}`: 422, `{"name":"deploy","expires":"1ms"}`: 422,
		`{"name":"deploy","expires":"soon"}`: 422, `{"name":"deploy","admin":true}`: 422, `{"expires":"1h"}`: 422,
		`{"name":"` + strings.Repeat("x", 65) + `"}`: 422, ``: 400,
	} {
		got, text := wiretest.Do(t, c, http.MethodPost, "/v1/tokens", "application/json", body)
		if got != status || !strings.Contains(text, `"code":"invalid"`) {
			t.Errorf("%s: %d %s", body, got, text)
		}
	}
}

// What asks nothing goes to every inbox of its person, and to nobody else's.
func TestNoticesComeToOpenInboxes(t *testing.T) {
	socket, env := wiretest.Socket(t), wiretest.NewEnv(t)
	door, _ := serve(t, socket, env)
	fay := connectors.Person{Name: "fay"}
	n := connectors.Notice{To: fay, About: permissions.AboutStopped, By: "sam"}
	wiretest.Eventually(t, "it has begun", func() bool { return !errors.Is(door.Reach(fay), connectors.ErrUnreachable) })
	wiretest.Eventually(t, "fay is not coming back", func() bool { return errors.Is(door.Reach(fay), connectors.ErrUnreachable) })
	if err := door.Notify(t.Context(), n); !errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("without an inbox: %v", err)
	}
	heard := make(chan []string, 10)
	var opens []*opened
	for range 2 {
		c := newClient(t, socket, "")
		c.Noticed = func(lines []string) { heard <- lines }
		opens = append(opens, open(t, c))
	}
	r := put(t, env, wiretest.Question("first"))
	for _, o := range opens {
		o.next(t)
	}
	if err := door.Notify(t.Context(), n); err != nil {
		t.Error(err)
	}
	for range opens {
		if lines := <-heard; strings.Join(lines, "|") != "⛔ Everything was stopped by sam; nothing is asked until resume." {
			t.Errorf("heard %q", lines)
		}
	}
	n.To.Name = "sam"
	if err := door.Notify(t.Context(), n); !errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("to sam: %v", err)
	}
	deny(t, env, r.ID)
	for _, o := range opens { // what comes after a notice comes
		for s := o.next(t); s.Request.State != permissions.Denied; s = o.next(t) {
			continue
		}
		if err := o.stop(); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	n.To = fay
	wiretest.Eventually(t, "the inboxes are closed", func() bool { return door.Notify(t.Context(), n) != nil })
	if err := door.Notify(t.Context(), n); errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("just after an inbox was closed it may come back: %v", err)
	}
	if len(heard) != 0 {
		t.Errorf("heard too much: %q", <-heard)
	}
	if err := admin.New(admin.Options{AdminReachable: true}, nil).Notify(t.Context(), n); !errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("nobody reads a notice later: %v", err)
	}
}
