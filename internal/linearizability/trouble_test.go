package linearizability_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// usualTrouble is the default number of faults.
const usualTrouble = 30

// soon is how long three daemons may take until they are ready after PostgreSQL is.
const soon = 5 * time.Second

// trouble is one kind of fault.
type trouble struct {
	name string
	make func(*three, dice) error
}

// troubles is one round of them.
var troubles = func() (round []trouble) {
	kill, stop := trouble{"kill", (*three).kills}, trouble{"restart of PostgreSQL", (*three).stopsPostgres}
	halt, cut := trouble{"halt", (*three).halts}, trouble{"cut", (*three).cuts}
	long := trouble{"halt and cut past the lease", (*three).replaces}
	return []trouble{kill, stop, kill, halt, kill, cut, kill, long, kill, stop, kill, halt, kill, cut, kill}
}()

// TestThreeDaemonsAreLinearizable: three daemons on one PostgreSQL are asked, answered at their sockets and on phones, and read, each time
// at another one, while one is killed, halted or cut off from the database, for a moment or past its lease, or PostgreSQL is stopped at
// once. What everybody was told fits one order, no card is lost or left with buttons, and the audit has each end once.
func TestThreeDaemonsAreLinearizable(t *testing.T) {
	t.Run("D10/linearizable across three daemons", func(t *testing.T) {
		faults, calls, seed := int64(usualTrouble), int64(0), uint64(time.Now().UnixNano())
		for name, to := range map[string]*int64{"CRASH_POINTS": &faults, "LINEAR_OPS": &calls} {
			if n, err := strconv.ParseInt(os.Getenv(name), 10, 64); err == nil {
				*to = n
			}
		}
		if n, err := strconv.ParseUint(os.Getenv("LINEAR_SEED"), 10, 64); err == nil {
			seed = n
		}
		t.Logf("LINEAR_SEED=%d", seed)
		s := newThree(t)
		began := time.Now()
		came := s.suffer(faults, calls, seed)
		s.holds(t)
		orphans := s.settledCards()
		mobile := s.settledMobiles()
		s.audited(s.ctx)
		s.holds(t)
		if int64(orphans) > faults {
			t.Errorf("%d cards were not noted, which may be one for each fault", orphans)
		}
		if mobile == 0 {
			t.Error("nobody was asked on WhatsApp")
		}
		if most := 1 + s.tally.requests.Load()/100; s.tally.undecided.Load() > most {
			t.Errorf("of %d requests no order was found in time, which may be at most %d", s.tally.undecided.Load(), most)
		}
		t.Logf("%d faults (%v), %d calls in %s; %d cards, %d of them on WhatsApp, and %d that were not noted\n%s", faults, came,
			s.tally.calls.Load(), time.Since(began).Round(time.Millisecond), s.cards, mobile, orphans, s.tally)
	})
}

// suffer has lives go on until there were so many faults and calls.
func (s *three) suffer(faults, calls int64, seed uint64) (came map[string]int) {
	came = map[string]int{}
	enough := make(chan struct{})
	var lives sync.WaitGroup
	for place := range places {
		lives.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-enough:
					return
				case <-s.ctx.Done():
					return
				default:
				}
				name := fmt.Sprintf("q%d-%dx", place, n)
				if err := s.live(s.ctx, name, place, seed+uint64(place)<<32+uint64(n)); err != nil && s.ctx.Err() == nil {
					s.violated("LINEAR_SEED=%d: %v", seed, err)
				}
			}
		})
	}
	d := dice{rand.New(rand.NewPCG(seed, 1<<40))}
	for n := int64(0); s.ctx.Err() == nil && (n < faults || s.tally.calls.Load() < calls); n++ {
		s.goesOn(int64(d.IntN(60)))
		kind := troubles[n%int64(len(troubles))]
		came[kind.name]++
		began := time.Now()
		if err := kind.make(s, d); err != nil {
			s.violated("LINEAR_SEED=%d: %s: %v", seed, kind.name, err)
		}
		s.allReady()
		s.t.Logf("%8s  %s in %s", time.Since(s.clock.start).Round(time.Millisecond), kind.name, time.Since(began).Round(time.Millisecond))
	}
	close(enough)
	lives.Wait()
	return came
}

// idle is how long there are no calls if everybody waits for a daemon that is down.
const idle = 2 * time.Second

// goesOn waits for so many calls, or until everybody waits for a daemon that is down.
func (s *three) goesOn(calls int64) {
	seen, last := s.tally.calls.Load(), time.Now()
	until := seen + calls
	s.await("calls", func() error {
		now := s.tally.calls.Load()
		if now != seen {
			seen, last = now, time.Now()
		}
		if now < until && time.Since(last) < idle {
			return errors.New("there are too few")
		}
		return nil
	})
}

// pick is one of the daemons, often the one that has the chats.
func (s *three) pick(d dice) *process {
	if p := s.holder(); p != nil && d.chance(2) {
		return p
	}
	return s.all[d.IntN(len(s.all))]
}

// holder is the daemon that has the chats; nil: none just now.
func (s *three) holder() *process {
	all, err := s.running()
	for _, p := range s.all {
		if row, is := p.at(all); err == nil && is && strings.Contains(row.Leases, "chats") {
			return p
		}
	}
	return nil
}

func (s *three) allReady() {
	for _, p := range s.all {
		p.await("it to be ready", p.ready)
	}
}

func (s *three) kills(d dice) error {
	p := s.pick(d)
	p.kill()
	s.goesOn(int64(d.IntN(20)))
	return nil
}

func (s *three) stopsPostgres(d dice) error {
	if err := s.cluster.Stop(); err != nil {
		return err
	}
	s.goesOn(int64(d.IntN(10)))
	if err := s.cluster.Run(); err != nil {
		return err
	}
	began := time.Now()
	s.allReady()
	if took := time.Since(began); took > soon {
		return fmt.Errorf("the daemons were ready %s after PostgreSQL was", took)
	}
	return nil
}

func (s *three) halts(d dice) error {
	p := s.pick(d)
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	s.goesOn(int64(d.IntN(40)))
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	return nil
}

// past waits until a daemon does not count as running any more, and another has the chats.
func (s *three) past(p *process) {
	s.await(p.dir+" to be replaced", func() error {
		all, err := s.running()
		if err != nil {
			return err
		}
		if _, is := p.at(all); is {
			return errors.New("it counts as running")
		}
		if s.holder() != nil {
			return nil
		}
		return errors.New("nobody has the chats")
	})
}

// replaces halts one daemon and cuts off another one, both for so long that they lose what they alone may do, and lets them go on.
func (s *three) replaces(d dice) error {
	halted := cmp.Or(s.holder(), s.pick(d))
	cut := s.all[d.IntN(len(s.all))]
	if err := halted.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if cut != halted {
		cut.way.Cut()
	}
	s.past(halted)
	if cut != halted {
		cut.way.Heal()
	}
	if err := halted.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	s.allReady()
	s.alone()
	return nil
}

func (s *three) cuts(d dice) error {
	p := s.pick(d)
	p.way.Cut()
	defer p.way.Heal()
	s.goesOn(int64(d.IntN(40)))
	return nil
}
