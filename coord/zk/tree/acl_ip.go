package tree

import (
	"net/netip"
	"strconv"
	"strings"
)

// parseIPRule reads an address with an optional prefix length ("10.0.0.0/8").
func parseIPRule(rule string) (netip.Prefix, bool) {
	text, bits, cut := strings.Cut(rule, "/")
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, false
	}
	n := addr.BitLen()
	if cut {
		if n, err = strconv.Atoi(bits); err != nil || n < 0 || n > addr.BitLen() {
			return netip.Prefix{}, false
		}
	}
	return netip.PrefixFrom(addr, n), true
}

func validIPRule(rule string) bool {
	_, ok := parseIPRule(rule)
	return ok
}

// matchesIP reports whether the address lies in the rule's network.
func matchesIP(address, rule string) bool {
	p, ok := parseIPRule(rule)
	if !ok {
		return false
	}
	addr, err := netip.ParseAddr(address)
	return err == nil && p.Contains(addr.WithZone(""))
}
