package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/permissions"
)

// doorsPoints are the failpoints of all channels. Most deaths are around commits of several writes.
var doorsPoints = []string{
	"group", "open", "apply", "group", "shown", "send", "commit", "group", "edit", "read", "heard", "group", "decide", "write",
	"record", "post",
}

// onMobiles matches failpoints that are reached only by answers on WhatsApp, once or twice.
var onMobiles = regexp.MustCompile(`^(read|heard|decide|write)\.`)

const (
	usualWithAllDoors = 120
	maxHits           = 6 // of a failpoint, before the daemon dies there
	// atOnce is how many questions are asked concurrently at admin.sock and at the console, so that writes are grouped.
	atOnce = 4
)

// TestAllChannelsCrashLoop combines the crash loops on one daemon, concurrently: agents ask over agent.sock, people answer at
// admin.sock, the console, Telegram and WhatsApp, and an agent does its jobs, while the daemon is killed at every failpoint, and
// every fifth time at a random moment. No outcome is reported wrongly, nothing counts twice, and every job is done. CRASH_POINTS
// sets the number of kills.
func TestAllChannelsCrashLoop(t *testing.T) {
	crashes := kills(t, usualWithAllDoors)
	l := newLoop(t)
	p, m, j := newPhones(l), newMobiles(l), newJobs(l)
	l.parts.routes = append(l.parts.routes, `{tags: ["@read:/q"], ask: [fay]}`)
	l.begin()
	stop := j.person()
	directed := 0
	for killed := range crashes {
		at := ""
		if killed%5 < 4 {
			if at = deathAt(doorsPoints, directed, 1+rand.IntN(maxHits)); onMobiles.MatchString(at) {
				at = deathAt(doorsPoints, directed, 1+rand.IntN(2))
			}
			directed++
		}
		l.life(at, func(died <-chan struct{}) {
			var all sync.WaitGroup
			for i := range atOnce {
				all.Go(func() { l.either(fmt.Sprintf("question %d-%d.", killed, i)) })
			}
			all.Go(func() { p.tapped(killed) })
			if killed%3 == 0 || onMobiles.MatchString(at) { // logging in takes as long as everything else
				all.Go(func() { m.answered(killed, died) })
			}
			all.Go(func() { j.goOn(died) })
			all.Wait()
			j.sum(j.worker.last())
		})
	}
	j.goOn(nil)
	stop()
	p.final()
	m.final()
	j.sum(j.worker.last())
	l.finish(crashes)
	t.Logf("%d jobs, deaths at %v", j.job, l.deaths)
	if crashes >= usualWithAllDoors && (l.deaths["group.before"] == 0 || l.deaths["group.after"] == 0) {
		t.Errorf("it never died around a commit of several writes: %v", l.deaths)
	}
}

// either asks a question that is answered at admin.sock or at the console.
func (l *loop) either(name string) {
	if rand.IntN(2) == 0 {
		l.question(name)
		return
	}
	l.typed(name)
}

// typed asks a question that is answered at the console; the line is lost if the daemon dies before it reads it.
func (l *loop) typed(name string) {
	ctx, done := context.WithTimeout(l.ctx, patient)
	defer done()
	told := l.ask(ctx, name, "@read:/q")
	s := l.pending(name)
	word, want := "yes ", permissions.Approved
	if rand.IntN(3) == 0 {
		word, want = "no ", permissions.Denied
	}
	again := time.NewTicker(30 * time.Millisecond)
	defer again.Stop()
	for {
		l.types(word + s.Code)
		select {
		case r := <-told:
			l.ended(name, r, want)
			return
		case <-again.C:
		}
	}
}

// TestACrashLoopSeesWhatMustNeverHappen runs each loop with a daemon that forgets a reported decision, and with one that applies
// a decision twice. The loop fails within seconds and names the request.
func TestACrashLoopSeesWhatMustNeverHappen(t *testing.T) {
	if os.Getenv(crashFault) != "" {
		t.Fatal("this is the loop that is to fail")
	}
	lost := regexp.MustCompile(`\S+ \([0-9A-Z]{26}\) (is lost: .* was told that it is (approved|denied), and it is pending` +
		`|is not answered: .*; it is pending)`) // the second if the answer came between two calls of the agent
	twice := regexp.MustCompile(`\S+ \([0-9A-Z]{26}\) is applied twice: it was settled (approved, then approved|denied, then denied)`)
	for _, c := range []struct {
		loop, fault string
		says        *regexp.Regexp
	}{
		{"TestCrashLoop", "apply.lost:3", lost},
		{"TestCrashLoop", "apply.twice:3", twice},
		{"TestTelegramCrashLoop", "apply.lost:1", lost},
		{"TestWhatsAppCrashLoop", "apply.lost:1", lost},
		{"TestAgentCrashLoop", "apply.lost:1", lost},
		{"TestAllChannelsCrashLoop", "apply.lost:5", lost},
		{"TestAllChannelsCrashLoop", "apply.twice:5", twice},
	} {
		t.Run(c.loop+" "+c.fault, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			run := exec.CommandContext(t.Context(), self, "-test.run=^"+c.loop+"$", "-test.timeout=2m")
			run.Env = append(os.Environ(), crashFault+"="+c.fault)
			out, err := run.CombinedOutput()
			if err == nil {
				t.Fatalf("the loop passed:\n%s", out)
			}
			if !c.says.Match(out) {
				t.Errorf("it does not say what is wrong:\n%s", out)
			}
			if took := time.Since(began); took > patient/2 {
				t.Errorf("it took %s", took)
			}
		})
	}
}
