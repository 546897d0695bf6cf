package admin

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Suspended is one thing that a restore suspended, as programs read it: a grant, a token or a pairing.
type Suspended struct {
	ID          string       `json:"id" doc:"as reinstate takes it"`
	Kind        string       `json:"kind" enum:"grant,token,pairing"`
	SuspendedAt time.Time    `json:"suspended_at"`
	Grant       *wire.Grant  `json:"grant"`
	Token       *Token       `json:"token"`
	Pairing     *PairingKept `json:"pairing"`
}

// PairingKept is an account that answers as a person, as programs read it.
type PairingKept struct {
	Person   string    `json:"person"`
	Via      string    `json:"via"`
	Address  string    `json:"address"`
	PairedAt time.Time `json:"paired_at"`
}

func fromSuspended(all permissions.Suspended) []Suspended {
	list := make([]Suspended, 0, all.Count())
	for _, g := range all.Grants {
		grant := wire.FromGrant(g)
		list = append(list, Suspended{ID: string(g.ID), Kind: "grant", SuspendedAt: g.SuspendedAt.UTC(), Grant: &grant})
	}
	for _, t := range all.Tokens {
		token := FromToken(t)
		list = append(list, Suspended{ID: string(t.ID), Kind: "token", SuspendedAt: t.SuspendedAt.UTC(), Token: &token})
	}
	for _, p := range all.Pairings {
		list = append(list, Suspended{
			ID: p.Name(), Kind: "pairing", SuspendedAt: p.SuspendedAt.UTC(),
			Pairing: &PairingKept{Person: p.Person, Via: p.Via, Address: p.Address, PairedAt: p.PairedAt.UTC()},
		})
	}
	return list
}

type reinstateInput struct {
	Body struct {
		Names []string `json:"names,omitempty" doc:"ids of grants and tokens, pairings as NAME/CHANNEL"`
		All   bool     `json:"all,omitempty" doc:"instead of names"`
	}
}

var errReinstate = errors.New("say which: names, or all")

// registerSuspended registers the routes of what is suspended.
func (r *routes) registerSuspended() {
	serve(r, get("suspended", "/v1/suspended", "List what a restore suspended; for the operator"), r.suspended)
	serve(r, post("reinstate", "/v1/reinstate", "Confirm what a restore suspended; for the operator"), r.reinstate)
}

func (r *routes) suspended(ctx context.Context, _ *struct{}) ([]Suspended, error) {
	all, err := r.desk.Suspended(ctx, who(ctx))
	return fromSuspended(all), err
}

func (r *routes) reinstate(ctx context.Context, in *reinstateInput) ([]Suspended, error) {
	if in.Body.All == (len(in.Body.Names) > 0) {
		return nil, permissions.Invalid(errReinstate)
	}
	all, err := r.desk.Reinstate(ctx, who(ctx), in.Body.Names)
	return fromSuspended(all), err
}

// Suspended lists what a restore suspended.
func (c *Client) Suspended(ctx context.Context) (list []Suspended, err error) {
	return list, c.get(ctx, "/v1/suspended", &list)
}

// Reinstate confirms what the names mean, or everything without names, and returns it.
func (c *Client) Reinstate(ctx context.Context, names []string) (list []Suspended, err error) {
	var in reinstateInput
	in.Body.Names, in.Body.All = names, len(names) == 0
	return list, c.wire.Call(ctx, http.MethodPost, "/v1/reinstate", c.header(""), in.Body, 0, &list)
}
