package admin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// Guest is the JSON form of an account that used a link.
type Guest struct {
	Address  string `json:"address"`
	Name     string `json:"name" doc:"as the account calls itself"`
	Language string `json:"language"`
	By       string `json:"by,omitzero" doc:"who proposed the account, if it used no link"`
}

// Pairing is the JSON form of an account that is paired with a person.
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
	personInput struct {
		Name string `path:"name" maxLength:"200"`
	}
	unpairInput struct {
		Name string `path:"name" maxLength:"200"`
		Via  string `query:"via" maxLength:"64"`
	}
)

// registerPairing registers the operator's routes of pairing.
func (r *routes) registerPairing() {
	invite := post("invite", "/v1/pairings", "Make a link that enrols somebody")
	serve(r, invite, func(ctx context.Context, in *inviteInput) (connectors.Invitation, error) {
		i, err := r.engine.Invite(ctx, who(ctx), in.Body.Name, in.Body.Via)
		i.Until = i.Until.UTC()
		return i, err
	})
	serve(r, long(get("guest", "/v1/pairings/{code}", "Wait for whoever comes by a link; null while nobody has")), r.guest)
	pair := post("pair", "/v1/pairings/{code}", "Say that it is the right one")
	serve(r, pair, func(ctx context.Context, in *pairInput) (Pairing, error) {
		now, was, err := r.engine.Pair(ctx, who(ctx), in.Code, in.Body.Address)
		return fromPairing(now, was), err
	})
	dismiss := remove("dismiss", "/v1/pairings/{code}", "End an invitation")
	serve(r, dismiss, func(ctx context.Context, in *codeInput) (struct{}, error) {
		return struct{}{}, r.engine.Dismiss(ctx, who(ctx), in.Code)
	})
	unpair := remove("unpair", "/v1/people/{name}/pairing", "Take the account away that somebody was paired with")
	serve(r, unpair, func(ctx context.Context, in *unpairInput) (Pairing, error) {
		was, err := r.engine.Unpair(ctx, who(ctx), in.Name, in.Via)
		return fromPairing(was, permissions.Pairing{}), err
	})
	propose := post("pair-sender", "/v1/senders/{account}/pair", "Say whose an unknown account is: it pairs once another person says so, too")
	serve(r, propose, func(ctx context.Context, in *senderInput) (Sender, error) {
		s, paired, err := r.engine.PairSender(ctx, who(ctx), in.Body.Name, in.Account)
		return Sender{Via: s.Via, Account: s.Account, Paired: paired}, err
	})
	withdraw := remove("withdraw-pairing", "/v1/senders/{account}", "Take that back")
	serve(r, withdraw, func(ctx context.Context, in *withdrawInput) (none nothingBody, err error) {
		return none, r.engine.WithdrawPairing(ctx, who(ctx), in.Name, in.Account)
	})
}

func (r *routes) guest(ctx context.Context, in *guestInput) (*Guest, error) {
	wait, err := wire.ParseWait(in.Wait)
	if err != nil {
		return nil, permissions.Invalid(err)
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	g, err := r.engine.Guest(limited, who(ctx), in.Code)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, nil // nobody has come yet
	case err != nil:
		return nil, err
	}
	return &Guest{Address: g.Address, Name: g.Name, Language: g.Language, By: g.By}, nil
}

func fromPairing(p, was permissions.Pairing) Pairing {
	return Pairing{
		Person: p.Person, Via: p.Via, Address: p.Address, PairedAt: p.PairedAt.UTC(), Was: wire.OrNull(was.Address),
	}
}

// Invite makes a link by which the person of that name pairs an account.
func (c *Client) Invite(ctx context.Context, name, via string) (connectors.Invitation, error) {
	var in inviteInput
	in.Body.Name, in.Body.Via = name, via
	return ask[connectors.Invitation](ctx, c, http.MethodPost, "/v1/pairings", in.Body, wire.MaxWait)
}

// Guest waits until an account has used an invitation's link, or until ctx ends.
func (c *Client) Guest(ctx context.Context, code string) (Guest, error) {
	for {
		path := pairingPath(code) + "?wait=" + wire.MaxWait.String()
		g, err := ask[*Guest](ctx, c, http.MethodGet, path, nil, wire.MaxWait)
		if err != nil || g != nil {
			return wire.Value(g), err
		}
	}
}

// Pair pairs an invitation's candidate with its person.
func (c *Client) Pair(ctx context.Context, code, address string) (Pairing, error) {
	var in pairInput
	in.Body.Address = address
	return ask[Pairing](ctx, c, http.MethodPost, pairingPath(code), in.Body, 0)
}

func pairingPath(code string) string { return "/v1/pairings/" + url.PathEscape(code) }

