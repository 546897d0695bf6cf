package config

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/daycared/daycared/connectors"
	"github.com/daycared/daycared/internal/wire"
	"github.com/daycared/daycared/permissions"
)

// agentName matches the names of agents and MCP servers. They are typed in commands; a slash marks an unnamed child.
var agentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func parseAgent(s string) (any, error) {
	if !agentName.MatchString(s) {
		return nil, fmt.Errorf("%s is no name of an agent or a server; write at most 64 letters, digits, dots, dashes and "+
			"underscores, the first a letter or a digit, as in helper", quote(s))
	}
	return s, nil
}

// chats are the channels by which people can talk to agents.
var chats = append(connectors.KindNames(), viaTerminal, viaAdmin)

// oneOf parses one of several words.
func oneOf[T ~string](what string, words []T) func(string) (any, error) {
	return func(s string) (any, error) {
		if !slices.Contains(words, T(s)) {
			known := wire.Each(words, func(word T) string { return string(word) })
			return nil, fmt.Errorf("unknown %s %s; %s", what, quote(s), suggest(s, known))
		}
		return T(s), nil
	}
}

var kinds = []permissions.Kind{
	permissions.KindPermission, permissions.KindTool, permissions.KindPause, permissions.KindClarification,
}

func formatSwitch(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// parseFolder parses a path that an agent may access and that a permission can name.
func parseFolder(s string) (any, error) {
	if s == "" {
		return nil, fmt.Errorf("an empty path names nothing; write a whole one, as in /srv/helper")
	}
	if _, err := parsePath(s); err != nil {
		return nil, err
	}
	if _, err := permissions.ParseTag("@read:" + s); err != nil {
		return nil, fmt.Errorf("%s can be no permission (%w); write another path", quote(s), err)
	}
	return s, nil
}

// maxWords is the longest text in the configuration, in bytes.
const maxWords = 32 << 10

func parseWords(s string) (any, error) {
	switch {
	case strings.TrimSpace(s) == "":
		return nil, fmt.Errorf("there is no text; write some, or leave the key out")
	case len(s) > maxWords:
		return nil, fmt.Errorf("the text has more than %d bytes; write a shorter one", maxWords)
	case !utf8.ValidString(s) || strings.ContainsRune(s, 0):
		return nil, fmt.Errorf("the text holds a byte that no text has; leave it out")
	}
	return s, nil
}

// CheckWords returns what is wrong with a text for an agent, or nil.
func CheckWords(text string) error {
	_, err := parseWords(text)
	return err
}

// variableName matches the names of environment variables.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func parseVariable(s string) (any, error) {
	switch {
	case !variableName.MatchString(s):
		return nil, fmt.Errorf("%s is not the name of a variable; write the name alone, as in GITHUB_TOKEN", quote(s))
	case strings.HasPrefix(s, prefix) || s == "CREDENTIALS_DIRECTORY":
		return nil, fmt.Errorf("%s is the daemon's own and is handed to nobody; leave it out", s)
	}
	return s, nil
}

// Price is the price of a million tokens, in millionths of a currency that the configuration does not name.
type Price int64

// String formats the price as in the configuration, in the currency's unit.
func (p Price) String() string {
	s := fmt.Sprintf("%d.%06d", p/1e6, p%1e6)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// decimal matches a price: no sign, no exponent, at most six digits after the point.
var decimal = regexp.MustCompile(`^(0|[1-9][0-9]{0,5})(?:\.([0-9]{1,6}))?$`)

func parsePrice(s string) (any, error) {
	m := decimal.FindStringSubmatch(s)
	if m == nil {
		return nil, fmt.Errorf("%s is no price of a million tokens; write it as in 2.50", quote(s))
	}
	whole, _ := strconv.ParseInt(m[1], 10, 64)                             // at most six digits
	part, _ := strconv.ParseInt((m[2] + "000000")[:len("000000")], 10, 64) // six of them
	return Price(whole*1e6 + part), nil
}

// parsePrefix parses a network; a single address is refused with the prefix to write.
func parsePrefix(s string) (any, error) {
	const example = "10.0.0.0/8"
	p, err := netip.ParsePrefix(s)
	if err != nil {
		right := example
		if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
			right = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()).String()
		}
		return nil, fmt.Errorf("%s is no network; write %s", quote(s), quote(right))
	}
	switch {
	case p.Addr().Is4In6():
		return nil, fmt.Errorf("%s is an IPv4 address written as IPv6; write it as in %s", quote(s), quote(example))
	case p != p.Masked():
		return nil, fmt.Errorf("%s names an address within a network; write %s", quote(s), quote(p.Masked().String()))
	}
	return p, nil
}

func itoa(n int) string { return strconv.Itoa(n) }
