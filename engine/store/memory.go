package store

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/daycared/daycared/permissions"
)

const (
	// maxRows is how many requests are cached: about as many as are asked and answered within a moment.
	maxRows = 2048
	// maxText is the longest text of a cached request, in bytes. Most are far shorter; one that shows a whole file is
	// read when needed.
	maxText = 8 << 10
)

// memory is what was written last, for readers.
type memory struct {
	rows       *rows
	liveGrants ofCallers[permissions.Grant] // neither revoked, suspended nor recorded as ended
	// withoutUnheeded are callers without a recent request that was denied or not answered in time, with empty lists.
	withoutUnheeded ofCallers[permissions.Unheeded]
	tail            tailEntries
}

// forget drops all of it.
func (m *memory) forget() {
	m.rows.forget()
	m.liveGrants.drop()
	m.withoutUnheeded.drop()
	m.tail.drop()
}

// Besides ids of requests, what a commit changed of the memory of daemons.
const (
	allRows    = "*"
	ofGrants   = "grants"
	ofUnheeded = "unheeded"
	ofClosings = "closed" // something ended that lets calls pass, which [Store.Follow] tells
)

// forgetChanged drops what the commit of a version changed, unless it is of a later one. It returns the requests.
func (m *memory) forgetChanged(version int64, what []string) (ids []permissions.ID) {
	for _, one := range what {
		switch one {
		case allRows:
			m.rows.dropAll()
		case ofGrants:
			m.liveGrants.drop()
		case ofUnheeded:
			m.withoutUnheeded.drop()
		case ofClosings:
		default:
			m.rows.drop(permissions.ID(one), version)
			ids = append(ids, permissions.ID(one))
		}
	}
	return ids
}

// rows caches the requests that were written last, with their copies, as of the last commit: a request is usually read, answered,
// used and shown soon after it is asked. It is safe for concurrent use.
//
// Every statement that changes a column of [requestColumns], or a copy, stores or drops the request in the [changes] of its
// transaction; after a commit whose outcome is unknown, or a write by another process, all are dropped.
type rows struct {
	mu    sync.Mutex
	lru   *simplelru.LRU[permissions.ID, cachedRow]
	begun *changes                    // of the commit under way: who reads from the file may see them already
	ended chan struct{}               // closed when that commit has ended
	reads map[permissions.ID]*rowRead // since when nobody has changed what was or is being read
	news  *news                       // of the snapshot that [Store.Follow] reads; nil: it reads none
}

// news is what was changed since a snapshot of all daemons' commits began to be read.
type news struct {
	changed map[permissions.ID]int64 // the version of the last commit that changed a request or a copy of it
	all     bool                     // all of them
}

// rowRead is a read of a request that nobody has changed since it began.
type rowRead struct{ id permissions.ID }

// maxReads is how many reads are remembered.
const maxReads = 1000

// cachedRow is a request as it is in the file, and its copies if those are known. Nobody changes what it refers to.
type cachedRow struct {
	permissions.Request
	copies  []permissions.Copy // in the order of orderOfCopies
	shown   bool               // copies are known
	version int64              // of a commit, on a server: it is as of that one or a later one; 0: that is not known
}

func newRows() *rows {
	lru, err := simplelru.NewLRU[permissions.ID, cachedRow](maxRows, nil)
	if err != nil {
		panic(err) // only for a size below one
	}
	return &rows{lru: lru}
}

// commitPatience is how long a reader waits for a commit that has begun, before it reads from the file.
const commitPatience = time.Second

// get returns a request as of the last commit, and waits for one under way that changes it: what was before is over when anybody can have
// read from the file what that commit writes.
func (m *rows) get(id permissions.ID) (row cachedRow, cached bool) {
	for waited := false; ; waited = true {
		m.mu.Lock()
		ended := m.ended
		changes := m.begun != nil && (m.begun.all || m.begun.touched[id])
		if !changes {
			row, cached = m.lru.Get(id)
		}
		m.mu.Unlock()
		if !changes || waited {
			return row, cached
		}
		select {
		case <-ended:
		case <-time.After(commitPatience):
		}
	}
}

// end is for a commit that has ended. The lock is held.
func (m *rows) end() {
	if m.begun != nil {
		m.begun = nil
		close(m.ended)
	}
}

// forget is dropAll after a commit whose outcome is unknown, too.
func (m *rows) forget() {
	m.dropAll()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end()
}

func (m *rows) dropAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.purge()
	if m.begun != nil {
		m.begun.overtaken = true
	}
}

// purge drops all that is cached. The lock is held.
func (m *rows) purge() {
	clear(m.reads)
	m.lru.Purge()
	if m.news != nil {
		m.news.all = true
	}
}

// note notes that the commit of a version changed a request. The lock is held.
func (m *rows) note(id permissions.ID, version int64) {
	if m.news != nil {
		m.news.changed[id] = max(m.news.changed[id], version)
	}
}

