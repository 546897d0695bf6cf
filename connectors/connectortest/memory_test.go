package connectortest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/connectortest"
	"github.com/daycared/daycared/permissions"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	fay   = connectors.Person{Name: "fay", UID: permissions.NoUID, Addresses: map[string]string{"telegram": "7"}}
	tapOf = connectors.Identity{Via: "telegram", UID: permissions.NoUID, Address: "7"}
)

// plain is a connector without any optional power, and with nobody else at the other end.
type plain struct{ m *connectortest.Memory }

func (p plain) Name() string { return p.m.Name() }

func (p plain) Run(ctx context.Context) error { return p.m.Run(ctx) }

func (p plain) Send(ctx context.Context, prompt connectors.Prompt) (string, error) {
	return p.m.Send(ctx, prompt)
}

func TestMemoryPassesTheSuite(t *testing.T) {
	t.Run("with its powers", func(t *testing.T) { connectortest.Run(t, memory) })
	t.Run("without", func(t *testing.T) {
		connectortest.Run(t, func(t *testing.T, in connectors.Services) connectortest.Harness {
			h := memory(t, in)
			h.Connector, h.Stranger = plain{h.Connector.(*connectortest.Memory)}, nil
			return h
		})
	})
}

func memory(_ *testing.T, in connectors.Services) connectortest.Harness {
	m := connectortest.NewMemory(tapOf, nil)
	m.Bind(in)
	do := func(p connectors.Prompt, d connectors.Decision) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		d.Request = p.Request.ID
		_, _ = m.Do(ctx, d) // the suite's handler looks at what came of it
	}
	return connectortest.Harness{
		Connector: m, To: fay, Seen: m.Seen,
		Is: func(id connectors.Identity) bool { return id.Address == fay.Addresses["telegram"] },
		Do: func(_ testing.TB, p connectors.Prompt, d connectors.Decision) { do(p, d) },
		Writes: func(t testing.TB, p connectors.Prompt, text string) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if _, err := m.Writes(ctx, p.To.Name, text); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		},
		Sees: func(t testing.TB, text string) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := m.Sees(ctx, text); err != nil {
				t.Fatalf("%q is not seen in:\n%s", text, m.Seen())
			}
		},
		Stranger: func(_ testing.TB, p connectors.Prompt) {
			do(p, connectors.Decision{
				Answer: permissions.Allow(permissions.Once),
				From:   connectors.Identity{Via: "telegram", UID: permissions.NoUID, Address: "666"},
			})
		},
	}
}

// refuser answers decisions with errors, one after the other, and then takes them.
type refuser struct {
	connectortest.Nobody
	errs []error
	got  []connectors.Decision
}

func (r *refuser) OnPermission(_ context.Context, d connectors.Decision) (permissions.Request, error) {
	r.got = append(r.got, d)
	if len(r.errs) == 0 {
		return permissions.Request{}, nil
	}
	err := r.errs[0]
	r.errs = r.errs[1:]
	return permissions.Request{}, err
}

func (r *refuser) OnMessage(context.Context, connectors.Message) error { return nil }

func TestMemoryHandsOnAgainWhatWasNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := connectortest.NewMemory(tapOf, connectortest.Always(permissions.Deny))
		h := &refuser{errs: []error{errors.New("disk full"), errors.New("disk full"), permissions.NotYours()}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		m.Bind(h)
		go func() { done <- m.Run(ctx) }()
		p := connectors.Prompt{Request: connectortest.Request(permissions.KindPermission, fay, 1, nil), To: fay}
		ref, err := m.Send(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second) // the bubble's
		synctest.Wait()
		if len(h.got) != 3 {
			t.Fatalf("handed on %d times; want 3: twice not stored, then refused", len(h.got))
		}
		d := h.got[2]
		if d.Request != p.Request.ID || d.Shown != p.Request.Digest || d.From != tapOf || d.Answer != permissions.Deny {
			t.Errorf("the decision is %+v; want it filled in", d)
		}
		if err := m.Sees(ctx, permissions.NotYours().Text); err != nil {
			t.Errorf("the refusal is not told: %v", err)
		}
		if c := m.Copies(); len(c) != 1 || c[0].Ref != ref {
			t.Errorf("copies are %+v; want one, %s", c, ref)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
		if _, err := m.Do(context.Background(), connectors.Decision{}); err == nil {
			t.Error("Do = nil after the end of Run; want an error")
		}
	})
}

func TestMemoryFailsAsTold(t *testing.T) {
	m := connectortest.NewMemory(tapOf, nil)
	p := connectors.Prompt{Request: connectortest.Request(permissions.KindPause, fay, 1, nil), To: fay}
	away := errors.New("away")
	m.FailSend(2, away)
	for range 2 {
		if _, err := m.Send(t.Context(), p); !errors.Is(err, away) {
			t.Fatalf("Send = %v; want %v", err, away)
		}
	}
	ref, err := m.Send(t.Context(), p)
	if err != nil {
		t.Fatalf("Send = %v after two failures", err)
	}
	m.FailSend(-1, &connectors.UnreachableError{Reason: "blocked"})
	for range 3 {
		if _, err := m.Send(t.Context(), p); !errors.Is(err, connectors.ErrUnreachable) {
			t.Fatalf("Send = %v; want that it is gone", err)
		}
	}
	m.FailReach(away)
	if err := m.Reach(fay); !errors.Is(err, away) {
		t.Errorf("Reach = %v; want %v", err, away)
	}
	m.FailReach(nil)
	if err := m.Reach(fay); err != nil {
		t.Errorf("Reach = %v; want nil", err)
	}
	if err := m.Edit(t.Context(), "telegram-9", p); !errors.Is(err, connectors.ErrUnreachable) {
		t.Errorf("Edit of nothing = %v; want that it is gone", err)
	}
	p.Waiting = 3
	if err := m.Edit(t.Context(), ref, p); err != nil {
		t.Fatalf("Edit = %v", err)
	}
	err = m.Wait(t.Context(), func(all []connectortest.Copy) bool { return all[0].Edits == 1 && all[0].Last.Waiting == 3 })
	if err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Sees(ctx, "what is nowhere"); !errors.Is(err, context.Canceled) {
		t.Errorf("Sees = %v; want the error of its context", err)
	}
	if _, err := m.Do(ctx, connectors.Decision{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Do = %v before Run; want the error of its context", err)
	}
}
