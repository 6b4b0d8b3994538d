package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/musterfleet/muster/resources/host/command"
)

// TestDefaultLabel reads what matchpathcon prints.
func TestDefaultLabel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, want string
		fails        bool
	}{
		"a label":      {`test "$*" = "-n -m file /etc/shadow" && echo system_u:object_r:shadow_t:s0`, "system_u:object_r:shadow_t:s0", false},
		"no label":     {"echo '<<none>>'", "", false},
		"an error":     {"echo 'matchpathcon: no policy' >&2; exit 1", "", true},
		"no such file": {"", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), "matchpathcon")
			if c.script != "" {
				if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			got, err := defaultLabel(t.Context(), command.New(nil), program, "/etc/shadow")
			if got != c.want || (err != nil) != c.fails {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}
