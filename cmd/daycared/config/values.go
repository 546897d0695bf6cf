package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for machines without zone files
	"unicode"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
	"github.com/daycared/daycared/permissions/i18n"
	ruling "github.com/daycared/daycared/permissions/rules"
)

// leaf is one kind of plain value.
type leaf struct {
	is      string                           // what it is, for people
	written written                          // the required YAML form
	parse   func(text string) (any, error)   // the error says what is wrong and, after a semicolon, what would be right
	format  func(value any) string           // the inverse of parse; nil: as fmt prints it
	correct func(text string) (string, bool) // what was certainly meant, if parse and quotes do not tell
}

// written is the YAML form that a plain value must have, so that YAML's interpretation does not matter.
type written int

const (
	asWord    written = iota // quoted or not: only parse understands it
	asText                   // quoted if YAML would read it as something else
	asLiteral                // never quoted: a number, true or false
)

// leafOf returns the leaf of a value of type t whose field has the tag `is`; plain is false for a section.
func leafOf(t reflect.Type, is string) (l leaf, plain bool) {
	if is == "" {
		is = t.String()
	}
	l, plain = leaves[is]
	return l, plain
}

// leaves are the kinds of plain values, by the `is` tag or the type of the field.
var leaves = map[string]leaf{
	"bool":          either("true", "false", leaf{is: "true or false", written: asLiteral}),
	"refusal":       either("false", "true", leaf{is: "true or false", written: asLiteral}),
	"shown":         either("title", "all", leaf{is: "all or title", written: asText, parse: parseShown}),
	"int":           {is: "a number", written: asLiteral, parse: parseCount},
	"time.Duration": {is: "a duration", parse: parseDuration, format: with(formatDuration)},
	"delay": {is: "a duration", format: with(formatDuration), parse: func(s string) (any, error) {
		return parseWithin(s, 0, maxDelay, "not a time to wait")
	}},
	"days":              {is: "a number of days", parse: parseDays, format: with(formatDays)},
	"config.When":       {is: "a share of the time or a duration", parse: parseWhen},
	"connectors.Hours":  {is: "hours", written: asText, parse: parseHours, format: with(formatHours), correct: correctHours},
	"channel":           {is: "a channel", parse: oneOf("channel", channels)},
	"permissions.Scope": {is: "a scope", parse: func(s string) (any, error) { return permissions.ParseScope(s) }},
	"permissions.Tag":   {is: "a permission", written: asText, parse: parseTag},
	"permissions.Kind":  {is: "a kind", parse: oneOf("kind", kinds)},
	"effect":            {is: "a kind of calls", parse: oneOf("kind", permissions.Effects)},
	"*time.Location":    {is: "a time zone", written: asText, parse: parseZone},
	"i18n.Language":     {is: "a language", written: asText, parse: oneOf("language", i18n.Languages())},
	"slog.Level":        {is: "a log level", parse: parseLevel, format: with(formatLevel)},
	"format":            {is: "a log format", parse: parseFormat},
	"glob":              {is: "a pattern", written: asText, parse: parseGlob},
	"name":              {is: "a name", written: asText, parse: parseName},
	"account":           {is: "an account", written: asText, parse: parseAccount},
	"group":             {is: "the numeric id of a group", written: asLiteral, parse: parseGroup},
	"phone":             phone(),
	"path":              {is: "a path", written: asText, parse: parsePath},
	"publisher":         {is: "log, a path or an address", written: asText, parse: parsePublisher},
	"database":          {is: "an address of PostgreSQL", written: asText, parse: parseDatabase},
	"url":               {is: "an address", written: asText, parse: parseURL},
	"socket":            {is: "a path", written: asText, parse: parseSocket},
	"listen":            {is: "an address to listen at", written: asText, parse: parseListen, correct: correctListen},
	"host":              {is: "the name of a host", written: asText, parse: parseHost},
	"token": {is: "the name of a token", written: asText, parse: func(s string) (any, error) {
		return s, permissions.CheckTokenName(s)
	}},
	"folder":    {is: "a path", written: asText, parse: parseFolder},
	"switch":    either("on", "off", leaf{is: "on or off"}),
	"sandboxed": either("allow", "ask", leaf{is: "allow or ask"}),
	"agent":     {is: "the name of an agent", written: asText, parse: parseAgent},
	"chat":      {is: "a connector", parse: oneOf("connector", chats)},
	"denial":    {is: "continue or terminate", parse: oneOf("what follows a denial", denials)},
	"provider":  {is: "a provider", parse: oneOf("provider", providers)},
	"service":   {is: "an address", written: asText, parse: parseService},
	"endpoint": {is: "an address", written: asText, parse: func(s string) (any, error) { // whether it may be http depends on what is sent
		return address(s, "http://127.0.0.1:11434/v1")
	}},
	"words":        {is: "text", written: asText, parse: parseWords},
	"variable":     {is: "the name of a variable", written: asText, parse: parseVariable},
	"config.Price": {is: "a price", written: asLiteral, parse: parsePrice},
	"cron":         {is: "a cron expression", written: asText, parse: parseCron},
	"config.Clock": {is: "a time of the day", written: asText, parse: parseClock, correct: correctClock},
	"netip.Prefix": {is: "a network", written: asText, parse: parsePrefix},
	"acts":         {is: "text", written: asText, parse: parseActs},
	"starter":      {is: "the name of a starter set", written: asText, parse: parseStarter},
	"day":          {is: "a day", parse: parseDay, format: with(formatDay)},
	"why":          {is: "text", written: asText, parse: parseWhy},
}

