package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/daycared/daycared/cmd/daycared/config"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/internal/own"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/timing"
)

// auditFilter selects entries of the audit.
type auditFilter struct{ agent, request string }

// auditRow formats an entry in columns of a fixed width, so that a long chain need not fit in memory.
const auditRow = "%-6v  %-24s  %-20s  %-5s  %-26s  %-16s  %s\n"

func (c *CLI) auditCommand() *cobra.Command {
	f := auditFilter{}
	cmd := c.adminCommand("audit", nil, func(cmd *cobra.Command, _ []string, client *admin.Client) error {
		return c.audit(cmd.Context(), client, f)
	})
	cmd.Flags().StringVar(&f.agent, "agent", "", "list what is about requests of this agent, by its name or the account's, as in uid:1000")
	cmd.Flags().StringVar(&f.request, "request", "", "list what is about this request, by its id or its code")
	cmd.AddCommand(c.verifyCommand(), c.newKeyCommand())
	return cmd
}

// maxTold is how many requests a listing caches.
const maxTold = 4096

// audit prints entries as they arrive, so that a long chain need not fit in memory.
func (c *CLI) audit(ctx context.Context, client *admin.Client, f auditFilter) error {
	local := here(ctx, client)
	zone := local.Location
	since, err := c.listing.begin(local)
	if err != nil {
		return err
	}
	only, err := idOf(ctx, client, f.request)
	if err != nil {
		return err
	}
	told, err := lru.New[permissions.ID, permissions.RequestView](maxTold)
	if err != nil {
		return err
	}
	l := auditList{CLI: c, client: client, headed: c.asJSON, zone: zone, told: told}
	matches := func(e permissions.Entry) (bool, error) {
		l.head()
		if e.Hash == (permissions.Digest{}) {
			l.unread = append(l.unread, fmt.Sprintf("entry %d", e.Seq))
			return false, nil
		}
		if e.At.Before(since) || only != "" && e.Request != only {
			return false, nil
		}
		if f.agent == "" {
			return true, nil
		}
		about, err := l.request(ctx, e.Request) // zero if it is not kept
		caller := about.Request.Caller.Name
		return about.Request.Agent == f.agent || caller == f.agent || strings.HasSuffix(caller, ":"+f.agent), err
	}
	read := func(after int64) ([]permissions.Entry, error) { return client.Audit(ctx, after, 0) }
	switch limit := c.listing.limit; {
	case limit == unlimited || f == (auditFilter{}):
		from, listed := int64(0), 0
		if limit != unlimited {
			from = -int64(limit)
		}
		err = eachEntry(read, from, func(e permissions.Entry) error {
			is, err := matches(e)
			if listed++; err != nil || !is || listed > limit { // it was added meanwhile
				return err
			}
			return l.list(e)
		})
	default:
		var last []permissions.Entry
		last, err = newestMatching(read, since, limit, matches)
		for i := 0; i < len(last) && err == nil; i++ {
			err = l.list(last[i])
		}
	}
	if err != nil {
		return err
	}
	l.head()
	if len(l.unread) > 0 {
		return fmt.Errorf("%s cannot be read or does not carry its seal; see: daycared audit verify", strings.Join(l.unread, ", "))
	}
	return nil
}

// auditList is the state of a listing: what is printed, and what could not be read.
type auditList struct {
	*CLI
	client *admin.Client
	headed bool
	zone   *time.Location
	told   *lru.Cache[permissions.ID, permissions.RequestView]
	unread []string
}

func (l *auditList) head() {
	if !l.headed {
		fmt.Fprintf(l.Out, auditRow, "SEQ", "TIME", "TYPE", "CODE", "REQUEST", "BY", "VIA")
	}
	l.headed = true
}

// request returns the request of an entry. An unusable row is noted and skipped; if nothing can be read, the next page fails.
func (l *auditList) request(ctx context.Context, id permissions.ID) (permissions.RequestView, error) {
	s, err := lookUp(ctx, l.client, l.told, id)
	if permissions.CodeOf(err) == permissions.CodeBroken {
		l.told.Add(id, s)
		l.unread, err = append(l.unread, "request "+string(id)), nil
	}
	return s, err
}

