package desired

import (
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine/graph"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// Version is a read revision of an assignment. Its Digest is the digest of the manifest or bundle.
type Version struct {
	Entry model.Entry
	model.Assignment
	// Resolution is its last resolution, nil before the first.
	Resolution *Resolution

	// sum is the digest of the value.
	sum string
	// whenAt is the position of the condition.
	whenAt model.Position
}

// Resolution is the result of resolving a version on this node.
type Resolution struct {
	*manifest.Resolved
	Graph *graph.Graph
	// Dir is the directory of its bundle, if it is one.
	Dir string
	// Interval is the time between its runs; zero uses the configuration.
	Interval time.Duration

	// monitored means that a resource has health checks or may get them.
	monitored bool
	// basis is the input of the resolution. used means that a run was made from it.
	basis basis
	used  bool
}

// Author returns the user who may change the files that the manifest names: any writer of the bucket. The
// unpacked bundle is private.
func (r *Resolution) Author() paths.Author { return paths.Author{Private: r.Dir} }

// basis is compared to find out whether a manifest that reads more than its text may now resolve differently.
type basis struct {
	// facts is the number of times that the facts were gathered, changes the number of times that this agent
	// changed the machine.
	facts, changes int
	at             time.Time
}

// freshFor is the time during which data from outside the node counts as unchanged. It covers the time from a
// put to its run.
const freshFor = 5 * time.Second

// Use reports whether the resolution is valid for a run that begins now: it depends only on the text of the
// manifest, or its inputs cannot have changed. The next run needs a newer one.
func (r *Resolution) Use(in Input) (valid bool) {
	now, used := in.basis(), r.used
	r.used = true

	return r.Static || !used && r.basis.facts == now.facts && r.basis.changes == now.changes && now.at.Sub(r.basis.at) < freshFor
}

func (r *Resolution) isDamaged() bool { return r.Dir != "" && !IsIntact(r.Dir) }

// Damaged reports whether the version is a bundle with changed or missing files.
func (v *Version) Damaged() bool { return v.Resolution.isDamaged() }

// AddLate adds resources that a run discovered. The shortest poll becomes the interval.
func (v *Version) AddLate(found []*resource.Resource) {
	r := *v.Resolution
	r.Interval = shortest(r.Interval, found)
	v.Resolution = &r
}

// Monitored reports whether health checks of the version run between its runs.
func (v *Version) Monitored() bool { return !v.Noop && v.Resolution.monitored }

// Registers returns the resources that register services, and reports whether the run may find others.
func (v *Version) Registers() (refs []model.Ref, open bool) {
	for _, res := range v.Resolution.Resources {
		if len(res.Meta().RegisterWhenStable) > 0 {
			refs = append(refs, res.Ref())
		}
		open = open || res.Expand != nil
	}

	return refs, open
}

// sameAs reports whether two versions are the same.
func (v *Version) sameAs(other *Version) bool {
	return v != nil && other != nil && v.is(other.Entry.Revision, other.sum)
}

func (v *Version) is(revision uint64, sum string) bool {
	return v.Entry.Revision == revision && v.sum == sum
}

// shortest returns the smallest of an interval, zero for none, and the polls of resources.
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
