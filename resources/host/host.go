// Package host gives access to the node: its files, commands, accounts and run lock. Only this
// package and the packages below it change the machine or start processes.
package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/state"
)

// Options configure a Host.
type Options struct {
	// StateDir holds the lock, the journal and temporary directories of the node. It is created when it is
	// first needed. Without it there is no run lock, and the files of a killed run stay.
	StateDir string
	// Log gets warnings and progress. Nil discards.
	Log *slog.Logger
	// OnStart is called right before a command starts. Nil is not called.
	OnStart func(argv []string)
}

// Host gives access to this machine. It is safe for concurrent use. Create it with New.
type Host struct {
	*files.Disk
	*Accounts
	*command.Runner
	*state.Locks

	// expected are the runs with a pending daemon-reload.
	expected expectedUnits
}

// New returns a host without accessing the machine.
func New(o Options) *Host {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	runner := command.New(o.OnStart)

	return &Host{
		Disk:     files.New(files.Options{StateDir: o.StateDir, Log: o.Log, Label: labels(runner)}),
		Accounts: NewAccounts("/etc", runner, o.Log),
		Runner:   runner,
		Locks:    state.NewLocks(o.StateDir),
	}
}

// SetUmask sets the umask of this process to 022: by default only the owner may write to new files.
func SetUmask() { unix.Umask(0o022) }

// BeginRun discards the account tables and begins a run of the disk.
func (h *Host) BeginRun(ctx context.Context, o files.RunOptions) error {
	h.ForgetAccounts()

	return h.Disk.BeginRun(ctx, o)
}

// Write writes a file like Write of the disk. It discards the account tables if path is one of their files.
func (h *Host) Write(ctx context.Context, path string, content io.Reader, a files.Attrs) error {
	defer h.FileWritten(path)

	return h.Disk.Write(ctx, path, content, a)
}

// WriteWith is WriteWith of the disk, and otherwise like Write.
func (h *Host) WriteWith(ctx context.Context, path string, content io.Reader, a files.Attrs, o files.WriteOptions) error {
	defer h.FileWritten(path)

	return h.Disk.WriteWith(ctx, path, content, a, o)
}

// maxRecord is larger than the largest record, of a scaffold with 100,000 files.
const maxRecord = 64 << 20

// ErrDamaged means that WriteRecord did not write the record.
var ErrDamaged = errors.New("damaged")

// ReadRecord reads a record of WriteRecord. The error wraps fs.ErrNotExist, paths.ErrUntrusted if other users
// may write the record, or ErrDamaged for a record that is too large or not valid.
func ReadRecord[T any](path string) (record T, err error) {
	data, err := files.ReadTrusted(path, maxRecord, paths.Author{})
	switch {
	case errors.Is(err, files.ErrTooLarge):
		return record, fmt.Errorf("%w: %w", ErrDamaged, err)
	case err != nil:
		return record, err
	}
	if err := json.Unmarshal(data, &record); err != nil {
		return *new(T), fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}

	return record, nil
}

// recordPath returns the path of the record of a name in a folder of the state directory, empty without a
// state directory.
func (h *Host) recordPath(folder, name string) string {
	if h.StateDir() == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(name))

	return filepath.Join(h.StateDir(), folder, hex.EncodeToString(sum[:16])+".json")
}

// Recall returns the record of a name that Remember wrote, and whether there is one. A damaged record is the
// zero value.
func Recall[T any](h *Host, folder, name string) (record T, found bool, err error) {
	path := h.recordPath(folder, name)
	if path == "" {
		return record, false, nil
	}
	switch record, err = ReadRecord[T](path); {
	case errors.Is(err, fs.ErrNotExist):
		return record, false, nil
	case err != nil && !errors.Is(err, ErrDamaged):
		return record, false, fmt.Errorf("could not read the record of %s: %w", name, err)
	default:
		return record, true, nil
	}
}

// Remember writes a record of a name durably, also after ctx has ended. Without a state directory the error
// wraps state.ErrNone.
func (h *Host) Remember(ctx context.Context, folder, name string, record any) error {
	path := h.recordPath(folder, name)
	if path == "" {
		return fmt.Errorf("cannot record the change of %s: %w", name, state.ErrNone)
	}

	return h.WriteRecord(ctx, path, record)
}

// Forget removes the record of a name, if there is one.
func (h *Host) Forget(folder, name string) error {
	path := h.recordPath(folder, name)
	if path == "" {
		return nil
	}

	return h.Remove(path)
}

const selinux = "/sys/fs/selinux"

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