func (l *auditList) list(e permissions.Entry) error {
	if l.asJSON {
		return l.json(admin.FromEntry(e))
	}
	_, err := fmt.Fprintf(l.Out, auditRow, e.Seq, stamp(e.At, l.zone), e.Type, dash(e.Code), dash(spelled(cmp.Or(
		string(e.Request), e.Detail["name"], e.Detail["person"], e.Detail["grant"]))), dash(spelled(e.Actor)), e.Via)
	return err
}

// idOf resolves a request's id or code; empty without a name.
func idOf(ctx context.Context, client *admin.Client, name string) (permissions.ID, error) {
	if name == "" {
		return "", nil
	}
	s, err := client.Show(ctx, name)
	if err != nil {
		return "", nearRequest(ctx, client, name, err)
	}
	return s.Request.ID, nil
}

// lookUp returns a request, zero if it does not exist or is no longer kept. told caches it.
func lookUp(
	ctx context.Context, client *admin.Client, told *lru.Cache[permissions.ID, permissions.RequestView], id permissions.ID,
) (s permissions.RequestView, err error) {
	if id == "" {
		return s, nil
	}
	if s, known := told.Get(id); known {
		return s, nil
	}
	s, err = client.Show(ctx, string(id))
	if code := permissions.CodeOf(err); code == permissions.CodeUnknown || code == permissions.CodeGone {
		err = nil
	}
	if err == nil {
		told.Add(id, s)
	}
	return s, err
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// eachEntry yields the daemon's chain after the entry from; below 0, from so many entries before its end on.
func eachEntry(read func(after int64) ([]permissions.Entry, error), from int64, take func(permissions.Entry) error) error {
	return eachPage(from, read,
		func(e permissions.Entry) int64 { return e.Seq }, func(page []permissions.Entry) (err error) {
			for i := 0; i < len(page) && err == nil; i++ {
				err = take(page[i])
			}
			return err
		})
}

// newestMatching returns the last entries that match, at most limit, none from before since. It reads from the end of the chain, more at
// a time as it goes on.
func newestMatching(
	read func(after int64) ([]permissions.Entry, error), since time.Time, limit int, matches func(permissions.Entry) (bool, error),
) (last []permissions.Entry, err error) {
	end, from := int64(math.MaxInt64), -int64(max(limit, 1000))
	for part := int64(1000); ; part *= 2 {
		var some []permissions.Entry
		first, old := end, false
		err := eachEntry(read, from, func(e permissions.Entry) error {
			if e.Seq >= end {
				return io.EOF
			}
			if first == end {
				first, old = e.Seq, e.At.Before(since)
			}
			is, err := matches(e)
			if is {
				some = append(some, e)
			}
			if len(some) == 2*limit {
				some = slices.Delete(some, 0, limit)
			}
			return err
		})
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		last = append(some, last...)
		if end = first; len(last) >= limit || old || from == 0 || end == math.MaxInt64 {
			return last[max(len(last)-limit, 0):], nil
		}
		from = max(end-1-part, 0)
	}
}

// verifyCommand checks the chains; each --head gives a remembered entry, so that a truncated chain is detected.
func (c *CLI) verifyCommand() *cobra.Command {
	var remembered []string
	key := ""
	cmd := newCommand("verify [FILE]", arguments(cobra.MaximumNArgs(1)), func(cmd *cobra.Command, args []string) error {
		if slices.Contains(remembered, "") {
			return usage("--head is SEQ:HASH, as audit verify prints it, and is empty")
		}
		if len(args) == 0 && key == "" {
			return c.withAdmin(cmd, args, func(cmd *cobra.Command, _ []string, client *admin.Client) error {
				tell, end := c.progressBar()
				heads, err := client.Verify(cmd.Context(), func(p wire.Progress) { tell("audit", p.Done, p.All) })
				end()
				if errors.Is(err, wire.ErrUnreachable) {
					c.say("daycared audit verify FILE checks a backup, or the store of a daemon that does not run")
				}
				for _, head := range remembered {
					if err == nil {
						err = c.remembered(cmd, client, head)
					}
				}
				if err == nil {
					err = c.printHeads(heads)
				}
				return err
			})
		}
		if len(args) == 0 || len(remembered) > 0 {
			return usage("--audit-key is for a FILE, and --head for the audit of the running daemon")
		}
		_, paths, err := c.load()
		if err != nil {
			return err
		}
		o := storeOptions(paths, nil)
		o.Path, o.CopyKey = args[0], key
		if _, err := os.Stat(key); key != "" && err != nil {
			return fmt.Errorf("read the audit key: %w", err)
		}
		tell, end := c.progressBar()
		v, err := store.VerifyFile(cmd.Context(), o, func(done, all int64) { tell(filepath.Base(args[0]), done, all) })
		end()
		if err != nil {
			return fmt.Errorf("verify %s: %w", args[0], err)
		}
		return errors.Join(c.printHeads(v.Chains), notChecked(v))
	})
	cmd.Flags().StringArrayVar(&remembered, "head", nil,
		"SEQ:HASH of an entry seen earlier, which must still be there; may be given several times")
	cmd.Flags().StringVar(&key, "audit-key", "", "the `file` of the audit key that FILE was sealed with, where that is another")
	return cmd
}

// progressBar shows how far something is, in a line of standard error if that is a terminal; end removes it.
func (c *CLI) progressBar() (tell func(what string, done, all int64), end func()) {
	to, width, shown := c.Err, widthOf(c.Err), ""
	if f, wrapped := c.Err.(*fitted); wrapped {
		to, width = f.to, f.width
	}
	tell = func(what string, done, all int64) {
		const cells = 20
		line := fmt.Sprintf("%s  %s  %d of %d", what, strings.Repeat("#", int(cells*done/max(all, 1))), done, all)
		if width > len(line) && line != shown {
			shown = line
			fmt.Fprintf(to, "\r\x1b[K%s", line)
		}
	}
	return tell, func() {
		if shown != "" {
			fmt.Fprint(to, "\r\x1b[K")
		}
	}
}

func (c *CLI) printHeads(heads []permissions.Head) error {
	if c.asJSON {
		return c.json(wire.Map(heads, chainOf))
	}
	for _, e := range heads {
		c.print("chain %s: %s, verified, head %d:%s\n", e.Chain, entries(e.First, e.Seq, e.Entries), e.Seq, e.Hash)
		if e.Unkeyed > 0 && e.Unkeyed < e.Seq {
			fmt.Fprintf(c.Out, "entries up to %d are as they were when the audit key sealed them, in the entry after it\n", e.Unkeyed)
		}
	}
	return nil
}

// newKeyCommand replaces a lost or exposed key.
func (c *CLI) newKeyCommand() *cobra.Command {
	return newCommand("new-key", nil, func(cmd *cobra.Command, _ []string) error {
		_, paths, err := c.load()
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(paths.DataDir, storeName)); err != nil && paths.Database == "" {
			return fmt.Errorf("there is no store to make a key for: %w", err)
		}
		dir, err := openDataDir(paths.DataDir, c.UID, "")
		if err != nil {
			return err
		}
		defer func() { _ = dir.Close() }() // it is released when the process ends
		o := storeOptions(paths, slog.New(slog.NewTextHandler(c.Err, &slog.HandlerOptions{Level: slog.LevelError})))
		o.NewKey = true
		rows, err := store.Open(cmd.Context(), o)
		if err != nil {
			return err
		}
		now, err := rows.Suspended(cmd.Context())
		if err := errors.Join(err, rows.Close()); err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "new audit key: %s\n", paths.AuditKey)
		c.printNewLife(now)
		return nil
	})
}