// followNews is called before a snapshot begins, with true, and with false when nothing of it is cached any more.
func (m *rows) followNews(begins bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.news = nil; begins {
		m.news = &news{changed: map[permissions.ID]int64{}}
	}
}

// drop drops a request that the commit of a version changed, unless it is of a later one.
func (m *rows) drop(id permissions.ID, version int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(id, version)
	if row, cached := m.lru.Peek(id); cached && row.version >= version {
		return
	}
	delete(m.reads, id)
	m.lru.Remove(id)
	if m.begun != nil && m.begun.own[id] != nil && m.begun.version < version { // that one came after it
		m.begun.own[id] = nil
	}
}

// without returns those requests of a list that are not cached.
func (m *rows) without(ids []permissions.ID) []permissions.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(ids, m.lru.Contains)
}

// reading notes that a request, or its copies, is about to be read, for [rows.put].
func (m *rows) reading(id permissions.ID) *rowRead {
	m.mu.Lock()
	defer m.mu.Unlock()
	if begun := m.reads[id]; begun != nil {
		return begun
	}
	if m.reads == nil || len(m.reads) >= maxReads {
		m.reads = map[permissions.ID]*rowRead{}
	}
	begun := &rowRead{id}
	m.reads[id] = begun
	return begun
}

// put caches a request that was read, unless it may have been changed meanwhile.
func (m *rows) put(begun *rowRead, r permissions.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, cached := m.lru.Get(r.ID); !cached && m.reads[r.ID] == begun && textLength(r) <= maxText {
		m.lru.Add(r.ID, cachedRow{Request: clipped(r)})
	}
}

// putNews caches a request and its copies as the snapshot of a version has them, unless a later commit is known to have changed them.
func (m *rows) putNews(r permissions.Request, copies []permissions.Copy, version int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	changed := m.news == nil || m.news.all || m.news.changed[r.ID] > version
	if _, cached := m.lru.Get(r.ID); !cached && !changed && textLength(r) <= maxText {
		m.lru.Add(r.ID, cachedRow{Request: clipped(r), copies: slices.Clip(copies), shown: true, version: version})
	}
}

// putCopies is put of the copies of a request that is cached.
func (m *rows) putCopies(begun *rowRead, copies []permissions.Copy) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if row, cached := m.lru.Get(begun.id); cached && m.reads[begun.id] == begun {
		row.copies, row.shown = slices.Clip(copies), true
		m.lru.Add(begun.id, row)
	}
}

// commit caches what a committed transaction wrote.
func (m *rows) commit(c *changes) {
	m.mu.Lock()
	defer m.mu.Unlock()
	overtaken := c.overtaken || m.begun != c && c.version > 0 // all was dropped meanwhile
	m.end()
	if c.all {
		m.purge()
	}
	for id := range c.touched {
		delete(m.reads, id)
		m.note(id, c.version)
		if _, own := c.own[id]; own {
			continue
		}
		if row, cached := m.lru.Peek(id); cached && row.shown { // it was read meanwhile, and a copy of it changed
			row.copies, row.shown = nil, false
			m.lru.Add(id, row)
		}
	}
	for id, row := range c.own {
		if row == nil || overtaken || textLength(row.Request) > maxText {
			m.lru.Remove(id)
		} else {
			row.version = c.version
			m.lru.Add(id, *row)
		}
	}
}

// changes are the requests that one transaction has written, on top of the cached ones.
type changes struct {
	*rows
	own     map[permissions.ID]*cachedRow // nil: dropped
	all     bool                          // those of the cache are dropped
	touched map[permissions.ID]bool       // whether cached or not

	version   int64 // of the commit, on a server
	overtaken bool  // later commits may have changed them
}

// begin says that a transaction's commit is under way, until [rows.commit] or [memory.forget]. Only [rows.drop] changes c any more.
func (c *changes) begin(version int64) {
	if c.rows == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version, c.begun, c.ended = version, c, make(chan struct{})
}

// touch notes that a request or a copy of it changed.
func (c *changes) touch(id permissions.ID) {
	if c.touched == nil {
		c.touched = map[permissions.ID]bool{}
	}
	c.touched[id] = true
}

func (c *changes) get(id permissions.ID) (row cachedRow, cached bool) {
	if own, changed := c.own[id]; changed || c.all {
		if own == nil {
			return row, false
		}
		return *own, true
	}
	return c.rows.get(id)
}

func (c *changes) put(id permissions.ID, row *cachedRow) {
	c.touch(id)
	if c.own == nil {
		c.own = map[permissions.ID]*cachedRow{}
	}
	c.own[id] = row
}

// keep caches a request that was changed.
func (c *changes) keep(r permissions.Request) {
	row, _ := c.get(r.ID)
	row.Request = clipped(r)
	c.put(r.ID, &row)
}