func (l leaf) text(value any) string {
	if l.format == nil {
		return fmt.Sprint(value)
	}
	return l.format(value)
}

// with adapts a formatter of values of one type.
func with[T any](f func(T) string) func(any) string {
	return func(v any) string {
		return f(v.(T)) //nolint:errcheck // parse and Default return values of the key's type
	}
}

func formatLevel(l slog.Level) string { return strings.ToLower(l.String()) }

// either is a leaf for one of two words, for yes and no.
func either(yes, no string, l leaf) leaf {
	l.format = with(func(on bool) string {
		if on {
			return yes
		}
		return no
	})
	if l.parse != nil {
		return l
	}
	l.parse = func(s string) (any, error) {
		right := yes + " or " + no
		switch strings.ToLower(s) {
		case "true", "yes", "on", "y", "1":
			right = yes
		case "false", "no", "off", "n", "0":
			right = no
		}
		if s == yes || s == no {
			return s == yes, nil
		}
		return nil, fmt.Errorf("%s is neither %s nor %s; write %s", quote(s), yes, no, right)
	}
	return l
}

// maxCount is the maximum of all counts; it fits 32-bit columns and multiplications.
const maxCount = 1_000_000_000

func parseCount(s string) (any, error) {
	n, err := parseInt(s)
	switch {
	case err != nil:
		return nil, err
	case n < 1:
		return nil, fmt.Errorf("%s is not enough; write 1 or more", quote(s))
	case n > maxCount:
		return nil, fmt.Errorf("%s is too much; write %d or less", quote(s), maxCount)
	}
	return int(n), nil
}

// parseInt parses decimal digits only, not YAML's other forms of numbers.
func parseInt(s string) (int64, error) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, fmt.Errorf("%s is not a whole number; write digits only, as in 20", quote(s))
	}
	if rest := strings.TrimLeft(digits, "0"); len(digits) > 1 && rest != digits {
		return 0, fmt.Errorf("%s begins with 0, which YAML reads as octal; write %s", quote(s), cmp.Or(rest, "0"))
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is too large; write a smaller number", quote(s))
	}
	return n, nil
}

func parseTag(s string) (any, error) {
	t, err := permissions.ParseTag(s)
	if err == nil && t.String() != s {
		return nil, fmt.Errorf("%s has space around it; write %q", quote(s), t)
	}
	if err != nil && !strings.Contains(err.Error(), "; ") {
		return nil, fmt.Errorf(`%w; write an absolute, clean path, as in "@write:/srv/www"`, err)
	}
	return t, err
}

