package permissions

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Token is who an agent is, beyond the account that it runs as. Of its [Secret] only the hash is kept.
type Token struct {
	ID        ID
	Name      string // the proven name that routes match; several tokens may share it, so that one can replace another
	Hash      Digest
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time
	UsedAt    time.Time // last, to the minute
	// SuspendedAt is since when the token proves nothing, because the store was restored; the operator may reinstate it.
	SuspendedAt time.Time
}

// Valid tells whether the token proves anything at now.
func (t Token) Valid(now time.Time) bool {
	return t.RevokedAt.IsZero() && t.SuspendedAt.IsZero() && !now.Before(t.CreatedAt) && (t.ExpiresAt.IsZero() || now.Before(t.ExpiresAt))
}

// Caller is who asks with the token, over a connection of that account.
func (t Token) Caller(uid int) Caller { return Caller{Name: "token:" + t.Name, UID: uid} }

// secretPrefix begins an agent's secret, so that scanners and people know what they have found.
const secretPrefix = "dcd_a_"

// Secret is what an agent presents: 256 random bits behind `dcd_a_`. It does not print.
type Secret string

// NewSecret makes a secret.
func NewSecret() Secret {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return Secret(secretPrefix + base64.RawURLEncoding.EncodeToString(b[:]))
}

// Hash is what is kept of the secret. ok is false for what cannot be one.
func (s Secret) Hash() (hash Digest, ok bool) {
	rest, found := strings.CutPrefix(string(s), secretPrefix)
	b, err := base64.RawURLEncoding.DecodeString(rest)
	return sha256.Sum256([]byte(s)), found && err == nil && len(b) == 32
}

// String hides the secret.
func (Secret) String() string { return "‹token›" }

// GoString hides the secret.
func (s Secret) GoString() string { return s.String() }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// CheckTokenName tells what is wrong with the name of a token: it is shown on cards and matched by routes.
func CheckTokenName(name string) error {
	const most = 64
	plain := strings.Trim(name, ".") != "" && len(name) <= most && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("._-", c)
	})
	if !plain {
		return fmt.Errorf("the name of a token has 1 to %d letters, digits, dots, dashes and underscores, not %q", most, name)
	}
	return nil
}
