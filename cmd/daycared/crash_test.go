package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// crashPoints are the failpoints before and after every call of the store that decisions at the admin socket reach; sending and noting
// what was sent are of chats, see telegramPoints.
var crashPoints = []string{"open", "apply", "record", "forget", "endgrants"}

const (
	usualCrashes = 200
	// lastHit is the highest hit of a failpoint that kills; each life reaches at least as many.
	lastHit = 4
	// questionsALife is the number of questions per life.
	questionsALife = 4
)

// TestCrashLoop asks and decides across kills of the real binary at every failpoint, on one store. No acknowledged decision may
// be lost, nothing decided twice, no approved request expire, and the audit must verify. CRASH_POINTS sets the number of kills.
func TestCrashLoop(t *testing.T) {
	t.Run("D1/kills with terminals", func(t *testing.T) {
		crashes := kills(t, usualCrashes)
		l := newLoop(t)
		l.begin()
		for killed := range crashes {
			l.life(death(crashPoints, killed, lastHit), func(died <-chan struct{}) {
				for i := 0; i < questionsALife && !over(died); i++ {
					l.question(fmt.Sprintf("question %d-%d.", killed, i))
				}
			})
		}
		l.finish(crashes)
	})
}

// question runs one request to its answer, across deaths of the daemon.
func (l *loop) question(name string) { l.askedAt(l, name) }

// askedAt runs one request to its answer, which is given at this daemon or another, across deaths of both.
func (l *loop) askedAt(other *loop, name string) {
	ctx, done := context.WithTimeout(l.ctx, patient)
	defer done()
	answer, want := permissions.Allow(permissions.Once), permissions.Approved
	if rand.IntN(3) == 0 {
		answer, want = permissions.Deny, permissions.Denied
	}
	told := l.ask(ctx, name, "@read:/q")
	other.decide(name, answer, want)
	l.ended(name, <-told, want)
}

// decide answers the named question like a person: repeatedly, until told that the answer is stored, or was stored before a
// death that lost the first reply. Before each attempt, an answer that is not offered is refused and audited.
func (l *loop) decide(name string, answer permissions.Answer, want permissions.State) {
	id := l.pending(name).Request.ID
	l.await("an answer to "+name, func(ctx context.Context) error {
		_, _ = l.people.OnPermission(ctx, connectors.Decision{Request: id, Answer: permissions.Allow(permissions.Always)})
		_, err := l.people.OnPermission(ctx, connectors.Decision{Request: id, Answer: answer})
		var refusal *permissions.Refusal
		if errors.As(err, &refusal) && refusal.Code == permissions.CodeSettled {
			return nil
		}
		return err
	})
	l.claimed(id, claim{name: name, whom: "who decided", state: want})
}

// pending waits for the named question.
func (l *loop) pending(name string) (found permissions.RequestView) {
	l.await(name, func(ctx context.Context) error {
		list, err := l.people.List(ctx, "", 0)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(s permissions.RequestView) bool { return s.Request.Reason == name })
		if i < 0 {
			return errors.New("it is not pending")
		}
		found = list[i]
		return nil
	})
	return found
}
