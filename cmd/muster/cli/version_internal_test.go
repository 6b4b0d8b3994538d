package cli

import (
	"runtime/debug"
	"testing"
)

// TestVersionOf: a build of a clone names its commit, and whether it was changed.
func TestVersionOf(t *testing.T) {
	t.Parallel()
	const revision = "0123456789abcdef0123456789abcdef01234567"
	for want, info := range map[string]debug.BuildInfo{
		"v1.2.3":                   {Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: revision}}},
		"devel-0123456789ab":       {Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: "false"}}},
		"devel-0123456789ab-dirty": {Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: "true"}}},
		"(devel)":                  {Main: debug.Module{Version: "(devel)"}},
	} {
		if got := versionOf(&info); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
