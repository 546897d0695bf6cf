package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/daycared/daycared/agents/models"
	"github.com/daycared/daycared/agents/models/modeltest"
	"github.com/daycared/daycared/engine/store/storetest"
	"github.com/daycared/daycared/internal/server"
	"github.com/daycared/daycared/permissions"
)

// replay rewrites the runs of testdata/behaviours: go test ./cmd/daycared -run TestBehaviours -behaviours
var replay = flag.Bool("behaviours", false, "write testdata/behaviours anew")

// TestBehaviours runs each of the five behaviours on the whole daemon, once with fay on Telegram and once on WhatsApp. The
// expected runs are in testdata/behaviours: every event at admin.sock, and what callers, models and fay see and say meanwhile.
func TestBehaviours(t *testing.T) {
	for name, play := range map[string]func(*behaviour){
		"wait_ack": waitsForAck, "request_permission": requestsPermission, "pause": pauses, "gated_tools": gatesTools,
		"clarification": clarifies,
	} {
		for chat, hand := range map[string]func(*behaviour) handset{"telegram": onTelegram, "whatsapp": onWhatsApp} {
			t.Run(name+"/"+chat, func(t *testing.T) {
				t.Parallel()
				b := newBehaviour(t, chat, hand)
				play(b)
				b.end()
				compareRun(t, filepath.Join("testdata", "behaviours", name+"."+chat+".txt"), b.out.Bytes())
			})
		}
	}
}

// behaviour is one run and its text. The text is written stage by stage: first an action, then, once all its effects have
// arrived, the model's input and replies, the events, and what fay sees.
type behaviour struct {
	*loop
	handset
	*thoughts
	out   bytes.Buffer
	names naming
	key   string // the operator's

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever something arrives
	events  []string      // in order of arrival, without those already written
	seq     int64         // of the last event
	ended   bool          // the stream of events has ended
	turns   []string      // of models, in order of arrival
	replies []callerReply
	calls   int // calls of callers
	written int // events written

	seen    map[string]string // what was written of the chat, by message
	numbers map[string]int    // numbers of messages, as written
	due     []string          // further expected messages of this stage
	card    string            // the expected change of the card
	newest  string            // the latest request
	session string            // of the last event that has one
}

// handset is how fay sees messages and answers.
type handset interface {
	// contact is fay's contact in the configuration; channel is the channel's configuration.
	contact() string
	channel() string
	connected(ctx context.Context) error
	// messages returns daycared's messages and its changes to fay's own, oldest first.
	messages() []sight
	// writes sends a message to daycared.
	writes(text string)
	buttons() bool
	// answers answers the latest card by a button, if there are buttons, otherwise in words, in which CODE stands for the card's
	// code. It returns what fay did, the message that it changes, and what else she will see.
	answers(ctx context.Context, button, words string) (did, card, sees string, err error)
}

// callerReply is the response to a caller's call.
type callerReply struct {
	n    int
	text string
}

// sight is a message that fay sees, or daycared's mark on one of hers.
type sight struct {
	id, text string
	mark     bool
}

func newBehaviour(t *testing.T, chat string, hand func(*behaviour) handset) *behaviour {
	b := &behaviour{
		loop: newLoop(t), thoughts: newThoughts(), changed: make(chan struct{}), seen: map[string]string{}, numbers: map[string]int{},
	}
	b.names = newNaming(b.dir)
	b.handset = hand(b)
	me, err := user.Current()
	b.must(err)
	model := modeltest.Serve()
	t.Cleanup(model.Close)
	model.Answer(b.thinks)
	config := strings.NewReplacer("DIR", b.dir, "MODEL", model.URL(modeltest.OpenAI), "CONTACT", b.contact(),
		"CHANNEL", b.channel(), "USER", me.Username, "VIA", chat).Replace(behaviourConfig)
	for _, agent := range []string{"helper", "strict", "hasty"} {
		b.must(os.Mkdir(filepath.Join(b.dir, agent), 0o700))
	}
	b.must(os.WriteFile(filepath.Join(b.dir, "c.yaml"), []byte(config), 0o600))
	t.Cleanup(b.kill)
	b.rise("")
	if t.Failed() {
		t.FailNow()
	}
	b.follow()
	b.await("the chat", b.connected)
	for _, m := range b.messages() { // after Start
		b.seen[m.id], b.numbers[m.id] = m.text, len(b.numbers)+1
	}
	b.out.WriteString(aboutRuns)
	return b
}