// soundChain is a verified chain in JSON.
type soundChain struct {
	Chain string `json:"chain"`
	First int64  `json:"first"`
	Last  int64  `json:"last"`
	Count int    `json:"count"` // a restore leaves gaps in the numbers
	Hash  string `json:"hash"`  // of the last entry
	// Unkeyed is the last entry that is sealed but not keyed with the audit key; 0: there is none.
	Unkeyed int64 `json:"unkeyed"`
}

func chainOf(e permissions.Head) soundChain {
	return soundChain{e.Chain, e.First, e.Seq, e.Entries, e.Hash.String(), e.Unkeyed}
}

// entries describes the number and range of a chain's entries; its start may have been deleted, or the store restored.
func entries(first, last int64, count int) string {
	if int64(count) == last {
		return fmt.Sprintf("%d entries", last)
	}
	return fmt.Sprintf("%d entries (%d to %d)", count, first, last)
}

// remembered reports what happened to a remembered entry of a verified chain.
func (c *CLI) remembered(cmd *cobra.Command, client *admin.Client, head string) error {
	number, hash, _ := strings.Cut(head, ":")
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 1 {
		return usage("--head is SEQ:HASH, as audit verify prints it, not %q", head)
	}
	want, err := permissions.ParseDigest(hash)
	if err != nil {
		return usage("--head: %s", err)
	}
	found, err := client.Audit(cmd.Context(), seq-1, 1)
	if err != nil {
		return err
	}
	if len(found) > 0 && found[0].Seq > seq && found[0].Type == permissions.StoreRestored {
		return fmt.Errorf("entry %d is in the gap of a restore: the store was put back from a copy made before it; see entry %d",
			seq, found[0].Seq)
	}
	if len(found) > 0 && found[0].Seq > seq {
		return fmt.Errorf("entry %d is no longer kept; its deletion is signed off", seq)
	}
	if len(found) == 0 || found[0].Hash != want {
		return fmt.Errorf("entry %d is not the one remembered: the audit was cut off or written anew", seq)
	}
	return nil
}

