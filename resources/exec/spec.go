// Package exec is the resource type for commands: what runs, when, and which
// exit codes mean success.
package exec

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
)

// Spec are the properties of an exec.
type Spec struct {
	model.Common
	Command     string   `json:"command,omitempty" line:"posix" list:"argv" filled:"true" sensitive:"true" jsonschema_description:"Command to run; default: the name"`
	Argv        []string `json:"argv,omitempty" sensitive:"true" jsonschema_description:"Program and arguments, each taken as it is; instead of command, with provider posix"`
	Cwd         string   `json:"cwd,omitempty" filled:"true" jsonschema_description:"Working directory"`
	Environment []string `json:"environment,omitempty" short:"e" sensitive:"true" jsonschema_description:"KEY=VALUE entries added to the environment"`
	Path        string   `json:"path,omitempty" filled:"true" jsonschema_description:"PATH of the command: absolute directories separated by colons; the command is searched there"`
	Returns     []int    `json:"returns,omitempty" jsonschema_description:"Exit codes that mean success; default [0]"`
	User        string   `json:"user,omitempty" filled:"true" jsonschema_description:"User of the command and its guards, name or numeric id; needs root"`
	Group       string   `json:"group,omitempty" filled:"true" jsonschema_description:"Group, name or numeric id, of the command and its guards; default: the primary group of the user"`
	Umask       string   `json:"umask,omitempty" filled:"true" jsonschema:"default=0022" jsonschema_description:"Permissions, in octal, that new files do not get"`
	Stdin       string   `json:"stdin,omitempty" jsonschema_description:"Standard input of the command, at most 16 MiB; always secret"`
	Creates     string   `json:"creates,omitempty" filled:"true" jsonschema_description:"A path; the command is not run when it exists"`
	Removes     string   `json:"removes,omitempty" filled:"true" jsonschema_description:"A path; the command is run only when it exists"`
	RefreshOnly bool     `json:"refresh_only,omitempty" alias:"refreshonly" jsonschema_description:"Run only when a resource it subscribes to changed"`
	LogOutput   bool     `json:"logoutput,omitempty" alias:"log_output" jsonschema_description:"Log its output, line by line"`
	OnlyIf      string   `json:"onlyif,omitempty" flags:"exec-if" line:"posix" filled:"true" sensitive:"true" jsonschema_description:"A command; run only when its exit code is 0"`
	Unless      string   `json:"unless,omitempty" flags:"exec-unless" line:"posix" filled:"true" sensitive:"true" jsonschema_description:"A command; do not run when its exit code is 0"`
}

// command returns the command, by default the name.
func (s *Spec) command() string {
	if s.Command == "" {
		return s.Name
	}

	return s.Command
}

// words returns the command as program and arguments, nil when a shell splits it.
func (s *Spec) words() []string {
	if s.Argv != nil {
		return s.Argv
	}

	return s.split(s.command())
}

// split returns the words of a command line, nil when a shell splits it.
func (s *Spec) split(line string) []string {
	if s.Provider == shellProvider {
		return nil
	}
	words, _ := command.Split(line)

	return words
}

func (s *Spec) expected() []int {
	if len(s.Returns) == 0 {
		return []int{0}
	}

	return s.Returns
}

func (s *Spec) accepts(code int) bool { return slices.Contains(s.expected(), code) }

// ErrNoCommand is a command without words.
var ErrNoCommand = errors.New("no command specified")

const shellProvider = "shell"

const (
	maxExitCode = 255
	maxUmask    = 0o777
	// ownUmask is the umask of muster, by host.SetUmask.
	ownUmask = 0o022
	maxStdin = 16 << 20
)

// Secrets returns the standard input. Only one line of a plausible length is searched for elsewhere, because a
// script or an answer such as yes has words that other texts have too.
func (s *Spec) Secrets() []model.Secret {
	const shortest, longest = 8, 4 << 10
	switch line := strings.TrimSuffix(s.Stdin, "\n"); {
	case s.Stdin == "":
		return nil
	case len(line) < shortest || len(line) > longest || strings.Contains(line, "\n"):
		return []model.Secret{model.NewDerived(s.Stdin)}
	default:
		return []model.Secret{model.NewSecret(line)}
	}
}

// umask returns the umask of the command, nil for the default, which every command of muster has.
func (s *Spec) umask() (*int, error) {
	if s.Umask == "" {
		return nil, nil
	}
	mask, err := strconv.ParseUint(strings.TrimPrefix(s.Umask, "0o"), 8, 32)
	if err != nil || mask > maxUmask {
		return nil, fmt.Errorf("invalid umask %q", s.Umask)
	}
	if mask == ownUmask {
		return nil, nil
	}
	value := int(mask)

	return &value, nil
}

