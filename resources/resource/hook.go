package resource

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
)

const (
	// placeholder stands for a path in the command of a property.
	placeholder = "{}"
	// errorLines is the number of output lines in an error.
	errorLines = 10
)

// WithPath returns the words of a command with a path in place of {}, or at the end if there is no {}.
func WithPath(words []string, path string) []string {
	out, found := slices.Clone(words), false
	for i := range out[1:] {
		if strings.Contains(out[1+i], placeholder) {
			out[1+i], found = strings.ReplaceAll(out[1+i], placeholder, path), true
		}
	}
	if !found {
		out = append(out, path)
	}

	return out
}

// RunHook runs a command of a property in a directory. An exit code other than 0
// is an error with the last lines of its output.
func RunHook(ctx context.Context, env Env, words []string, dir string) error {
	result, err := env.Host.Run(ctx, command.Command{Argv: words, Dir: dir, Env: env.RunEnv})
	if err != nil || result.ExitCode == 0 {
		return err
	}
	err = fmt.Errorf("%s ended with exit code %d", words[0], result.ExitCode)
	for _, output := range []string{result.Stderr.LastLines(errorLines), result.Stdout.LastLines(errorLines)} {
		if output != "" {
			return CommandError{Err: err, Output: output}
		}
	}

	return err
}

// CheckCommandLine returns the words of a command line. It reports a line that cannot be split as a
// problem of the property, with a message that begins with called.
func CheckCommandLine(out *model.Problems, property, called, text string) []string {
	words, err := command.Split(text)
	if err != nil {
		out.Property(property, command.Hint(err), "%s %s", called, err)
	}

	return words
}

// ValidatedFirst is the end of the noop message of a change with a validate command.
const ValidatedFirst = ", validated first"

// CheckValidator reports problems of the command in the property validate.
func CheckValidator(out *model.Problems, text string) {
	if text == "" {
		return
	}
	words := CheckCommandLine(out, "validate", "`validate`", text)
	if words != nil && !strings.Contains(strings.Join(words[1:], " "), placeholder) {
		out.Property("validate", "put {} where its path belongs, for example visudo -cf {}", "`validate` does not name the new file")
	}
}

// RunValidator runs the command of the property validate in a directory. path is the temporary file for
// target. In an error, target replaces path in the output of the command: users know it, and it is the
// same in each run.
func RunValidator(ctx context.Context, env Env, text, path, target, dir string) error {
	words, err := command.Split(text)
	if err == nil {
		err = RunHook(ctx, env, WithPath(words, path), dir)
	}
	if failed, is := errors.AsType[CommandError](err); is {
		failed.Output = strings.ReplaceAll(failed.Output, path, target)
		err = failed
	}
	if err != nil {
		return fmt.Errorf("validate: %w", err)
	}

	return nil
}
