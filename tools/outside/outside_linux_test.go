// Package outside measures a daemon as its clients see it, beside a bare one. It has only benchmarks.
package outside

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/daycared/daycared/permissions"
)

// The outside view: a daemon of its own process with default durability, asked and decided over its unix sockets by the public routes,
// in turn with a bare daemon that does the same work: a small row inserted and told to who listens, updated, and its asker answered,
// with both commits durable. Nothing of the product's client is used, so both are called alike.

// bareFolder and bareDatabase name the folder of a bare daemon, and the URL of its PostgreSQL if it has one, in the environment of its
// process.
const bareFolder, bareDatabase = "DAYCARED_BENCH_BARE", "DAYCARED_BENCH_BARE_DATABASE"

func init() {
	if dir := os.Getenv(bareFolder); dir != "" {
		fmt.Fprintln(os.Stderr, serveBare(dir, os.Getenv(bareDatabase)))
		os.Exit(1)
	}
}

// bare is the state of a bare daemon.
type bare struct {
	commit  func([]*bareWrite) error
	turn    chan struct{} // held by whoever commits
	mu      sync.Mutex
	queue   []*bareWrite
	waiting map[string]chan string
	readers map[chan string]bool
}

// bareWrite inserts a request, or answers it.
type bareWrite struct {
	id     string
	body   []byte // of a request to insert
	answer string
	done   chan error
}

// write commits at once if nobody else writes, else with all that wait meanwhile.
func (d *bare) write(w *bareWrite) error {
	w.done = make(chan error, 1)
	d.mu.Lock()
	d.queue = append(d.queue, w)
	d.mu.Unlock()
	select {
	case err := <-w.done:
		return err
	case d.turn <- struct{}{}:
	}
	d.mu.Lock()
	group := d.queue
	d.queue = nil
	d.mu.Unlock()
	var failed error
	if len(group) > 0 {
		failed = d.commit(group)
	}
	for _, one := range group {
		one.done <- failed
	}
	<-d.turn
	return <-w.done
}

// asked tells who reads of a request, and decided whoever waits for it here.
func (d *bare) asked(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for reader := range d.readers {
		reader <- id
	}
}

func (d *bare) decided(id, answer string) {
	d.mu.Lock()
	waits := d.waiting[id]
	delete(d.waiting, id)
	d.mu.Unlock()
	if waits != nil {
		waits <- answer
	}
}

// inSQLite makes the commits durable in a file of dir.
func (d *bare) inSQLite(dir string) error {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "bare.db")+"?_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec(`CREATE TABLE requests (id TEXT PRIMARY KEY, state INTEGER, body BLOB, answer TEXT) WITHOUT ROWID`)
	prepare := func(text string) *sql.Stmt {
		s, prepared := db.Prepare(text)
		err = errors.Join(err, prepared)
		return s
	}
	begin, commit := prepare(`BEGIN IMMEDIATE`), prepare(`COMMIT`)
	insert := prepare(`INSERT INTO requests VALUES (?, 0, ?, '')`)
	update := prepare(`UPDATE requests SET state = 1, answer = ? WHERE id = ?`)
	d.commit = func(group []*bareWrite) error {
		_, failed := begin.Exec()
		for _, one := range group {
			switch {
			case failed != nil:
			case one.body != nil:
				_, failed = insert.Exec(one.id, one.body)
			default:
				_, failed = update.Exec(one.answer, one.id)
			}
		}
		if failed == nil {
			_, failed = commit.Exec()
		}
		return failed
	}
	return err
}

