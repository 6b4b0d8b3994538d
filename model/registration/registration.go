// Package registration defines the services that nodes register: the document, and its creation from the
// entries of resources.
package registration

import (
	"errors"
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
)

// ErrInvalid is a stored registration that cannot be read, or that is on the subject of another one.
var ErrInvalid = errors.New("invalid registration")

// Validate reports every problem of a resource's entries, by property path:
// register_when_stable.0.port.
func Validate(entries []model.RegisterEntry) model.Problems {
	var out model.Problems
	seen := map[string]bool{}
	for i, e := range entries {
		at := fmt.Sprintf("register_when_stable.%d.", i)
		r := Of(e, "")
		key := fmt.Sprint(r.Cluster, " ", r.ProtocolName, " ", r.Service, " ", r.Address, " ", r.Port)
		r.Address = e.Address // unchanged, for the error
		problems := r.Validate()
		if e.Port != nil && *e.Port == 0 {
			problems = append(problems, invalidPort(0))
		}
		if r.TTL.Std() < minTTL {
			problems.Property("ttl", "", "`ttl` must be at least %s, or never, not %s", minTTL, r.TTL)
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
		Address: CanonicalAddress(e.Address), Priority: defaultPriority, TTL: model.TTL(defaultTTL), Annotations: e.Annotations, Node: node,
	}
	if e.Port != nil {
		r.Port = *e.Port
	}
	if e.Priority != nil {
		r.Priority = *e.Priority
	}
	if e.TTL != nil {
		r.TTL = *e.TTL
	}

	return r
}