const behaviourConfig = `people: [{name: fay, user: "USER", CONTACT, via: [VIA], timezone: Europe/Berlin}]
routes:
  - {agents: [hasty], kinds: [tool, pause, clarification], ask: [fay], timeout: 7s}
  - {ask: [fay]}
api: {agent_socket: DIR/agent, admin_socket: DIR/admin, allow_same_user: true}
approvals: {clarification_timeout: 5m, remind: []}
high_risk: {tools: []}
tools: {forbidden: [fetch_url]}
connectors: {terminal: {enabled: false}, CHANNEL}
data_dir: DIR/data
agents:
  - {name: helper, person: fay, connector: VIA, workspace: DIR/helper, model: {provider: openai, base_url: MODEL, name: m}}
  - {name: strict, person: fay, connector: VIA, workspace: DIR/strict, on_denial: terminate,
     model: {provider: openai, base_url: MODEL, name: m}}
  - {name: hasty, person: fay, connector: VIA, workspace: DIR/hasty, model: {provider: openai, base_url: MODEL, name: m}}
`

const aboutRuns = `# One run of a daemon, as its test plays it: what somebody does, then all that follows. The events are those of
# GET /v1/events?after=0, byte for byte but for values that are others in each run: these are <named>, and seq counts without
# gaps. REQUEST_SHOWN stands last among the events of its stage, and what an agent says last among what fay gets, since
# nothing promises their places.
`

func (b *behaviour) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// door is a plain HTTP client of one of the sockets.
func (b *behaviour) door(name string) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(b.dir, name))
	}}
	b.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// more signals that something has arrived. The caller holds the lock.
func (b *behaviour) more() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// follow reads the event stream from its beginning until the daemon ends.
func (b *behaviour) follow() {
	key, err := os.ReadFile(filepath.Join(b.dir, "data", "admin.key"))
	b.must(err)
	b.key = "Bearer " + strings.TrimSpace(string(key))
	r, err := http.NewRequestWithContext(b.ctx, http.MethodGet, "http://daycared/v1/events?after=0", nil)
	b.must(err)
	r.Header.Set("Authorization", b.key)
	answer, err := b.door("admin").Do(r)
	b.must(err)
	if answer.StatusCode != http.StatusOK {
		b.t.Fatalf("the events are refused: %s", answer.Status)
	}
	over := make(chan struct{})
	b.t.Cleanup(func() { b.stop(); <-over })
	go func() {
		defer close(over)
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if event, is := strings.CutPrefix(lines.Text(), "data: "); is {
				b.told(event)
			}
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.ended = true
		b.more()
	}()
}

// happening is the part of an event that the run needs.
type happening struct {
	Seq     int64                      `json:"seq"`
	Type    permissions.Type           `json:"type"`
	Session *string                    `json:"session"`
	Request *string                    `json:"request"`
	Payload map[string]json.RawMessage `json:"payload"`
}

func happened(event string) (h happening, err error) {
	err = json.Unmarshal([]byte(event), &h)
	return h, err
}

