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
	// ErrScript is a script of a package that failed, of the one that is asked for or of another.
	ErrScript = errors.New("a script of a package failed")
)

// Remedy is what to do about an error that a package manager tells by Says.
type Remedy struct {
	Says string
	// About, where it is set in place of Says, finds each time that it is told, and
	// with its first group the package that it is about. What it has to say stands before that.
	About *regexp.Regexp
	Err   error
	Do    string
}

// excerptLines is how much of what was said is part of an error.
const excerptLines = 10

// Explain makes an error of a command that failed: by the first remedy that
// fits, with the last lines it said.
func Explain(argv []string, result command.Result, remedies []Remedy) error {
	stdout, stderr := asShown(result.Stdout), asShown(result.Stderr)
	tail := lastLines(stderr)
	if tail == "" {
		tail = lastLines(stdout)
	}
	err := fmt.Errorf("%s: exit code %d", strings.Join(argv[:min(2, len(argv))], " "), result.ExitCode)
	for _, r := range remedies {
		if r.About != nil {
			if names, said := r.told(argv, stdout, stderr); len(names) > 0 {
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
			// What it is about stands there too.
			tail = lastLines(stdout[strings.LastIndexByte(stdout[:at], '\n')+1:]) + "\n" + tail
			err = fmt.Errorf("%w: %s", r.Err, r.Do)
			break
		}
	}
	if tail == "" {
		return err
	}

	return resource.Said{Err: err, Output: strings.ToValidUTF8(tail, "\uFFFD")}
}

// told returns the packages that About finds, and what was said of the first of
// them that the command names, or of the first.
func (r Remedy) told(argv []string, streams ...string) (names []string, said string) {
	for _, text := range streams {
		begin, asked := 0, false
		for _, at := range r.About.FindAllStringSubmatchIndex(text, -1) {
			name := text[at[2]:at[3]]
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			if is := slices.ContainsFunc(argv, func(word string) bool { return isOf(word, name) }); said == "" || is && !asked {
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

// isOf reports whether a word of a command is a package, with or without its version.
func isOf(word, name string) bool {
	rest, found := strings.CutPrefix(word, name)

	return found && (rest == "" || strings.ContainsAny(rest[:1], "=:-+."))
}

// asShown returns what a terminal would show of an output: a line that was begun
// anew is what it was last.
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
