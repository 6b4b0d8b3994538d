package view

import (
	"slices"
	"time"
)

// maxRunsOfManifest limits the returned runs of a manifest.
const maxRunsOfManifest = 50

// Manifests returns the assigned manifests. Manifests that need attention come first.
func (f *Fleet) Manifests() []ManifestRow {
	s, _ := f.overview.get(f, time.Now())
	keys := map[string][]Assigned{}
	for name, e := range f.nodes.Assigned().All() {
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

// Manifest returns the data of a manifest, and whether it is assigned.
func (f *Fleet) Manifest(q ManifestQuery) (ManifestDetail, bool) {
	all := f.Manifests()
	at := slices.IndexFunc(all, func(m ManifestRow) bool { return m.Name == q.Name })
	if at < 0 {
		return ManifestDetail{}, false
	}
	now := time.Now()
	s, _ := f.overview.get(f, now)
	out := ManifestDetail{ManifestRow: all[at], Failing: []Failure{}}
	for _, failure := range s.Failing {
		if failure.Manifest == q.Name {
			out.Failing = append(out.Failing, failure)
		}
	}
	out.Progress, out.Top, out.Runs = f.Progress(), f.log.Top(q.Name, out.Failing, now), f.Runs(EventQuery{Manifest: q.Name, Limit: maxRunsOfManifest})
	out.Nodes, out.Matching = f.nodes.Assignments(q)

	return out, true
}
