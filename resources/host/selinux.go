package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/command"
)

// selinux is the mount point of the SELinux file system.
const selinux = "/sys/fs/selinux"

// labels returns a function that returns the default label of a path, nil without SELinux.
func labels(commands *command.Runner) func(ctx context.Context, path string) (string, error) {
	var st unix.Statfs_t
	if unix.Statfs(selinux, &st) != nil || st.Type != unix.SELINUX_MAGIC {
		return nil
	}

	return func(ctx context.Context, path string) (string, error) {
		return defaultLabel(ctx, commands, "matchpathcon", path)
	}
}

// defaultLabel returns the label that restorecon would set on a regular file. It is empty if
// the policy has none, or if program is not installed.
func defaultLabel(ctx context.Context, commands *command.Runner, program, path string) (string, error) {
	result, err := commands.Run(ctx, command.Command{Argv: []string{program, "-n", "-m", "file", path}})
	switch {
	case errors.Is(err, command.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	case result.ExitCode != 0:
		return "", fmt.Errorf("%s ended with exit code %d: %s", program, result.ExitCode, strings.TrimSpace(result.Stderr.String()))
	}
	label := strings.TrimSpace(result.Stdout.String())
	if label == "<<none>>" {
		return "", nil
	}

	return label, nil
}
