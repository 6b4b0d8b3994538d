package facts

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestNeedsReboot covers what asks for a reboot.
func TestNeedsReboot(t *testing.T) {
	before, after := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		file string
		boot time.Time
		want bool
	}{
		"nothing":                    {boot: before},
		"a package asks for it":      {file: "run/reboot-required", boot: after, want: true},
		"another kernel since boot":  {file: "lib/modules/6.2/vmlinuz", boot: before, want: true},
		"another kernel before boot": {file: "lib/modules/6.2/vmlinuz", boot: after},
		"the running kernel":         {file: "lib/modules/6.1/vmlinuz", boot: before},
		"modules of another are new": {file: "lib/modules/6.2/modules.dep", boot: before},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if c.file != "" {
				path := filepath.Join(root, c.file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := needsReboot(root, "6.1", c.boot); got != c.want || err != nil {
				t.Errorf("%t, %v", got, err)
			}
		})
	}
}
