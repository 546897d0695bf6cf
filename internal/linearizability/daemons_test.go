package linearizability_test

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/connectors/telegram/telegramtest"
	"github.com/daycared/daycared/connectors/whatsapp"
	"github.com/daycared/daycared/connectors/whatsapp/whatsapptest"
	"github.com/daycared/daycared/engine/store"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/internal/pgtest"
	"github.com/daycared/daycared/permissions"
)

// places is how many lives go on at a time, each with phones of its own: Telegram accepts one message a second for each.
const places = 8

// three is three daemons, each a process, on one PostgreSQL.
type three struct {
	t       *testing.T
	ctx     context.Context //nolint:containedctx // of all that is done with them; it ends with the first violation
	stop    context.CancelCauseFunc
	clock   clock
	cluster *pgtest.Cluster
	binary  string
	all     []*process
	bot     *telegramtest.Server
	phones  map[string]*telegramtest.Person
	wa      *whatsapptest.Server
	mobiles map[string]*whatsapptest.Person
	tally   *tally

	mu    sync.Mutex
	cards int // that people saw
}

// process is one daemon.
type process struct {
	*three

	dir    string
	env    []string
	way    *pgtest.Proxy // to PostgreSQL
	agents *caller
	fay    *caller
	people *admin.Client

	cmd  *exec.Cmd
	done chan struct{}
}

// newThree starts them.
func newThree(t *testing.T) *three {
	t.Helper()
	s := &three{
		t: t, clock: clock{time.Now(), 1}, tally: &tally{}, phones: map[string]*telegramtest.Person{},
		mobiles: map[string]*whatsapptest.Person{},
	}
	s.binary = filepath.Join(t.TempDir(), "daycared")
	// The tests of the command are the daemon when they have its name, and can be told to fail.
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", s.binary, "../../cmd/daycared").CombinedOutput(); err != nil {
		t.Fatalf("build the daemon: %v\n%s", err, out)
	}
	cluster, err := pgtest.Start("fsync=off", "listen_addresses=") // what PostgreSQL was told to keep survives its own death
	if err != nil {
		t.Fatal(err)
	}
	s.cluster = cluster
	t.Cleanup(func() { _ = cluster.Close() }) // it is deleted
	s.ctx, s.stop = context.WithCancelCause(t.Context())
	t.Cleanup(func() { s.stop(nil) })
	s.bot, s.wa = telegramtest.New(t), whatsapptest.New(t)
	keys := t.TempDir()
	for i := range 3 {
		p := s.newProcess(keys)
		if i == 0 {
			p.link(keys)
		}
		p.rise()
		p.await("it to be ready", p.ready)
		s.holds(t)
	}
	return s
}

// holds ends the test if something was violated.
func (s *three) holds(t *testing.T) {
	t.Helper()
	if s.ctx.Err() != nil {
		t.Fatal(context.Cause(s.ctx))
	}
}

func (s *three) newProcess(keys string) *process {
	dir, err := os.MkdirTemp("", "dc") // sockets need short paths
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = os.RemoveAll(dir) }) // it is left to the system
	p := &process{three: s, dir: dir, way: pgtest.NewProxy(s.t, s.cluster.Socket("postgres"))}
	p.env = []string{
		"DAYCARED_DATABASE=" + p.way.URL, "DAYCARED_AUDIT_KEY_FILE=" + filepath.Join(keys, "audit.key"),
		"DAYCARED_LIMITS_MUTED_AFTER=1000000", "DAYCARED_APPROVALS_READ_FIRST=false",
	}
	root := whatsapptest.RootKey()
	p.env = append(p.env, "WHATSAPPTEST_ADDR="+s.wa.Addr(), "WHATSAPPTEST_ROOT="+hex.EncodeToString(root[:]))
	for name, text := range map[string]string{"token": s.bot.Token(), "c.yaml": s.config(dir)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	key := filepath.Join(dir, "data", "admin.key")
	p.agents, p.fay = newCaller(s.t, filepath.Join(dir, "agent"), s.clock), newCaller(s.t, filepath.Join(dir, "admin"), s.clock)
	p.agents.lossy, p.fay.lossy, p.fay.key = true, true, key
	p.people = admin.NewClient(filepath.Join(dir, "admin"), key)
	s.t.Cleanup(p.people.Close)
	s.t.Cleanup(p.kill)
	s.all = append(s.all, p)
	return p
}

