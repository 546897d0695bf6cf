package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/engine/shared"
	"github.com/daycared/daycared/permissions"
)

// tokens proves callers by their tokens.
type tokens struct {
	*services

	forget   func(matches func(decisionKey) bool) // see [Engine.forgetDecisions]
	steering chanMutex                            // that of stops: one change of tokens or stop at a time
	mu       sync.Mutex
	bearers  map[permissions.Digest]map[*bearer]bool // by the hash of the token
}

// CreateToken creates a token for an agent of a person, or of nobody in particular if person is empty. It expires after
// expires; 0: never. The secret is returned only here.
func (k *tokens) CreateToken(
	ctx context.Context, id connectors.Identity, name, person string, expires time.Duration,
) (permissions.Secret, permissions.Token, error) {
	who, err := k.Operator(id)
	if err != nil {
		return "", permissions.Token{}, err
	}
	if err := permissions.CheckTokenName(name); err != nil {
		return "", permissions.Token{}, permissions.Invalid(err)
	}
	if expires < 0 {
		return "", permissions.Token{}, permissions.Invalid(errors.New("a token cannot have expired before it is made"))
	}
	if k.Settings().HasAgent(name) {
		return "", permissions.Token{}, permissions.Invalid(fmt.Errorf("%s is an agent of this daemon; write another name", name))
	}
	k.steering.Lock()
	defer k.steering.Unlock()
	if person, err = k.TokenOwner(ctx, name, person); err != nil {
		return "", permissions.Token{}, err
	}
	secret := permissions.NewSecret()
	hash, _ := secret.Hash()
	now := k.clock.Stamp()
	t := permissions.Token{ID: permissions.NewID(now), Name: name, Person: person, Hash: hash, CreatedAt: now}
	if expires > 0 {
		t.ExpiresAt = now.Add(expires)
	}
	if err := k.clearName(context.WithoutCancel(ctx), name, who, id.Via); err != nil { // also if the last one expired
		return "", permissions.Token{}, shared.Broken(err)
	}
	if err := k.store.AddToken(ctx, t, who, id.Via); err != nil {
		return "", permissions.Token{}, shared.Broken(err)
	}
	return secret, t, shared.Broken(k.ReadOwners(ctx))
}

// Tokens lists the tokens that are not revoked.
func (k *tokens) Tokens(ctx context.Context, id connectors.Identity) ([]permissions.Token, error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	tokens, err := k.store.Tokens(ctx)
	return tokens, shared.Unread(err)
}

// RevokeToken revokes one token by its id, or all tokens of a name.
func (k *tokens) RevokeToken(ctx context.Context, id connectors.Identity, name string) ([]permissions.Token, error) {
	who, err := k.Operator(id)
	if err != nil {
		return nil, err
	}
	k.steering.Lock()
	defer k.steering.Unlock()
	tokens, err := k.store.RevokeToken(ctx, name, who, id.Via, k.clock.Stamp())
	if err != nil && permissions.CodeOf(err) != permissions.CodeUnknown {
		return tokens, shared.Broken(err)
	}
	k.mu.Lock()
	for _, t := range tokens {
		for b := range k.bearers[t.Hash] {
			b.end(permissions.UnknownToken())
		}
	}
	k.mu.Unlock()
	var closed error // looking for missing rows may take long
	missing, unknown := k.FindMissing(ctx, permissions.NoToken(name), permissions.TokenRevoked, name)
	switch {
	case unknown == nil:
		closed = k.CloseMissing(ctx, id, who, missing)
		tokens = append(tokens, permissions.Token{Name: missing[0].Detail["name"]})
	case err != nil:
		return tokens, shared.Broken(unknown)
	case permissions.CodeOf(unknown) != permissions.CodeUnknown:
		closed = shared.Broken(unknown)
	}
	ctx = context.WithoutCancel(ctx)
	if err := errors.Join(k.ReadOwners(ctx), k.clearName(ctx, tokens[0].Name, who, id.Via)); err != nil || closed == nil {
		return tokens, shared.Broken(err)
	}
	k.endRevoked(ctx)
	return tokens, closed
}

// endRevoked ends the calls whose tokens are not valid any more.
func (k *tokens) endRevoked(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for hash, calls := range k.bearers {
		if _, err := k.store.VerifyToken(ctx, hash, k.clock.Now()); permissions.CodeOf(err) == permissions.CodeToken {
			for b := range calls {
				b.end(permissions.UnknownToken())
			}
		}
	}
}

