package version

import (
	"errors"
	"testing"
)

// TestParseDeb covers the examples of the version format of Debian.
func TestParseDeb(t *testing.T) {
	for text, want := range map[string]Version{
		"1.0": {Epoch: "0", Upstream: "1.0"}, "1:2.0-3": {Epoch: "1", Upstream: "2.0", Release: "3"}, "1.0-": {Epoch: "0", Upstream: "1.0-"},
		"2:1.0.0+git-20190109-0ubuntu2": {Epoch: "2", Upstream: "1.0.0+git-20190109", Release: "0ubuntu2"},
	} {
		if got, err := Parse(text, cutRevision); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// TestSemver covers the order of semver.org, the v prefix, and texts that are not a semantic
// version.
func TestSemver(t *testing.T) {
	ascending := []string{"0.9.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "v1.0.0", "1.9.0", "1.10.0", "1.10.99999999999999999999"}
	for i, a := range ascending {
		for j, b := range ascending {
			want := 0
			switch {
			case i < j:
				want = -1
			case i > j:
				want = 1
			}
			if got, err := CompareBy(Semver, a, b); err != nil || got != want {
				t.Errorf("%s and %s: %d, %v, want %d", a, b, got, err, want)
			}
		}
	}
	if got, err := CompareBy(Semver, "1.0.0+a", "1.0.0+b"); err != nil || got != 0 {
		t.Errorf("builds: %d, %v", got, err)
	}
	for _, text := range []string{"", "1", "1.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0+", "1.0.0.0", "1.0.0-a..b", "(devel)", "1.0.0-ä"} {
		if _, err := CompareBy(Semver, text, "1.0.0"); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSchemes(t *testing.T) {
	for _, c := range []struct {
		scheme, a, b string
		want         int
	}{
		{Deb, "3.0.15-1~deb12u1", "3.0.15", 1},
		{Deb, "1.0~rc1-1", "1.0-1", -1},
		{RPM, "1.0~rc1-1", "1.0-1", -1},
		{RPM, "1.0^git1", "1.0", 1},
		{RPM, "1:1.0-1", "2.0-1", 1},
		{"", "1.10.0", "1.9.0", 1},
		{"", "1.10", "1.9", 1},
		{"", "v1.2.0-rc1", "1.2.0", -1},
	} {
		if got, err := CompareBy(c.scheme, c.a, c.b); err != nil || got != c.want {
			t.Errorf("%s %s %s: %d, %v", c.scheme, c.a, c.b, got, err)
		}
	}
	if _, err := CompareBy("", "(devel)", "1.0.0"); !errors.Is(err, ErrInvalid) {
		t.Errorf("(devel): %v", err)
	}
	if _, err := CompareBy("apk", "1", "2"); err == nil {
		t.Error("an unknown scheme compares")
	}
	for in, want := range map[string]string{"3.0.15-1~deb12u1": "3.0.15", "1:2.0-3": "2.0", "2:1.0.0+git-20190109-0ubuntu2": "1.0.0+git-20190109", "1.0": "1.0", "-1": "-1"} {
		if got := Upstream(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
