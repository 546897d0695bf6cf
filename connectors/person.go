package connectors

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
)

// Person is somebody who may decide, with their addresses in the channels.
type Person struct {
	Name string
	User string // OS account
	UID  int    // of User; permissions.NoUID without one
	// Addresses are those in channels, by the name of the [Kind]. Aliases are other ids of the same accounts, recorded when
	// they were paired. The maps are never changed.
	Addresses, Aliases map[string]string
	// Suspended are the channels in which their account may now belong to somebody else. They have no address there.
	Suspended []string
	// Unconfirmed are those of Suspended that were paired before the store was restored. The operator has to confirm them.
	Unconfirmed []string
	// Locked is the name under which the person is locked, usually their own; empty: they are not. Nothing from their
	// accounts counts, and nothing is sent there.
	Locked string
	// Ended counts how often the account by which they were identified has ceased to answer for somebody, by a lock, a suspension or
	// a configuration without it. A first of two steps counts only until that happens.
	Ended int
	// Away, while it holds, says that they do not answer.
	Away     permissions.Absence
	Location *time.Location
	Language i18n.Language // of texts to them; empty: that of their channel, else English
	Quiet    Hours         // when they are not to be disturbed, in Location
	// PhoneAfter is how long requests of an agent's hook are kept from their phone, so that they can answer at the agent.
	PhoneAfter time.Duration
	Via        []string // the channels to try in this order; empty: the daemon's order
}

// WithAddress returns p with that address in a channel; an empty one is none.
func (p Person) WithAddress(channel, address string) Person {
	p.Addresses = with(p.Addresses, channel, address)
	return p
}

// WithAlias returns p with another id of its account in a channel.
func (p Person) WithAlias(channel, alias string) Person {
	p.Aliases = with(p.Aliases, channel, alias)
	return p
}

// with returns a copy of m in which key has that value, or is missing if that is empty.
func with(m map[string]string, key, value string) map[string]string {
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	if m[key] = value; value == "" {
		delete(m, key)
	}
	return m
}

// Kind is a kind of channel in which people have addresses. A connector of that name serves it.
type Kind struct {
	Name        string // in the configuration, in decided_via, and in accounts as the audit names them
	Label       string // for people
	Description string // what an address is, in words
	Number      bool   // an address is a number in the configuration, never quoted
	Example     string // an address that nobody has, as the configuration has it
	Groups      bool   // routes can name groups of this kind
	// Parse reads an address. The error goes on after the text: it says what is wrong and, after a semicolon, what is right.
	Parse func(text string) (address string, err error)
	// Correct returns what was certainly meant by a text that is no address. It may be nil.
	Correct func(text string) (address string, ok bool)
}

// Kinds are all that there are. People are paired with the first unless another one is named.
var Kinds = []Kind{
	{
		Name: "telegram", Label: "Telegram", Description: "a numeric id", Number: true, Example: "123456789", Groups: true, Parse: parseID,
	},
	{
		Name: "whatsapp", Label: "WhatsApp", Description: "a phone number", Example: strconv.Quote(examplePhone), Parse: ParsePhone,
		Correct: correctPhone,
	},
}

// KindNames are the names of all kinds, in their order.
func KindNames() []string {
	names := make([]string, len(Kinds))
	for i, k := range Kinds {
		names[i] = k.Name
	}
	return names
}

// KindOf finds the kind of that name.
func KindOf(name string) (Kind, bool) {
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return Kinds[i], true
}

// parseID reads a numeric user id of Telegram. Usernames can change hands, so they are no address.
func parseID(s string) (string, error) {
	const right = "write the numeric id, as in telegram: 123456789"
	if strings.HasPrefix(s, "+") {
		return "", errors.New("looks like a phone number; " + right)
	}
	if strings.Trim(s, "-0123456789") != "" {
		return "", errors.New("is a username, which can change hands; " + right)
	}
	digits := strings.TrimPrefix(s, "-")
	n, err := strconv.ParseInt(s, 10, 64)
	switch rest := strings.TrimLeft(digits, "0"); {
	case digits == "" || strings.Contains(digits, "-"):
		return "", errors.New("is not a whole number; write digits only, as in 20")
	case len(digits) > 1 && rest != digits:
		return "", errors.New("begins with 0, which YAML reads as octal; write " + cmp.Or(rest, "0"))
	case err != nil:
		return "", errors.New("is too large; write a smaller number")
	case n < 0:
		return "", errors.New("is the id of a group; write that of a person, which is positive")
	case n == 0:
		return "", errors.New("is nobody's id; " + right)
	}
	return s, nil
}

// e164 is an international number: a plus, the country code, and at most 15 digits in all.
var e164 = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

// examplePhone is nobody's: its range is Ofcom's for films. An example that somebody has could come to decide here.
const examplePhone = "+447700900123"