// serveBare serves at dir/agent and dir/admin until the process is killed.
func serveBare(dir, database string) error {
	d := &bare{turn: make(chan struct{}, 1), waiting: map[string]chan string{}, readers: map[chan string]bool{}}
	opens := func() error { return d.inSQLite(dir) }
	if database != "" {
		opens = func() error { return d.inPostgres(database) }
	}
	if err := opens(); err != nil {
		return err
	}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /v1/requests", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var q struct {
			Kind, Reason, Wait string
			Permissions        []string
		}
		id := fmt.Sprintf("%013x%s", time.Now().UnixMicro(), rand.Text()[:10])
		answer := make(chan string, 1)
		d.mu.Lock()
		d.waiting[id] = answer
		d.mu.Unlock()
		if err := cmp.Or(json.Unmarshal(body, &q), d.write(&bareWrite{id: id, body: body})); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		d.asked(id)
		over := time.NewTimer(time.Minute)
		defer over.Stop()
		state := "pending"
		select {
		case <-answer:
			state = "approved"
		case <-over.C:
		case <-r.Context().Done():
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"id": id, "state": state})
	})
	routes.HandleFunc("POST /v1/requests/{id}/decision", func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Answer string }
		id := strings.Clone(r.PathValue("id"))
		if err := cmp.Or(json.NewDecoder(r.Body).Decode(&q), d.write(&bareWrite{id: id, answer: q.Answer})); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		d.decided(id, q.Answer)
		_ = json.NewEncoder(w).Encode(map[string]string{"id": id, "state": "approved"})
	})
	routes.HandleFunc("GET /v1/events", func(w http.ResponseWriter, r *http.Request) {
		reader := make(chan string, 100_000)
		d.mu.Lock()
		d.readers[reader] = true
		d.mu.Unlock()
		defer func() { d.mu.Lock(); delete(d.readers, reader); d.mu.Unlock() }()
		out := http.NewResponseController(w)
		_ = out.Flush()
		for r.Context().Err() == nil {
			select {
			case id := <-reader:
				for more := true; more; {
					fmt.Fprintf(w, "event: REQUEST_CREATED\ndata: {\"request\":%q}\n\n", id)
					select {
					case id = <-reader:
					default:
						more = false
					}
				}
				_ = out.Flush()
			case <-r.Context().Done():
			}
		}
	})
	served := make(chan error)
	for _, name := range []string{"agent", "admin"} {
		path := filepath.Join(dir, name)
		l, err := net.Listen("unix", path)
		if err := cmp.Or(err, os.Chmod(path, 0o666)); err != nil {
			return err
		}
		go func() { served <- http.Serve(l, routes) }()
	}
	return <-served
}

// measured is a daemon as its clients see it.
type measured struct {
	b        *testing.B
	binary   string // empty: it is bare
	dir      string
	database string    // of PostgreSQL; empty: SQLite in dir
	auditKey string    // the file of the audit key, of daemons on one PostgreSQL
	decider  *measured // at which requests are heard of and decided; nil: at this one
	also     *measured // at which half of the calls are made, and half of the requests decided; nil: at none
	process  *exec.Cmd
	admin    *http.Client
	key      string
	accounts int // that ask; 0: only this one
}

