package tools

import (
	"fmt"
	"net/netip"
	"slices"
)

// special are the ranges that are nobody's public address, besides those that net/netip knows, from the registries of
// special-purpose addresses (RFC 6890). What holds an IPv4 address in a way of its own (6to4, Teredo, compatible, local
// NAT64) is refused as a whole.
var special = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
	"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10")

// nat64 is where networks without IPv4 have all of it (RFC 6052): the last 32 bits are the address that is meant.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, t := range texts {
		all = append(all, netip.MustParsePrefix(t))
	}
	return all
}

// reachable refuses an address that is not public, unless it is among those that the operator allows.
func reachable(a netip.Addr, allowed []netip.Prefix) error {
	meant := a.Unmap()
	if nat64.Contains(meant) {
		b := meant.As16()
		meant = netip.AddrFrom4([4]byte(b[12:]))
	}
	in := func(p netip.Prefix) bool { return p.Contains(meant) }
	if slices.ContainsFunc(allowed, in) {
		return nil
	}
	if meant.Zone() != "" || !meant.IsGlobalUnicast() || meant.IsPrivate() || slices.ContainsFunc(special, in) {
		return fmt.Errorf("%s is no public address; the operator can allow it in fetch.allow_private", a)
	}
	return nil
}
