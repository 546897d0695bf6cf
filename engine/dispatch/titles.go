package dispatch

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// titles are the messages that may show no more than the title of what waits.
type titles struct {
	mu     sync.Mutex
	all    map[titleKey]bool // nil before [Dispatch.readTitles]
	stored bool              // the store says that there may be some
}

// titleKey is the message about a request in a chat.
type titleKey struct {
	request   permissions.ID
	connector string
	chat      chat
}

func titleKeyOf(cp permissions.Copy) titleKey { return titleKey{cp.Request, cp.Connector, chatOf(cp)} }

// titlesName is where the store keeps whether there may be titles; 0: no.
const titlesName = "titles"

// readTitles takes every pending message for a title if an earlier process, or another daemon, may have sent some, and has them shown anew.
func (d *Dispatch) readTitles(ctx context.Context) error {
	t := &d.titles
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all != nil {
		return nil
	}
	n, err := d.store.Cursor(ctx, titlesName)
	all := map[titleKey]bool{}
	for _, c := range d.dispatchers {
		if _, chat := connectors.KindOf(c.connector.Name()); !chat || n == 0 || err != nil {
			continue
		}
		var copies []permissions.Copy
		copies, err = d.store.LiveCopies(ctx, c.connector.Name(), math.MaxInt32)
		for _, cp := range copies {
			all[titleKeyOf(cp)] = true
		}
	}
	if err == nil {
		t.all, t.stored = all, n != 0
	}
	if len(all) > 0 {
		d.RealignSoon(true)
	}
	return err
}

// titled reports whether a message about r is to show no more than its title, which it notes before that is sent; or whether it shows no
// more and is to show all.
func (d *Dispatch) titled(ctx context.Context, r permissions.Request, cp permissions.Copy) (title, untitled bool, err error) {
	err = d.readTitles(ctx)
	t := &d.titles
	t.mu.Lock()
	defer t.mu.Unlock()
	if title = r.OnlyTitle && r.State == permissions.Pending; !title || err != nil {
		return title, t.all[titleKeyOf(cp)], err
	}
	if !t.stored {
		err = d.store.SetCursor(ctx, titlesName, 1)
		t.stored = err == nil
	}
	t.all[titleKeyOf(cp)] = true
	return true, false, err
}

// noteWhole notes that a message shows all, and once all do and none is to be a title, that there are none. A failure is made up for later.
func (d *Dispatch) noteWhole(ctx context.Context, cp permissions.Copy) {
	t, s := &d.titles, d.dir.Settings()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, titleKeyOf(cp))
	hides := func(c *dispatcher) bool { return s.HidesIn(c.connector.Name()) }
	if t.stored && len(t.all) == 0 && !slices.ContainsFunc(d.dispatchers, hides) {
		t.stored = d.store.SetCursor(ctx, titlesName, 0) != nil
	}
}

// TitleAlone reports whether a person's messages about a request in a channel may show no more than its title, whatever they may show by
// now.
func (d *Dispatch) TitleAlone(ctx context.Context, id permissions.ID, via, person string) (bool, error) {
	if _, chat := connectors.KindOf(via); !chat {
		return false, nil
	}
	err := d.readTitles(ctx) // chats are read only by the daemon that sends
	t := &d.titles
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil || len(t.all) == 0 {
		return false, shared.Broken(err)
	}
	copies, err := d.store.Copies(ctx, id)
	return slices.ContainsFunc(copies, func(cp permissions.Copy) bool {
		return t.all[titleKeyOf(cp)] && cp.Person == person && cp.Connector == via
	}), shared.Broken(err)
}