// parseActs parses a pattern of a rule, a command or a variable; rules.go checks them.
func parseActs(s string) (any, error) {
	if strings.TrimSpace(s) == "" {
		return nil, errors.New(`an empty text says nothing; write it as in "run git status"`)
	}
	return s, nil
}

func parseStarter(s string) (any, error) {
	if slices.Contains(ruling.Sets(), s) {
		return s, nil
	}
	return nil, fmt.Errorf("there is no starter set %s; %s", quote(s), suggest(s, ruling.Sets()))
}

// parseDay returns the end of a day.
func parseDay(s string) (any, error) {
	day, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return nil, fmt.Errorf("%s is no day; write it as in 2027-01-31", quote(s))
	}
	return day.AddDate(0, 0, 1), nil
}

func formatDay(end time.Time) string {
	if end.IsZero() {
		return ""
	}
	return end.AddDate(0, 0, -1).Format(time.DateOnly)
}

// maxWhy is the maximum number of characters of a rule's reason, which is a row of a card.
const maxWhy = 200

func parseWhy(s string) (any, error) {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) || utf8.RuneCountInString(s) > maxWhy {
		return nil, fmt.Errorf("%s is no row of at most %d characters that can be seen; write one", quote(s), maxWhy)
	}
	return s, nil
}

func parseLevel(s string) (any, error) {
	for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if s == formatLevel(l) {
			return l, nil
		}
	}
	return nil, fmt.Errorf("unknown log level %s; %s", quote(s), suggest(s, []string{"debug", "info", "warn", "error"}))
}

func parseFormat(s string) (any, error) {
	if s == "text" || s == "json" {
		return s, nil
	}
	return nil, fmt.Errorf("unknown log format %s; write text or json", quote(s))
}

func parseShown(s string) (any, error) {
	if s == "all" || s == "title" {
		return s == "title", nil
	}
	return nil, fmt.Errorf("%s is not what a chat can show; write all or title", quote(s))
}

func parseGlob(s string) (any, error) {
	if s == "" {
		return nil, fmt.Errorf(`an empty pattern matches nothing; write "*" for all`)
	}
	if _, err := path.Match(s, ""); err != nil {
		return nil, fmt.Errorf(`%s is not a pattern; * stands for any characters, ? for one, [ab] for one of these`, quote(s))
	}
	return s, nil
}

// parseZone parses a name of the tz database; abbreviations are ambiguous or lack summer time.
func parseZone(s string) (any, error) {
	switch s {
	case "Local":
		return nil, fmt.Errorf("%s is the machine's own zone, which holds anyway; leave it out, or name a place, as in Europe/Berlin", quote(s))
	case "EST", "MST", "HST":
		return nil, fmt.Errorf("%s has no summer time; name a place instead, as in America/New_York", quote(s))
	}
	l, err := time.LoadLocation(s)
	if err == nil && s != "" && l.String() == s {
		return l, nil
	}
	if meant := correctZone(s); meant != "" {
		return nil, fmt.Errorf("unknown time zone %s; did you mean %s?", quote(s), meant)
	}
	return nil, fmt.Errorf("unknown time zone %s; name a place, as in Europe/Berlin", quote(s))
}

// IsZone reports whether a text is a valid time zone for the configuration.
func IsZone(s string) bool {
	_, err := parseZone(s)
	return err == nil
}

