package agenthost

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/agents"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// failing is an agent whose runs fail.
type failing struct {
	agents.Resident
	run func(ctx context.Context)
}

func (failing) Binding() permissions.Binding {
	return permissions.Binding{Agent: "helper", Person: "fay", Via: "memory"}
}

func (f failing) Run(ctx context.Context, _ agents.Speaker) error {
	f.run(ctx)
	return errors.New("it failed")
}

// An agent that ends is started again after growing delays, which begin anew after a run that lasted.
func TestAnAgentThatEndsIsRestartedWithGrowingDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		elapsed := func() time.Duration { return time.Since(start) }
		ctx, end := context.WithCancel(t.Context())
		defer end()
		var began []time.Duration
		h := New(Config{
			Clock: timing.Clock{Now: time.Now, Elapsed: elapsed}, Log: slog.New(slog.DiscardHandler),
			Residents: []agents.Resident{failing{run: func(context.Context) {
				switch began = append(began, elapsed()); len(began) {
				case 4:
					<-time.After(31 * time.Second)
				case 6:
					end()
				}
			}}},
		})
		if err := h.hosts[0].runAgent(ctx); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{0, 500, 1500, 3500, 35_000, 36_000}
		for i := range want {
			want[i] *= time.Millisecond
		}
		if !slices.Equal(began, want) {
			t.Errorf("it began after %v, want %v", began, want)
		}
	})
}
