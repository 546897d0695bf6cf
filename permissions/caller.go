package permissions

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"
)

// Caller is who asks, as the connection proves it. Grants, keys, deduplication, limits and reading belong to it.
type Caller struct {
	// Name is the proof: "uid:1000", "token:deploy", "agent:helper" or [Anonymous].
	Name string
	// UID is the OS account that the call came from, or [NoUID] if unknown, or [AnyUID].
	UID int
}

// Special values of a caller's UID.
const (
	NoUID  = -1 // from elsewhere: no local account asked it
	AnyUID = -2 // over loopback TCP: counts as every local account
)

// Anonymous is the name of callers that prove nothing. They cannot be told apart, so they hold no grants.
const Anonymous = "anonymous"

// CallerUID returns the caller that a unix socket's peer credentials prove.
func CallerUID(uid int) Caller { return Caller{Name: "uid:" + strconv.Itoa(uid), UID: uid} }

// IsOurs reports whether the caller is one of the daemon's own agents, whose runs and sessions daycared itself keeps.
func (c Caller) IsOurs() bool { return strings.HasPrefix(c.Name, "agent:") }

// Root returns the name under which what a caller does counts: an agent of ours does not get more by starting others.
func (c Caller) Root() string {
	if c.IsOurs() {
		name, _, _ := strings.Cut(c.Name, "/")
		return name
	}
	return c.Name
}

// CameFrom reports whether the call counts as made by that account.
func (c Caller) CameFrom(uid int) bool { return uid >= 0 && (c.UID == AnyUID || c.UID == uid) }

// ProvenName returns the name that routes match: a token's or an agent's own name, or "uid:1000".
func (c Caller) ProvenName() string {
	kind, name, _ := strings.Cut(c.Name, ":")
	if kind == "token" || kind == "agent" {
		return name
	}
	return c.Name
}

// Token identifies an agent, beyond the account that it runs as. Only the hash of its [Secret] is stored.
type Token struct {
	ID        ID
	Name      string // the proven name that routes match; tokens may share it, so that one can replace another
	Person    string // the agent's owner, the same for all tokens of a name; empty: nobody in particular
	Hash      Digest
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time
	UsedAt    time.Time // last, to the minute
	// SuspendedAt is since when the token proves nothing because the store was restored; the operator may reinstate it.
	SuspendedAt time.Time
}

// Valid reports whether the token proves anything at now.
func (t Token) Valid(now time.Time) bool {
	return t.RevokedAt.IsZero() && t.SuspendedAt.IsZero() && !now.Before(t.CreatedAt) && !t.Expired(now)
}

// Expired reports whether the token has an end that is not after now.
func (t Token) Expired(now time.Time) bool { return !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt) }

// Caller returns who asks with the token, over a connection of that account.
func (t Token) Caller(uid int) Caller { return Caller{Name: tokenPrefix + t.Name, UID: uid} }

// tokenPrefix begins the name of a caller that a token proves.
const tokenPrefix = "token:"

// TokenName returns the token's name of a caller that a token proves.
func TokenName(caller string) (name string, is bool) { return strings.CutPrefix(caller, tokenPrefix) }

// secretPrefix begins an agent's secret, so that scanners and people recognize it.
const secretPrefix = "dcd_a_"

// Secret is what an agent presents: 256 random bits after `dcd_a_`. It does not print.
type Secret string

// NewSecret creates a random secret.
func NewSecret() Secret {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return Secret(secretPrefix + base64.RawURLEncoding.EncodeToString(b[:]))
}

// Hash returns the stored form of the secret. ok is false for malformed secrets.
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

// CheckTokenName returns what is wrong with the name of a token: it is shown on prompts and matched by routes.
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
