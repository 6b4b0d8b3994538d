package provision

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/kvstore"
)

// Each setting that muster needs, and the treatment of a different value. Settings that need a cluster are
// tested here, all others also on a server.
func TestCompare(t *testing.T) {
	t.Parallel()
	names, err := kvstore.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	defaults := Options{}.withDefaults()
	for name, tt := range map[string]struct {
		stream  int
		spoil   func(*api.StreamConfig)
		options Options
		want    string
	}{
		"as it is":           {},
		"replicas up":        {options: Options{Replicas: 3}, want: "num_replicas is 1, must be 3"},
		"replicas down":      {spoil: func(c *api.StreamConfig) { c.Replicas = 3 }, options: Options{Replicas: 1}, want: "num_replicas is 3, must be 1 (" + refusedShrink + ")"},
		"replicas unasked":   {spoil: func(c *api.StreamConfig) { c.Replicas = 3 }},
		"history too short":  {spoil: func(c *api.StreamConfig) { c.MaxMsgsPer = 5 }, want: "max_msgs_per_subject is 5, must be 16"},
		"history longer":     {spoil: func(c *api.StreamConfig) { c.MaxMsgsPer = 64 }},
		"history unlimited":  {spoil: func(c *api.StreamConfig) { c.MaxMsgsPer = -1 }},
		"format missing":     {spoil: func(c *api.StreamConfig) { c.Metadata = map[string]string{"mine": "1"} }, want: "format is none, must be 2"},
		"further metadata":   {spoil: func(c *api.StreamConfig) { c.Metadata["mine"] = "1" }},
		"rollup":             {stream: 1, spoil: func(c *api.StreamConfig) { c.RollupAllowed = false }, want: "allow_rollup_hdrs is off, must be on"},
		"direct":             {spoil: func(c *api.StreamConfig) { c.AllowDirect = false }, want: "allow_direct is off, must be on"},
		"deletes":            {spoil: func(c *api.StreamConfig) { c.DenyDelete = false }, want: "deny_delete is off, must be on"},
		"discard":            {spoil: func(c *api.StreamConfig) { c.Discard = api.DiscardOld }, want: "discard is Old, must be New"},
		"subjects":           {spoil: func(c *api.StreamConfig) { c.Subjects = []string{"x"} }, want: "subjects is x, must be $KV.MUSTER_MANIFESTS.>"},
		"further subjects":   {spoil: func(c *api.StreamConfig) { c.Subjects = append(c.Subjects, "x") }},
		"window":             {stream: 4, spoil: func(c *api.StreamConfig) { c.Duplicates = time.Second }, want: "duplicate_window is 1s, must be 2m0s"},
		"wider window":       {stream: 4, spoil: func(c *api.StreamConfig) { c.Duplicates = time.Hour }, want: "duplicate_window is 1h0m0s, must be 2m0s"},
		"needless window":    {stream: 2, spoil: func(c *api.StreamConfig) { c.Duplicates = 2 * time.Minute }, want: "duplicate_window is 2m0s, must be 100ms"},
		"whole messages":     {spoil: func(c *api.StreamConfig) { c.RePublish.HeadersOnly = false }, want: "republish is messages of $KV.MUSTER_MANIFESTS.> on muster.changed.>, must be headers of $KV.MUSTER_MANIFESTS.> on muster.changed.>"},
		"ttl of nodes":       {stream: 2, spoil: func(c *api.StreamConfig) { c.AllowMsgTTL = false }, want: "allow_msg_ttl is off, must be on"},
		"rollup by groups":   {spoil: func(c *api.StreamConfig) { c.RollupAllowed = true }, want: "allow_rollup_hdrs is on, must be off"},
		"rollup by nodes":    {stream: 2, spoil: func(c *api.StreamConfig) { c.RollupAllowed = true }, want: "allow_rollup_hdrs is on, must be off"},
		"rollup of reports":  {stream: 4, spoil: func(c *api.StreamConfig) { c.RollupAllowed = true }, want: "allow_rollup_hdrs is on, must be off"},
		"marks in nodes":     {stream: 2, spoil: func(c *api.StreamConfig) { c.SubjectDeleteMarkerTTL = time.Hour }, want: "subject_delete_marker_ttl is 1h0m0s, must be off"},
		"marks elsewhere":    {stream: 1, spoil: func(c *api.StreamConfig) { c.SubjectDeleteMarkerTTL = time.Hour }},
		"bytes to unlimited": {stream: 4, options: Options{ReportBytes: -1}, want: "max_bytes is 1073741824, must be unlimited"},
		"age up":             {stream: 4, options: Options{ReportAge: 1000 * time.Hour}, want: "max_age is 168h0m0s, must be 1000h0m0s"},
	} {
		have := desired(names, defaults)[tt.stream].Config
		if tt.spoil != nil {
			tt.spoil(&have)
		}
		want := desired(names, tt.options)[tt.stream].Config
		changes, merged := compare(have, want, 0)
		lines := make([]string, len(changes))
		for i, c := range changes {
			lines[i] = c.String()
		}
		if got := strings.Join(lines, "\n"); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
		// Merged settings need no further change, unless the server refuses them.
		if left, _ := compare(merged, want, 0); len(left) != 0 && refusals([]Difference{{Changes: changes}}) == nil {
			t.Errorf("%s: still %v after the change", name, left)
		}
	}
}

// TestADefaultBoundLosesNothing: what operators store is bounded by default where it holds less.
func TestADefaultBoundLosesNothing(t *testing.T) {
	t.Parallel()
	want, defaults := api.StreamConfig{RePublish: &api.RePublish{}}, api.StreamConfig{MaxBytes: 100}
	for used, bytes := range map[uint64]int64{0: 100, 100: 100, 101: 0} {
		if got := withBounds(want, api.StreamConfig{MaxBytes: -1}, defaults, used).MaxBytes; got != bytes {
			t.Errorf("%d bytes used: the bound is %d, want %d", used, got, bytes)
		}
	}
	if got := withBounds(want, api.StreamConfig{MaxBytes: 50}, defaults, 0).MaxBytes; got != 0 {
		t.Errorf("what an administrator chose is changed to %d", got)
	}
}