// publisher publishes the newest entry of the audit to a place that the daemon's account cannot change afterwards, so that
// truncation or rewriting of the audit can be detected.
type publisher struct {
	to    string // log, a file or an address
	every time.Duration
	head  func(context.Context) (chain string, seq int64, hash permissions.Digest, err error)
	log   *slog.Logger
	told  int64 // the newest published entry

	failed atomic.Pointer[error] // why the last attempt failed; nil: it did not
}

// newPublisher returns nil if heads are not published.
func newPublisher(
	h config.Heads, head func(context.Context) (string, int64, permissions.Digest, error), log *slog.Logger,
) *publisher {
	if h.To == "" {
		return nil
	}
	return &publisher{to: h.To, every: h.Every, head: head, log: log}
}

// publishWithin bounds one attempt to publish a head, publishAtStop the one at shutdown.
const (
	publishWithin = 10 * time.Second
	publishAtStop = time.Second
)

// run publishes the head at the start, and then a new one after each interval, until ctx ends.
func (p *publisher) run(ctx context.Context) error {
	if p == nil {
		return nil
	}
	for ctx.Err() == nil {
		p.try(ctx, publishWithin)
		_ = timing.Pause(ctx, p.every) // the loop checks ctx
	}
	return nil
}

// last publishes the head at shutdown, after the last write.
func (p *publisher) last() {
	if p != nil {
		p.try(context.Background(), publishAtStop)
	}
}

func (p *publisher) try(ctx context.Context, within time.Duration) {
	work, done := context.WithTimeout(ctx, within)
	defer done()
	switch err := p.publish(work, time.Now()); {
	case err == nil:
		if p.failed.Swap(nil) != nil {
			p.log.Info("heads of the audit are published again", "to", p.to)
		}
	case ctx.Err() == nil && p.failed.Swap(&err) == nil:
		p.log.Error("publish the head of the audit", "to", p.to, "err", err)
	}
}

// published is a head as written to a file or sent to an address: one JSON object per line.
type published struct {
	Time  time.Time `json:"time"`
	Chain string    `json:"chain"`
	Seq   int64     `json:"seq"`
	Head  string    `json:"head"` // SEQ:HASH, the argument of audit verify --head
}

