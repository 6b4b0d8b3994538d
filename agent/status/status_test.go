package status

import (
	"testing"

	"github.com/musterfleet/muster/model"
)

func TestWithOutcome(t *testing.T) {
	ran := model.ManifestState{Revision: 2, Digest: "d", Outcome: model.OutcomeChanged, Counts: model.Counts{Changed: 1}, Error: "x", Seen: 3, Late: "y"}
	for name, c := range map[string]struct{ now, want model.ManifestState }{
		"the same revision":   {model.ManifestState{Revision: 2, Digest: "d"}, model.ManifestState{Revision: 2, Digest: "d", Outcome: model.OutcomeChanged, Counts: model.Counts{Changed: 1}, Error: "x"}},
		"a newer one waits":   {model.ManifestState{Revision: 2, Digest: "d", Seen: 4, Late: "z"}, model.ManifestState{Revision: 2, Digest: "d", Outcome: model.OutcomeChanged, Counts: model.Counts{Changed: 1}, Error: "x", Seen: 4, Late: "z"}},
		"another revision":    {model.ManifestState{Revision: 3, Digest: "e"}, model.ManifestState{Revision: 3, Digest: "e"}},
		"not active any more": {model.ManifestState{Seen: 2}, model.ManifestState{Seen: 2}},
	} {
		if got := withOutcome(c.now, ran); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