// correctZone returns the one zone of a place that was written without its continent or in another case, or empty.
func correctZone(s string) string {
	begin := true
	s = strings.Map(func(r rune) rune {
		if begin {
			r = unicode.ToUpper(r)
		} else {
			r = unicode.ToLower(r)
		}
		begin = r == '/' || r == '_' || r == '-'
		return r
	}, strings.ReplaceAll(strings.TrimSpace(s), " ", "_"))
	var found []string
	for _, continent := range []string{"Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"} {
		name := continent + "/" + s
		if strings.HasPrefix(s, continent+"/") {
			name = s
		}
		if l, err := time.LoadLocation(name); err == nil && l.String() == name {
			found = append(found, name)
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// parseName parses a person's name, which is shown on cards and typed in commands: one printable line.
func parseName(s string) (any, error) {
	switch {
	case s == "":
		return nil, fmt.Errorf("an empty name names nobody; write one, as in fay")
	case s != strings.TrimSpace(s):
		return nil, fmt.Errorf("%s has space around it; write %q", quote(s), strings.TrimSpace(s))
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return nil, fmt.Errorf("%s holds characters that cannot be seen; leave them out", quote(s))
	case utf8.RuneCountInString(s) > permissions.MaxName:
		return nil, fmt.Errorf("%s is longer than %d characters; write a shorter one", quote(s), permissions.MaxName)
	}
	return s, nil
}

// parseAccount parses the name of an OS account or group. Whether it exists is checked when it is used.
func parseAccount(s string) (any, error) {
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == ':' || r == '/' }
	if strings.ContainsFunc(s, odd) {
		return nil, fmt.Errorf("%s is not a name of an account or group; write it as id prints it", quote(s))
	}
	return s, nil
}

// parseGroup parses a group's id, which is negative.
func parseGroup(s string) (any, error) {
	n, err := parseInt(s)
	switch {
	case err != nil && strings.Trim(s, "-0123456789") != "":
		return nil, fmt.Errorf("%s is no group's id; write the number, as in chat: -1001234567890", quote(s))
	case err != nil:
		return nil, err
	case n >= 0:
		return nil, fmt.Errorf("%s is no group's id, which begins with a minus; write it as in chat: -1001234567890", quote(s))
	}
	return n, nil
}

// addressOf returns the leaf of an address in channels of a kind.
func addressOf(k connectors.Kind) leaf {
	l := leaf{is: k.Description, written: asText, correct: k.Correct, parse: func(s string) (any, error) {
		address, err := k.Parse(s)
		if err != nil {
			return nil, fmt.Errorf("%s %w", quote(s), err)
		}
		return address, nil
	}}
	if k.Number {
		l.written = asLiteral
	}
	return l
}

// phone is a phone number; empty is allowed.
func phone() leaf {
	k, _ := connectors.KindOf(viaWhatsApp)
	l := addressOf(k)
	parse := l.parse
	l.parse = func(s string) (any, error) {
		if s == "" {
			return s, nil
		}
		return parse(s)
	}
	return l
}

// Channels besides those of [connectors.Kinds], and the one kind that has rules of its own.
const (
	viaTerminal = "terminal" // the daemon's own console
	viaAdmin    = "admin"    // an inbox at the admin socket
	viaWhatsApp = "whatsapp"
)

// channels are those by which a person can be asked.
var channels = append([]string{viaTerminal, viaAdmin}, connectors.KindNames()...)

// parsePath parses an absolute path; empty means the default of [Config.Paths].
func parsePath(s string) (any, error) {
	switch {
	case s == "":
		return s, nil
	case strings.ContainsFunc(s, unicode.IsControl):
		return nil, fmt.Errorf("%s holds a control character; leave it out", quote(s))
	case strings.HasPrefix(s, "~") || strings.HasPrefix(s, "$"):
		return nil, fmt.Errorf("%s is not expanded here; write the whole path, as in /home/fay/daycared", quote(s))
	case !filepath.IsAbs(s):
		return nil, fmt.Errorf("%s is not absolute; write the whole path, beginning with /", quote(s))
	case filepath.Clean(s) != s:
		return nil, fmt.Errorf("%s is not clean; write %s", quote(s), quote(filepath.Clean(s)))
	}
	return s, nil
}

// maxSocket is the longest path of a unix socket, in bytes, that every system takes (unix(7): 108 on Linux, 104 on
// macOS, each with a closing zero).
const maxSocket = 103

func parseSocket(s string) (any, error) {
	if len(s) > maxSocket {
		return nil, fmt.Errorf("%s is longer than a socket's path may be; write one of at most %d bytes", quote(s), maxSocket)
	}
	return parsePath(s)
}

// parseURL parses the address of a service that is sent a secret: https, or http on this machine.
func parseURL(s string) (any, error) {
	u, err := url.Parse(s)
	if err == nil && u.Scheme == "http" && u.Host != "" && u.User == nil && !wire.Loopback(u.Hostname()) {
		return nil, fmt.Errorf("%s would send the token in the clear; write https://%s", quote(s), u.Host+u.Path)
	}
	return address(s, "https://api.telegram.org")
}

// parseDatabase parses the address of a database. It is shown and logged, so it has no password.
func parseDatabase(s string) (any, error) {
	const example = "postgres://daycared@db.example.org/daycared"
	u, err := url.Parse(s)
	switch {
	case s == "":
		return s, nil
	case err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql":
		return nil, fmt.Errorf("%s is not an address of PostgreSQL; write it as in %s, or leave it empty for SQLite in data_dir",
			quote(s), example)
	case u.Query().Has("password"), has(u.User.Password()):
		return nil, errors.New("a password does not belong here; write it to the password file of libpq, ~/.pgpass or the one that " +
			"?passfile=/etc/daycared/pgpass names, or let PostgreSQL know the account by a certificate")
	}
	return s, nil
}

func has(_ string, given bool) bool { return given }

// CheckDatabase returns what is wrong with the address of a database; nil: nothing.
func CheckDatabase(address string) error {
	_, err := parseDatabase(address)
	return err
}

func parseService(s string) (any, error) {
	if s == "" {
		return s, nil
	}
	return address(s, "http://127.0.0.1:8888")
}

// parsePublisher parses where heads of the audit go. They hold no secret, so the address may be http.
func parsePublisher(s string) (any, error) {
	if s == "" || s == "log" {
		return s, nil
	}
	if strings.Contains(s, "://") {
		return address(s, "https://example.org/heads")
	}
	if _, err := parsePath(s); err != nil {
		return nil, fmt.Errorf("%w, write log, or an address as in https://example.org/heads", err)
	}
	return s, nil
}

// inTheClear reports whether traffic to an address is unencrypted on a network.
func inTheClear(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && !wire.Loopback(u.Hostname())
}

func address(s, example string) (any, error) {
	right := "write it as in " + example
	u, err := url.Parse(s)
	switch {
	case err != nil, u.Host == "", u.Opaque != "":
		return nil, fmt.Errorf("%s is not an address; %s", quote(s), right)
	case u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, fmt.Errorf("%s has more than a host and a path; %s", quote(s), right)
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("%s is neither https nor http; %s", quote(s), right)
	case strings.Contains(s, "%"):
		return nil, fmt.Errorf("%s has a percent sign, which has no place here; %s", quote(s), right)
	}
	return strings.TrimRight(s, "/"), nil
}

// parseListen parses an address of this machine (empty: all of them) and a port.
func parseListen(s string) (any, error) {
	if s == "" {
		return s, nil
	}
	const right = "write an address and a port, as in 127.0.0.1:7801"
	if meant, ok := correctListen(s); ok {
		return nil, fmt.Errorf("%s is a port alone; write %s to listen on this machine only", quote(s), quote(meant))
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return nil, fmt.Errorf("%s is not an address to listen at; %s", quote(s), right)
	}
	n, err := parseInt(port)
	switch {
	case err != nil || n < 1 || n > 65535:
		return nil, fmt.Errorf("%s has no port from 1 to 65535; %s", quote(s), right)
	case host != "" && host != "localhost" && net.ParseIP(host) == nil:
		return nil, fmt.Errorf("%s names a host, whose address may change; %s", quote(s), right)
	}
	return s, nil
}

// correctListen returns the loopback address for a port alone.
func correctListen(s string) (meant string, ok bool) {
	n, err := parseInt(s)
	return net.JoinHostPort("127.0.0.1", s), err == nil && n >= 1 && n <= 65535
}

func parseHost(s string) (any, error) {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != ':'
	}
	const right = "write the name alone, as in daycared.example.org"
	switch {
	case strings.Contains(s, ":") && net.ParseIP(s) == nil, strings.Contains(s, "/"):
		return nil, fmt.Errorf("%s is more than the name of a host; %s", quote(s), right)
	case s == "" || strings.ContainsFunc(s, odd) || strings.HasPrefix(s, ".") || strings.HasSuffix(s, "."):
		return nil, fmt.Errorf("%s is not the name of a host in lower case; %s", quote(s), right)
	}
	return s, nil
}

// Loopback reports whether only this machine can reach the listener.
func (a API) Loopback() bool {
	host, _, err := net.SplitHostPort(a.Listen)
	return err == nil && wire.Loopback(host)
}

// checkListener checks that tokens do not cross a network unencrypted, and that nobody gets in from another machine without one.
func (r *report) checkListener(a API) {
	const listen, cert, key = "api.listen", "api.tls_cert_file", "api.tls_key_file"
	const anonymous = "api.allow_anonymous"
	if slices.ContainsFunc([]string{listen, cert, key, "api.behind_proxy", anonymous}, r.hasProblem) {
		return
	}
	switch {
	case a.TLSCertFile != "" && a.TLSKeyFile == "":
		r.key(cert, "%s: there is no key for it; write api.tls_key_file as well", cert)
	case a.TLSCertFile == "" && a.TLSKeyFile != "":
		r.key(key, "%s: there is no certificate for it; write api.tls_cert_file as well", key)
	case a.Listen == "":
	case !a.Loopback() && a.TLSCertFile == "" && !a.BehindProxy:
		r.key(listen, "%s: others could read the tokens that come to %s; write tls_cert_file and tls_key_file, or "+
			"behind_proxy: true where a proxy does that, or listen at 127.0.0.1", listen, quote(a.Listen))
	}
	switch {
	case !a.AllowAnonymous || a.Listen == "":
	case !a.Loopback():
		r.key(anonymous, "%s: only callers from this machine may ask without a token, and %s is reached from elsewhere; "+
			"listen at 127.0.0.1, or leave it out", anonymous, quote(a.Listen))
	case a.BehindProxy:
		r.key(anonymous, "%s: whom a proxy lets in may come from anywhere; leave one of the two out", anonymous)
	}
}

// warnListener warns of listener settings without effect, and of settings that are more open than they look.
func (w *warner) warnListener(a API) {
	if a.Listen == "" {
		for _, k := range []struct {
			path string
			set  bool
		}{
			{"api.tls_cert_file", a.TLSCertFile != ""}, {"api.behind_proxy", a.BehindProxy}, {"api.hosts", len(a.Hosts) > 0},
			{"api.allow_anonymous", a.AllowAnonymous},
		} {
			if k.set {
				w.add(k.path, "%s means nothing without api.listen", k.path)
			}
		}
		return
	}
	if a.AllowAnonymous {
		w.add("api.allow_anonymous", "every account of this machine may ask at %s and is nobody in particular: no local "+
			"account may allow it, and only people with a phone can", a.Listen)
	}
}

// minDuration and maxDuration bound all durations.
const (
	minDuration = time.Second
	maxDuration = 365 * 24 * time.Hour
)

// day is the unit of retention times, which minKeep and maxKeep bound.
const (
	day     = 24 * time.Hour
	minKeep = day
	maxKeep = 36500 * day
)

// maxDelay is the longest time that something may be kept from a person.
const maxDelay = 5 * time.Minute

// parseDuration parses a duration with units, as in 15m or 1h30m.
func parseDuration(s string) (any, error) {
	return parseWithin(s, minDuration, maxDuration, "too short")
}

func parseWithin(s string, least, most time.Duration, short string) (any, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is not a duration; write %s", quote(s), correctDuration(s))
	case d < least:
		return nil, fmt.Errorf("%s is %s; write %s or more", quote(s), short, formatDuration(least))
	case d > most:
		return nil, fmt.Errorf("%s is too long; write %s or less", quote(s), formatDuration(most))
	}
	return d, nil
}

