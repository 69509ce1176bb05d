package broker

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

const listenersRule = "NAME://host:port,…; names unique, port 0 to 65535"

// String is the listener as server.properties spells it.
func (l Listener) String() string {
	return l.Name + "://" + net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port)))
}

// Address is host:port for net.Listen.
func (l Listener) Address() string { return net.JoinHostPort(l.Host, strconv.Itoa(int(l.Port))) }

// wildcard reports whether the host stands for every address, which is good for
// binding and useless for advertising.
func (l Listener) wildcard() bool {
	ip := net.ParseIP(l.Host)
	return l.Host == "" || ip != nil && ip.IsUnspecified()
}

func (l Listener) loopback() bool {
	ip := net.ParseIP(l.Host)
	return strings.EqualFold(l.Host, "localhost") || ip != nil && ip.IsLoopback()
}

func setListeners(c *Config, v string) (err error) {
	if c.Listeners, err = parseListeners(v); err == nil && len(c.Listeners) == 0 {
		err = errors.New("must name at least one address, as " + listenersRule)
	}
	return err
}

func setAdvertised(c *Config, v string) (err error) {
	c.Advertised, err = parseListeners(v)
	return err
}

// parseListeners reads a list of addresses. A bare host:port is taken as
// PLAINTEXT://host:port, since people write it that way.
func parseListeners(v string) ([]Listener, error) {
	var out []Listener
	names := map[string]bool{}
	for _, entry := range splitList(v) {
		name, address, ok := strings.Cut(entry, "://")
		if !ok {
			name, address = "PLAINTEXT", entry
		}
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("%q: must read %s", entry, listenersRule)
		}
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || name == "" {
			return nil, fmt.Errorf("%q: must read %s", entry, listenersRule)
		}
		name = strings.ToUpper(name)
		if names[name] {
			return nil, fmt.Errorf("%q: listener name %s is there twice", entry, name)
		}
		names[name] = true
		out = append(out, Listener{Name: name, Host: host, Port: int32(n)})
	}
	return out, nil
}

// checkProtocolMap refuses listeners that would need what is not built: a
// listener that silently spoke plain text under the name of SSL would be worse.
func checkProtocolMap(_ *Config, v string) error {
	for _, entry := range splitList(v) {
		name, protocol, ok := strings.Cut(entry, ":")
		if !ok || name == "" {
			return fmt.Errorf("%q: must read NAME:PROTOCOL", entry)
		}
		switch protocol {
		case "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL":
		default:
			return fmt.Errorf("%q: protocol must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL", entry)
		}
	}
	return nil
}

// protocolOf is what a listener name speaks, "" if the map does not say.
func (c *Config) protocolOf(name string) string {
	v, _ := c.Get("listener.security.protocol.map")
	for _, entry := range splitList(v) {
		if n, protocol, _ := strings.Cut(entry, ":"); strings.EqualFold(n, name) {
			return protocol
		}
	}
	return ""
}

func setPerIPOverrides(c *Config, v string) error {
	overrides := map[string]int{}
	for _, entry := range splitList(v) {
		i := strings.LastIndexByte(entry, ':')
		if i <= 0 {
			return fmt.Errorf("%q: must read address:count", entry)
		}
		n, err := strconv.Atoi(entry[i+1:])
		if err != nil || n < 0 {
			return fmt.Errorf("%q: the count must be a whole number of at least 0", entry)
		}
		host := strings.Trim(entry[:i], "[]")
		if ip := net.ParseIP(host); ip != nil {
			host = ip.String()
		}
		overrides[host] = n
	}
	c.Socket.MaxPerIPOverrides = overrides
	return nil
}

func setLogDirs(c *Config, v string) error {
	dirs := splitList(v)
	seen := map[string]bool{}
	for _, d := range dirs {
		if seen[d] {
			return fmt.Errorf("%s is there twice", d)
		}
		seen[d] = true
	}
	if len(dirs) > 0 {
		c.LogDirs = dirs
	}
	return nil
}

// finish applies the rules that span keys and fills in what follows from them.
func (c *Config) finish() ([]Warning, error) {
	var warnings []Warning
	if len(c.LogDirs) == 0 {
		return nil, &ConfigError{"log.dirs", "", "must name at least one folder"}
	}
	if _, given := c.Get("log.dirs"); !given {
		if v, given := c.Get("log.dir"); !given && len(c.LogDirs) == 1 && c.LogDirs[0] == v {
			warnings = append(warnings, Warning{"log.dirs", "not given; using " + v + ", which many systems empty at boot"})
		}
	}
	for _, l := range c.Listeners {
		switch p := c.protocolOf(l.Name); p {
		case "PLAINTEXT":
		case "":
			return nil, &ConfigError{"listeners", l.String(), "listener.security.protocol.map says nothing about " + l.Name}
		default:
			return nil, &ConfigError{"listeners", l.String(), "protocol " + p + " is not built yet; only PLAINTEXT is"}
		}
	}
	if err := c.checkGroupBounds(); err != nil {
		return nil, err
	}
	more, err := c.finishAdvertised()
	return append(warnings, more...), err
}

// finishAdvertised holds the rules of field case F117. What clients are told
// must be an address they can dial: a wildcard never is.
func (c *Config) finishAdvertised() ([]Warning, error) {
	var warnings []Warning
	bound := map[string]Listener{}
	for _, l := range c.Listeners {
		bound[l.Name] = l
	}
	told := map[string]Listener{}
	for _, a := range c.Advertised {
		l, ok := bound[a.Name]
		switch {
		case !ok:
			return nil, &ConfigError{"advertised.listeners", a.String(), "no such name in listeners"}
		case a.wildcard():
			return nil, &ConfigError{"advertised.listeners", a.String(), "clients cannot dial a wildcard or empty host; give the name or address by which they reach this machine"}
		case a.loopback() && !l.loopback():
			warnings = append(warnings, Warning{"advertised.listeners", a.String() + " is told to clients although " + l.String() + " takes connections from elsewhere; clients on other machines will dial themselves"})
		}
		told[a.Name] = a
	}
	c.Advertised = c.Advertised[:0:0]
	for _, l := range c.Listeners {
		a, ok := told[l.Name]
		if !ok {
			a = l
			if l.wildcard() {
				a.Host = hostName()
				warnings = append(warnings, Warning{"advertised.listeners", l.String() + " binds every address and nothing is advertised for it; telling clients " + a.Host})
			}
		}
		c.Advertised = append(c.Advertised, a)
	}
	return warnings, nil
}
