// Package host is the only way to touch the node: its files, commands,
// accounts, facts, the run lock and what muster keeps on disk. Nothing else in
// this module changes the machine or starts a process.
package host

import (
	"context"
	"io"
	"io/fs"
	"log/slog"
	"time"
)

// Options are what a Host is made from.
type Options struct {
	// StateDir is where the node's lock, journal and temporary bundles are kept.
	StateDir string
	// Log gets what is worth knowing but is no failure. Nil discards.
	Log *slog.Logger
}

// Host is this machine. It is safe for concurrent use. Make it with New.
type Host struct {
	opts Options
}

// New makes a host. It touches nothing yet.
func New(o Options) *Host { panic("unimplemented") }

// BeginRun tells the host that a run starts: the account tables are read anew
// at their next use, and the litter that a killed run left behind is removed.
func (h *Host) BeginRun(ctx context.Context) error { panic("unimplemented") }

// EndRun closes what BeginRun opened.
func (h *Host) EndRun() error { panic("unimplemented") }

// Kind is what stands at a path.
type Kind int

// The kinds of an Entry.
const (
	Absent Kind = iota
	File
	Directory
	Link
	// Other is a fifo, socket or device.
	Other
)

// Attrs are the owner and permission bits of a path.
type Attrs struct {
	UID, GID uint32
	Mode     fs.FileMode // permission bits only
}

// Entry is what lstat says of a path.
type Entry struct {
	Path    string
	Kind    Kind
	Size    int64
	ModTime time.Time
	// Mode is permission bits with setuid, setgid and sticky as in chmod(1): 04755.
	Mode     uint32
	UID, GID uint32
	Links    uint64
}

// Look gives what stands at path without following a link in its last element.
// Nothing there is no error: the entry is Absent. A path that may not be
// looked at is an error that wraps fs.ErrPermission.
func (h *Host) Look(path string) (Entry, error) { panic("unimplemented") }

// Follow is Look, with links followed.
func (h *Host) Follow(path string) (Entry, error) { panic("unimplemented") }

// Digest gives the hex SHA-256 of the content of the regular file at path. It
// is remembered by (device, inode, size, mtime, ctime), and reads with constant memory.
func (h *Host) Digest(ctx context.Context, path string) (string, error) { panic("unimplemented") }

// Read gives the content of a regular file of at most max bytes; a longer one
// is an error that wraps ErrTooLarge.
func (h *Host) Read(path string, max int64) ([]byte, error) { panic("unimplemented") }

// Write puts content at path, atomically: a temporary file in the same
// directory, content, owner, mode, fsync, rename, fsync of the directory.
// Whatever non-directory stands at path is replaced, never written through.
func (h *Host) Write(ctx context.Context, path string, content io.Reader, a Attrs) error {
	panic("unimplemented")
}

// SetAttrs changes owner and mode of the file or directory at path. A link is refused.
func (h *Host) SetAttrs(path string, a Attrs) error { panic("unimplemented") }

// MakeDirectory makes path and its missing parents (0755, owned by the process)
// and gives path the attributes. Special bits a directory has are kept.
func (h *Host) MakeDirectory(path string, a Attrs) error { panic("unimplemented") }

// Remove removes a file, link, special file or empty directory. Nothing there is no error.
// A directory that is not empty is an error that wraps ErrNotEmpty.
func (h *Host) Remove(path string) error { panic("unimplemented") }

// RemoveAll removes path and everything below it, without following links and
// without crossing into what is linked.
func (h *Host) RemoveAll(path string) error { panic("unimplemented") }

// IsEmpty says whether a directory has no entries.
func (h *Host) IsEmpty(path string) (bool, error) { panic("unimplemented") }

// UID resolves an owner: a number stands for itself, a name is looked up. An
// unknown name is an error that wraps ErrNoAccount.
func (h *Host) UID(ctx context.Context, owner string) (uint32, error) { panic("unimplemented") }

// GID is UID for groups.
func (h *Host) GID(ctx context.Context, group string) (uint32, error) { panic("unimplemented") }

// UserName gives the name of a uid, or its number when it has none.
func (h *Host) UserName(ctx context.Context, uid uint32) string { panic("unimplemented") }

// GroupName gives the name of a gid, or its number when it has none.
func (h *Host) GroupName(ctx context.Context, gid uint32) string { panic("unimplemented") }

// ForgetAccounts makes the next look-up read the account tables again, after
// something ran that may have changed them.
func (h *Host) ForgetAccounts() { panic("unimplemented") }

// Command is a program to run.
type Command struct {
	// Argv is the program and its arguments. A name without a slash is searched in Path.
	Argv []string
	Dir  string
	// Env is added to the environment: muster's own less MUSTER_* and NATS_*.
	Env []string
	// Path becomes PATH and is searched for the program; empty means muster's own.
	Path string
	// Stdin is what the command reads; nil means nothing.
	Stdin io.Reader
	// OnLine, when set, gets each line of output as it comes; stderr says which stream.
	OnLine func(line string, stderr bool)
}

// Output is a stream of a command, bounded in memory: its head and its tail.
type Output struct {
	Head, Tail []byte
	// Dropped is how many bytes between them were not kept.
	Dropped int64
}

// Result is what came of a command that ran to its end.
type Result struct {
	ExitCode int
	Stdout   Output
	Stderr   Output
	Duration time.Duration
}

// Run runs a command in a process group of its own and waits for it. An exit
// code other than 0 is not an error. When ctx ends the whole group is killed
// and the error wraps context.Cause(ctx). A program that cannot be started is
// an error that wraps ErrNotFound or what the system said.
func (h *Host) Run(ctx context.Context, c Command) (Result, error) { panic("unimplemented") }
