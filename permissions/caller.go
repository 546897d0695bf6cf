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

// Caller is who asks, proven by the door it came through. Grants, keys, joining, limits and reading belong to it.
type Caller struct {
	// Name is the proof: "uid:1000", "token:deploy", "agent:helper" or [Anonymous].
	Name string
	// UID is the OS account the call came from, or [NoUID] where the door cannot know it, or [AnyUID].
	UID int
}

// What a caller's UID may be besides an account.
const (
	NoUID  = -1 // came from elsewhere: nobody here asked it
	AnyUID = -2 // came over loopback TCP: counts as every local account
)

// Anonymous is the name of callers that prove nothing. Since they cannot be told apart, they hold no grants.
const Anonymous = "anonymous"

// CallerUID is the caller that a unix socket's peer credentials prove.
func CallerUID(uid int) Caller { return Caller{Name: "uid:" + strconv.Itoa(uid), UID: uid} }

// Ours reports whether the caller is one of the daemon's own agents, whose runs and sessions daycared itself keeps.
func (c Caller) Ours() bool { return strings.HasPrefix(c.Name, "agent:") }

// CameFrom reports whether the call counts as made by that account.
func (c Caller) CameFrom(uid int) bool { return uid >= 0 && (c.UID == AnyUID || c.UID == uid) }

// Proven is the name that routes match: a token's or an agent's own name, or "uid:1000".
func (c Caller) Proven() string {
	kind, name, _ := strings.Cut(c.Name, ":")
	if kind == "token" || kind == "agent" {
		return name
	}
	return c.Name
}

// Token is who an agent is, beyond the account that it runs as. Of its [Secret] only the hash is kept.
type Token struct {
	ID        ID
	Name      string // the proven name that routes match; several tokens may share it, so that one can replace another
	Person    string // whose agent it is, the same for all tokens of a name; empty: nobody's in particular
	Hash      Digest
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time
	UsedAt    time.Time // last, to the minute
	// SuspendedAt is since when the token proves nothing, because the store was restored; the operator may reinstate it.
	SuspendedAt time.Time
}

// Valid reports whether the token proves anything at now.
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
