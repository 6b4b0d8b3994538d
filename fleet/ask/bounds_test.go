package ask_test

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/ask"
)

// TestShortPlansFillNoMemory: a short plan without the usual fields is rejected if it is long when encoded. A node could
// send eight of them for one preview, each of tens of megabytes in memory.
func TestShortPlansFillNoMemory(t *testing.T) {
	t.Parallel()
	for what, plan := range map[string]string{
		"transactions": `{"transactions":[{}` + strings.Repeat(",{}", 60_000) + `]}`,
		"changes":      `{"transactions":[{"changes":[{}` + strings.Repeat(",{}", 60_000) + `]}]}`,
	} {
		var d ask.PreviewDecoder
		if out, err := d.Decode([]byte(`{"phase":"done","plan":` + plan + `}`)); err == nil || !strings.Contains(err.Error(), "too long") || out.Plan != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
