package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// ErrNotRoot means that a command needs another account, and that muster does not run as root.
var ErrNotRoot = errors.New("only root runs commands as another user or group")

// Account is a user and the groups of a command.
type Account struct {
	Name, Home, Shell string
	UID, GID          uint32
	// Groups are the supplementary groups.
	Groups []uint32
}

// IsOther reports whether the account has another user than muster.
func (a *Account) IsOther() bool { return a != nil && a.UID != uint32(os.Geteuid()) }

// check returns ErrNotRoot if muster may not become the account.
func (a *Account) check() error {
	if a == nil || os.Geteuid() == 0 || !a.IsOther() && a.GID == uint32(os.Getegid()) {
		return nil
	}

	return fmt.Errorf("%w: this needs user %d and group %d, and muster runs as user %d", ErrNotRoot, a.UID, a.GID, os.Geteuid())
}

// variables returns the environment of the account.
func (a *Account) variables() []string {
	return []string{"HOME=" + cmp.Or(a.Home, "/"), "USER=" + a.Name, "LOGNAME=" + a.Name, "SHELL=" + cmp.Or(a.Shell, "/bin/sh")}
}

// isNeutral reports whether a variable is passed on to another account. Others, such as tokens and the paths of
// sockets, are for the account of muster only.
func isNeutral(name string) bool {
	return slices.Contains([]string{"PATH", "LANG", "LANGUAGE", "TZ"}, name) || strings.HasPrefix(name, "LC_")
}

// accessAs calls f with the access to files that an account has.
func accessAs(a *Account, f func() error) error {
	if !a.IsOther() || os.Geteuid() != 0 {
		return f()
	}

	return paths.As(a.UID, a.GID, a.Groups, f)
}

// needsThread reports whether a separate thread must start the command.
func (c *Command) needsThread() bool { return c.Umask != nil || c.As.IsOther() }

// prepareThread sets what a new process inherits from the thread that starts it.
func (r *Runner) prepareThread(c Command) error {
	if c.Umask != nil {
		if err := ownUmask(); err != nil {
			return err
		}
		unix.Umask(*c.Umask)
	}
	if !c.As.IsOther() {
		return nil
	}
	if err := r.hideInherited(); err != nil {
		return fmt.Errorf("cannot hide open files from %s: %w", c.As.Name, err)
	}
	// The user could otherwise read the keys in the session keyring of muster. Without keyrings, and where a
	// filter forbids the call, the command cannot use them either.
	_, _, errno := unix.RawSyscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
	if errno != 0 && errno != unix.ENOSYS && errno != unix.EPERM {
		return fmt.Errorf("cannot make a session keyring: %w", errno)
	}

	return nil
}

// ownUmask gives the thread its own umask.
func ownUmask() error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("cannot set the umask of a command, because this machine or its container forbids unshare: %w", err)
	}

	return nil
}

// hideInherited closes the descriptors that muster inherited from its own parent in all later commands. The
// descriptors that muster opens have this flag already.
func (r *Runner) hideInherited() error {
	r.inherited.Do(func() {
		const firstInherited = 3
		var open []os.DirEntry
		open, r.inheritedErr = os.ReadDir("/proc/self/fd")
		for _, entry := range open {
			if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= firstInherited {
				unix.CloseOnExec(fd)
			}
		}
	})

	return r.inheritedErr
}
