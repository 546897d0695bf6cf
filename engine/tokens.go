package engine

import (
	"context"
	"errors"
	"time"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/permissions"
)

// CreateToken makes a token for an agent; expires is how long it is valid, 0 for ever. The secret is told this once.
func (e *Engine) CreateToken(
	ctx context.Context, id connectors.Identity, name string, expires time.Duration,
) (permissions.Secret, permissions.Token, error) {
	if !id.Operator {
		return "", permissions.Token{}, permissions.OperatorOnly()
	}
	if err := permissions.CheckTokenName(name); err != nil {
		return "", permissions.Token{}, permissions.Invalid(err)
	}
	if expires < 0 {
		return "", permissions.Token{}, permissions.Invalid(errors.New("a token cannot have expired before it is made"))
	}
	who, err := e.Who(id)
	if err != nil {
		return "", permissions.Token{}, err
	}
	secret := permissions.NewSecret()
	hash, _ := secret.Hash()
	now := e.stamp()
	t := permissions.Token{ID: permissions.NewID(now), Name: name, Hash: hash, CreatedAt: now}
	if expires > 0 {
		t.ExpiresAt = now.Add(expires)
	}
	if err := e.store.AddToken(ctx, t, who, id.Via); err != nil {
		return "", permissions.Token{}, broken(err)
	}
	return secret, t, nil
}

// Tokens lists the tokens that are not revoked.
func (e *Engine) Tokens(ctx context.Context, id connectors.Identity) ([]permissions.Token, error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	tokens, err := e.store.Tokens(ctx)
	return tokens, broken(err)
}

// RevokeToken revokes one token by its id, or all of a name.
func (e *Engine) RevokeToken(ctx context.Context, id connectors.Identity, name string) ([]permissions.Token, error) {
	if !id.Operator {
		return nil, permissions.OperatorOnly()
	}
	who, err := e.Who(id)
	if err != nil {
		return nil, err
	}
	tokens, err := e.store.RevokeToken(ctx, name, who, id.Via, e.stamp())
	return tokens, broken(err)
}

// Prove is who asks with a token, over a connection of that account.
func (e *Engine) Prove(ctx context.Context, secret permissions.Secret, uid int) (permissions.Caller, error) {
	hash, ok := secret.Hash()
	if !ok {
		return permissions.Caller{}, permissions.UnknownToken()
	}
	t, err := e.store.Prove(ctx, hash, e.clock.Now())
	if err != nil {
		return permissions.Caller{}, broken(err)
	}
	return t.Caller(uid), nil
}
