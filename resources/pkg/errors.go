package pkg

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
)

// The errors of package managers. Each comes with its remedy and the last lines
// of output.
var (
	// ErrHeld is a package that is excluded from changes.
	ErrHeld = errors.New("the package is held")
	// ErrNoPackage is a name that no repository has.
	ErrNoPackage = errors.New("there is no such package")
	// ErrNoVersion is a version that no repository has.
	ErrNoVersion = errors.New("there is no such version")
	// ErrBroken is a package database that is damaged or within a change.
	ErrBroken = errors.New("the package database needs repair")
	// ErrUnmet is a dependency that cannot be met.
	ErrUnmet = errors.New("the dependencies cannot be met")
	// ErrLocked is another process that held the lock until the timeout.
	ErrLocked = errors.New("another process holds the lock of the package manager")
	// ErrNotRoot is a change by a user who may not make it.
	ErrNotRoot = errors.New("only root may change packages")
	// ErrDownload is a file of a repository that cannot be fetched.
	ErrDownload = errors.New("a download failed")
	// ErrNoSpace is a full disk.
	ErrNoSpace = errors.New("there is not enough free space")
	// ErrScript is a failed script of the package or of another one.
	ErrScript = errors.New("a script of a package failed")
)

// Remedy is what to do about an error that a package manager reports with Says.
type Remedy struct {
	Says string
	// About, set in place of Says, matches each report; its first group is the
	// package, and the details come before it.
	About *regexp.Regexp
	Err   error
	Do    string
}

// excerptLines is how much output an error carries.
const excerptLines = 10

// Explain returns the error of a failed command: from the first matching
// remedy, with the last lines of output.
func Explain(argv []string, result command.Result, remedies []Remedy) error {
	stdout, stderr := asShown(result.Stdout), asShown(result.Stderr)
	tail := lastLines(stderr)
	if tail == "" {
		tail = lastLines(stdout)
	}
	err := fmt.Errorf("%s: exit code %d", strings.Join(argv[:min(2, len(argv))], " "), result.ExitCode)
	for _, r := range remedies {
		if r.About != nil {
			if names, said := r.matches(argv, stdout, stderr); len(names) > 0 {
				err, tail = fmt.Errorf("%w: %s: %s", r.Err, strings.Join(names, ", "), r.Do), said
				break
			}
			continue
		}
		if strings.Contains(stderr, r.Says) {
			err = fmt.Errorf("%w: %s", r.Err, r.Do)
			break
		}
		if at := strings.Index(stdout, r.Says); at >= 0 {
			// The line names the package too.
			tail = lastLines(stdout[strings.LastIndexByte(stdout[:at], '\n')+1:]) + "\n" + tail
			err = fmt.Errorf("%w: %s", r.Err, r.Do)
			break
		}
	}
	if tail == "" {
		return err
	}

	return resource.CommandError{Err: err, Output: strings.ToValidUTF8(tail, "\uFFFD")}
}

// matches returns the packages that About finds, and the output about the first
// of them that the command names, else about the first.
func (r Remedy) matches(argv []string, streams ...string) (names []string, said string) {
	for _, text := range streams {
		begin, asked := 0, false
		for _, at := range r.About.FindAllStringSubmatchIndex(text, -1) {
			name := text[at[2]:at[3]]
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			if is := slices.ContainsFunc(argv, func(word string) bool { return isPackage(word, name) }); said == "" || is && !asked {
				said, asked = lastLines(text[begin:at[1]]), is
			}
			begin = at[1]
		}
		if len(names) > 0 {
			break
		}
	}

	return names, said
}

// isPackage reports whether a word of a command is a package, with or without a
// version.
func isPackage(word, name string) bool {
	rest, found := strings.CutPrefix(word, name)

	return found && (rest == "" || strings.ContainsAny(rest[:1], "=:-+."))
}

// asShown returns an output as a terminal shows it: after a carriage return the
// line starts over.
func asShown(o command.Output) string {
	lines := strings.Split(o.String(), "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
	}

	return strings.Join(lines, "\n")
}

func lastLines(text string) string {
	return strings.TrimLeft(command.Output{Head: []byte(text)}.LastLines(excerptLines), "\n")
}