// Dismiss ends an invitation.
func (c *Client) Dismiss(ctx context.Context, code string) error {
	_, err := ask[struct{}](ctx, c, http.MethodDelete, pairingPath(code), nil, 0)
	return err
}

// Unpair removes a person's paired account and returns it.
func (c *Client) Unpair(ctx context.Context, name, via string) (Pairing, error) {
	path := "/v1/people/" + url.PathEscape(name) + "/pairing?via=" + url.QueryEscape(via)
	return ask[Pairing](ctx, c, http.MethodDelete, path, nil, 0)
}

// Lock is the JSON form of a lock, also of one that just ended.
type Lock struct {
	Person    string    `json:"person"`
	Locked    bool      `json:"locked" doc:"false once they are unlocked"`
	LockedAt  time.Time `json:"locked_at"`
	LockedBy  string    `json:"locked_by"`
	Via       string    `json:"via"`
	Unlocking []string  `json:"unlocking" doc:"people who have said that it may end; it takes two, or the operator"`
	Holds     []string  `json:"holds,omitempty" doc:"other names under which the configuration has now whoever is locked by it"`
	Already   bool      `json:"already,omitempty" doc:"they were locked before, and nothing is new"`
	Unsaved   bool      `json:"unsaved,omitempty" doc:"it could not be stored yet: a restart before it is forgets it"`

	Voided  []wire.Request `json:"voided,omitempty" doc:"approvals that were not used, and are taken back"`
	Used    []wire.Request `json:"used,omitempty" doc:"approvals that were used before, or of which whoever asked was told"`
	Revoked []revoked      `json:"revoked,omitempty" doc:"grants that are taken back, and what ran under them"`
}

func fromLock(l permissions.Locked, over bool) Lock {
	return Lock{
		Person: l.Person, Locked: !over, LockedAt: l.At.UTC(), LockedBy: l.By, Via: l.Via,
		Holds: l.OtherNames, Already: l.Already, Unsaved: l.Unsaved != nil,
		Unlocking: wire.Map(l.Unlocking, func(said string) string { return strings.Split(said, " (")[0] }), // without their accounts
		Voided:    wireRequests(l.Voided), Used: wireRequests(l.Used), Revoked: wire.Map(l.Revoked, revokedOf),
	}
}

type lockInput struct {
	Name string `path:"name" maxLength:"200"`
	Body struct {
		Since time.Time `json:"since,omitzero" doc:"take back what the person has given since then"`
	}
}

func (r *routes) registerLocks() {
	lock := long(post("lock", "/v1/people/{name}/lock", "Have nothing count that comes from a person's accounts"))
	serve(r, lock, finishInBackground(func(ctx context.Context, in *lockInput) (Lock, error) {
		l, err := r.engine.Lock(ctx, who(ctx), in.Name, in.Body.Since)
		return fromLock(l, false), err
	}))
	unlock := remove("unlock", "/v1/people/{name}/lock", "End a lock: the operator at once, else two people")
	serve(r, unlock, func(ctx context.Context, in *personInput) (Lock, error) {
		l, over, err := r.engine.Unlock(ctx, who(ctx), in.Name)
		return fromLock(permissions.Locked{Lock: l}, over), err
	})
}

// Absence is the JSON form of an absence that holds.
type Absence struct {
	Person string    `json:"person"`
	Until  time.Time `json:"until"`
	To     *string   `json:"to" doc:"who is asked instead where a route lets them decide; null: whoever the route escalates to"`
	Since  time.Time `json:"since"`
}

// absences returns who is away.
func (r *routes) absences() []Absence {
	return wire.Map(r.engine.Absences(), func(a permissions.Absence) Absence {
		return Absence{Person: a.Person, Until: a.Until.UTC(), To: wire.OrNull(a.To), Since: a.At.UTC()}
	})
}

// absence returns the absence of a person, or nil.
func (r *routes) absence(name string) *Absence {
	for _, a := range r.absences() {
		if a.Person == name {
			return &a
		}
	}
	return nil
}

type awayInput struct {
	Body struct {
		Until time.Time `json:"until" doc:"at most 60 days from now"`
		To    string    `json:"to,omitzero" maxLength:"200" doc:"who is asked instead where a route lets them decide"`
	}
}

func (r *routes) registerAway() {
	away := post("away", "/v1/away", "Have others asked instead of the caller until a time, as far as the routes name any")
	serve(r, away, func(ctx context.Context, in *awayInput) (none nothingBody, err error) {
		if in.Body.Until.IsZero() {
			return none, permissions.Invalid(errors.New("until is missing"))
		}
		return none, r.engine.SetAway(ctx, who(ctx), in.Body.Until, in.Body.To)
	})
	back := remove("back", "/v1/away", "Have the caller asked again")
	serve(r, back, func(ctx context.Context, _ *struct{}) (none nothingBody, err error) {
		return none, r.engine.SetAway(ctx, who(ctx), time.Time{}, "")
	})
}

