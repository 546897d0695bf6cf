package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"path"
	"reflect"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for machines without zone files
	"unicode"

	"github.com/daycared/daycared/permissions"
)

// leaf is one kind of plain value.
type leaf struct {
	is      string                           // what it is, for people
	written written                          // the required YAML form
	parse   func(text string) (any, error)   // the error says what is wrong and, after a semicolon, what would be right
	format  func(value any) string           // the inverse of parse; nil: as fmt prints it
	mend    func(text string) (string, bool) // what was certainly meant, if parse and quotes do not tell
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
	"bool":              {is: "true or false", written: asLiteral, parse: either("true", "false")},
	"refusal":           {is: "true or false", written: asLiteral, parse: either("false", "true"), format: with(formatRefusal)},
	"int":               {is: "a number", written: asLiteral, parse: parseCount},
	"time.Duration":     {is: "a duration", parse: parseDuration, format: with(formatDuration)},
	"delay":             {is: "a duration", parse: parseDelay, format: with(formatDuration)},
	"days":              {is: "a number of days", parse: parseDays, format: with(formatDays)},
	"config.When":       {is: "a share of the time or a duration", parse: parseWhen},
	"connectors.Hours":  {is: "hours", written: asText, parse: parseHours, format: with(formatHours), mend: mendHours},
	"channel":           {is: "a channel", parse: oneOf("channel", channels)},
	"permissions.Scope": {is: "a scope", parse: parseScope},
	"permissions.Tag":   {is: "a permission", written: asText, parse: parseTag},
	"permissions.Kind":  {is: "a kind", parse: oneOf("kind", kinds)},
	"effect":            {is: "a kind of calls", parse: oneOf("kind", permissions.Effects)},
	"*time.Location":    {is: "a time zone", written: asText, parse: parseZone},
	"slog.Level":        {is: "a log level", parse: parseLevel, format: with(formatLevel)},
	"format":            {is: "a log format", parse: parseFormat},
	"glob":              {is: "a pattern", written: asText, parse: parseGlob},
	"name":              {is: "a name", written: asText, parse: parseName},
	"account":           {is: "an account", written: asText, parse: parseAccount},
	"group":             {is: "the numeric id of a group", written: asLiteral, parse: parseGroup},
	"phone":             phone(),
	"path":              {is: "a path", written: asText, parse: parsePath},
	"publisher":         {is: "log, a path or an address", written: asText, parse: parsePublisher},
	"url":               {is: "an address", written: asText, parse: parseURL},
	"socket":            {is: "a path", written: asText, parse: parseSocket},
	"listen":            {is: "an address to listen at", written: asText, parse: parseListen, mend: mendListen},
	"host":              {is: "the name of a host", written: asText, parse: parseHost},
	"folder":            {is: "a path", written: asText, parse: parseFolder},
	"switch":            {is: "on or off", parse: either("on", "off"), format: with(formatSwitch)},
	"agent":             {is: "the name of an agent", written: asText, parse: parseAgent},
	"chat":              {is: "a connector", parse: oneOf("connector", chats)},
	"denial":            {is: "continue or terminate", parse: oneOf("what follows a denial", denials)},
	"provider":          {is: "a provider", parse: oneOf("provider", providers)},
	"service":           {is: "an address", written: asText, parse: parseService},
	"endpoint":          {is: "an address", written: asText, parse: parseEndpoint},
	"words":             {is: "text", written: asText, parse: parseWords},
	"variable":          {is: "the name of a variable", written: asText, parse: parseVariable},
	"config.Price":      {is: "a price", written: asLiteral, parse: parsePrice},
	"cron":              {is: "a cron expression", written: asText, parse: parseCron},
	"config.Clock":      {is: "a time of the day", written: asText, parse: parseClock, mend: mendClock},
	"netip.Prefix":      {is: "a network", written: asText, parse: parsePrefix},
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

func formatRefusal(no bool) string    { return strconv.FormatBool(!no) }
func formatLevel(l slog.Level) string { return strings.ToLower(l.String()) }

// either parses one of two words for yes and no.
func either(yes, no string) func(string) (any, error) {
	return func(s string) (any, error) {
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

func parseScope(s string) (any, error) { return permissions.ParseScope(s) }

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
	if meant := mendZone(s); meant != "" {
		return nil, fmt.Errorf("unknown time zone %s; did you mean %s?", quote(s), meant)
	}
	return nil, fmt.Errorf("unknown time zone %s; name a place, as in Europe/Berlin", quote(s))
}

// IsZone reports whether a text is a valid time zone for the configuration.
func IsZone(s string) bool {
	_, err := parseZone(s)
	return err == nil
}

// mendZone returns the zone of a place that was written without its continent or in another case; empty if there is none or more
// than one.
func mendZone(s string) string {
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
