// Package registration validates and completes the service entries of
// resources.
package registration

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
)

// The limits and defaults of an entry.
const (
	defaultPriority = 1
	defaultTTL      = time.Minute
	minTTL          = 3 * time.Second
	maxTTL          = 24 * time.Hour

	maxPriority    = 255
	maxPort        = 65535
	maxWord        = 128
	maxAnnotations = 16 << 10

	exampleAddress = "for example ${ Facts.network.primary.address }"
)

// hostName matches a host name: labels of letters, digits and dashes, joined by
// dots.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)

// Validate reports every problem of a resource's entries, by property path:
// register_when_stable.0.port.
func Validate(entries []model.RegisterEntry) model.Problems {
	var out model.Problems
	seen := map[string]bool{}
	for i, e := range entries {
		at := fmt.Sprintf("register_when_stable.%d.", i)
		r := Of(e, "")
		key := fmt.Sprint(r.Cluster, " ", r.ProtocolName, " ", r.Service, " ", r.Address, " ", r.Port)
		r.Address = e.Address // as it was written
		for _, problem := range problems(r) {
			problem.Property = at + problem.Property
			out = append(out, problem)
		}
		if seen[key] {
			out.Property(strings.TrimSuffix(at, "."), "keep one of them", "%s is registered twice", key)
		}
		seen[key] = true
	}

	return out
}

// Of returns the registration of an entry on a node, with defaults.
func Of(e model.RegisterEntry, node string) model.Registration {
	r := model.Registration{
		Protocol: model.ProtocolRegistration, Cluster: e.Cluster, Service: e.Service, ProtocolName: e.Protocol,
		Address: model.CanonicalAddress(e.Address), Port: e.Port, Priority: defaultPriority, TTL: model.Duration(defaultTTL), Annotations: e.Annotations, Node: node,
	}
	if e.Priority != nil {
		r.Priority = *e.Priority
	}
	if e.TTL != nil {
		r.TTL = *e.TTL
	}

	return r
}

// problems returns all problems, by property.
func problems(r model.Registration) model.Problems {
	var out model.Problems
	for _, word := range []struct{ key, value string }{{"cluster", r.Cluster}, {"service", r.Service}, {"protocol", r.ProtocolName}} {
		switch {
		case word.value == "":
			out.Property(word.key, "", "`%s` is required", word.key)
		case !model.IsToken(word.value) || len(word.value) > maxWord:
			out.Property(word.key, "", "`%s` must be one word of letters, digits, - and _, at most %d, not %q", word.key, maxWord, word.value)
		case word.value[0] == '_':
			out.Property(word.key, "", "`%s` must not begin with _, which is reserved, as in %q", word.key, word.value)
		}
	}
	ip, err := netip.ParseAddr(r.Address)
	switch {
	case r.Address == "":
		out.Property("address", exampleAddress, "`address` is required")
	case err == nil && ip.Unmap().IsUnspecified():
		out.Property("address", exampleAddress, "`address` must be one that others reach it at, not %q", r.Address)
	case err == nil && ip.Zone() != "", err != nil && !isHostName(r.Address):
		out.Property("address", "", "`address` must be an IP address or a host name, not %q", r.Address)
	}
	switch {
	case r.Port == 0:
		out.Property("port", "", "`port` is required, a number from 1 to %d", maxPort)
	case r.Port < 1 || r.Port > maxPort:
		out.Property("port", "", "`port` must be from 1 to %d, not %d", maxPort, r.Port)
	}
	if r.Priority < 1 || r.Priority > maxPriority {
		out.Property("priority", "", "`priority` must be from 1 to %d, not %d", maxPriority, r.Priority)
	}
	if r.TTL.Std() < minTTL || r.TTL.Std() > maxTTL {
		out.Property("ttl", "", "`ttl` must be from %s to %s, not %s", minTTL, maxTTL, r.TTL)
	}
	size := 0
	for k, v := range r.Annotations {
		size += len(k) + len(v)
	}
	if size > maxAnnotations {
		out.Property("annotations", "", "`annotations` have %d bytes, at most %d are allowed", size, maxAnnotations)
	}

	return out
}

// isHostName reports whether s is a host name. A numeric last label makes it an
// IP address.
func isHostName(s string) bool {
	last := s[strings.LastIndexByte(s, '.')+1:]

	return len(s) <= 253 && hostName.MatchString(s) && strings.Trim(last, "0123456789") != ""
}
