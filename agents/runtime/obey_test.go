package runtime_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/runtime"
	"github.com/daycared/daycared/agents/tools"
	"github.com/daycared/daycared/permissions"
)

// fail makes commits fail from now on; nil makes them succeed.
func (s *env) fail(fails func(agents.Commit) error) {
	s.rows.mu.Lock()
	defer s.rows.mu.Unlock()
	s.rows.fails = fails
}

// TestChildrenEndAcrossAKill: after a restart, a session whose parent has ended does not go on, even if the order was lost.
func TestChildrenEndAcrossAKill(t *testing.T) {
	s := newEnv(t, helper(withChild(`{"name":"x","prompt":"p"}`, firstCalls("write_file", noteA))))
	s.write("go")
	s.card(1)
	id := s.waitAsking("helper/x").ID
	s.fail(func(c agents.Commit) error {
		if c.Session.Agent == "helper/x" {
			return permissions.Broken("the daemon is killed before this")
		}
		return nil
	})
	s.order(permissions.OrderQuit)
	s.stop()
	s.open()
	s.waitEnd(id)
}

// TestAnOrderIsNotLostToAnother: of two concurrent orders the stronger one counts, in either order.
func TestAnOrderIsNotLostToAnother(t *testing.T) {
	for _, orders := range [][2]permissions.Order{
		{permissions.OrderQuit, permissions.OrderStop}, {permissions.OrderStop, permissions.OrderQuit},
	} {
		t.Run(string(orders[0])+" and "+string(orders[1]), func(t *testing.T) {
			s := newEnv(t, helper(writer))
			s.write("go")
			s.card(1)
			id := s.current("helper").ID
			reached, free := make(chan struct{}, 1), make(chan struct{})
			s.fail(func(c agents.Commit) error {
				for _, r := range c.Records {
					if r.Type == permissions.RunFinished {
						reached <- struct{}{}
						<-free
					}
				}
				return nil
			})
			obeyed := make(chan error, 1)
			go func() { obeyed <- s.own.Residents()[0].Obey(t.Context(), orders[0]) }()
			<-reached
			brief, done := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer done()
			if err := s.own.Residents()[0].Obey(brief, orders[1]); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it is obeyed before it can be: %v", err)
			}
			close(free)
			if err := <-obeyed; err != nil {
				t.Error(err)
			}
			s.waitEnd(id)
		})
	}
}

// deaf is a server that does not answer.
type deaf struct{ asked chan struct{} }

func (d deaf) Tools(ctx context.Context) ([]tools.Tool, error) {
	select {
	case d.asked <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestStopWhileAServerDoesNotAnswer(t *testing.T) {
	a := helper(hearer)
	server := deaf{make(chan struct{}, 1)}
	a.Servers = []runtime.Server{server}
	s := newEnv(t, a)
	s.write("go")
	<-server.asked
	s.order(permissions.OrderStop)
	s.waitActivity("helper", permissions.Interrupted)
}

// TestStopAfterTheStoreFailed: retry delays do not delay an order.
func TestStopAfterTheStoreFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newEnv(t, helper(hearer))
		s.write("hello")
		s.waitMessage("told: hello")
		s.fail(func(agents.Commit) error { return permissions.Broken("the disk is full") })
		s.write("go")
		<-time.After(5 * time.Minute)
		s.fail(nil)
		s.order(permissions.OrderStop)
	})
}

// stuck is a model that never answers.
type stuck struct {
	modelFunc
	asked chan struct{}
}

func (stuck) Name() string { return "stuck" }

func (m stuck) Reply(ctx context.Context, _ models.Prompt, _ func(string)) (models.Reply, error) {
	m.asked <- struct{}{}
	<-ctx.Done()
	return models.Reply{}, ctx.Err()
}

// TestStopWhileEverybodyElseIsStuck: an order needs no free worker place.
func TestStopWhileEverybodyElseIsStuck(t *testing.T) {
	const many = 70
	model := stuck{asked: make(chan struct{}, many)}
	all := []runtime.Agent{helper(writer)}
	for i := range many {
		all = append(all, runtime.Agent{Name: "stuck" + strconv.Itoa(i), Person: "sam", Via: "phone", Model: model})
	}
	s := newEnv(t, all...)
	s.write("go")
	s.card(1)
	s.waitAsking("helper")
	for i, r := range s.own.Residents()[1:] {
		if err := r.Receive(t.Context(), permissions.Message{Key: strconv.Itoa(i), From: "sam", Text: "go"}); err != nil {
			t.Fatal(err)
		}
	}
	for range 64 {
		<-model.asked
	}
	s.order(permissions.OrderStop)
	s.waitActivity("helper", permissions.Interrupted)
}
