package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/daycared/daycared/engine/wiretest"
)

// usualDaemonDeaths is how often one of three daemons is killed.
const usualDaemonDeaths = 20

// TestThreeDaemonsCrashLoop: three daemons on one PostgreSQL are asked and answered at any of them, while one after the other is killed, at
// a failpoint or from outside. No acknowledged decision is lost, nothing is decided twice, and the audit is one chain that verifies.
func TestThreeDaemonsCrashLoop(t *testing.T) {
	t.Run("D10/kills of daemons on one database", func(t *testing.T) {
		crashes := kills(t, usualDaemonDeaths)
		url, key := wiretest.Database(t), filepath.Join(t.TempDir(), "audit.key")
		all := make([]*loop, 3)
		for i := range all {
			all[i] = newLoop(t)
			all[i].env = []string{"DAYCARED_DATABASE=" + url, "DAYCARED_AUDIT_KEY_FILE=" + key}
			all[i].begin()
		}
		directed := 0
		for killed := range crashes {
			failpoint := death(crashPoints, killed, lastHit)
			if killed%3 == 0 {
				failpoint = ""
			}
			all[killed%len(all)].life(failpoint, func(died <-chan struct{}) {
				for i := 0; i < questionsALife && !over(died); i++ {
					rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
					all[0].askedAt(all[1], fmt.Sprintf("question %d-%d.", killed, i))
				}
			})
		}
		for _, l := range all {
			for _, n := range l.deaths {
				directed += n
			}
			l.finish(0)
		}
		if directed < crashes/4 {
			t.Errorf("only %d of %d deaths were at a failpoint", directed, crashes)
		}
	})
}
