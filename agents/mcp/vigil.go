package mcp

import (
	"context"
	"sync"

	"github.com/daycared/daycared/permissions"
)

// vigil is a call whose client shows a dialog, and has none with us meanwhile.
type vigil struct {
	caller permissions.Caller
	q      permissions.Request // with the id of the request, and the call's name
}

// vigils keep the places of such calls, so that people are not told that nobody waits.
type vigils struct {
	more chan vigil

	mu   sync.Mutex
	kept map[permissions.ID]context.CancelFunc
}

func newVigils() *vigils {
	return &vigils{more: make(chan vigil, 16), kept: map[permissions.ID]context.CancelFunc{}}
}

// add begins one. When too many begin at once it does without: then people are told that nobody waits, which does no harm.
func (g *vigils) add(one vigil) {
	select {
	case g.more <- one:
	default:
	}
}

// run keeps vigils until ctx ends, each until its request is settled or its client comes back.
func (g *vigils) run(ctx context.Context, keep func(context.Context, vigil)) {
	var works sync.WaitGroup
	defer works.Wait()
	for {
		select {
		case one := <-g.more:
			keeping, end := context.WithCancel(ctx)
			g.end(one.q.ID)
			g.mu.Lock()
			g.kept[one.q.ID] = end
			g.mu.Unlock()
			works.Go(func() {
				defer end()
				keep(keeping, one)
			})
		case <-ctx.Done():
			return
		}
	}
}

// end ends the vigil for a request, if there is one.
func (g *vigils) end(id permissions.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if end, kept := g.kept[id]; kept {
		delete(g.kept, id)
		end()
	}
}