// ParsePhone reads a phone number. The error is as that of [Kind.Parse].
func ParsePhone(s string) (string, error) {
	if e164.MatchString(s) {
		return s, nil
	}
	if meant, ok := correctPhone(s); ok {
		return "", fmt.Errorf("is not how an international number is written; write %q", meant)
	}
	return "", fmt.Errorf("is not an international number; begin with + and the country code, as in %q", examplePhone)
}

// trunk is the zero that some write between the country code and the rest, and that is not dialled from abroad.
var trunk = regexp.MustCompile(`\(0\)`)

// correctPhone removes what people put between the digits. It adds no country code: whoever had that number would decide.
func correctPhone(s string) (meant string, ok bool) {
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, trunk.ReplaceAllString(s, ""))
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "+") {
		if digits, ok = strings.CutPrefix(digits, "00"); !ok {
			return "", false
		}
	}
	meant = "+" + digits
	return meant, e164.MatchString(meant) && strings.Trim(s, "+0123456789 ()-./\u00a0") == ""
}

// NewLRU returns a cache of at most that many keys, least recently used ones dropped. It is safe for concurrent use.
func NewLRU[K comparable, V any](most int) *lru.Cache[K, V] {
	memory, _ := lru.New[K, V](most) // its only error is a size of zero or less
	return memory
}

// maxDaily limits how many keys a [OncePerDay] remembers. At the limit it does nothing more until some expire.
const maxDaily = 10_000

// OncePerDay does things at most once a day for each key. It is safe for concurrent use; its zero value is ready.
type OncePerDay[K comparable] struct {
	mu   sync.Mutex
	done map[K]time.Time
}

// Do calls do unless it succeeded for key within 24 hours, and reports whether it did now. After an error it may be repeated.
func (d *OncePerDay[K]) Do(key K, now time.Time, do func() error) (bool, error) {
	if !d.begin(key, now) {
		return false, nil
	}
	err := do()
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.done, key)
	}
	return err == nil, err
}

func (d *OncePerDay[K]) begin(key K, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.done, func(_ K, at time.Time) bool { return now.Sub(at) > 24*time.Hour })
	if _, known := d.done[key]; known || len(d.done) >= maxDaily {
		return false
	}
	if d.done == nil {
		d.done = map[K]time.Time{}
	}
	d.done[key] = now
	return true
}

// LostAccounts holds the accounts of a channel that cannot be written to until their people act, by the channel's id. It is safe
// for concurrent use; its zero value is ready.
type LostAccounts struct {
	mu  sync.Mutex
	all map[string]lostAccount
}

type lostAccount struct {
	why   string
	since time.Time
}

const sinceThen = "{since}"

// Note adds an account and the reason, in which {since} is replaced by the time. A known account stays unchanged.
func (l *LostAccounts) Note(account, why string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.all[account]; known {
		return
	}
	if l.all == nil {
		l.all = map[string]lostAccount{}
	}
	l.all[account] = lostAccount{why, now}
}

// Recover removes an account and calls tell if it was present. If tell fails, the account is added again.
func (l *LostAccounts) Recover(account string, tell func() error) error {
	l.mu.Lock()
	was, known := l.all[account]
	delete(l.all, account)
	l.mu.Unlock()
	if !known {
		return nil
	}
	err := tell()
	if err != nil {
		l.Note(account, was.why, was.since)
	}
	return err
}

// Reach returns nil, or why nothing reaches account, which belongs to p. Times are in p's time zone.
func (l *LostAccounts) Reach(account string, p Person, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	is, known := l.all[account]
	if !known {
		return nil
	}
	since, today, form := is.since, now, "15:04 MST"
	if p.Location != nil {
		since, today = since.In(p.Location), today.In(p.Location)
	}
	if since.YearDay() != today.YearDay() || since.Year() != today.Year() {
		form = "2 Jan 15:04 MST"
	}
	return &UnreachableError{Reason: strings.ReplaceAll(is.why, sinceThen, since.Format(form)), Lost: true}
}

// Hours is a daily interval in minutes of the day, From inclusive and To exclusive, perhaps past midnight; zero is empty.
type Hours struct{ From, To int }

// Hold reports whether t, in its own location, lies within.
func (h Hours) Hold(t time.Time) bool {
	now := t.Hour()*60 + t.Minute()
	if h.From <= h.To {
		return h.From <= now && now < h.To
	}
	return now >= h.From || now < h.To
}

// Contact is the current state of one channel and whom it reaches.
type Contact struct {
	Channel string
	Health  error // what is wrong with the whole channel, or nil
	// People has everybody who may be asked, by name: nil if the channel can reach them now, else the reason.
	People map[string]error
	// Suspended has the people whose account in this channel may decide nothing, with the reason and what to do.
	Suspended map[string]error
}

// Reaches reports whether the channel is healthy, but for groups, and can reach that person now.
func (c Contact) Reaches(name string) bool {
	why, known := c.People[name]
	return known && why == nil && (c.Health == nil || errors.As(c.Health, new(GroupError)))
}