// built is the real binary.
func built(b *testing.B) string {
	b.Helper()
	binary := filepath.Join(b.TempDir(), "daycared")
	if out, err := exec.CommandContext(b.Context(), "go", "build", "-o", binary, "../../cmd/daycared").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// begins makes a daemon with a new store, which does not run yet. A binary of "" is the bare one.
func begins(b *testing.B, binary string) *measured {
	b.Helper()
	dir, err := os.MkdirTemp("", "dc") // sockets need short paths
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	me, err := user.Current()
	if err != nil {
		b.Fatal(err)
	}
	o := &measured{b: b, binary: binary, dir: dir}
	if os.Getuid() == 0 {
		o.accounts = 20
	}
	config := fmt.Sprintf("people: [{name: fay, user: %q}]\nroutes: [{ask: [fay]}]\nconnectors: {terminal: {enabled: false}}\n"+
		"api: {agent_socket: %[2]s/agent, admin_socket: %[2]s/admin, agent_group: %[3]q, allow_same_user: true, admin_reachable: true}\n"+
		"limits: {pending_per_caller: 1000000, prompts_per_minute: 1000000, pending_total: 1000000}\ndata_dir: %[2]s/data\n",
		me.Username, dir, strconv.Itoa(os.Getgid()))
	err = errors.Join(os.Chmod(dir, 0o711), os.WriteFile(filepath.Join(dir, "c.yaml"), []byte(config), 0o600)) // others ask here
	if err != nil {
		b.Fatal(err)
	}
	return o
}

// run starts the daemon, and returns when it serves.
func (o *measured) run() *measured {
	o.b.Helper()
	o.process = exec.Command(os.Args[0])
	o.process.Env = append(os.Environ(), bareFolder+"="+o.dir, bareDatabase+"="+o.database)
	if o.binary != "" {
		o.process = exec.Command(o.binary, "serve", "--config", filepath.Join(o.dir, "c.yaml"))
		o.process.Env = append(os.Environ(), "DAYCARED_DATABASE="+o.database)
		if o.database != "" { // as every daemon on it
			o.process.Env = append(o.process.Env, "DAYCARED_AUDIT_KEY_FILE="+o.auditKey)
		}
	}
	log, err := os.Create(filepath.Join(o.dir, "log"))
	if err != nil {
		o.b.Fatal(err)
	}
	defer log.Close()
	o.process.Stderr = log
	if err := o.process.Start(); err != nil {
		o.b.Fatal(err)
	}
	o.b.Cleanup(func() { _ = o.process.Process.Kill(); _ = o.process.Wait() })
	over := time.After(time.Minute)
	for tick := time.Tick(5 * time.Millisecond); ; {
		if c, err := net.Dial("unix", filepath.Join(o.dir, "admin")); err == nil {
			c.Close()
			break
		}
		select {
		case <-tick:
		case <-over:
			text, _ := os.ReadFile(log.Name())
			o.b.Fatalf("it does not serve:\n%s", text)
		}
	}
	if o.admin = o.client("admin", 0); o.binary != "" {
		key, err := os.ReadFile(filepath.Join(o.dir, "data", "admin.key"))
		if err != nil {
			o.b.Fatal(err)
		}
		o.key = "Bearer " + strings.TrimSpace(string(key))
	}
	return o
}

// dial connects to a socket, as the n-th account if several ask: only this thread's effective account changes for it.
func (o *measured) dial(socket string, n int) (c net.Conn, err error) {
	path := filepath.Join(o.dir, socket)
	if o.accounts > 0 && socket == "agent" {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		as := func(uid int) {
			if _, _, e := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), 0); e != 0 {
				panic(e)
			}
		}
		as(20_001 + n%o.accounts)
		defer as(0)
		fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		file := os.NewFile(uintptr(fd), path)
		defer file.Close()
		for err = syscall.EAGAIN; err == syscall.EAGAIN || err == syscall.EINTR; { // EAGAIN: the listen queue is full
			if err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
				runtime.Gosched()
			}
		}
		if err != nil {
			return nil, err
		}
		return net.FileConn(file)
	}
	for err = syscall.EAGAIN; errors.Is(err, syscall.EAGAIN); {
		c, err = net.Dial("unix", path)
	}
	return c, err
}

func (o *measured) client(socket string, n int) *http.Client {
	dial := func(context.Context, string, string) (net.Conn, error) { return o.dial(socket, n) }
	t := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true, DialContext: dial}
	o.b.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

// call returns the body of a reply, whose status has to be 200.
func (o *measured) call(c *http.Client, path, body string) ([]byte, error) {
	r, err := http.NewRequest(http.MethodPost, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if o.key != "" && c == o.admin {
		r.Header.Set("Authorization", o.key)
	}
	reply, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, reply.Status, text)
	}
	return text, err
}

