package resource

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/host/command"
)

const (
	// placeholder stands for a path in the command of a property.
	placeholder = "{}"
	// errorLines is how many lines of a command's output are in its error.
	errorLines = 10
)

// WithPath returns the words of a command with a path in place of {}, or at the
// end where there is none.
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
