package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/daycared/daycared/permissions"
)

// parseName reads a person's name: it is shown on cards and typed in commands, so it is one printable line.
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

// parseAccount reads the name of an OS account or group. Whether it exists is the machine's business, when it is used.
func parseAccount(s string) (any, error) {
	odd := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == ':' || r == '/' }
	if strings.ContainsFunc(s, odd) {
		return nil, fmt.Errorf("%s is not a name of an account or group; write it as id prints it", quote(s))
	}
	return s, nil
}

// parseTelegram reads a numeric user id. Usernames can change hands, so they are no address.
func parseTelegram(s string) (any, error) {
	const right = "write the numeric id, as in telegram: 123456789"
	if strings.HasPrefix(s, "+") {
		return nil, fmt.Errorf("%s looks like a phone number; %s", quote(s), right)
	}
	if strings.Trim(s, "-0123456789") != "" {
		return nil, fmt.Errorf("%s is a username, which can change hands; %s", quote(s), right)
	}
	n, err := parseInt(s)
	switch {
	case err != nil:
		return nil, err
	case n < 0:
		return nil, fmt.Errorf("%s is the id of a group; write that of a person, which is positive", quote(s))
	case n == 0:
		return nil, fmt.Errorf("%s is nobody's id; %s", quote(s), right)
	}
	return n, nil
}

// parseGroup reads the id of a group, which is negative.
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

// e164 is an international number: a plus, the country code, and at most 15 digits in all.
var e164 = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

func parsePhone(s string) (any, error) {
	if e164.MatchString(s) {
		return s, nil
	}
	if meant, ok := mendPhone(s); ok {
		return nil, fmt.Errorf("%s is not how an international number is written; write %s", quote(s), quote(meant))
	}
	return nil, fmt.Errorf("%s is not an international number; begin with + and the country code, as in %s", quote(s), quote(examplePhone))
}

// examplePhone is a number that nobody has: it is of a range that Ofcom keeps for films. An example that somebody has
// could come to decide here.
const examplePhone = "+447700900123"

// parseAnyPhone is [parsePhone], or empty for no number in particular.
func parseAnyPhone(s string) (any, error) {
	if s == "" {
		return s, nil
	}
	return parsePhone(s)
}

// IsPhone tells whether a text is a phone number as the configuration has it.
func IsPhone(s string) bool { return e164.MatchString(s) }

// trunk is the zero that some write between the country code and the rest, and that is not dialled from abroad.
var trunk = regexp.MustCompile(`\(0\)`)

// mendPhone is the number without what people put between its digits. It never adds a country code: whoever had the
// number that comes of it would decide.
func mendPhone(s string) (meant string, ok bool) {
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

// The channels by which a person can be asked.
const (
	viaTerminal = "terminal" // the daemon's own console
	viaAdmin    = "admin"    // an inbox at the admin socket
	viaTelegram = "telegram"
	viaWhatsApp = "whatsapp"
)

var channels = []string{viaTerminal, viaAdmin, viaTelegram, viaWhatsApp}

// parseChannel reads the name of a channel.
func parseChannel(s string) (any, error) {
	if !slices.Contains(channels, s) {
		return nil, fmt.Errorf("unknown channel %s; %s", quote(s), suggest(s, channels))
	}
	return s, nil
}

// parsePath reads an absolute path; empty stands for the place that [Config.Paths] chooses.
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
