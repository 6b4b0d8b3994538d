package version_test

import (
	"errors"
	"testing"

	"github.com/musterfleet/muster/resources/pkg/version"
)

func TestTrimTrailingZeroes(t *testing.T) {
	for in, want := range map[string]string{"1.0.0-rc1": "1-rc1", "2.0.0": "2", "1.0": "1", "10.0.10": "10.0.10", "1-1.0": "1-1.0", "1.00": "1.00", "0": "0"} {
		got := ""
		whole := func(rest string) (string, string) { return rest, "" }
		compare := func(a, _ version.Version) int { got = a.Upstream; return 0 }
		if _, err := version.Compare(in, "1", true, whole, compare); err != nil || got != want {
			t.Errorf("%s gives %s, not %s, %v", in, got, want, err)
		}
	}
}

func TestParse(t *testing.T) {
	whole := func(rest string) (string, string) { return rest, "" }
	for in, want := range map[string]version.Version{"1:2.0-3": {Epoch: "1", Upstream: "2.0-3"}, "1.0": {Epoch: "0", Upstream: "1.0"}, "0:1:2": {Epoch: "0", Upstream: "1:2"}} {
		if got, err := version.Parse(in, whole); err != nil || got != want {
			t.Errorf("%s gives %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "x:1", ":1", "1:", "-1:1"} {
		if _, err := version.Parse(in, whole); !errors.Is(err, version.ErrInvalid) {
			t.Errorf("%q gives %v", in, err)
		}
	}
}
