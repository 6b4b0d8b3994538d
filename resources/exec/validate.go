package exec

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
)

// ErrNoCommand is a command without words.
var ErrNoCommand = errors.New("no command specified")

// shellProvider is the provider that does not split commands.
const shellProvider = "shell"

// maxExitCode is the largest exit code.
const maxExitCode = 255

// Validate reports every problem of the properties.
func (s *Spec) Validate() model.Problems {
	var out model.Problems
	s.validateCommands(&out)
	validateAbsolute(&out, "cwd", s.Cwd)
	validateAbsolute(&out, "creates", s.Creates)
	s.validateEnvironment(&out)
	s.validatePath(&out)
	for _, code := range s.Returns {
		if code < 0 || code > maxExitCode {
			out.Property("returns", "exit codes are 0 to 255", "invalid exit code %d", code)
		}
	}

	return out
}

// Warnings reports an exec that runs at every apply.
func (s *Spec) Warnings() model.Problems {
	var out model.Problems
	if s.Creates == "" && !s.RefreshOnly && s.OnlyIf == "" && s.Unless == "" {
		out.Property("name", "give it `creates`, `onlyif`, `unless` or `refresh_only`", "%s runs every time, because nothing says when it need not", s.Name)
	}

	return out
}

// validateCommands checks that commands without a shell can be split into
// words.
func (s *Spec) validateCommands(out *model.Problems) {
	property := "command"
	if s.Command == "" {
		property = "name"
	}
	s.validateCommand(out, property, s.command())
	if s.OnlyIf != "" {
		s.validateCommand(out, "onlyif", s.OnlyIf)
	}
	if s.Unless != "" {
		s.validateCommand(out, "unless", s.Unless)
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
		key, value, found := strings.Cut(entry, "=")
		// The value may be a secret and is not shown.
		switch {
		case !found:
			out.Property("environment", "write it as KEY=VALUE", "environment entry %d has no =", i+1)
		case key == "":
			out.Property("environment", "write it as KEY=VALUE", "environment entry %d has an empty key", i+1)
		case value == "":
			out.Property("environment", "give it a value, or remove the entry", "environment entry %d, %s, has an empty value", i+1, key)
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