// config has a route for each number of people who have to allow, at each place.
func (s *three) config(dir string) string {
	me, err := user.Current()
	if err != nil {
		s.t.Fatal(err)
	}
	people, routes := []string{fmt.Sprintf("{name: fay, user: %q}", me.Username)}, []string{}
	for place := range places {
		for i, name := range phonesAt(place) {
			id := int64(1000 + 2*place + i)
			more := ""
			if i == 1 {
				more = fmt.Sprintf(`, whatsapp: "+4917000000%03d", via: [whatsapp, telegram]`, place)
				if s.mobiles[name] == nil {
					s.mobiles[name] = s.wa.Person(fmt.Sprintf("4917000000%03d", place), name)
				}
			}
			people = append(people, fmt.Sprintf("{name: %s, telegram: %d%s}", name, id, more))
			if s.phones[name] == nil {
				s.phones[name] = s.bot.Person(telegramtest.User{ID: id, FirstName: name})
				s.phones[name].Start("")
			}
		}
		for quorum := 1; quorum <= 3; quorum++ {
			routes = append(routes, fmt.Sprintf(`{tags: ["@read:/%d-%d"], ask: [%s], quorum: %d}`, quorum, place,
				strings.Join(askedAt(place, quorum), ", "), quorum))
		}
	}
	return "people: [" + strings.Join(people, ",\n  ") + "]\nroutes: [" + strings.Join(routes, ",\n  ") + "]\n" + strings.ReplaceAll(
		"connectors: {terminal: {enabled: false}, whatsapp: {enabled: true},\n"+
			"  telegram: {enabled: true, token_file: DIR/token, api_url: "+s.bot.URL()+"}}\n"+
			"api: {agent_socket: DIR/agent, admin_socket: DIR/admin, allow_same_user: true, admin_reachable: true}\n"+
			"approvals: {max_timeout: 1h, redeem_window: 1h, remind: []}\n"+
			"limits: {pending_per_caller: 1000, prompts_per_minute: 1000000}\n"+
			"high_risk: {tools: []}\ndata_dir: DIR/data\n", "DIR", dir)
}

// link links the WhatsApp account, which whoever has the chats serves.
func (p *process) link(keys string) {
	data := filepath.Join(p.dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		p.t.Fatal(err)
	}
	rows, err := store.Open(p.ctx, store.Options{
		Path: filepath.Join(data, "daycared.db"), KeyFile: filepath.Join(keys, "audit.key"), Server: p.cluster.Socket("postgres"),
		Log: wiretest.Quiet, Now: time.Now,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	_, err = whatsapp.Link(p.ctx, whatsapp.Linking{
		Path: filepath.Join(data, "whatsapp.db"), Shared: rows.OpenAccount, HTTP: p.wa.Client(), Log: wiretest.Quiet,
	}, scanner{p.t, p.wa.Phone()})
	if err := errors.Join(err, rows.Close()); err != nil {
		p.t.Fatal(err)
	}
}

// scanner scans QR codes; it is asked nothing else.
type scanner struct {
	t     *testing.T
	phone *whatsapptest.Phone
}

func (s scanner) Scan(code string, _ time.Duration) {
	if err := s.phone.Scans(s.t.Context(), code); err != nil {
		s.t.Error(err)
	}
}

func (s scanner) Type(string) { s.t.Error("a code is to be typed") }

func (s scanner) Passkey(context.Context, string) (string, error) {
	return "", errors.New("a passkey is asked for")
}

func (s scanner) Compare(context.Context, string) (bool, error) { return false, nil }

func (s scanner) Say(text string) { s.t.Log(text) }

func phonesAt(place int) []string {
	return []string{fmt.Sprintf("sam%d", place), fmt.Sprintf("kim%d", place)}
}

// askedAt are those whom a question is put to: one more than have to allow it, if there are that many.
func askedAt(place, quorum int) []string {
	return append([]string{"fay"}, phonesAt(place)...)[:min(quorum+1, 3)]
}

// rise starts the daemon.
func (p *process) rise() {
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.violated("open the log: %v", err)
		return
	}
	defer log.Close()
	cmd := exec.Command(p.binary, "serve", "--config", filepath.Join(p.dir, "c.yaml"))
	cmd.Env, cmd.Stderr = append(os.Environ(), p.env...), log
	if err := cmd.Start(); err != nil {
		p.violated("start the daemon: %v", err)
		return
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is seen elsewhere
		close(done)
	}()
	p.cmd, p.done = cmd, done
}

func (p *process) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill() // it may be dead
		<-p.done
	}
}

