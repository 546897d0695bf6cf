package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Invitation is a link that enrols one account, as programs read it.
type Invitation struct {
	Code  string    `json:"code"`
	Link  string    `json:"link"`
	How   string    `json:"how" doc:"what the person does, to follow their name and to be followed by the link"`
	Until time.Time `json:"until"`
}

// Guest is an account that came by a link, as programs read it.
type Guest struct {
	Address  string `json:"address"`
	Name     string `json:"name" doc:"as the account calls itself"`
	Language string `json:"language"`
}

// Pairing is an account that answers as a person, as programs read it.
type Pairing struct {
	Person   string    `json:"person"`
	Via      string    `json:"via"`
	Address  string    `json:"address"`
	PairedAt time.Time `json:"paired_at"`
	Was      *string   `json:"was" doc:"the account that did before, if another one"`
}

type (
	inviteInput struct {
		Body struct {
			Name string `json:"name" maxLength:"64"`
			Via  string `json:"via" maxLength:"64"`
		}
	}
	codeInput struct {
		Code string `path:"code" maxLength:"64"`
	}
	guestInput struct {
		Code string `path:"code" maxLength:"64"`
		Wait string `query:"wait" doc:"how long to wait for somebody, at most 50s"`
	}
	pairInput struct {
		Code string `path:"code" maxLength:"64"`
		Body struct {
			Address string `json:"address" maxLength:"64"`
		}
	}
	unpairInput struct {
		Name string `path:"name" maxLength:"200"`
		Via  string `query:"via" maxLength:"64"`
	}
)

// registerPairing registers the routes of pairing, for the operator.
func (r *routes) registerPairing() {
	serve(r, post("invite", "/v1/pairings", "Make a link that enrols somebody"), r.invite)
	serve(r, long(get("guest", "/v1/pairings/{code}", "Wait for whoever comes by a link; null while nobody has")), r.guest)
	serve(r, post("pair", "/v1/pairings/{code}", "Say that it is the right one"), r.pair)
	serve(r, remove("dismiss", "/v1/pairings/{code}", "End an invitation"), r.dismiss)
	serve(r, remove("unpair", "/v1/people/{name}/pairing", "Take the account away that somebody was paired with"), r.unpair)
}

func (r *routes) invite(ctx context.Context, in *inviteInput) (Invitation, error) {
	i, err := r.desk.Invite(ctx, who(ctx), in.Body.Name, in.Body.Via)
	return Invitation{Code: i.Code, Link: i.Link, How: i.How, Until: i.Until.UTC()}, err
}

func (r *routes) guest(ctx context.Context, in *guestInput) (*Guest, error) {
	wait, err := wire.ParseWait(in.Wait)
	if err != nil {
		return nil, permissions.Invalid(err)
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	g, err := r.desk.Guest(limited, who(ctx), in.Code)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, nil // nobody has come yet
	case err != nil:
		return nil, err
	}
	return &Guest{Address: g.Address, Name: g.Name, Language: g.Language}, nil
}

func (r *routes) pair(ctx context.Context, in *pairInput) (Pairing, error) {
	now, was, err := r.desk.Pair(ctx, who(ctx), in.Code, in.Body.Address)
	return fromPairing(now, was), err
}

func (r *routes) dismiss(ctx context.Context, in *codeInput) (struct{}, error) {
	return struct{}{}, r.desk.Dismiss(ctx, who(ctx), in.Code)
}

func (r *routes) unpair(ctx context.Context, in *unpairInput) (Pairing, error) {
	was, err := r.desk.Unpair(ctx, who(ctx), in.Name, in.Via)
	return fromPairing(was, permissions.Pairing{}), err
}

func fromPairing(p, was permissions.Pairing) Pairing {
	return Pairing{
		Person: p.Person, Via: p.Via, Address: p.Address, PairedAt: p.PairedAt.UTC(), Was: wire.OrNull(was.Address),
	}
}

// Invite makes a link by which somebody brings the account that is to answer as the person of that name.
func (c *Client) Invite(ctx context.Context, name, via string) (i Invitation, err error) {
	var in inviteInput
	in.Body.Name, in.Body.Via = name, via
	return i, c.wire.Call(ctx, http.MethodPost, "/v1/pairings", c.header(""), in.Body, wire.MaxWait, &i)
}

// Guest waits until somebody has come by an invitation's link, or until ctx ends.
func (c *Client) Guest(ctx context.Context, code string) (Guest, error) {
	path := "/v1/pairings/" + url.PathEscape(code) + "?wait=" + wire.MaxWait.String()
	for {
		var g *Guest
		if err := c.wire.Call(ctx, http.MethodGet, path, c.header(""), nil, wire.MaxWait, &g); err != nil {
			return Guest{}, err
		}
		if g != nil {
			return *g, nil
		}
	}
}

// Pair has the guest of an invitation answer as its person from now on.
func (c *Client) Pair(ctx context.Context, code, address string) (p Pairing, err error) {
	var in pairInput
	in.Body.Address = address
	path := "/v1/pairings/" + url.PathEscape(code)
	return p, c.wire.Call(ctx, http.MethodPost, path, c.header(""), in.Body, 0, &p)
}

// Dismiss ends an invitation.
func (c *Client) Dismiss(ctx context.Context, code string) error {
	return c.wire.Call(ctx, http.MethodDelete, "/v1/pairings/"+url.PathEscape(code), c.header(""), nil, 0, nil)
}

// Unpair takes the account away that somebody was paired with, and returns it.
func (c *Client) Unpair(ctx context.Context, name, via string) (p Pairing, err error) {
	path := "/v1/people/" + url.PathEscape(name) + "/pairing?via=" + url.QueryEscape(via)
	return p, c.wire.Call(ctx, http.MethodDelete, path, c.header(""), nil, 0, &p)
}
