package pkg

import (
	"errors"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/resource"
)

// The sentinel errors of package managers. Each comes with its remedy, and with
// the last lines of what the package manager said.
var (
	// ErrHeld is a package that the package manager was told not to change.
	ErrHeld = errors.New("the package is held")
	// ErrNoPackage is a name that no repository has.
	ErrNoPackage = errors.New("there is no such package")
	// ErrNoVersion is a version that no repository has.
	ErrNoVersion = errors.New("there is no such version")
	// ErrBroken is a package database that is damaged or in the middle of a change.
	ErrBroken = errors.New("the package database needs repair")
	// ErrUnmet are dependencies that cannot be met.
	ErrUnmet = errors.New("the dependencies cannot be met")
	// ErrLocked is the lock of another process that was waited for in vain.
	ErrLocked = errors.New("another process holds the lock of the package manager")
	// ErrNotRoot is a change without the right to make it.
	ErrNotRoot = errors.New("only root may change packages")
	// ErrDownload is a file of a repository that cannot be had.
	ErrDownload = errors.New("a download failed")
	// ErrNoSpace is a disk without room.
	ErrNoSpace = errors.New("there is not enough free space")
	// ErrScript is a script of a package that failed.
	ErrScript = errors.New("a script of the package failed")
)

// Remedy is what to do about an error that a package manager tells by Says.
type Remedy struct {
	Says string
	Err  error
	Do   string
}

// Explain makes an error of a command that failed: by the first remedy that
// fits, with the last lines it said.
func Explain(argv []string, result host.Result, remedies []Remedy) error {
	const lines = 10
	stdout, stderr := result.Stdout.String(), result.Stderr.String()
	tail := result.Stderr.LastLines(lines)
	if tail == "" {
		tail = result.Stdout.LastLines(lines)
	}
	err := fmt.Errorf("%s: exit code %d", strings.Join(argv[:min(2, len(argv))], " "), result.ExitCode)
	for _, r := range remedies {
		if strings.Contains(stderr, r.Says) {
			err = fmt.Errorf("%w: %s", r.Err, r.Do)
			break
		}
		if at := strings.Index(stdout, r.Says); at >= 0 {
			// What it is about stands there too.
			tail = host.Output{Head: []byte(stdout[strings.LastIndexByte(stdout[:at], '\n')+1:])}.LastLines(lines) + "\n" + tail
			err = fmt.Errorf("%w: %s", r.Err, r.Do)
			break
		}
	}
	if tail == "" {
		return err
	}

	return resource.Said{Err: err, Output: strings.ToValidUTF8(tail, "\uFFFD")}
}