// ready returns nil once the daemon is ready, or once it is dead and a new one is.
func (p *process) ready() error {
	select {
	case <-p.done:
		p.rise()
	default:
	}
	_, err := p.get("/readyz")
	return err
}

// get reads a page of the daemon's.
func (p *process) get(path string) (string, error) {
	ctx, done := context.WithTimeout(p.ctx, 2*time.Second)
	defer done()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := p.agents.http.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", errors.New(response.Status)
	}
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// alone waits until just one daemon says that it has the chats, and is the one that the database names.
func (s *three) alone() {
	s.await("one daemon to have the chats", func() error {
		all, err := s.running()
		if err != nil {
			return err
		}
		held := 0
		for _, p := range s.all {
			row, is := p.at(all)
			has := is && strings.Contains(row.Leases, "chats")
			text, err := p.get("/metrics")
			if err != nil {
				return err
			}
			if has != strings.Contains(text, "\ndaycared_has_chats 1\n") {
				return fmt.Errorf("%s says otherwise than the database, by which it has them: %t", p.dir, has)
			}
			if has {
				held++
			}
		}
		if held != 1 {
			return fmt.Errorf("%d have them", held)
		}
		return nil
	})
}

// patient bounds every wait.
const patient = 2 * time.Minute

// look is how often it is looked whether something that is waited for is so.
const look = 5 * time.Millisecond

// await waits until f returns nil.
func (s *three) await(what string, f func() error) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for until := time.Now().Add(patient); s.ctx.Err() == nil; {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			s.violated("waited for %s: %v", what, err)
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
		}
	}
}

func (p *process) await(what string, f func() error) { p.three.await(p.dir+": "+what, f) }

// violated ends everything.
func (s *three) violated(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, p := range s.all {
		log, _ := os.ReadFile(filepath.Join(p.dir, "log"))
		text += fmt.Sprintf("\n%s:\n%s", p.dir, log[max(0, len(log)-2000):])
	}
	s.stop(errors.New(text))
}

// running are the daemons that count as such, by the clock of the database.
func (s *three) running() ([]store.Daemon, error) {
	found, err := store.InspectServer(s.ctx, store.Options{Server: s.cluster.Socket("postgres")})
	return found.Daemons, err
}

// at is the daemon's row, if it has one.
func (p *process) at(all []store.Daemon) (row store.Daemon, is bool) {
	for _, d := range all {
		if strings.HasSuffix(d.Place, fmt.Sprintf("pid %d", p.cmd.Process.Pid)) {
			return d, true
		}
	}
	return row, false
}

// audited checks that each request has one end, and that the audit is one chain.
func (s *three) audited(ctx context.Context) {
	people, ends := s.all[0].people, map[permissions.ID]int{}
	for seq := int64(0); s.ctx.Err() == nil; {
		list, err := people.Audit(ctx, seq, 0)
		if err != nil {
			s.violated("read the audit: %v", err)
		}
		if len(list) == 0 {
			break
		}
		for _, e := range list {
			seq = e.Seq
			if e.Type == permissions.StoreRestored {
				s.violated("a fault counts as a restore: %v", e.Detail)
			}
			if e.Type != permissions.RequestSettled {
				continue
			}
			if ends[e.Request]++; ends[e.Request] > 1 {
				s.violated("request %s was settled twice", e.Request)
			}
		}
	}
	if _, err := people.Verify(ctx); err != nil {
		s.violated("the audit: %v", err)
	}
}

