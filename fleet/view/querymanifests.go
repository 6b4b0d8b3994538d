package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/summary"
)

// maxRunsOfManifest is how many runs are returned of a manifest.
const maxRunsOfManifest = 50

// Manifests returns the manifests that are assigned, those that need attention first.
func (f *Fleet) Manifests() []ManifestRow {
	s, _ := f.summary(time.Now())
	f.mu.RLock()
	entries := f.entries
	f.mu.RUnlock()
	keys := map[string][]Assigned{}
	for name, e := range entries.All() {
		keys[name] = append(keys[name], Assigned{Key: e.Key, Revision: e.Revision, Time: e.Time, Digest: e.Digest, By: e.By, Terms: e.Terms})
	}
	out := make([]ManifestRow, len(s.Manifests))
	for i, m := range s.Manifests {
		out[i] = ManifestRow{Manifest: m, Keys: keys[m.Name]}
		for _, k := range out[i].Keys {
			if k.Time.After(out[i].Changed) {
				out[i].Changed = k.Time
			}
		}
	}

	return out
}

// Manifest returns what is known of a manifest, and whether it is assigned.
func (f *Fleet) Manifest(q ManifestQuery) (ManifestDetail, bool) {
	all := f.Manifests()
	at := slices.IndexFunc(all, func(m ManifestRow) bool { return m.Name == q.Name })
	if at < 0 {
		return ManifestDetail{}, false
	}
	now := time.Now()
	s, _ := f.summary(now)
	out := ManifestDetail{ManifestRow: all[at], Failing: []summary.Failure{}}
	for _, failure := range s.Failing {
		if failure.Manifest == q.Name {
			out.Failing = append(out.Failing, failure)
		}
	}
	f.mu.RLock()
	nodes, entries := f.nodes.all(), f.entries
	out.Progress, out.Top = f.progress.get(), f.top.get(q.Name, out.Failing, now)
	f.mu.RUnlock()
	out.Runs = f.Runs(EventQuery{Manifest: q.Name, Limit: maxRunsOfManifest})
	found := assignmentsOf(q, nodes, entries)
	out.Nodes, out.Matching = page(found, q.Offset, q.Limit), len(found)

	return out, true
}

// assignmentsOf returns the statuses of a manifest, the worst first.
func assignmentsOf(q ManifestQuery, nodes []*summary.Node, entries *fleet.Assigned) []summary.Assignment {
	out := []summary.Assignment{}
	add := func(a summary.Assignment) {
		if isOf(a.Key, q.Name) && (q.Status == "" && a.Applies() || q.Status == a.Status) {
			out = append(out, a)
		}
	}
	known := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		known[n.Node.Node] = true
		for _, a := range n.Statuses {
			add(a)
		}
	}
	for _, s := range entries.NeverSeen(func(node string) bool { return known[node] }) {
		add(summary.Assignment{RolloutStatus: s, Assigned: entries.Assigned(s.Key)})
	}
	slices.SortStableFunc(out, func(a, b summary.Assignment) int {
		return cmp.Or(cmp.Compare(severity(a.Status), severity(b.Status)), cmp.Compare(a.Node, b.Node))
	})

	return out
}

// isOf reports whether a key assigns a manifest of a name, which is its last token.
func isOf(key, name string) bool {
	family, is := strings.CutSuffix(key, name)

	return is && strings.HasSuffix(family, ".")
}

// severity orders the statuses of an assignment, the worst first.
func severity(s fleet.Status) int {
	order := [...]fleet.Status{
		fleet.StatusFailed, fleet.StatusRejected, fleet.StatusPending, fleet.StatusUnreachable, fleet.StatusUnreadable, fleet.StatusUnassigned,
		fleet.StatusUpToDate, fleet.StatusNotApplicable, fleet.StatusOverridden,
	}

	return slices.Index(order[:], s)
}