type senderInput struct {
	Account string `path:"account" maxLength:"64"`
	Body    struct {
		Name string `json:"name" maxLength:"200"`
	}
}

type withdrawInput struct {
	Account string `path:"account" maxLength:"64"`
	Name    string `query:"name" maxLength:"200"`
}

// Sender is the JSON form of an unknown account of which somebody says whose it is.
type Sender struct {
	Via     string `json:"via"`
	Account string `json:"account"`
	Paired  bool   `json:"paired" doc:"false as long as nobody else has said so"`
}

// PairSender is that of [connectors.Inbound]. The identity is ignored: the socket proves it.
func (c *Client) PairSender(
	ctx context.Context, _ connectors.Identity, name, account string,
) (s permissions.UnknownSender, paired bool, err error) {
	var in senderInput
	in.Body.Name = name
	is, err := ask[Sender](ctx, c, http.MethodPost, senderPath(account)+"/pair", in.Body, 0)
	return permissions.UnknownSender{Via: is.Via, Account: is.Account}, is.Paired, err
}

// WithdrawPairing is that of [connectors.Inbound].
func (c *Client) WithdrawPairing(ctx context.Context, _ connectors.Identity, name, account string) error {
	_, err := ask[nothingBody](ctx, c, http.MethodDelete, senderPath(account)+"?name="+url.QueryEscape(name), nil, 0)
	return err
}

func senderPath(account string) string { return "/v1/senders/" + url.PathEscape(account) }

// SetAway is that of [connectors.Inbound]. The identity is ignored: the socket proves it.
func (c *Client) SetAway(ctx context.Context, _ connectors.Identity, until time.Time, to string) error {
	if until.IsZero() {
		_, err := ask[nothingBody](ctx, c, http.MethodDelete, "/v1/away", nil, 0)
		return err
	}
	var in awayInput
	in.Body.Until, in.Body.To = until, to
	_, err := ask[nothingBody](ctx, c, http.MethodPost, "/v1/away", in.Body, 0)
	return err
}

func wireRequests(all []permissions.Request) []wire.Request {
	return wire.Map(all, func(q permissions.Request) wire.Request { return wire.From(permissions.RequestView{Request: q}, true) })
}

// Lock ignores everything from a person's accounts until Unlock, and withdraws what they gave since a time, unless zero.
func (c *Client) Lock(ctx context.Context, name string, since time.Time) (Lock, error) {
	var in lockInput
	in.Body.Since = since
	return ask[Lock](ctx, c, http.MethodPost, lockPath(name), in.Body, wire.MaxWait)
}

// Unlock ends a lock, or returns it with who else has to agree.
func (c *Client) Unlock(ctx context.Context, name string) (Lock, error) {
	return ask[Lock](ctx, c, http.MethodDelete, lockPath(name), nil, 0)
}

func lockPath(name string) string { return "/v1/people/" + url.PathEscape(name) + "/lock" }

// Suspended is the JSON form of a grant, a token or a pairing that a restore suspended.
type Suspended struct {
	ID          string       `json:"id" doc:"as reinstate takes it"`
	Kind        string       `json:"kind" enum:"grant,token,pairing"`
	SuspendedAt time.Time    `json:"suspended_at"`
	Grant       *wire.Grant  `json:"grant"`
	Token       *Token       `json:"token"`
	Pairing     *PairingKept `json:"pairing"`
}

// PairingKept is the JSON form of a pairing that was suspended.
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

func (r *routes) registerSuspended() {
	suspended := get("suspended", "/v1/suspended", "List what a restore suspended; for the operator")
	serve(r, suspended, func(ctx context.Context, _ *struct{}) ([]Suspended, error) {
		all, err := r.engine.Suspended(ctx, who(ctx))
		return fromSuspended(all), err
	})
	reinstate := post("reinstate", "/v1/reinstate", "Confirm what a restore suspended; for the operator")
	serve(r, reinstate, func(ctx context.Context, in *reinstateInput) ([]Suspended, error) {
		if in.Body.All == (len(in.Body.Names) > 0) {
			return nil, permissions.Invalid(errReinstate)
		}
		all, err := r.engine.Reinstate(ctx, who(ctx), in.Body.Names)
		return fromSuspended(all), err
	})
}

// Suspended lists what a restore suspended.
func (c *Client) Suspended(ctx context.Context) ([]Suspended, error) {
	return fetch[[]Suspended](ctx, c, "/v1/suspended")
}

// Reinstate confirms what the names mean, or everything without names, and returns it.
func (c *Client) Reinstate(ctx context.Context, names []string) ([]Suspended, error) {
	var in reinstateInput
	in.Body.Names, in.Body.All = names, len(names) == 0
	return ask[[]Suspended](ctx, c, http.MethodPost, "/v1/reinstate", in.Body, 0)
}
