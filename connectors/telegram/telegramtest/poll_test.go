package telegramtest

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func ids(found []got) (all []int) {
	for _, u := range found {
		all = append(all, u.ID)
	}
	return all
}

func TestOffsetConfirms(t *testing.T) {
	s := New(t)
	fay := s.Person(fayUser)
	fay.Start("")
	fay.Writes("one")
	fay.Writes("two")
	first := getUpdates(t, s)
	if len(first) != 3 || first[1].Message.Text != "one" || first[2].ID != first[0].ID+2 {
		t.Fatalf("got %+v", first)
	}
	if again := getUpdates(t, s); !slices.Equal(ids(again), ids(first)) {
		t.Errorf("not confirmed, and yet %v", ids(again))
	}
	if got := getUpdates(t, s, "limit", "2"); len(got) != 2 {
		t.Errorf("%d updates with a limit of 2", len(got))
	}
	if got := getUpdates(t, s, "offset", strconv.Itoa(first[0].ID+1)); !slices.Equal(ids(got), ids(first)[1:]) {
		t.Errorf("after the first was confirmed: %v", ids(got))
	}
	if got := getUpdates(t, s); len(got) != 2 {
		t.Errorf("the confirmed one came again: %v", ids(got))
	}
	if got := getUpdates(t, s, "offset", "-1"); len(got) != 1 || got[0].Message.Text != "two" {
		t.Errorf("the last one is %+v", got)
	}
	if got := getUpdates(t, s, "offset", "999999999"); len(got) != 1 {
		t.Errorf("an offset from the future: %v", ids(got))
	}
	if n := s.Pending(); n != 1 {
		t.Errorf("%d pending", n)
	}
	if got := getUpdates(t, s, "offset", strconv.Itoa(first[2].ID+1)); len(got) != 0 {
		t.Errorf("all confirmed, and yet %v", ids(got))
	}
	if err := s.Drained(within(t)); err != nil {
		t.Error(err)
	}
}

// hanging starts a poll and returns once it hangs.
func hanging(t *testing.T, s *Server, pairs ...string) <-chan reply {
	t.Helper()
	s.Advance(impatient)
	s.mu.Lock()
	before := s.queue.poll
	s.mu.Unlock()
	done := make(chan reply, 1)
	ctx := within(t)
	go func() {
		defer close(done)
		if r, err := try(ctx, s, "getUpdates", pairs...); err == nil {
			done <- r
		}
	}()
	hangs := func() bool { return s.queue.poll != nil && s.queue.poll != before }
	if err := s.wait(ctx, time.Time{}, hangs); err != nil {
		t.Fatal("no poll hangs: ", err)
	}
	return done
}

func TestLongPoll(t *testing.T) {
	s := New(t)
	fay := s.Person(fayUser)
	poll := hanging(t, s, "timeout", "50")
	fay.Writes("now")
	if r := <-poll; !r.OK || !strings.Contains(string(r.Result), `"now"`) {
		t.Errorf("the poll ended with %s", r.Result)
	}
	drain(t, s)
	poll = hanging(t, s, "timeout", "600") // held to 50
	s.Advance(49 * time.Second)
	select {
	case r := <-poll:
		t.Fatalf("the poll ended early with %s", r.Result)
	default:
	}
	s.Advance(time.Second)
	if r := <-poll; !r.OK || string(r.Result) != "[]" {
		t.Errorf("the poll ended with %s", r.Result)
	}
}

func TestImpatientPolls(t *testing.T) {
	s := New(t)
	fay := s.Person(fayUser)
	fay.Writes("one")
	fay.Writes("two")
	getUpdates(t, s)
	var found []got
	if must(t, s, &found, "getUpdates"); len(found) != 1 {
		t.Errorf("%d updates at once after a poll for the same", len(found))
	}
	drain(t, s)
	s.Advance(impatient)
	must(t, s, nil, "getUpdates")
	done := make(chan reply, 1)
	go func() {
		r, _ := try(t.Context(), s, "getUpdates", "timeout", "0")
		done <- r
	}()
	if err := s.Polling(within(t)); err != nil {
		t.Fatal("a second poll for the same is not held: ", err)
	}
	s.Advance(impatient)
	if r := <-done; !r.OK {
		t.Errorf("it ended with %d", r.ErrorCode)
	}
}

