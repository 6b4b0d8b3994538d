package assign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// Revision is a revision of an assignment with its changes.
type Revision struct {
	model.Entry
	// Bundle reports whether it assigns a bundle, whose files are not compared.
	Bundle bool `json:"bundle,omitempty"`
	// Noop reports whether nodes only report changes.
	Noop bool `json:"noop,omitempty"`
	// Lines are the added and removed lines since the previous assignment, nil if unknown.
	Lines *Lines `json:"lines,omitempty"`
	// SameAs is the last earlier revision with the same content, as after a rollback; zero for none.
	SameAs uint64 `json:"same_as,omitempty"`
	// Unchanged reports whether it has the content of the revision before.
	Unchanged bool `json:"unchanged,omitempty"`
	Ran       Ran  `json:"ran"`
}

// Lines are numbers of added and removed lines.
type Lines struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// String returns the numbers in the form of a diff: +3 -1.
func (l *Lines) String() string {
	if l == nil {
		return "-"
	}

	return fmt.Sprintf("+%d -%d", l.Added, l.Removed)
}

// Revisions converts entries of any number of keys to revisions. The entries of each key are in order. The
// zero value is ready.
type Revisions struct{ keys map[string]*key }

// key is the state of a key.
type key struct {
	// content is the last assigned content, nil if unknown.
	content *Content
	last    string
	seen    map[string]uint64
}

// errBundle means that files of bundles are not read.
var errBundle = errors.New("bundles are not read")

func noBundle(context.Context, string) (io.ReadCloser, error) { return nil, errBundle }

// Add returns the revision of an entry, without its value.
func (r *Revisions) Add(ctx context.Context, e model.Entry) Revision {
	out := Revision{Entry: e}
	out.Value = nil
	k := r.keys[e.Key]
	if e.Deleted || e.Refused != "" {
		if k != nil {
			k.last = ""
		}
		return out
	}
	if k == nil {
		k = &key{seen: map[string]uint64{}}
		if r.keys == nil {
			r.keys = map[string]*key{}
		}
		r.keys[e.Key] = k
	}
	if v, problems := document.DecodeAssigned(e.Key, e.Value); problems == nil {
		out.Bundle, out.Noop = v.Bundle != "", v.Noop
	}
	id := Identity(e.Key, e.Value)
	out.Unchanged = id != "" && id == k.last
	if !out.Unchanged && id != "" {
		out.SameAs = k.seen[id]
	}
	k.last, k.seen[id] = id, e.Revision
	content, err := ReadContent(ctx, e, noBundle)
	if err != nil {
		k.content = nil
		return out
	}
	if k.content != nil {
		added, removed := k.content.Lines(content)
		out.Lines = &Lines{added, removed}
	}
	k.content = &content

	return out
}

// Describe describes a revision in a few words, empty for an ordinary one.
func (r Revision) Describe() string {
	var words []string
	switch {
	case r.Refused != "":
		return "cannot be used: " + r.Refused
	case r.Unchanged:
		words = append(words, "unchanged")
	case r.SameAs != 0:
		words = append(words, fmt.Sprintf("the same as revision %d", r.SameAs))
	}
	if r.Bundle {
		words = append(words, "bundle")
	}
	if r.Noop {
		words = append(words, "noop")
	}

	return strings.Join(words, ", ")
}

// Change is the effect of a revision: assigned or removed.
func (r Revision) Change() Kind {
	if r.Deleted {
		return KindRemoved
	}

	return KindAssigned
}

// Since returns the last revisions since a time, at most a number; zero means no limit. It also returns the
// number of omitted revisions since that time.
func Since[T any](all []T, at func(T) time.Time, since time.Time, last int) (out []T, more int) {
	for _, one := range all {
		if since.IsZero() || !at(one).Before(since) {
			out = append(out, one)
		}
	}
	if more = len(out) - last; last > 0 && more > 0 {
		return out[more:], more
	}

	return out, 0
}

// FindRevision returns a stored revision of an assignment, or the newest for 0. all is sorted. The error
// wraps model.ErrNotFound and lists the existing revisions. If the assignment was removed, the newest is not
// found.
func FindRevision(all []model.Entry, revision uint64) (model.Entry, error) {
	at := len(all) - 1
	if revision != 0 {
		at = slices.IndexFunc(all, func(e model.Entry) bool { return e.Revision == revision })
	}
	switch {
	case at < 0:
		return model.Entry{}, fmt.Errorf("revision %d: %w: the bucket has %s", revision, model.ErrNotFound, revisions(all))
	case revision == 0 && all[at].Deleted:
		return model.Entry{}, fmt.Errorf("%w: it was removed with revision %d", model.ErrNotFound, all[at].Revision)
	default:
		return all[at], nil
	}
}

// revisions lists the numbers of revisions.
func revisions(all []model.Entry) string {
	numbers := make([]string, len(all))
	for i, e := range all {
		numbers[i] = strconv.FormatUint(e.Revision, 10)
	}

	return strings.Join(numbers, ", ")
}

// RevisionBefore returns the stored revision before another one. The error wraps model.ErrNotFound if there
// is none.
func RevisionBefore(all []model.Entry, e model.Entry) (model.Entry, error) {
	at := slices.IndexFunc(all, func(o model.Entry) bool { return o.Revision == e.Revision })
	if at < 1 {
		return model.Entry{}, fmt.Errorf("revision %d of %s: no revision before it: %w", e.Revision, e.Key, model.ErrNotFound)
	}

	return all[at-1], nil
}

