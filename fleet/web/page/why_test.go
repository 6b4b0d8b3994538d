package page

import (
	"testing"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// TestWhyARunBegan: a retry is neither drift nor a new revision.
func TestWhyARunBegan(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]view.RunRow{
		"revision 7, drift":        {Revision: 7, Cause: model.CauseDrift},
		"revision 7, new revision": {Revision: 7, Cause: model.CauseManifest},
		"revision 7, retry":        {Revision: 7, Cause: model.CauseManifest, Retry: true},
	} {
		if got := runSub(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