func (p *publisher) publish(ctx context.Context, now time.Time) error {
	chain, seq, hash, err := p.head(ctx)
	if err != nil || seq == p.told || seq == 0 {
		return err
	}
	h := published{Time: now.UTC(), Chain: chain, Seq: seq, Head: fmt.Sprintf("%d:%s", seq, hash)}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	switch text := append(text, '\n'); {
	case p.to == "log":
		p.log.Info("audit head", "chain", h.Chain, "head", h.Head)
	case filepath.IsAbs(p.to):
		err = own.Do(p.to, func() error { return appendLine(p.to, text) })
	default:
		err = post(ctx, p.to, text)
	}
	if err == nil {
		p.told = seq
	}
	return err
}

// appendLine appends a whole line to a file of such lines, or nothing. It rejects pipes, which would block without a reader, links, and
// files with something else, such as one of the daemon's own.
func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, unix.ELOOP) {
		return fmt.Errorf("%s is a link; name the file itself", path)
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is not a regular file", path)
	case info.Size() > 0 && !holdsHeads(f):
		err = fmt.Errorf("%s holds something else than heads; name a file for them alone", path)
	default:
		if _, err = f.Write(line); err != nil { // for example because the disk is full
			err = errors.Join(err, f.Truncate(info.Size()))
		}
		err = errors.Join(err, f.Sync())
	}
	return errors.Join(err, f.Close())
}

// holdsHeads reports whether a file begins with a published head.
func holdsHeads(f io.Reader) bool {
	var first published
	return json.NewDecoder(f).Decode(&first) == nil && first.Head != ""
}

// poster sends to the address that is configured, and to no other: one that it is redirected to may take nothing.
var poster = http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func post(ctx context.Context, address string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := poster.Do(request)
	if err != nil {
		return err
	}
	_ = answer.Body.Close() // the body is unused
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("it answers %s", answer.Status)
	}
	return nil
}

func (c *CLI) eventsCommand() *cobra.Command {
	after := admin.FromNow
	cmd := newCommand("events", nil, func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("after") && after < 0 {
			return usage("--after is the seq of an event seen before, or 0 for all of them, not %d", after)
		}
		client, err := c.adminClient()
		if err != nil {
			return err
		}
		defer client.Close()
		since, err := c.listing.begin(here(cmd.Context(), client))
		if err != nil {
			return err
		}
		if c.listing.since != "" && !cmd.Flags().Changed("after") {
			after = 0
		}
		client.Lost = func(error) { c.say("the daemon is away; what happens is told when it is back") }
		client.Back = func() { c.say("the daemon is back") }
		told := 0
		err = client.Events(cmd.Context(), after, func(e wire.Event) (err error) {
			if e.At.Before(since) {
				return nil
			}
			if c.asJSON {
				err = c.json(e)
			} else {
				_, err = fmt.Fprintln(c.Out, eventLine(e, time.Local))
			}
			if told++; err == nil && told == c.listing.limit {
				err = errEnough
			}
			return err
		})
		if errors.Is(err, context.Canceled) || errors.Is(err, errEnough) {
			return nil // Ctrl-C is the normal end
		}
		return err
	})
	cmd.Flags().Int64Var(&after, "after", after, "seq of the last event seen, 0 for all of them (default: from now on)")
	cmd.Flags().Lookup("after").DefValue = "0" // hides the default in the help
	return cmd
}

var errEnough = errors.New("event limit reached")

// eventLine formats an event: time, type, request, actor, and the rest of its payload.
func eventLine(e wire.Event, zone *time.Location) string {
	words := []string{fmt.Sprint(e.Seq), stamp(e.At, zone), spelled(string(e.Type))}
	if e.Request != nil {
		words = append(words, spelled(string(*e.Request)))
	}
	if actor, known := e.Payload["actor"]; known {
		words = append(words, "by "+spelled(said(actor)))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Payload)) {
		if name != "actor" && name != "digest" && e.Payload[name] != nil {
			words = append(words, spelled(name+"="+said(e.Payload[name])))
		}
	}
	return strings.Join(words, "  ")
}

// said formats a payload member: strings as they are, anything else as JSON.
func said(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	text, err := wire.Encode(value)
	if err != nil { // it was decoded from JSON
		return fmt.Sprint(value)
	}
	return string(text)
}
