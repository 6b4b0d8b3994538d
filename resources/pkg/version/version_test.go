package version_test

import (
	"errors"
	"testing"

	"github.com/musterfleet/muster/resources/pkg/version"
)

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
