package admin_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/connectors/admin"
	"github.com/daycared/daycared/engine/wiretest"
	"github.com/daycared/daycared/permissions"
)

// pairingEnv is an env with one open link; the candidate sent to came uses it.
type pairingEnv struct {
	*wiretest.Env
	came chan connectors.PairingCandidate
	ids  []connectors.Identity
}

var noonThen = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func (h *pairingEnv) Invite(_ context.Context, id connectors.Identity, name, via string) (connectors.Invitation, error) {
	if h.ids = append(h.ids, id); !id.Operator {
		return connectors.Invitation{}, permissions.OperatorOnly()
	}
	return connectors.Invitation{Code: "code", Link: name + " at " + via, How: "writes it down", Until: noonThen}, nil
}

func (h *pairingEnv) Guest(ctx context.Context, _ connectors.Identity, code string) (connectors.PairingCandidate, error) {
	if code != "code" {
		return connectors.PairingCandidate{}, &permissions.Refusal{Code: permissions.CodeGone, Text: "over", Exit: permissions.ExitNobody}
	}
	select {
	case g := <-h.came:
		return g, nil
	case <-ctx.Done():
		return connectors.PairingCandidate{}, ctx.Err()
	}
}

func (h *pairingEnv) Pair(
	_ context.Context, _ connectors.Identity, code, address string,
) (now, was permissions.Pairing, err error) {
	now = permissions.Pairing{Person: code, Via: "telegram", Address: address, PairedAt: noonThen}
	return now, permissions.Pairing{Address: "1"}, nil
}

func (h *pairingEnv) Dismiss(_ context.Context, id connectors.Identity, _ string) error {
	h.ids = append(h.ids, id)
	return nil
}

func (h *pairingEnv) Unpair(_ context.Context, _ connectors.Identity, name, via string) (permissions.Pairing, error) {
	if name == "nobody" {
		return permissions.Pairing{}, permissions.NoPairing(name, via)
	}
	return permissions.Pairing{Person: name, Via: via, Address: "1", PairedAt: noonThen}, nil
}

func TestPairingOverTheSocket(t *testing.T) {
	socket, env := wiretest.Socket(t), &pairingEnv{Env: wiretest.NewEnv(t), came: make(chan connectors.PairingCandidate, 1)}
	serve(t, socket, env)
	c, ctx := newClient(t, socket, key), t.Context()
	check := func(what string, got, want any, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
		}
	}
	i, err := c.Invite(ctx, "fay", "telegram")
	check("invited", i, connectors.Invitation{Code: "code", Link: "fay at telegram", How: "writes it down", Until: noonThen}, err)
	env.came <- connectors.PairingCandidate{Address: "4242", Name: "Fay", Language: "de"}
	g, err := c.Guest(ctx, "code")
	check("the guest", g, admin.Guest{Address: "4242", Name: "Fay", Language: "de"}, err)
	one := "1"
	p, err := c.Pair(ctx, "code", "4242")
	check("paired", p, admin.Pairing{Person: "code", Via: "telegram", Address: "4242", PairedAt: noonThen, Was: &one}, err)
	p, err = c.Unpair(ctx, "fay o'malley/2", "telegram")
	check("unpaired", p, admin.Pairing{Person: "fay o'malley/2", Via: "telegram", Address: "1", PairedAt: noonThen}, err)
	if err := c.Dismiss(ctx, "code"); err != nil {
		t.Error(err)
	}
	for _, id := range env.ids {
		if !id.Operator {
			t.Errorf("the operator is %+v", id)
		}
	}

	if _, err := c.Guest(ctx, "another"); !isRefusal(err, permissions.CodeGone) {
		t.Errorf("a link that is over: %v", err)
	}
	if _, err := c.Unpair(ctx, "nobody", "telegram"); !isRefusal(err, permissions.CodeUnknown) {
		t.Errorf("nobody: %v", err)
	}
	if _, err := newClient(t, socket, "").Invite(ctx, "fay", "telegram"); !isRefusal(err, permissions.CodeNotYours) {
		t.Errorf("without the key: %v", err)
	}
	brief, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { _, err := c.Guest(brief, "code"); ended <- err }()
	cancel()
	if err := <-ended; err == nil {
		t.Error("a wait that was left has a guest")
	}
}