// inWords matches a duration as people write it: a number and a unit, maybe with spaces and the unit spelt out.
var inWords = regexp.MustCompile(`^(?i)\s*([0-9]{1,6})\s*([a-z]*)\s*$`)

// correctDuration returns the duration that was probably meant.
func correctDuration(s string) string {
	m := inWords.FindStringSubmatch(s)
	if m == nil {
		return "a number and its unit, as in 90s, 15m or 4h"
	}
	n := cmp.Or(strings.TrimLeft(m[1], "0"), "1")
	switch strings.ToLower(m[2]) {
	case "":
		return fmt.Sprintf("%sm for minutes or %ss for seconds", n, n)
	case "s", "sec", "secs", "second", "seconds":
		return n + "s"
	case "m", "min", "mins", "minute", "minutes":
		return n + "m"
	case "h", "hr", "hrs", "hour", "hours":
		return n + "h"
	case "d", "day", "days":
		days, _ := strconv.Atoi(n) // at most six digits
		return strconv.Itoa(24*days) + "h"
	}
	return n + "s, " + n + "m or " + n + "h"
}

// formatDuration omits the zeros at the end of [time.Duration.String]: 15m, not 15m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

var wholeDays = regexp.MustCompile(`^([0-9]{1,6})d$`)

// parseDays parses whole days, as in 90d, or another duration, as in 720h.
func parseDays(s string) (any, error) {
	var d time.Duration
	if m := wholeDays.FindStringSubmatch(s); m != nil {
		days, _ := strconv.Atoi(m[1]) // at most six digits
		d = day * time.Duration(min(days, int(maxKeep/day)+1))
	} else {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			return nil, fmt.Errorf("%s is not a number of days; write %s", quote(s), correctDays(s))
		}
	}
	switch {
	case d < minKeep:
		return nil, fmt.Errorf("%s is too short; write %s or more", quote(s), formatDays(minKeep))
	case d > maxKeep:
		return nil, fmt.Errorf("%s is too long; write %s or less", quote(s), formatDays(maxKeep))
	}
	return d, nil
}

