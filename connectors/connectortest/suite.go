package connectortest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// Harness is a connector that has not been run yet, and the person at its other end.
type Harness struct {
	Connector connectors.Connector
	To        connectors.Person
	// Is reports whether an identity that the connector hands on is To's.
	Is func(connectors.Identity) bool
	// Do has the person give an answer to a prompt, in the channel's own way, as soon as they see it: d's Answer, Call,
	// Comment and Really are what they want.
	Do func(t testing.TB, p connectors.Prompt, d connectors.Decision)
	// Writes has the person send a text, once they see the prompt and can answer. Nil where the channel has no texts.
	Writes func(t testing.TB, p connectors.Prompt, text string)
	// Tells has the person write to their agent while they see the prompt. Nil where that is as Writes.
	Tells func(t testing.TB, p connectors.Prompt, text string)
	// Sees returns once the person has got to see a text, and fails the test when they do not.
	Sees func(t testing.TB, text string)
	// Seen is everything that the person got to see so far.
	Seen func() string
	// Line makes the connection to the channel's service a bad one. Nil where there is none.
	Line func(Line)
	// Now is the channel's clock. Nil where that is the machine's.
	Now func() time.Time
	// Stranger has somebody else try to allow. Nil where nobody else can reach the channel.
	Stranger func(t testing.TB, p connectors.Prompt)
}

// part is one part of the suite.
type part struct {
	name string
	test func(*testing.T, *bench)
}

// Start makes a connector for the suite, which hands what its person does to in.
type Start func(t *testing.T, in connectors.Services) Harness

// Run checks a connector. start makes a new one for every part of the suite; what it starts ends with the test's
// cleanups, and leaves no goroutine but those that left allows: what a library of the channel's leaves behind.
func Run(t *testing.T, start Start, left ...goleak.Option) {
	run(t, start, left, []part{
		{"answers", answers},
		{"one after the other", oneAfterTheOther},
		{"high risk takes a second yes", highRiskTwice},
		{"a step call by call", callByCall},
		{"answers in text", texts},
		{"a stranger changes nothing", unknownAccount},
		{"a refusal is told", refusalTold},
		{"settled elsewhere", settledElsewhere},
		{"a late answer changes nothing", lateAnswer},
		{"what could not be stored is not lost", storedLater},
		{"over a bad line", badLine},
		{"agents' words hide nothing", hostileWords},
		{"notices are told", told},
		{"agents talk", talks},
		{"agents are written to", listens},
		{"reached while it runs", reached},
		{"ends with its context", ends},
	})
}

// RunTalk checks, as [Run] does, what is said by a connector at whose other end is a program, which answers as it likes.
// Of the harness, Connector, To, Is, Sees and Seen are needed.
func RunTalk(t *testing.T, start Start, left ...goleak.Option) {
	run(t, start, left, []part{{"agents talk", talks}, {"ends with its context", ends}})
}

func run(t *testing.T, start Start, left []goleak.Option, parts []part) {
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) {
			left := append([]goleak.Option{goleak.IgnoreCurrent()}, left...)
			t.Cleanup(func() { goleak.VerifyNone(t, left...) }) // the last of the cleanups
			part.test(t, newBench(t, start))
		})
	}
}

// bench is a connector that runs.
type bench struct {
	Harness
	in     *inbound
	cancel context.CancelFunc
	done   chan error
	number int64
}

func newBench(t *testing.T, start Start) *bench {
	in := newInbound()
	h := start(t, in)
	in.serve(h)
	ctx, cancel := context.WithCancel(context.Background())
	b := &bench{Harness: h, in: in, cancel: cancel, done: make(chan error, 1)}
	go func() { b.done <- h.Connector.Run(ctx) }()
	t.Cleanup(func() { b.stop(t) })
	return b
}

// stop ends the connector and checks that it ends in time and without an error.
func (b *bench) stop(t testing.TB) {
	t.Helper()
	b.cancel()
	if b.done == nil {
		return
	}
	select {
	case err := <-b.done:
		b.done = nil
		if err != nil {
			t.Errorf("Run = %v; want nil at the end of its context", err)
		}
	case <-time.After(time.Second):
		t.Errorf("Run has not returned a second after its context ended")
	}
}

// send shows a new request to the person.
func (b *bench) send(
	t testing.TB, kind permissions.Kind, change func(*permissions.Request),
) (p connectors.Prompt, ref string) {
	t.Helper()
	b.number++
	p = b.in.put(Request(kind, b.To, b.number, change), code(b.number))
	return p, b.sent(t, p)
}

func (b *bench) sent(t testing.TB, p connectors.Prompt) (ref string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if namer, names := b.Connector.(connectors.MessageIDAllocator); names {
		p.Ref = namer.AllocateID(p)
	}
	b.in.sends(p)
	ref, err := b.Connector.Send(ctx, p)
	for again := time.Tick(5 * time.Millisecond); temporary(err) && ctx.Err() == nil; ref, err = b.Connector.Send(ctx, p) {
		<-again
	}
	if err != nil || ref == "" {
		t.Fatalf("Send = %q, %v; want the channel's name for what was sent", ref, err)
	}
	dated := time.Time{}
	if dater, dates := b.Connector.(connectors.MessageDater); dates {
		dated = dater.SentTime(ref)
	}
	b.in.sent(p, ref, dated)
	return ref
}

// temporary reports whether an engine would try again.
func temporary(err error) bool { return err != nil && !errors.Is(err, connectors.ErrUnreachable) }

// edit shows what has become of a request. Without the power to edit, that is a message of its own.
func (b *bench) edit(t testing.TB, ref string, p connectors.Prompt) {
	t.Helper()
	editor, edits := b.Connector.(connectors.Editor)
	if !edits {
		b.sent(t, p)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p = b.in.edits(ref, p)
	err := editor.Edit(ctx, ref, p)
	for again := time.Tick(5 * time.Millisecond); temporary(err) && ctx.Err() == nil; err = editor.Edit(ctx, ref, p) {
		<-again
	}
	if err != nil {
		t.Fatalf("Edit = %v", err)
	}
}

// decided checks the next decision that reaches the handler.
func (b *bench) decided(t testing.TB, p connectors.Prompt, want connectors.Decision) permissions.Request {
	t.Helper()
	got := b.in.next(t)
	d := got.decision
	if got.err != nil {
		t.Fatalf("the handler refused %+v: %v", d, got.err)
	}
	if d.Request != p.Request.ID && (d.Request != "" || !strings.EqualFold(d.Code, p.Code)) {
		t.Errorf("the decision names request %q, code %q; want %s or %s", d.Request, d.Code, p.Request.ID, p.Code)
	}
	if d.Answer != want.Answer || d.Call != want.Call || d.Comment != want.Comment || d.Default != want.Default {
		t.Errorf("the decision is %+v; want %+v", d, want)
	}
	if d.From.Via != b.Connector.Name() {
		t.Errorf("the decision came via %q; want %q", d.From.Via, b.Connector.Name())
	}
	return got.after
}