func TestOlderPollIsTerminated(t *testing.T) {
	s := New(t)
	older := hanging(t, s, "timeout", "50")
	newer := hanging(t, s, "timeout", "50", "offset", "1")
	if r := <-older; r.status != http.StatusConflict || r.Description != "Conflict: terminated by other getUpdates "+
		"request; make sure that only one bot instance is running" {
		t.Fatalf("the older one ended with %d %s", r.ErrorCode, r.Description)
	}
	third := make(chan reply, 1)
	go func() {
		r, _ := try(t.Context(), s, "getUpdates", "timeout", "50", "offset", "2")
		third <- r
	}()
	if err := s.wait(within(t), time.Time{}, func() bool { return s.queue.lastOffset == 2 }); err != nil {
		t.Fatal(err)
	}
	s.Advance(impatient)
	if r := <-newer; r.ErrorCode != http.StatusConflict {
		t.Errorf("the second one ended with %d", r.ErrorCode)
	}
	if c := s.Calls(); c[1].Ended.Sub(c[2].At) < impatient {
		t.Error("the second conflict was told at once")
	}
	s.Person(fayUser).Writes("for the newest")
	if r := <-third; !r.OK || !strings.Contains(string(r.Result), "newest") {
		t.Errorf("the newest one ended with %s", r.Result)
	}
}

func TestWebhook(t *testing.T) {
	s := New(t)
	s.Person(fayUser).Writes("one")
	s.Webhook("https://example.org/hook")
	var info struct {
		URL     string `json:"url"`
		Pending int    `json:"pending_update_count"`
	}
	if must(t, s, &info, "getWebhookInfo"); info.URL != "https://example.org/hook" || info.Pending != 1 {
		t.Errorf("the webhook is %+v", info)
	}
	if r := call(t, s, "getUpdates"); r.status != http.StatusConflict || r.Description != "Conflict: can't use "+
		"getUpdates method while webhook is active; use deleteWebhook to delete the webhook first" {
		t.Errorf("polled past a webhook: %d %s", r.ErrorCode, r.Description)
	}
	must(t, s, nil, "deleteWebhook")
	if got := getUpdates(t, s); len(got) != 1 {
		t.Errorf("%d updates after the webhook was deleted", len(got))
	}
	must(t, s, nil, "deleteWebhook", "drop_pending_updates", "true")
	if n := s.Pending(); n != 0 {
		t.Errorf("%d updates after they were dropped", n)
	}
}

func TestUpdatesAge(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	fay.Writes("a text")
	fay.TapsData(1, "a tap")
	s.Advance(149 * time.Second)
	if n := s.Pending(); n != 2 {
		t.Errorf("%d pending after 149 s", n)
	}
	s.Advance(time.Second)
	if got := getUpdates(t, s); len(got) != 1 || got[0].Message == nil {
		t.Errorf("after 150 s: %+v", got)
	}
	s.Advance(24 * time.Hour)
	if n := s.Pending(); n != 0 {
		t.Errorf("%d pending after a day", n)
	}
}

func TestAllowedUpdates(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	fay.Reacts(fay.Writes("one"), "👍") // nobody asked for reactions
	if got := getUpdates(t, s, "allowed_updates", `["message_reaction"]`); len(got) != 1 || got[0].Message == nil {
		t.Errorf("before: %+v", got)
	}
	drain(t, s)
	id := fay.Writes("two")
	fay.Reacts(id, "👍")
	fay.Reacts(id, "👎")
	got := getUpdates(t, s) // as they were set
	if len(got) != 2 || got[1].Reaction == nil || got[1].Reaction.ID != id || got[1].Reaction.By.ID != 42 ||
		got[1].Reaction.Was[0].Emoji != "👍" || got[1].Reaction.Is[0].Emoji != "👎" {
		t.Errorf("after: %+v", got)
	}
	drain(t, s)
	getUpdates(t, s, "allowed_updates", `[]`)
	fay.Reacts(id)
	fay.Writes("three")
	if got := getUpdates(t, s); len(got) != 1 || got[0].Message == nil {
		t.Errorf("all but what is to be asked for: %+v", got)
	}
}

func TestRedeliver(t *testing.T) {
	s := New(t)
	fay := started(t, s)
	s.Redeliver(5, true, 7)
	for i := range 50 {
		fay.Writes(strconv.Itoa(i))
	}
	seen, offset, sorted := map[int]int{}, 0, true
	for s.Pending() > 0 {
		found := getUpdates(t, s, "offset", strconv.Itoa(offset))
		sorted = sorted && slices.IsSorted(ids(found))
		for _, u := range found {
			seen[u.ID]++
			offset = max(offset, u.ID+1)
		}
	}
	times := map[int]int{}
	for _, n := range seen {
		times[n]++
	}
	if len(seen) != 50 || sorted || times[1] == 0 || times[5] == 0 || len(times) != 5 {
		t.Errorf("%d updates, in order: %v, so often each: %v", len(seen), sorted, times)
	}
}

func TestPollOfAGoneClientTakesNothing(t *testing.T) {
	s := New(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := try(ctx, s, "getUpdates", "timeout", "50")
		done <- err
	}()
	if err := s.Polling(within(t)); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	s.Person(fayUser).Writes("later")
	if got := getUpdates(t, s); len(got) != 1 {
		t.Errorf("%d updates", len(got))
	}
}