// buttonOf is the data of a card's button; empty: it has none.
func buttonOf(m telegramtest.Message, text string) string {
	for _, row := range m.Keyboard {
		for _, b := range row {
			if strings.Contains(b.Text, text) {
				return b.Data
			}
		}
	}
	return ""
}

// settleAll denies what is pending: what a call asked whose client was gone by then.
func (s *three) settleAll(ctx context.Context) {
	people := s.all[0].people
	s.await("nothing to be pending", func() error {
		list, err := people.List(ctx, "", 0)
		for _, v := range list {
			_, failed := people.OnPermission(ctx, connectors.Decision{Request: v.Request.ID, Answer: permissions.Deny})
			err = cmp.Or(err, failed, errors.New("something was"))
		}
		return err
	})
}

// settledCards checks that the cards of all questions, which are settled, have no buttons any more. One that a daemon died or was halted
// over before it was noted keeps them until it is pressed: nothing of that counts. It returns how many those are.
func (s *three) settledCards() (orphans int) {
	ctx, done := context.WithTimeout(s.ctx, patient)
	defer done()
	quiet, over := context.WithTimeout(ctx, 10*time.Second)
	defer over()
	s.settleAll(ctx)
	for who, phone := range s.phones {
		for _, m := range phone.Messages() {
			if buttonOf(m, "Deny") == "" {
				continue
			}
			bare := func(o telegramtest.Message) bool { return o.ID == m.ID && len(o.Keyboard) == 0 }
			if _, err := phone.Sees(quiet, bare); err == nil {
				continue
			}
			orphans++
			s.settleAll(ctx)
			button := cmp.Or(buttonOf(m, "Allow once"), buttonOf(m, "Deny")) // whoever allowed it can deny it only
			toast, err := phone.TapsData(m.ID, button).Toast(ctx)
			says := func(part string) bool { return strings.Contains(toast.Text, part) }
			if err != nil || !says("Too late") && !says("shown again") && !says("You allowed this.") && !says("You denied this.") { // before
				s.violated("%s: a card that was not noted, %q, says %q, %v", who, m.Text, toast.Text, err)
			}
			if _, err := phone.Sees(ctx, bare); err != nil {
				s.violated("%s: a card that was not noted keeps its buttons: %q", who, m.Text)
			}
		}
	}
	return orphans
}

// settledMobiles checks that each question has one card at most on WhatsApp, which is in its final state. It returns how many cards there
// are.
func (s *three) settledMobiles() (cards int) {
	ctx, done := context.WithTimeout(s.ctx, patient)
	defer done()
	s.settleAll(ctx)
	for who, mobile := range s.mobiles {
		seen := map[string]bool{}
		for _, m := range mobile.Messages() {
			code := codeOnMobile.FindStringSubmatch(m.Text)
			if len(m.Before) > 0 {
				code = codeOnMobile.FindStringSubmatch(m.Before[0])
			}
			if m.From != s.wa.Number() || code == nil {
				continue
			}
			if seen[code[1]] {
				s.violated("%s has two cards of %s on WhatsApp", who, code[1])
			}
			seen[code[1]] = true
			cards++
			if _, err := mobile.Gets(ctx, func(o whatsapptest.Message) bool {
				return o.ID == m.ID && codeOnMobile.FindString(o.Text) == ""
			}); err != nil {
				s.violated("%s: a card on WhatsApp stays as it was: %q", who, m.Text)
			}
		}
	}
	return cards
}

// codeOnMobile is the code of a card on WhatsApp that waits for an answer.
var codeOnMobile = regexp.MustCompile("\n`([0-9A-Z]{5})` · until ")