// Validate reports every problem of the properties.
func (s *Spec) Validate() model.Problems {
	var out model.Problems
	s.validateCommands(&out)
	validateAbsolute(&out, "cwd", s.Cwd)
	validateAbsolute(&out, "creates", s.Creates)
	validateAbsolute(&out, "removes", s.Removes)
	validateID(&out, "user", s.User)
	validateID(&out, "group", s.Group)
	if _, err := s.umask(); err != nil {
		out.Property("umask", "write it in octal, at most 0777, for example \"0027\"", "%s", err)
	}
	if len(s.Stdin) > maxStdin {
		out.Property("stdin", "write it to a file, and read this in the command", "`stdin` has %s, the limit is 16 MiB", resource.FormatSize(int64(len(s.Stdin))))
	}
	s.validateEnvironment(&out)
	s.validatePath(&out)
	for _, code := range s.Returns {
		if code < 0 || code > maxExitCode {
			out.Property("returns", "exit codes are 0 to 255", "invalid exit code %d", code)
		}
	}

	return out
}

func validateID(out *model.Problems, property, value string) {
	_, valid := host.ParseAccountID(value)
	switch {
	case value != "" && strings.TrimSpace(value) == "":
		out.Property(property, "leave it out, or set it to null", "`%s` is empty", property)
	case strings.ContainsAny(value, ":\n\x00"):
		out.Property(property, "write one name or number", "invalid %s %q", property, value)
	case host.IsAccountNumber(value) && !valid:
		out.Property(property, fmt.Sprintf("numbers go up to %d", uint32(host.MaxAccountID)), "invalid %s %q", property, value)
	}
}

// Warnings reports an exec that runs at every apply, and patterns where only a path works.
func (s *Spec) Warnings() model.Problems {
	var out model.Problems
	if !s.isGuarded() {
		out.Property("name", "give it `creates`, `removes`, `onlyif`, `unless` or `refresh_only`", "%s runs every time, because it has no condition", s.Name)
	}
	for _, p := range []struct{ property, path string }{{"creates", s.Creates}, {"removes", s.Removes}} {
		if strings.ContainsAny(p.path, "*?[") {
			out.Property(p.property, "name one path, or test the pattern in `onlyif` or `unless`", "`%s` is one path, a pattern is not expanded: %s", p.property, p.path)
		}
	}

	return out
}

func (s *Spec) isGuarded() bool {
	return s.Creates != "" || s.Removes != "" || s.RefreshOnly || s.OnlyIf != "" || s.Unless != ""
}

func (s *Spec) validateCommands(out *model.Problems) {
	switch {
	case s.Argv != nil:
		s.validateArgv(out)
	case s.Command != "":
		s.validateCommand(out, "command", s.Command)
	default:
		s.validateCommand(out, "name", s.Name)
	}
	if s.OnlyIf != "" {
		s.validateCommand(out, "onlyif", s.OnlyIf)
	}
	if s.Unless != "" {
		s.validateCommand(out, "unless", s.Unless)
	}
}

func (s *Spec) validateArgv(out *model.Problems) {
	switch {
	case s.Command != "":
		out.Property("argv", "keep one of them", "argv and command are both set")
	case s.Provider == shellProvider:
		out.Property("argv", "leave out provider: shell, or write a command", "a shell takes no argv")
	case len(s.Argv) == 0 || s.Argv[0] == "":
		out.Property("argv", command.Hint(command.ErrNoProgram), "argv %s", command.ErrNoProgram)
	}
	for i, item := range s.Argv {
		if strings.ContainsRune(item, 0) {
			out.Property(fmt.Sprintf("argv.%d", i), "", "an item of argv %s", command.ErrNUL)
		}
	}
}

func (s *Spec) validateCommand(out *model.Problems, property, text string) {
	_, err := command.Split(text)
	switch {
	case strings.TrimSpace(text) == "":
		out.Property(property, "", "%s", ErrNoCommand)
	case errors.Is(err, command.ErrNUL), errors.Is(err, command.ErrNoProgram) && s.Provider != shellProvider:
		out.Property(property, command.Hint(err), "%s %s", property, err)
	case err != nil && s.Provider != shellProvider:
		out.Property(property, command.Hint(err)+", or set provider: shell", "%s %s", property, err)
	}
}

func validateAbsolute(out *model.Problems, property, path string) {
	if path != "" && !filepath.IsAbs(path) {
		out.Property(property, "begin it with /", "%s must be an absolute path: %q", property, path)
	}
}

func (s *Spec) validateEnvironment(out *model.Problems) {
	for i, entry := range s.Environment {
		key, _, found := strings.Cut(entry, "=")
		// The value may be a secret and is not shown.
		switch {
		case !found:
			out.Property("environment", "write it as KEY=VALUE", "environment entry %d has no =", i+1)
		case key == "":
			out.Property("environment", "write it as KEY=VALUE", "environment entry %d has an empty key", i+1)
		case strings.ContainsRune(entry, 0):
			out.Property("environment", "", "environment entry %d, %q, contains a NUL byte", i+1, key)
		}
	}
}

func (s *Spec) validatePath(out *model.Problems) {
	if s.Path == "" {
		return
	}
	for directory := range strings.SplitSeq(s.Path, ":") {
		if !filepath.IsAbs(directory) {
			out.Property("path", "separate absolute directories with colons", "path has a directory that is not absolute: %q", directory)
		}
	}
}
