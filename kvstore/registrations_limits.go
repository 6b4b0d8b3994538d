package kvstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// MaxPerNode is how many registrations of one node count: a node can store any
	// number of them.
	MaxRegistrationsPerNode = 256
	// MaxBytesPerNode is how many bytes of them count.
	MaxRegistrationBytes = 256 << 10

	// maxProblems is how many problems of one node are reported, once in
	// problemsEvery.
	maxProblems   = 8
	problemsEvery = 10 * time.Minute
)

// nodeOf returns the node that a subject belongs to, which the server guards; empty
// for what is no subject of a registration.
func registrationNode(subject string) string {
	const place, tokens = 5, 8
	if parts := strings.Split(subject, "."); len(parts) == tokens {
		return parts[place]
	}

	return ""
}

// bounded keeps the registrations of a number of subjects of each node: the first
// ones by name, so that renewals do not change which.
type boundedRegistrations struct {
	found  map[string]Registered
	byNode map[string][]string
	// bytes are those of found by node.
	bytes map[string]int
	// over has why the nodes that are over a bound are.
	over map[string]error
}

func newBoundedRegistrations() *boundedRegistrations {
	return &boundedRegistrations{found: map[string]Registered{}, byNode: map[string][]string{}, bytes: map[string]int{}, over: map[string]error{}}
}

// add adds a registration. Of a node with many it keeps no more than twice the bound
// meanwhile.
func (b *boundedRegistrations) add(subject string, r Registered) {
	node := registrationNode(subject)
	former, known := b.found[subject]
	if !known {
		b.byNode[node] = append(b.byNode[node], subject)
	}
	b.found[subject] = r
	b.bytes[node] += r.size - former.size
	if len(b.byNode[node]) > 2*MaxRegistrationsPerNode || b.bytes[node] > 2*MaxRegistrationBytes {
		b.cut(node)
	}
}

// cut removes what is over the bounds of a node.
func (b *boundedRegistrations) cut(node string) {
	subjects := b.byNode[node]
	slices.Sort(subjects)
	kept, bytes := 0, 0
	for kept < min(len(subjects), MaxRegistrationsPerNode) && bytes+b.found[subjects[kept]].size <= MaxRegistrationBytes {
		bytes += b.found[subjects[kept]].size
		kept++
	}
	switch {
	case kept == len(subjects):
	case kept < MaxRegistrationsPerNode:
		b.over[node] = tooLargeRegistrations(node)
	default:
		b.over[node] = tooManyRegistrations(node)
	}
	for _, subject := range subjects[kept:] {
		delete(b.found, subject)
	}
	b.byNode[node], b.bytes[node] = subjects[:kept], bytes
}

// end removes all that is over the bounds, and returns an error for each node that
// was over its own.
func (b *boundedRegistrations) end() []error {
	for node := range b.byNode {
		b.cut(node)
	}
	var errs []error
	for _, node := range slices.Sorted(maps.Keys(b.over)) {
		errs = append(errs, b.over[node])
	}

	return errs
}

// tooMany is the error of a node that registers more than the number that counts.
func tooManyRegistrations(node string) error {
	return fmt.Errorf("%w: node %s registers more than %d services, the others are left out", ErrInvalidRegistration, node, MaxRegistrationsPerNode)
}

// tooLarge is the error of a node whose registrations are larger together than what counts.
func tooLargeRegistrations(node string) error {
	return fmt.Errorf("%w: node %s registers more than %d bytes, the others are left out", ErrInvalidRegistration, node, MaxRegistrationBytes)
}

// problems bounds what is reported of each node.
type registrationProblems struct {
	of    map[string]int
	since time.Time
}

// note returns what is reported of a problem of a node, nil for nothing.
func (p *registrationProblems) note(node string, err error, now time.Time) error {
	if p.of == nil || now.Sub(p.since) > problemsEvery {
		p.of, p.since = map[string]int{}, now
	}
	switch p.of[node]++; {
	case p.of[node] > maxProblems:
		return nil
	case p.of[node] == maxProblems:
		return fmt.Errorf("%w (further ones of node %s are not reported for a while)", err, node)
	default:
		return err
	}
}
