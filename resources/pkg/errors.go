package pkg

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
)

// The errors of package managers.
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
	// ErrNotRoot means that the user must not change packages.
	ErrNotRoot = errors.New("only root may change packages")
	// ErrDownload is a file of a repository that cannot be fetched.
	ErrDownload = errors.New("a download failed")
	// ErrNoSpace is a full disk.
	ErrNoSpace = errors.New("there is not enough free space")
	// ErrScript means that a script of this or another package failed.
	ErrScript = errors.New("a script of a package failed")
	// ErrRefused is a change that the package manager refused.
	ErrRefused = errors.New("the package manager refused it")
	// ErrPlugin is a plugin of the package manager that is not installed.
	ErrPlugin = errors.New("a plugin of the package manager is missing")
	// ErrKey is a package or repository that no known key signed.
	ErrKey = errors.New("the signature cannot be verified")
)

// Remedy explains an error of a package manager.
type Remedy struct {
	// Says matches the report of the error. Its groups are the affected packages.
	Says *regexp.Regexp
	Err  error
	Do   string
}

// Says returns a remedy for an error with a text in one line of the output.
func Says(text string, err error, do string) Remedy {
	return Remedy{regexp.MustCompile("(?m)^.*" + text + ".*$"), err, do}
}

// Failure is an error of a package manager.
type Failure struct {
	// Cause is the line of output with the cause, Output the last lines about it.
	Cause, Output string
	Err           error
	Do            string
	// Packages are the packages that the error names, and reports are the reports about them.
	Packages []string
	reports  []report
}

// report is the line with the cause, and the output that ends with it.
type report struct{ cause, output string }

// About returns the part of an error about one request, if the error names only this request, or else the
// whole error.
func About(err error, requests []Request) error {
	var found *Failure
	for _, r := range requests {
		f := about(err, r)
		if f != nil && found != nil {
			return err
		}
		found = cmp.Or(f, found)
	}
	if found == nil {
		return err
	}

	return found
}

// about returns the part of an error about the package of a request, nil if there is none. A missing version
// does not mean a missing package.
func about(err error, r Request) *Failure {
	var f *Failure
	if !errors.As(err, &f) {
		return nil
	}
	i := slices.IndexFunc(f.Packages, r.Is)
	if i < 0 {
		return nil
	}
	own := *f
	own.Packages = []string{r.Name}
	if i < len(f.reports) && len(f.Packages) > 1 {
		own.Cause, own.Output = f.reports[i].cause, f.reports[i].output
	}
	if own.Err == ErrNoPackage && f.Packages[i] == r.Name+"-"+r.Version {
		own.Err = ErrNoVersion
	}

	return &own
}

// Error returns the cause, the meaning, the remedy and the output.
func (f *Failure) Error() string {
	text := f.Cause + ": " + f.Err.Error() + ": "
	if len(f.Packages) > 1 {
		text += strings.Join(f.Packages, ", ") + ": "
	}
	text += f.Do
	if f.Output != "" && f.Output != f.Cause {
		text += ":\n" + f.Output
	}

	return text
}

// Unwrap returns the parts that quote output. A sensitive resource hides them.
func (f *Failure) Unwrap() []error {
	return []error{resource.CommandError{Err: f.Err, Output: f.Output}, resource.CommandError{Err: f.Err, Output: f.Cause}}
}

const excerptLines = 10

// Explain returns the error of a failed command: a Failure from the first matching remedy, or else an
// error with the last lines of output.
func Explain(argv []string, result command.Result, remedies []Remedy) error {
	streams := []string{asShown(result.Stderr), asShown(result.Stdout)}
	if f := explain(argv, remedies, streams...); f != nil {
		return f
	}
	err := fmt.Errorf("%s: exit code %d", strings.Join(argv[:min(2, len(argv))], " "), result.ExitCode)
	tail := cmp.Or(lastLines(streams[0]), lastLines(streams[1]))
	if tail == "" {
		return err
	}

	return resource.CommandError{Err: err, Output: strings.ToValidUTF8(tail, "\uFFFD")}
}

// explain returns the Failure from the first matching remedy, nil for none. Remedies with the same meaning
// add the packages that only they match.
func explain(argv []string, remedies []Remedy, streams ...string) *Failure {
	var first *Failure
	for _, r := range remedies {
		for _, text := range streams {
			f := r.match(argv, text)
			if first == nil || f == nil {
				first = cmp.Or(first, f)
				continue
			}
			for i, name := range f.Packages {
				if f.Err == first.Err && f.Do == first.Do && !slices.Contains(first.Packages, name) {
					first.Packages, first.reports = append(first.Packages, name), append(first.reports, f.reports[i])
				}
			}
		}
	}

	return first
}

// match returns the error that an output reports, nil for none. The cause is the report about a package
// of the command, or else the first report.
func (r Remedy) match(argv []string, text string) *Failure {
	var f *Failure
	begin, asked := 0, false
	for _, at := range r.Says.FindAllStringSubmatchIndex(text, -1) {
		if f == nil {
			f = &Failure{Err: r.Err, Do: r.Do}
		}
		is := false
		for g := 2; g < len(at); g += 2 {
			if at[g] < 0 {
				continue
			}
			for _, name := range strings.Fields(text[at[g]:at[g+1]]) {
				if !slices.Contains(f.Packages, name) {
					f.Packages = append(f.Packages, name)
					f.reports = append(f.reports, report{cause(text[at[0]:at[1]]), lastLines(text[begin:at[1]])})
				}
				is = is || slices.ContainsFunc(argv, func(word string) bool { return isPackage(word, name) })
			}
		}
		if f.Cause == "" || is && !asked {
			f.Cause, f.Output, asked = cause(text[at[0]:at[1]]), lastLines(text[begin:]), is
			if len(at) > 2 {
				f.Output = lastLines(text[begin:at[1]])
			}
		}
		begin = at[1]
	}
	if f != nil {
		f.Cause, f.Output = strings.ToValidUTF8(f.Cause, "\uFFFD"), strings.ToValidUTF8(f.Output, "\uFFFD")
	}

	return f
}

// cause returns the last line of a report without its label, or a whole list.
func cause(report string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(report), "\n")
	line := strings.Join(strings.Fields(report), " ")
	if !strings.HasSuffix(first, ":") && rest != "" {
		line = strings.TrimSpace(rest[strings.LastIndexByte(rest, '\n')+1:])
	}
	for _, label := range []string{"E: ", "Error: ", "error: ", "- "} {
		line = strings.TrimPrefix(line, label)
	}

	return line
}

func isPackage(word, name string) bool {
	rest, found := strings.CutPrefix(word, name)

	return found && (rest == "" || strings.ContainsAny(rest[:1], "=:-+."))
}

// Marker begins the lines that muster adds to the output of a package manager.
const Marker = "muster: "

// asShown returns an output as a terminal shows it, without the lines of muster. A carriage return clears
// the line.
func asShown(o command.Output) string {
	lines := strings.Split(o.String(), "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, Marker) })

	return strings.Join(lines, "\n")
}

func lastLines(text string) string {
	return strings.TrimLeft(command.Output{Head: []byte(text)}.LastLines(excerptLines), "\n")
}
