package command_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/musterfleet/muster/resources/host/command"
)

func TestInteractive(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		argv []string
		code int
	}{"success": {[]string{"sh", "-c", "exit 0"}, 0}, "failure": {[]string{"sh", "-c", "exit 3"}, 3}, "killed": {[]string{"sh", "-c", "kill -TERM $$"}, 143}} {
		if code, err := command.Interactive(c.argv); code != c.code || err != nil {
			t.Errorf("%s: %d, %v", name, code, err)
		}
	}
	for _, program := range []string{"no-such-program-anywhere", filepath.Join(t.TempDir(), "none")} {
		if _, err := command.Interactive([]string{program}); !errors.Is(err, command.ErrNotFound) {
			t.Errorf("%s: %v", program, err)
		}
	}
}
