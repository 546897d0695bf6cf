package permissions

import "sync/atomic"

// Feed carries every committed change of every request. Two changes of one request may arrive in either order: the
// higher revision is the newer. A reader that falls behind is cut off: C is closed and [Feed.Lagged] says so; it reads
// the rows again and subscribes anew.
type Feed struct {
	C        <-chan *Request // nobody changes what comes
	c        chan *Request
	lagged   atomic.Bool
	registry *Registry
}

// Subscribe starts a feed with room for buffer changes. End it with [Feed.Close].
func (g *Registry) Subscribe(buffer int) *Feed {
	c := make(chan *Request, buffer)
	f := &Feed{C: c, c: c, registry: g}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.feeds[f] = struct{}{}
	return f
}

// Lagged tells whether the feed was closed because its reader fell behind.
func (f *Feed) Lagged() bool { return f.lagged.Load() }

// Close ends the feed. It may be called more than once.
func (f *Feed) Close() {
	f.registry.mu.Lock()
	defer f.registry.mu.Unlock()
	f.end()
}

// end closes the channel once. The registry's lock is held, so nothing is being published.
func (f *Feed) end() {
	if _, open := f.registry.feeds[f]; open {
		delete(f.registry.feeds, f)
		close(f.c)
	}
}

// publish hands a committed row to every feed without waiting for any.
func (g *Registry) publish(r Request) {
	row := &r
	g.mu.Lock()
	defer g.mu.Unlock()
	for f := range g.feeds {
		select {
		case f.c <- row:
		default:
			f.lagged.Store(true)
			f.end()
		}
	}
}