// told handles an event, and checks its format and order.
func (b *behaviour) told(event string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.more()
	h, err := happened(event)
	if err != nil || h.Seq <= b.seq {
		b.t.Errorf("after seq %d came %s (%v)", b.seq, event, err)
	}
	b.seq = h.Seq
	b.events = append(b.events, event)
	e, known := server.Events().Events[h.Type]
	for member := range h.Payload {
		if !known || e.Payload[member] == nil {
			b.t.Errorf("the contract has no %s of %s", member, h.Type)
		}
	}
	for member, s := range e.Payload {
		value, there := h.Payload[member]
		if !there && !strings.Contains(s.Description, "left out") || string(value) == "null" && !s.Nullable {
			b.t.Errorf("by the contract, %s has %s: %s", h.Type, member, event)
		}
		runs := h.Type == permissions.RunFinished || h.Type == permissions.AckRejected
		if runs && member == "reason" && !strings.Contains(s.Description, strings.Trim(string(value), `"`)) {
			b.t.Errorf("by the contract, the reason of %s is %s: %s", h.Type, s.Description, event)
		}
	}
}

// thinks returns a model's next reply, and records the request.
func (b *behaviour) thinks(r modeltest.Request) modeltest.Answer {
	a := b.answer(r)
	who := "the model"
	if m := whoThinks.FindStringSubmatch(r.Prompt.System); m != nil {
		who += " of " + m[1]
	}
	text := who + " is told:\n" + indented(news(r)) + who
	switch {
	case a.Fault != nil:
		b.t.Errorf("%s: %s", who, a.Fault.Text)
	case len(a.Calls) == 0:
		text += " says:\n" + indented(a.Text)
	default:
		text += " calls:\n"
		for _, c := range a.Calls {
			text += indented(c.Tool + " " + string(c.Input))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turns = append(b.turns, text)
	b.more()
	return a
}

func indented(text string) string {
	text = "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
	return blanks.ReplaceAllString(text, "") + "\n"
}

var blanks = regexp.MustCompile(`(?m) +$`)

// calling is a reply with tool calls, each tool followed by its input.
func calling(of ...string) (a modeltest.Answer) {
	for i := 0; i+1 < len(of); i += 2 {
		a.Calls = append(a.Calls, models.Call{Tool: of[i], Input: json.RawMessage(of[i+1])})
	}
	return a
}

// saying is a reply with text.
func saying(text string) modeltest.Answer { return modeltest.Answer{Text: text} }

// next sets an agent's next replies.
func (b *behaviour) next(agent string, replies ...modeltest.Answer) {
	b.thoughts.mu.Lock()
	defer b.thoughts.mu.Unlock()
	b.thoughts.next[agent] = append(b.thoughts.next[agent], replies...)
}

// scene starts a part of the run.
func (b *behaviour) scene(title string) {
	fmt.Fprintf(&b.out, "\n\n######## %s\n", title)
}

// did starts a stage.
func (b *behaviour) did(what string) {
	fmt.Fprintf(&b.out, "\n==== %s\n", b.names.in(what))
}

// says sends fay's message to the agent.
func (b *behaviour) says(text string) {
	b.did("fay writes: " + text)
	b.writes(text)
}

// decides answers the latest card as fay.
func (b *behaviour) decides(button, words string) {
	b.t.Helper()
	ctx, done := context.WithTimeout(b.ctx, patient)
	defer done()
	did, card, sees, err := b.answers(ctx, button, words)
	b.must(err)
	b.did("fay " + did)
	b.due, b.card = []string{sees}, card
}

// tries sends an invalid answer as fay.
func (b *behaviour) tries(words string) {
	b.t.Helper()
	b.decides("", words)
	b.due, b.card = nil, ""
	b.until("", "Nothing was decided")
}

// looks reads the session of the last event, as a front end that was just started does.
func (b *behaviour) looks() {
	b.asks("admin", http.MethodGet, "/v1/sessions/"+b.session, "")
	b.until(got)
}

// because denies with a reason.
func (b *behaviour) because(button, reason string) {
	b.ownWords(button, "NO CODE because "+reason, reason)
}

// ownWords presses a button that asks for text, and sends it; without buttons, it sends everything at once.
func (b *behaviour) ownWords(button, words, own string) {
	if !b.buttons() {
		b.decides("", words)
		return
	}
	b.decides(button, "")
	b.until("", "Reply to this message")
	b.decides("", own)
}

// use switches fay to another agent.
func (b *behaviour) use(agent string) {
	b.says("/use " + agent)
	b.until("", agent)
}

// asks makes a call at a socket; until awaits its response as got.
func (b *behaviour) asks(door, method, path, body string, header ...string) {
	b.did(strings.TrimSpace("a caller at " + door + ".sock: " + method + " " + path + "\n" + indented(body)))
	r, err := http.NewRequestWithContext(b.ctx, method, "http://daycared"+path, strings.NewReader(body))
	b.must(err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if door == "admin" {
		r.Header.Set("Authorization", b.key)
	}
	b.calls++
	n, client, over := b.calls, b.door(door), make(chan struct{})
	b.t.Cleanup(func() { b.stop(); <-over })
	go func() {
		defer close(over)
		text := ""
		answer, err := client.Do(r)
		if err == nil {
			defer answer.Body.Close()
			var body []byte
			if body, err = io.ReadAll(answer.Body); err == nil {
				text = fmt.Sprintf("%s %s gets: %s\n%s", method, path, answer.Status, indented(string(body)))
			}
		}
		if err != nil && b.ctx.Err() == nil {
			b.t.Errorf("%s %s: %v", method, path, err)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.replies = append(b.replies, callerReply{n, text})
		b.more()
	}()
}

// got stands for the response to a caller.
const got = "got"

const cardShown = string(permissions.RequestShown)

// until ends a stage once these events have arrived, fay sees new or changed messages that match, and, if got is listed, the
// caller has its response.
func (b *behaviour) until(events string, sees ...string) {
	b.t.Helper()
	var want []*regexp.Regexp
	for _, text := range append(sees, b.due...) {
		want = append(want, regexp.MustCompile("(?s)"+text))
	}
	var missing string
	ctx, done := context.WithTimeout(b.ctx, patient)
	defer done()
	for {
		b.mu.Lock()
		missing = b.lacks(strings.Fields(events))
		changed := b.changed
		b.mu.Unlock()
		if missing == "" {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			b.write()
			b.t.Fatalf("there is no %s:\n%s", missing, b.out.String())
		}
	}
	b.await("what fay sees", func(context.Context) error { return b.unseen(want) })
	if b.t.Failed() {
		b.write()
		b.t.Fatalf("the run so far:\n%s", b.out.String())
	}
	b.due, b.card = nil, ""
	b.write()
}

// lacks returns which of these have not arrived, in order. Responses to callers, and REQUEST_SHOWN, may arrive at any time. The
// caller holds the lock.
func (b *behaviour) lacks(want []string) string {
	var inOrder []string
	left := map[string]int{got: -len(b.replies), cardShown: 0}
	for _, w := range want {
		if _, is := left[w]; is {
			left[w]++
		} else {
			inOrder = append(inOrder, w)
		}
	}
	for _, e := range b.events {
		h, _ := happened(e)
		if string(h.Type) == cardShown {
			left[cardShown]--
		}
		if len(inOrder) > 0 {
			name, word, _ := strings.Cut(inOrder[0], "=")
			if name == string(h.Type) && (word == "" || strings.Contains(e, `"`+word+`"`)) {
				inOrder = inOrder[1:]
			}
		}
	}
	for what, n := range left {
		if n > 0 {
			inOrder = append(inOrder, what)
		}
	}
	return strings.Join(inOrder, " ")
}

// unseen is an error until a new message matches each of these.
func (b *behaviour) unseen(want []*regexp.Regexp) error {
	messages := b.messages()
	if slices.ContainsFunc(messages, func(m sight) bool { return m.id == b.card && b.seen[m.id] == m.text }) {
		return errors.New("the card is as it was")
	}
	for _, re := range want {
		if !slices.ContainsFunc(messages, func(m sight) bool { return b.seen[m.id] != m.text && re.MatchString(m.text) }) {
			return fmt.Errorf("no message is like %s", re)
		}
	}
	return nil
}

// write writes what a stage has produced.
func (b *behaviour) write() {
	b.mu.Lock()
	events, turns, replies := b.events, b.turns, b.replies
	b.events, b.turns, b.replies = nil, nil, nil
	b.mu.Unlock()
	for _, t := range turns {
		b.out.WriteString("\n" + b.names.in(t))
	}
	slices.SortStableFunc(events, func(x, y string) int { return shownLast(x) - shownLast(y) })
	for i, e := range events {
		if i == 0 {
			b.out.WriteString("\nevents:\n")
		}
		b.written++
		h, err := happened(e)
		b.must(err)
		e = strings.Replace(e, fmt.Sprintf(`"seq":%d,`, h.Seq), fmt.Sprintf(`"seq":%d,`, b.written), 1)
		b.names.learn(h)
		if h.Type == permissions.RequestCreated {
			b.newest = *h.Request
		}
		if h.Session != nil {
			b.session = *h.Session
		}
		if e = b.names.in(e); !json.Valid([]byte(e)) {
			b.t.Errorf("this is no JSON any more: %s", e)
		}
		b.out.WriteString("    " + e + "\n")
	}
	slices.SortFunc(replies, func(x, y callerReply) int { return x.n - y.n })
	for _, r := range replies {
		b.out.WriteString("\n" + b.names.in(r.text))
	}
	messages := b.messages()
	slices.SortStableFunc(messages, func(x, y sight) int { return agentsLast(x) - agentsLast(y) })
	for _, m := range messages {
		how := "gets"
		was, known := b.seen[m.id]
		if known {
			how = "sees changed"
		} else if !m.mark {
			b.numbers[m.id] = len(b.numbers) + 1
		}
		how += fmt.Sprintf(", message %d", b.numbers[m.id])
		if m.mark {
			how = "sees on her message"
		}
		if b.seen[m.id] = m.text; !known || was != m.text {
			fmt.Fprintf(&b.out, "\nfay %s:\n%s", how, indented(b.names.in(m.text)))
		}
	}
}

var ofAgent = regexp.MustCompile(`^(helper|strict|hasty): `)

// agentsLast sorts agents' messages after daycared's own actions, since their order is not fixed.
func agentsLast(m sight) int {
	if ofAgent.MatchString(m.text) {
		return 1
	}
	return 0
}

// shownLast sorts REQUEST_SHOWN, whose order is not fixed, after the other events of its stage.
func shownLast(event string) int {
	if strings.Contains(event, `"type":"`+string(permissions.RequestShown)+`"`) {
		return 1
	}
	return 0
}

// end ends the daemon, and checks that nothing unexpected has happened and no reply is left.
func (b *behaviour) end() {
	b.t.Helper()
	b.must(b.daemon.Process.Signal(os.Interrupt))
	<-b.done
	db := filepath.Join(b.dir, "data", storeName)
	types := make([]string, 0, len(server.Events().Events))
	for name := range server.Events().Events {
		types = append(types, "'"+string(name)+"'")
	}
	text, err := storetest.Table(b.t.Context(), db, `SELECT max(seq) FROM audit WHERE type IN (`+strings.Join(types, ",")+`)`)
	b.must(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if text = strings.TrimSpace(text); len(b.events) > 0 || text != strconv.FormatInt(b.seq, 10) {
		b.t.Errorf("more has happened: %q; the last event is %d and the last record %s", b.events, b.seq, text)
	}
	for agent, left := range b.thoughts.next {
		if len(left) > 0 {
			b.t.Errorf("the model of %s has %d more replies", agent, len(left))
		}
	}
}