// follow calls each for what a stream sends until ctx is over. It returns when the stream is open.
func (o *measured) follow(ctx context.Context, path string, each func(kind string, data []byte)) (ends func()) {
	o.b.Helper()
	ctx, stop := context.WithCancel(ctx)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		o.b.Fatal(err)
	}
	r.Header.Set("Authorization", o.key)
	reply, err := o.admin.Do(r)
	if err != nil || reply.StatusCode != http.StatusOK {
		o.b.Fatalf("%s: %v, %+v", path, err, reply)
	}
	var reads sync.WaitGroup
	reads.Go(func() {
		defer reply.Body.Close()
		kind, in := "", bufio.NewScanner(reply.Body)
		in.Buffer(nil, 16<<20)
		for in.Scan() {
			if name, isKind := bytes.CutPrefix(in.Bytes(), []byte("event: ")); isKind {
				kind = string(name)
			} else if data, isData := bytes.CutPrefix(in.Bytes(), []byte("data: ")); isData {
				each(kind, data)
			}
		}
	})
	return func() { stop(); reads.Wait() }
}

// question asks for one permission, that no other joins.
func question(wait string) string {
	const form = `{"kind":"permission","permissions":["@write:/srv/www/%s"],"reason":"deploy","wait":%q,"timeout":"1h"}`
	return fmt.Sprintf(form, rand.Text(), wait)
}

// created is the id of the request that an event tells of; empty: of none.
func created(kind string, data []byte) string {
	var e struct{ Request string }
	if kind == string(permissions.RequestCreated) && json.Unmarshal(data, &e) == nil {
		return e.Request
	}
	return ""
}

// approved is the id of a request whose answer says that it was approved.
func approved(answer []byte) (id string, err error) {
	var r struct{ ID, State string }
	if err := json.Unmarshal(answer, &r); err != nil {
		return "", err
	}
	if r.State != "approved" {
		return "", fmt.Errorf("answered %s", answer)
	}
	return r.ID, nil
}

// load is what so many askers got done, each of whom asks again when it is answered. Whoever hears of a request decides it at once.
type load struct {
	took []time.Duration // sorted
	told []time.Duration // from the decision to the answer of the call that waits, sorted
	rate float64         // decided a second
	cpu  float64         // seconds of the daemon for each
}

func (l load) p50() float64     { return l.took[len(l.took)/2].Seconds() }
func (l load) toldP50() float64 { return l.told[len(l.told)/2].Seconds() }

