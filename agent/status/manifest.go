package status

import (
	"time"

	"github.com/musterfleet/muster/model"
)

// manifest is the result of the last runs of the manifests of one name.
type manifest struct {
	counts model.Counts
	last   time.Time
	failed bool
}

// manifestsOf returns the manifests that ran by name. A manifest with changes deferred by a limit has no
// outcome yet.
func manifestsOf(states map[string]model.ManifestState, name func(key string) string) map[string]manifest {
	out := map[string]manifest{}
	for key, s := range states {
		if s.Outcome == "" && s.At.IsZero() {
			continue
		}
		m, more := out[name(key)]
		if !more || s.At.Before(m.last) {
			m.last = s.At
		}
		m.failed = m.failed || s.Outcome.IsFailure()
		m.counts = sumMetrics(m.counts, s.Counts)
		out[name(key)] = m
	}

	return out
}

// sumMetrics adds the counts that readResources needs.
func sumMetrics(a, b model.Counts) model.Counts {
	return model.Counts{
		Changed: a.Changed + b.Changed, Noop: a.Noop + b.Noop, Failed: a.Failed + b.Failed, Skipped: a.Skipped + b.Skipped,
		Unmet: a.Unmet + b.Unmet, Stable: a.Stable + b.Stable, NotRun: a.NotRun + b.NotRun,
	}
}