// correctDays returns the number of days that was probably meant.
func correctDays(s string) string {
	m := inWords.FindStringSubmatch(s)
	if m == nil {
		return "whole days, as in 90d"
	}
	each := map[string]int{
		"": 1, "day": 1, "days": 1, "d": 1, "w": 7, "week": 7, "weeks": 7, "month": 30, "months": 30,
		"y": 365, "year": 365, "years": 365,
	}[strings.ToLower(m[2])]
	if each == 0 {
		return correctDuration(s)
	}
	n, _ := strconv.Atoi(m[1]) // at most six digits
	return strconv.Itoa(max(n, 1)*each) + "d"
}

// formatDays formats whole days as such: 90d, not 2160h.
func formatDays(d time.Duration) string {
	if d%day == 0 {
		return strconv.Itoa(int(d/day)) + "d"
	}
	return formatDuration(d)
}

// exampleHours is the example if it is unclear what was meant.
const exampleHours = "22:00-07:00"

// clock matches a span in the exact format: two times of day with all their digits.
var clock = regexp.MustCompile(`^([01][0-9]|2[0-3]):([0-5][0-9])-([01][0-9]|2[0-3]):([0-5][0-9])$`)

// parseHours parses a daily span, which may include midnight.
func parseHours(s string) (any, error) {
	m := clock.FindStringSubmatch(s)
	if m == nil {
		if meant, ok := correctHours(s); ok {
			return nil, fmt.Errorf("%s is no span of hours; write %q", quote(s), meant)
		}
		begin, end, _ := strings.Cut(s, "-")
		for _, t := range []string{begin, end} {
			if _, ok := correctTime(strings.TrimSpace(t)); !ok && s != begin {
				return nil, fmt.Errorf("%s is no span of hours, since %s is no time of the day; write it as in %q",
					quote(s), quote(t), exampleHours)
			}
		}
		return nil, fmt.Errorf("%s is no span of hours; write it as in %q", quote(s), exampleHours)
	}
	h := connectors.Hours{From: minutes(m[1], m[2]), To: minutes(m[3], m[4])}
	if h.From == h.To {
		return nil, fmt.Errorf("%s ends when it begins; write two different times, as in %q, or leave it out for none",
			quote(s), exampleHours)
	}
	return h, nil
}

