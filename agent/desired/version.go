package desired

import (
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// Version is one revision of an assignment that was read. Its Digest is that of
// what runs.
type Version struct {
	Entry model.Entry
	model.Assignment
	// Resolution is what it resolved to last; nil before the first time.
	Resolution *Resolution

	// sum is the digest of the value.
	sum string
	// whenAt is where the condition is.
	whenAt model.Position
}

// Resolution is what a version resolves to on this node.
type Resolution struct {
	*manifest.Resolved
	Graph *graph.Graph
	// Dir is that of its bundle, if it is one.
	Dir string
	// Interval is how often it is run; zero leaves that to the configuration.
	Interval time.Duration

	// monitored is that a resource has health checks, or may turn out to.
	monitored bool
	// basis is what it was made from, used that a run was made from it.
	basis basis
	used  bool
}

// Author returns who may change what the manifest names: whoever may write to the
// bucket. The unpacked bundle is private.
func (r *Resolution) Author() paths.Author { return paths.Author{Private: r.Dir} }

// basis is compared to find out whether a manifest that reads more than its text
// may resolve to something else now.
type basis struct {
	// facts counts how often the facts were gathered, changes how often this agent
	// changed the machine.
	facts, changes int
	at             time.Time
}

// freshFor is how long nothing outside of the node counts as changed. It spans
// the time from a put to its run.
const freshFor = 5 * time.Second

// Use reports whether the resolution is valid for a run that begins now: it depends on nothing but
// the text of the manifest, or its inputs cannot have changed. The next run needs a newer one.
func (r *Resolution) Use(in Input) (valid bool) {
	now, used := in.basis(), r.used
	r.used = true

	return r.Static || !used && r.basis.facts == now.facts && r.basis.changes == now.changes && now.at.Sub(r.basis.at) < freshFor
}

func (r *Resolution) isDamaged() bool { return r.Dir != "" && !IsIntact(r.Dir) }

// Damaged reports whether the version is a bundle whose files are not as they were
// unpacked.
func (v *Version) Damaged() bool { return v.Resolution.isDamaged() }

// AddLate adds resources that a run discovered. The shortest poll becomes the interval.
func (v *Version) AddLate(found []*resource.Resource) {
	r := *v.Resolution
	r.Interval = shortest(r.Interval, found)
	v.Resolution = &r
}

// Monitored reports whether health checks of a version are made between its runs.
func (v *Version) Monitored() bool { return !v.Noop && v.Resolution.monitored }

// Registers returns the resources that register something, and reports whether
// others may be found during the run.
func (v *Version) Registers() (refs []model.Ref, open bool) {
	for _, res := range v.Resolution.Resources {
		if len(res.Meta().RegisterWhenStable) > 0 {
			refs = append(refs, res.Ref())
		}
		open = open || res.Expand != nil
	}

	return refs, open
}

// sameAs reports whether two versions are one.
func (v *Version) sameAs(other *Version) bool {
	return v != nil && other != nil && v.is(other.Entry.Revision, other.sum)
}

func (v *Version) is(revision uint64, sum string) bool {
	return v.Entry.Revision == revision && v.sum == sum
}

// shortest returns an interval, zero for none, or the smallest poll of resources,
// whichever is less.
func shortest(out time.Duration, resources []*resource.Resource) time.Duration {
	for _, r := range resources {
		if poll := r.Meta().Poll.Std(); poll > 0 && (out == 0 || poll < out) {
			out = poll
		}
	}
	if out > 0 {
		out = max(out, time.Second)
	}

	return out
}
