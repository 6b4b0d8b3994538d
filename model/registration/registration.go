// Package registration holds what nodes register for others: the document, and the
// entries of resources that it is made from.
package registration

import (
	"fmt"
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
)

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
		problems := r.Validate()
		if r.TTL.Std() < minTTL || r.TTL.Std() > maxTTL {
			problems.Property("ttl", "", "`ttl` must be from %s to %s, not %s", minTTL, maxTTL, r.TTL)
		}
		for _, problem := range problems {
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
func Of(e model.RegisterEntry, node string) Registration {
	r := Registration{
		Protocol: model.ProtocolRegistration, Cluster: e.Cluster, Service: e.Service, ProtocolName: e.Protocol,
		Address: CanonicalAddress(e.Address), Port: e.Port, Priority: defaultPriority, TTL: model.Duration(defaultTTL), Annotations: e.Annotations, Node: node,
	}
	if e.Priority != nil {
		r.Priority = *e.Priority
	}
	if e.TTL != nil {
		r.TTL = *e.TTL
	}

	return r
}