// clearName clears a name that no token proves any more, for its next holder: it withdraws pending requests and revokes
// grants and unused approvals. The caller holds the lock of stops.
func (k *tokens) clearName(ctx context.Context, name, who, via string) error {
	now, caller := k.clock.Stamp(), permissions.Token{Name: name}.Caller(permissions.NoUID).Name
	tokens, err := k.store.Tokens(ctx)
	if err != nil || slices.ContainsFunc(tokens, func(t permissions.Token) bool { return t.Name == name && !t.Expired(now) }) {
		return err
	}
	k.forget(func(of decisionKey) bool { return of.caller == caller })
	grants, err := k.store.GrantsInForce(ctx, "", now, "", math.MaxInt)
	for _, g := range grants {
		if g.Caller != caller {
			continue
		}
		_, failed := k.store.Revoke(ctx, g.ID, who, via, now, shared.RanMost)
		k.registry.ForgetGrant(g.ID)
		err = errors.Join(err, failed)
	}
	left, unread := k.store.LeftRequests(ctx, caller, now.Add(-k.Settings().Approvals.RedeemWindow))
	err = errors.Join(err, unread)
	for _, id := range left {
		r, failed := k.store.Read(ctx, id)
		switch {
		case errors.Is(failed, permissions.ErrRow): // it grants nothing
			continue
		case failed != nil:
		case r.State == permissions.Pending:
			_, failed = k.registry.Cancel(ctx, id, who, via)
		case r.State == permissions.Approved:
			_, failed = k.registry.Resolve(ctx, id, permissions.Void{By: who, Via: via, At: now})
		}
		if failed == nil { // an equal question by the next holder does not find the outcome
			_, failed = k.registry.Resolve(ctx, id, permissions.Collect{At: now})
		}
		if !errors.Is(failed, permissions.ErrSettled) && !errors.Is(failed, permissions.ErrLate) && !errors.Is(failed, permissions.ErrNoUse) {
			err = errors.Join(err, failed)
		}
	}
	k.registry.NotifyNotices()
	return err
}

// clearExpired clears the names whose last token has expired.
func (k *tokens) clearExpired(ctx context.Context) error {
	k.steering.Lock()
	defer k.steering.Unlock()
	callers, err := k.store.Callers(ctx, k.clock.Stamp())
	for _, caller := range callers {
		if name, is := permissions.TokenName(caller); is {
			err = errors.Join(err, k.clearName(ctx, name, "", permissions.ViaExpiry))
		}
	}
	return err
}

// Prove returns the caller that a token proves, over a connection of that account.
func (k *tokens) Prove(ctx context.Context, secret permissions.Secret, uid int) (permissions.Caller, error) {
	hash, ok := secret.Hash()
	if !ok {
		return permissions.Caller{}, permissions.UnknownToken()
	}
	now := k.clock.Now()
	t, err := k.store.VerifyToken(ctx, hash, now)
	if err != nil {
		return permissions.Caller{}, shared.Broken(err)
	}
	if b, borne := ctx.Value(bearerKey{}).(*bearer); borne && !t.ExpiresAt.IsZero() {
		b.expires = time.AfterFunc(t.ExpiresAt.Sub(now), func() { b.end(permissions.UnknownToken()) })
	}
	return t.Caller(uid), nil
}

// bearer is a running call that presents a token.
type bearer struct {
	context.Context //nolint:containedctx // of the call, which it is a value of

	end     context.CancelCauseFunc
	expires *time.Timer // nil: the token does not expire
}

type bearerKey struct{}

// Bear returns the context of a call that presents a token, for [Engine.Prove] and everything the call does. It ends
// with a refusal when the token is revoked or expires: the call then receives nothing more. The caller calls done after
// the call.
func (k *tokens) Bear(ctx context.Context, secret permissions.Secret) (_ context.Context, done func()) {
	hash, _ := secret.Hash()
	b := &bearer{}
	b.Context, b.end = context.WithCancelCause(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.bearers[hash] == nil {
		k.bearers[hash] = map[*bearer]bool{}
	}
	k.bearers[hash][b] = true
	return context.WithValue(b.Context, bearerKey{}, b), func() {
		b.end(nil)
		if b.expires != nil {
			b.expires.Stop()
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		if delete(k.bearers[hash], b); len(k.bearers[hash]) == 0 {
			delete(k.bearers, hash)
		}
	}
}

// bearerError returns the refusal of a call whose token was revoked or has expired since it was proven, or nil.
func bearerError(ctx context.Context) error {
	b, borne := ctx.Value(bearerKey{}).(*bearer)
	if !borne || permissions.CodeOf(context.Cause(b)) != permissions.CodeToken {
		return nil
	}
	return context.Cause(b)
}
