package kvstore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// MaxRegistrationsPerNode limits the registrations of a node that readers accept. A node can store
	// any number.
	MaxRegistrationsPerNode = 256
	// MaxRegistrationBytes limits the size of these registrations in bytes.
	MaxRegistrationBytes = 256 << 10

	// maxProblems limits the reported problems of a node within problemsEvery.
	maxProblems   = 8
	problemsEvery = 10 * time.Minute
)

// registrationNode returns the node of a subject, which the server's permissions guard, or "" for
// another subject.
func registrationNode(subject string) string {
	const place, tokens = 5, 8
	if parts := strings.Split(subject, "."); len(parts) == tokens {
		return parts[place]
	}

	return ""
}

// boundedRegistrations holds a limited number of registrations per node. It keeps the first subjects
// in alphabetical order, so that renewals do not change the selection.
type boundedRegistrations struct {
	found  map[string]Registered
	byNode map[string][]string
	// bytes is the size of found by node.
	bytes map[string]int
	// over has an error for each node above a limit.
	over map[string]error
}

func newBoundedRegistrations() *boundedRegistrations {
	return &boundedRegistrations{found: map[string]Registered{}, byNode: map[string][]string{}, bytes: map[string]int{}, over: map[string]error{}}
}

// add adds a registration. It holds up to twice the limit of a node before it cuts.
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

// cut removes the registrations of a node above the limits.
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

// end applies the limits and returns an error for each node that exceeded one.
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

// tooManyRegistrations returns the error for a node with too many registrations.
func tooManyRegistrations(node string) error {
	return fmt.Errorf("%w: node %s registers more than %d services, the others are left out", ErrInvalidRegistration, node, MaxRegistrationsPerNode)
}

// tooLargeRegistrations returns the error for a node whose registrations are too large together.
func tooLargeRegistrations(node string) error {
	return fmt.Errorf("%w: node %s registers more than %d bytes, the others are left out", ErrInvalidRegistration, node, MaxRegistrationBytes)
}

// registrationProblems limits the reported problems of each node.
type registrationProblems struct {
	of    map[string]int
	since time.Time
}

// note returns the error to report for a problem of a node, or nil.
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