func (o *measured) decides(askers int, span time.Duration) (l load) {
	o.b.Helper()
	type request struct {
		at *measured
		id string
	}
	asked := make(chan request, 100_000)
	hears := []*measured{cmp.Or(o.decider, o)}
	if o.also != nil {
		hears = append(hears, o.also)
	}
	var ends []func()
	for n, at := range hears {
		ends = append(ends, at.follow(o.b.Context(), "/v1/events", func(kind string, data []byte) {
			if id := created(kind, data); id != "" && int(id[len(id)-1])%len(hears) == n {
				asked <- request{at, id}
			}
		}))
	}
	var decided sync.Map // when, by id
	var mu sync.Mutex
	var failed atomic.Pointer[error]
	var asking, deciding sync.WaitGroup
	for range min(askers, 32) {
		deciding.Go(func() {
			for r := range asked {
				decided.Store(r.id, time.Now())
				if _, err := r.at.call(r.at.admin, "/v1/requests/"+r.id+"/decision", `{"answer":"allow_once"}`); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	cpu, began := o.cpu(), time.Now()
	for n := range askers {
		at := o
		if o.also != nil && n%2 == 1 {
			at = o.also
		}
		ask := at.client("agent", n)
		asking.Go(func() {
			for time.Since(began) < span && failed.Load() == nil {
				start := time.Now()
				text, err := at.call(ask, "/v1/requests", question("50s"))
				end := time.Now()
				id := ""
				if err == nil {
					id, err = approved(text)
				}
				since, _ := decided.LoadAndDelete(id)
				if err != nil {
					failed.Store(&err)
				}
				mu.Lock()
				l.took = append(l.took, end.Sub(start))
				if when, is := since.(time.Time); is {
					l.told = append(l.told, end.Sub(when))
				}
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	all := time.Since(began)
	for _, end := range ends {
		end()
	}
	close(asked)
	deciding.Wait()
	if err := failed.Load(); err != nil {
		o.b.Fatal(*err)
	}
	slices.Sort(l.took)
	slices.Sort(l.told)
	l.rate, l.cpu = float64(len(l.took))/all.Seconds(), (o.cpu()-cpu)/float64(len(l.took))
	return l
}

// fill asks so many questions that nobody waits for, and returns the id of the last.
func (o *measured) fill(many int) (id string) {
	o.b.Helper()
	ask := o.client("agent", 0)
	for range many {
		text, err := o.call(ask, "/v1/requests", question("0s"))
		var r struct{ ID string }
		if err := cmp.Or(err, json.Unmarshal(text, &r)); err != nil {
			o.b.Fatal(err)
		}
		id = r.ID
	}
	return id
}

// nextCard is how long a new card takes to an open inbox.
func (o *measured) nextCard() time.Duration {
	o.b.Helper()
	synced, shown := make(chan struct{}), make(chan string, 1<<20)
	defer o.follow(o.b.Context(), "/v1/inbox", func(kind string, data []byte) {
		var r struct{ ID string }
		switch {
		case kind == "synced":
			close(synced)
		case kind == "request" && json.Unmarshal(data, &r) == nil:
			shown <- r.ID
		}
	})()
	<-synced
	began := time.Now()
	for id := o.fill(1); <-shown != id; {
	}
	return time.Since(began)
}

// proc is a number of a file below the process's folder in /proc, after a label.
func (o *measured) proc(file, label string) float64 {
	o.b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", o.process.Process.Pid, file))
	_, after, found := strings.Cut("\n"+string(text), "\n"+label+":")
	if fields := strings.Fields(after); found && len(fields) > 0 {
		var n float64
		if n, err = strconv.ParseFloat(fields[0], 64); err == nil {
			return n
		}
	}
	o.b.Fatalf("%s has no %s: %v", file, label, err)
	return 0
}

// cpu is how many seconds the process has computed, by all threads that it has.
func (o *measured) cpu() (seconds float64) {
	o.b.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", o.process.Process.Pid))
	if err != nil || len(threads) == 0 {
		o.b.Fatalf("there are no threads: %v", err)
	}
	for _, thread := range threads {
		text, _ := os.ReadFile(thread) // it may have ended
		ns, _, _ := strings.Cut(string(text), " ")
		one, _ := strconv.ParseFloat(ns, 64)
		seconds += one / 1e9
	}
	return seconds
}

// ran is what a command of daycared's took.
type ran struct {
	first, all time.Duration // until its first output, and until its end
	peak       float64       // its resident memory in MB
	says       string        // the start of its output
}

func (o *measured) command(args ...string) (r ran) {
	o.b.Helper()
	c := exec.Command(o.binary, append(args, "--config", filepath.Join(o.dir, "c.yaml"))...)
	out, err := c.StdoutPipe()
	if err != nil {
		o.b.Fatal(err)
	}
	var failed bytes.Buffer
	c.Stderr = &failed
	began := time.Now()
	if err := c.Start(); err != nil {
		o.b.Fatal(err)
	}
	start := make([]byte, 400)
	n, _ := out.Read(start)
	r.first, r.says = time.Since(began), string(start[:n])
	_, _ = io.Copy(io.Discard, out)
	if err := c.Wait(); err != nil {
		o.b.Fatalf("%v: %v: %s%s", args, err, r.says, &failed)
	}
	r.all = time.Since(began)
	if used, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.peak = float64(used.Maxrss) / 1024
	}
	return r
}

// BenchmarkOutside compares one asker and a hundred with the bare daemon, and then measures the next card behind what was decided, and
// the size of the store.
func BenchmarkOutside(b *testing.B) {
	binary := built(b)
	for b.Loop() {
		d, least := begins(b, binary).run(), begins(b, "").run()
		least.decides(1, time.Second) // what both allocate once
		d.decides(1, time.Second)
		wrote := d.proc("io", "write_bytes")
		one := d.decides(1, 2*time.Second)
		b.ReportMetric((d.proc("io", "write_bytes")-wrote)/1000/float64(len(one.took)), "KB-written")
		bareOne := least.decides(1, 2*time.Second)
		b.ReportMetric(one.p50()/bareOne.p50(), "of-bare-p50")
		b.ReportMetric(one.p50()*1e6, "p50-µs")
		b.ReportMetric(one.cpu/bareOne.cpu, "of-bare-cpu")
		many := d.decides(100, 3*time.Second)
		b.ReportMetric(many.rate/least.decides(100, 3*time.Second).rate, "of-bare-rate")
		b.ReportMetric(many.rate, "decided/s")
		for decided := len(many.took); decided < 5000; {
			decided += len(d.decides(100, time.Second).took)
		}
		b.ReportMetric(d.nextCard().Seconds(), "s-to-card")
	}
	b.ReportMetric(0, "ns/op")
}

// manyDecided is the default of DECIDED: how many decided requests a large store has, with a tenth as many that are pending.
const manyDecided = 1_000_000

var entriesIn = regexp.MustCompile(`(\d+) entries`)

// BenchmarkOutsideGrown measures with a large store: its size, the audit's verification, the list of what is pending, and, in turn with
// an empty one, one asker and a hundred.
func BenchmarkOutsideGrown(b *testing.B) {
	decided := manyDecided
	if n, err := strconv.Atoi(os.Getenv("DECIDED")); err == nil {
		decided = n
	}
	binary := built(b)
	for b.Loop() {
		d, empty := begins(b, binary), begins(b, binary)
		data := filepath.Join(d.dir, "data")
		grow := exec.Command("go", "run", "../grow", "-settled", strconv.Itoa(decided), "-asked", "fay", data)
		if out, err := grow.CombinedOutput(); err != nil {
			b.Fatalf("grow: %v\n%s", err, out)
		}
		file, err := os.Stat(filepath.Join(data, "daycared.db"))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(file.Size())/1e6/float64(decided)*100_000, "MB-for-100000")
		grow = exec.Command("go", "run", "../grow", "-settled", "0", "-pending", strconv.Itoa(decided/10), "-asked", "fay", data)
		if out, err := grow.CombinedOutput(); err != nil {
			b.Fatalf("grow: %v\n%s", err, out)
		}
		d.run()
		empty.run()
		before := d.proc("status", "VmHWM")
		verified := d.command("audit", "verify")
		found := entriesIn.FindStringSubmatch(verified.says)
		if found == nil {
			b.Fatalf("audit verify says %s", verified.says)
		}
		entries, _ := strconv.ParseFloat(found[1], 64)
		b.ReportMetric(entries/verified.all.Seconds()/250_000, "of-250000/s")
		b.ReportMetric((d.proc("status", "VmHWM")-before)/1024, "MB-grown")
		listed := d.command("pending")
		b.ReportMetric(listed.first.Seconds(), "s-to-row")
		b.ReportMetric(listed.peak, "MB-of-client")
		var p50, rate []float64
		for range 5 {
			one, many := d.decides(1, 2*time.Second), d.decides(100, 3*time.Second)
			p50 = append(p50, one.p50()/empty.decides(1, 2*time.Second).p50())
			rate = append(rate, many.rate/empty.decides(100, 3*time.Second).rate)
		}
		slices.Sort(p50)
		slices.Sort(rate)
		b.ReportMetric(p50[len(p50)/2], "of-empty-p50")
		b.ReportMetric(rate[len(rate)/2], "of-empty-rate")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkOutsideWaiting compares the resident memory of ten thousand calls that wait, each on a connection of its own and within five
// seconds after they came, with the bare daemon. An account may have a thousand connections, so as another account than root there are
// only those.
func BenchmarkOutsideWaiting(b *testing.B) {
	binary := built(b)
	each := func(binary string) float64 {
		o := begins(b, binary).run()
		o.decides(8, time.Second) // what is allocated once
		calls := 10_000
		if o.accounts == 0 {
			calls = 1000
		}
		var wait sync.WaitGroup
		asked := make(chan struct{}, calls)
		ends := o.follow(b.Context(), "/v1/events", func(kind string, _ []byte) {
			if kind == string(permissions.RequestCreated) {
				asked <- struct{}{}
			}
		})
		before := o.proc("status", "VmRSS")
		open := make([]net.Conn, calls)
		for n := range open {
			c, err := o.dial("agent", n)
			if err != nil {
				b.Fatal(err)
			}
			body := question("50s")
			fmt.Fprintf(c, "POST /v1/requests HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
				"Content-Length: %d\r\n\r\n%s", len(body), body)
			open[n] = c
		}
		for range open {
			<-asked
		}
		after := o.proc("status", "VmRSS")
		over := time.Now().Add(5 * time.Second) // what was only needed to ask goes
		for tick := time.Tick(100 * time.Millisecond); time.Now().Before(over); <-tick {
			after = min(after, o.proc("status", "VmRSS"))
		}
		for _, c := range open {
			wait.Go(func() { c.Close() })
		}
		wait.Wait()
		ends()
		return (after - before) * 1024 / float64(calls)
	}
	for b.Loop() {
		ours, least := each(binary), each("")
		b.ReportMetric(ours, "B/call")
		b.ReportMetric(least, "B/bare-call")
		b.ReportMetric(ours/least, "of-bare")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkOutsideCall measures a call over MCP that is decided over HTTP as soon as it is heard of, both at the daemon's own doors, and
// in turn the least: a call over MCP that does nothing, two durable commits, and an HTTP call that does nothing.
func BenchmarkOutsideCall(b *testing.B) {
	o := begins(b, built(b)).run()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(b.TempDir(), "bare.db")+"?_journal_mode=WAL&_synchronous=FULL")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`CREATE TABLE small (id INTEGER PRIMARY KEY, state INTEGER)`); err != nil {
		b.Fatal(err)
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "tester", Version: "1"}, nil).Connect(b.Context(), &sdk.StreamableClientTransport{
		Endpoint: "http://localhost/mcp", HTTPClient: o.client("agent", 0), MaxRetries: -1,
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	tool := func(name string, arguments map[string]any) (failed bool) {
		r, err := session.CallTool(b.Context(), &sdk.CallToolParams{Name: name, Arguments: arguments})
		if err != nil {
			b.Fatal(err)
		}
		return r.IsError
	}
	decided := make(chan error)
	defer o.follow(b.Context(), "/v1/events", func(kind string, data []byte) {
		var e struct{ Request string }
		if kind == string(permissions.RequestCreated) && json.Unmarshal(data, &e) == nil {
			_, err := o.call(o.admin, "/v1/requests/"+e.Request+"/decision", `{"answer":"allow_once"}`)
			decided <- err
		}
	})()
	var whole, least []time.Duration
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		answered := make(chan bool, 1)
		go func() { answered <- tool("pause", map[string]any{"message": strconv.Itoa(n), "mode": "confirm"}) }()
		if err := <-decided; err != nil {
			b.Fatal(err)
		}
		if <-answered {
			b.Fatal("the call was not approved")
		}
		middle := time.Now()
		if !tool("await_request", map[string]any{}) { // refused before anything is looked at
			b.Fatal("a call without a request was answered")
		}
		_, first := db.Exec(`INSERT INTO small VALUES (?, 0)`, n)
		_, second := db.Exec(`UPDATE small SET state = 1 WHERE id = ?`, n)
		if err := errors.Join(first, second); err != nil {
			b.Fatal(err)
		}
		if _, err := o.call(o.admin, "/nothing", ""); err == nil {
			b.Fatal("a route that does not exist was served")
		}
		whole, least = append(whole, middle.Sub(began)), append(least, time.Since(middle))
	}
	slices.Sort(whole)
	slices.Sort(least)
	ours, bare := whole[len(whole)/2], least[len(least)/2]
	b.ReportMetric(float64(ours.Microseconds()), "call-µs")
	b.ReportMetric(float64(bare.Microseconds()), "bare-µs")
	b.ReportMetric(float64(ours)/float64(bare), "ratio")
}