// minutes returns the minute of the day of valid digits.
func minutes(hour, minute string) int {
	h, _ := strconv.Atoi(hour)
	m, _ := strconv.Atoi(minute)
	return h*60 + m
}

func formatHours(h connectors.Hours) string {
	return fmt.Sprintf("%02d:%02d-%02d:%02d", h.From/60, h.From%60, h.To/60, h.To%60)
}

// oclock matches a time of day as people write it: 9, 9:30, 21.30, 0930, 9h, 9pm.
var oclock = regexp.MustCompile(`^([0-9]{1,2})(?:[:.h]?([0-9]{2}))?h?(am|pm)?$`)

// correctHours returns the span that was meant, if that is clear.
func correctHours(s string) (meant string, ok bool) {
	s = strings.NewReplacer(" ", "", "–", "-", "—", "-", "to", "-").Replace(strings.ToLower(s))
	begin, end, _ := strings.Cut(s, "-")
	from, known := correctTime(begin)
	to, alsoKnown := correctTime(end)
	if !known || !alsoKnown || from == to {
		return "", false
	}
	return formatHours(connectors.Hours{From: from, To: to}), true
}

// correctTime returns the minute of the day that was probably meant. 24:00 is midnight as well.
func correctTime(s string) (minute int, ok bool) {
	m := oclock.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	hour, _ := strconv.Atoi(m[1])
	minute, _ = strconv.Atoi(m[2])
	if m[3] != "" {
		if hour < 1 || hour > 12 {
			return 0, false
		}
		hour %= 12
		if m[3] == "pm" {
			hour += 12
		}
	}
	if hour > 24 || minute > 59 || hour == 24 && minute > 0 {
		return 0, false
	}
	return (hour%24)*60 + minute, true
}

