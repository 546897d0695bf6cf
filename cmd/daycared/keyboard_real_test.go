//go:build real

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/daycared/daycared/permissions"
)

// What a person at an agent's keyboard does, and how long the hook delays them.

// interrupts presses Esc until no question is open, or sends the signal of Ctrl-C.
func interrupts(ts *testscript.TestScript, b *bench, _ []string) {
	a := cast(ts)["agent"]
	if !b.m.terminal {
		sends(ts, a, []string{"INT"})
		return
	}
	ask := deciders(ts)
	defer ask.Close()
	pressed := time.Time{}
	until(ts, "the interruption is heard", func(ctx context.Context) error {
		list, err := ask.List(ctx, "", 0)
		if err != nil || len(list) == 0 {
			return err
		}
		if time.Since(pressed) > 300*time.Millisecond { // some want it twice within a second
			pressed = time.Now()
			types(ts, a, []string{`\x1b`})
		}
		return errors.New("it still asks")
	})
}

// accepts says yes in the agent's own dialog. Input before the dialog is ready is repeated.
func accepts(ts *testscript.TestScript, b *bench, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	a, people := cast(ts)["agent"], deciders(ts)
	defer people.Close()
	for range n {
		untilAsked(ts)
		pending(ts, false, []string{"1"})
		asked := permissions.ID(ts.Getenv("ID"))
		shows(ts, a, []string{b.m.dialog})
		typed := time.Time{}
		until(ts, "its person's yes is heard", func(ctx context.Context) error {
			list, err := people.List(ctx, "", 0)
			if err != nil || len(list) == 0 || list[0].Request.ID != asked {
				return err
			}
			if time.Since(typed) > 2*time.Second {
				typed = time.Now()
				types(ts, a, []string{`\r`})
			}
			return errors.New("it still asks")
		})
	}
}

// clocks wraps the PreToolUse hook that connect wrote with timestamps.
func clocks(ts *testscript.TestScript, b *bench, _ []string) {
	path := ts.MkAbs(".claude/settings.json")
	var settings map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(path)), &settings))
	hooks, _ := settings["hooks"].(map[string]any)
	before, _ := hooks["PreToolUse"].([]any)
	entry, _ := before[0].(map[string]any)
	all, _ := entry["hooks"].([]any)
	hook, _ := all[0].(map[string]any)
	hook["command"] = fmt.Sprintf("a=$(date +%%s%%N); %s; r=$?; echo $a $(date +%%s%%N) >>%s/times; exit $r", hook["command"], b.names["WORK"])
	text, err := json.Marshal(settings)
	ts.Check(err)
	ts.Check(os.WriteFile(path, text, 0o600))
}

// took checks the recorded durations.
func took(ts *testscript.TestScript, b *bench, args []string) {
	most, err := time.ParseDuration(args[1])
	ts.Check(err)
	var all []time.Duration
	for line := range strings.Lines(ts.ReadFile("times")) {
		var from, to int64
		_, err := fmt.Sscan(line, &from, &to)
		ts.Check(err)
		all = append(all, time.Duration(to-from).Round(time.Millisecond))
	}
	if fmt.Sprint(len(all)) != args[0] {
		ts.Fatalf("%d hooks were noted, want %s", len(all), args[0])
	}
	slices.Sort(all)
	median := all[len(all)/2]
	b.t.Logf("%s %s: the hook took %v at the median, %v at p90, %v at most, in %d calls",
		b.c.title, b.m.name, median, all[len(all)*9/10], all[len(all)-1], len(all))
	if median > most {
		ts.Fatalf("the hook took %v, more than %v: %v", median, most, all)
	}
}
