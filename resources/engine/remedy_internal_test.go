package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
	"golang.org/x/sys/unix"
)

// TestRemedy checks the remedies for errors of the machine, for root and for other users. Errors
// with their own remedy, and unknown errors, have none.
func TestRemedy(t *testing.T) {
	t.Parallel()
	prerequisite := func(err error) error { return resource.PrerequisiteError{Needs: []string{"path:/x"}, Err: err} }
	for name, c := range map[string]struct {
		err  error
		uid  int
		want string
	}{
		"account":                {prerequisite(fmt.Errorf("user: %w", host.ErrNoAccount)), 0, "create it before this resource"},
		"parent missing":         {prerequisite(files.ErrNoParent), 0, "ensure: directory"},
		"parent is a file":       {files.ErrNoParent, 0, ""},
		"program":                {command.ErrNotFound, 1000, "install it first"},
		"program with a blank":   {fmt.Errorf("%w: %w", command.ErrNotFound, command.ErrBlankName), 0, "a separate item"},
		"program not executable": {fmt.Errorf("x %w: %w", command.ErrNotExecutable, unix.EACCES), 1000, "chmod +x"},
		"working directory":      {command.ErrNoDir, 0, "`cwd`"},
		"permission of a user":   {&fs.PathError{Op: "open", Path: "/x", Err: unix.EACCES}, 1000, "muster runs as user 1000; run it as root"},
		"permission of root":     {&fs.PathError{Op: "open", Path: "/x", Err: unix.EPERM}, 0, "lsattr"},
		"anything else":          {errors.New("exit code 3"), 0, ""},
	} {
		if got := remedy(c.err, c.uid); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