// RollbackTo returns the revision to assign again: a stored one, or for 0 the last revision with another
// content than the current one, if possible a preferred one. prefer may be nil. The error wraps
// model.ErrNotFound if there is none.
func RollbackTo(all []model.Entry, revision uint64, preferred func(model.Entry) bool) (model.Entry, error) {
	if revision != 0 {
		e, err := FindRevision(all, revision)
		if err == nil && e.Deleted {
			err = fmt.Errorf("revision %d removed the assignment", revision)
		}
		return e, err
	}
	now := all[len(all)-1]
	earlier := slices.DeleteFunc(slices.Clone(all[:len(all)-1]), func(e model.Entry) bool { return e.Deleted || e.Refused != "" })
	var others []model.Entry
	for _, e := range slices.Backward(earlier) {
		if now.Deleted || !sameContent(e.Key, e.Value, now.Value) {
			others = append(others, e)
		}
	}
	if at := slices.IndexFunc(others, func(e model.Entry) bool { return preferred != nil && preferred(e) }); at >= 0 {
		return others[at], nil
	}
	if len(others) > 0 {
		return others[0], nil
	}
	if len(earlier) == 0 {
		return model.Entry{}, fmt.Errorf("%w: there is no earlier revision than %d", model.ErrNotFound, all[len(all)-1].Revision)
	}

	return model.Entry{}, fmt.Errorf("%w: no earlier revision differs; give --to N: %s", model.ErrNotFound, revisions(earlier))
}

// Replacement returns the newest stored revision of an assignment if it replaced another revision: it is
// later, and removes the assignment or has other content. all is sorted.
func Replacement(all []model.Entry, revision uint64) (by model.Entry, is bool) {
	if len(all) == 0 || all[len(all)-1].Revision <= revision {
		return model.Entry{}, false
	}
	by = all[len(all)-1]
	at := slices.IndexFunc(all, func(e model.Entry) bool { return e.Revision == revision })

	return by, by.Deleted || at < 0 || !sameContent(by.Key, by.Value, all[at].Value)
}

// Ran contains the nodes that ran a revision, from reports.
type Ran struct {
	// Nodes are the nodes that ran it, Failed the nodes whose last run of it failed.
	Nodes  int `json:"nodes"`
	Failed int `json:"failed"`
	// Rejected are the nodes that rejected it, from reports and states.
	Rejected int `json:"rejected"`
	// Now are the nodes whose last run was of it, from their states.
	Now int `json:"now"`
	// First and Last are the times when the first and the last node ran it for the first time.
	First time.Time `json:"first,omitzero"`
	Last  time.Time `json:"last,omitzero"`
}

// Rollout counts the nodes that ran revisions.
type Rollout struct {
	revisions map[place]*Revision
	nodes     map[place]map[string]*ran
	// full counts the runs of each node and outcome, of any key.
	full map[string]int
}

// place identifies a revision of a key.
type place struct {
	key      string
	revision uint64
}

// ran is the result of a revision on one node.
type ran struct {
	failed, rejected, ran bool
	first                 time.Time
}

// NewRollout returns a Rollout that counts the nodes of these revisions and sets their Ran.
func NewRollout(all []Revision) *Rollout {
	r := &Rollout{map[place]*Revision{}, map[place]map[string]*ran{}, map[string]int{}}
	for i := range all {
		at := place{all[i].Key, all[i].Revision}
		r.revisions[at], r.nodes[at] = &all[i], map[string]*ran{}
	}

	return r
}

// Add counts a report of a run. The reports of a node come in stream order. A revision counts with its
// digest, because a recreated bucket repeats numbers.
func (r *Rollout) Add(report model.Report) {
	r.full[report.Node+" "+string(report.Outcome)]++
	at := place{report.Manifest, report.Revision}
	revision := r.revisions[at]
	if revision == nil || report.Kind != model.KindRun || report.Digest != "" && report.Digest != revision.Digest {
		return
	}
	n := r.node(at, report.Node)
	if report.Outcome == model.OutcomeRefused {
		n.rejected = true
		return
	}
	if !n.ran {
		n.ran, n.first = true, report.Time
	}
	n.failed = report.Outcome == model.OutcomeFailed
}

// node returns the result of a revision on a node.
func (r *Rollout) node(at place, name string) *ran {
	n := r.nodes[at][name]
	if n == nil {
		n = &ran{}
		r.nodes[at][name] = n
	}

	return n
}

// addState counts the state of a node: its last run or its rejection of a revision. A report of a rejection
// may be missing, because nodes limit them.
func (r *Rollout) addState(at place, revision *Revision, n *model.Node) {
	m, is := n.Manifests[at.key]
	if !is {
		return
	}
	if last := m.Last(); last.Revision == at.revision && last.Digest == revision.Digest {
		revision.Ran.Now++
	}
	if m.Rejected() && m.Seen == at.revision && (m.SeenAt.IsZero() || revision.Time.IsZero() || m.SeenAt.Equal(revision.Time)) {
		r.node(at, n.Node).rejected = true
	}
}

// Finish adds the states of the nodes and sets the results. It returns the number of nodes with so many
// reports of one outcome that older ones may be missing, if the stream stores only perSubject of each; zero
// for no limit.
func (r *Rollout) Finish(states []model.Node, perSubject int) (full int) {
	for at, revision := range r.revisions {
		out := &revision.Ran
		for i := range states {
			r.addState(at, revision, &states[i])
		}
		for _, n := range r.nodes[at] {
			if n.rejected && !n.ran {
				out.Rejected++
			}
			if !n.ran {
				continue
			}
			out.Nodes++
			if n.failed {
				out.Failed++
			}
			if out.First.IsZero() || n.first.Before(out.First) {
				out.First = n.first
			}
			if n.first.After(out.Last) {
				out.Last = n.first
			}
		}
	}
	for _, count := range r.full {
		if perSubject > 0 && count >= perSubject {
			full++
		}
	}

	return full
}