// When is a moment in a request's time: a percentage of it, or a duration since its creation. The zero When is none.
type When struct {
	Percent int           // of the time from start to deadline, 1 to 99; 0: After is set
	After   time.Duration // since the start; 0: Percent is set
}

// String formats the moment as in the configuration: 50% or 10m.
func (w When) String() string {
	if w.Percent > 0 {
		return strconv.Itoa(w.Percent) + "%"
	}
	return formatDuration(w.After)
}

var share = regexp.MustCompile(`^([0-9]{1,6})%$`)

// parseWhen parses a percentage, as in 50%, or a duration.
func parseWhen(s string) (any, error) {
	if m := share.FindStringSubmatch(s); m != nil {
		percent, _ := strconv.Atoi(m[1]) // at most six digits
		if percent < 1 || percent > 99 {
			return nil, fmt.Errorf("%s is not between the beginning and the end; write 1%% to 99%%", quote(s))
		}
		return When{Percent: percent}, nil
	}
	if strings.Contains(s, "%") {
		return nil, fmt.Errorf("%s is not a share of the time; write a whole number and %%, as in 50%%", quote(s))
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return nil, fmt.Errorf("%s has no unit; write a share of the time, as in 50%%, or a duration, as in 10m", quote(s))
	}
	d, err := parseDuration(s)
	if err != nil {
		return nil, fmt.Errorf("%w; or a share of the time, as in 50%%", err)
	}
	return When{After: d.(time.Duration)}, nil //nolint:errcheck // parseDuration returns a Duration
}