// clipped is r for several readers: whoever appends to what is read gets an array of their own.
func clipped(r permissions.Request) permissions.Request {
	r.Asked, r.EscalateTo = slices.Clip(r.Asked), slices.Clip(r.EscalateTo)
	r.Options, r.Votes, r.Grants = slices.Clip(r.Options), slices.Clip(r.Votes), slices.Clip(r.Grants)
	return r
}

// orderOfCopies is the order of copies within a request.
func orderOfCopies(a, b permissions.Copy) int {
	return cmp.Or(strings.Compare(a.Person, b.Person), strings.Compare(a.Connector, b.Connector), strings.Compare(a.Group, b.Group))
}

// copyAsStored returns c as a later read returns it.
func copyAsStored(c permissions.Copy) permissions.Copy {
	for _, t := range []*time.Time{&c.DueAt, &c.SentAt, &c.ChannelTime} {
		*t = moment(micros(*t))
	}
	return c
}

// keepCopies caches the copies of a request that is cached.
func (c *changes) keepCopies(id permissions.ID, copies []permissions.Copy) {
	if row, cached := c.get(id); cached {
		row.copies, row.shown = slices.Clip(copies), true
		slices.SortFunc(row.copies, orderOfCopies)
		c.put(id, &row)
	}
}

// keepCopy caches a copy that was written, if the others are known.
func (c *changes) keepCopy(one permissions.Copy) {
	c.touch(one.Request)
	if row, cached := c.get(one.Request); cached && row.shown {
		others := slices.DeleteFunc(slices.Clone(row.copies), func(o permissions.Copy) bool { return orderOfCopies(o, one) == 0 })
		c.keepCopies(one.Request, append(others, copyAsStored(one)))
	}
}

// dropCopies forgets the copies of a request.
func (c *changes) dropCopies(id permissions.ID) {
	c.touch(id)
	if row, cached := c.get(id); cached {
		row.copies, row.shown = nil, false
		c.put(id, &row)
	}
}

func (c *changes) drop(id permissions.ID) { c.put(id, nil) }

func (c *changes) dropAll() { c.own, c.all = nil, true }

// ofCallers caches what the file has of callers until a commit changes it for any of them. It is safe for concurrent use.
type ofCallers[T any] struct {
	mu      sync.Mutex
	by      map[string][]T
	version int // counts the changes
}

// maxCallers is of how many callers something is cached.
const maxCallers = 1000

func (c *ofCallers[T]) get(caller string) (all []T, known bool, version int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, known = c.by[caller]
	return all, known, c.version
}

// put caches what was read after get, unless a commit may have changed it meanwhile.
func (c *ofCallers[T]) put(caller string, all []T, version int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version != c.version {
		return
	}
	if c.by == nil || len(c.by) >= maxCallers {
		c.by = map[string][]T{}
	}
	c.by[caller] = all
}

func (c *ofCallers[T]) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by = nil
	c.version++
}

// tailEntries are the entries of the daemon's chain that were committed last, without gaps, on a server also those of other daemons that
// [Store.Follow] has read: every reader of events reads them, and the file only what is older. It is safe for concurrent use.
type tailEntries struct {
	mu   sync.Mutex
	list []permissions.Entry
}

// maxTail is how many entries are cached, at least: about as many as are committed within a few seconds.
const maxTail = 4096

// add adds entries without gaps. Where some are missing between them and the cached ones, the later ones are cached, and it returns false.
func (n *tailEntries) add(more []permissions.Entry) (joined bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	first, then := n.list, more
	if len(first) == 0 || len(then) > 0 && then[0].Seq < first[0].Seq {
		first, then = then, first
	}
	if joined = len(then) == 0 || then[0].Seq <= first[len(first)-1].Seq+1; !joined {
		n.list = then
		return false
	}
	if len(then) > 0 {
		first = append(first, then[min(int64(len(then)), first[len(first)-1].Seq+1-then[0].Seq):]...)
	}
	if n.list = first; len(first) >= 2*maxTail {
		n.list = slices.Clone(first[len(first)-maxTail:])
	}
	return true
}

func (n *tailEntries) drop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = nil
}

// after returns the cached entries after seq. It is not known if older ones are in the file alone.
func (n *tailEntries) after(seq int64) (list []permissions.Entry, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) == 0 || seq < n.list[0].Seq-1 {
		return nil, false
	}
	return n.list[min(seq-n.list[0].Seq+1, int64(len(n.list))):], true
}

// textLength is the total length of r's long texts.
func textLength(r permissions.Request) int {
	n := len(r.Input) + len(r.AffectedPath) + len(r.Details) + len(r.Message) + len(r.Reason) + len(r.Comment) + len(r.Failure)
	for _, c := range r.Calls {
		n += len(c.Input) + len(c.AffectedPath) + len(c.Comment)
	}
	for _, c := range r.ToolCalls() {
		n += c.RowBytes()
	}
	for _, v := range r.Votes {
		n += len(v.Comment)
	}
	for _, o := range r.Options {
		n += len(o.Label)
	}
	return n
}
