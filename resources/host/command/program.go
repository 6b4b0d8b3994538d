package command

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/host/files"
)

// defaultPath is searched when the environment has no PATH at all.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environ is the environment without what steers muster itself, its credentials
// first of all: that is no business of commands and manifests.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "MUSTER_") || strings.HasPrefix(entry, "NATS_")
	})
}

// environment is what a command gets.
func environment(c Command) []string {
	env := []string{} // not nil, which would mean all of muster's own
	if !c.OnlyEnv {
		env = Environ()
	}
	if filepath.IsAbs(c.Dir) {
		env = append(env, "PWD="+c.Dir)
	}
	env = append(env, c.Env...)
	if c.Path != "" {
		env = append(env, "PATH="+c.Path)
	}

	return env
}

// lookupEnv gives the value that holds: the last one.
func lookupEnv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}

	return ""
}

// FindProgram gives the path of the program that Run would start for a name.
// One that is not there is an error that wraps ErrNotFound.
func FindProgram(name string) (string, error) {
	return findProgram(name, "", environment(Command{}))
}

// Check says why a command cannot be started, in the words that Run has for it,
// as far as that can be seen without starting it.
func Check(c Command) error {
	_, err := program(c, environment(c))

	return err
}

// Programs gives the paths at which the program of a command is looked for.
func Programs(c Command) []string {
	name := c.Argv[0]
	switch {
	case filepath.IsAbs(name):
		return []string{filepath.Clean(name)}
	case strings.Contains(name, "/"):
		return []string{filepath.Join(c.Dir, name)}
	}
	var out []string
	for _, dir := range searched(environment(c)) {
		out = append(out, filepath.Join(dir, name))
	}

	return out
}

// program gives the path of a command's program.
func program(c Command, env []string) (string, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return "", fmt.Errorf("%w: no command is given", ErrNotFound)
	}
	if err := checkDir(c.Dir); err != nil {
		return "", err
	}

	return findProgram(c.Argv[0], c.Dir, env)
}

// searched gives the directories in which programs are searched. An empty or
// relative one would run whatever lies about where muster stands.
func searched(env []string) []string {
	path := cmp.Or(lookupEnv(env, "PATH"), defaultPath)

	return slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool { return !filepath.IsAbs(dir) })
}

// findProgram gives the path of a program. A relative one is relative to dir,
// as the system sees it after it has gone there.
func findProgram(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, checkProgram(name, dir)
	}
	var refused error
	for _, d := range searched(env) {
		program := filepath.Join(d, name)
		switch err := files.MayExecute(program); {
		case err == nil:
			return program, nil
		case !files.IsAbsent(err) && refused == nil:
			refused = fmt.Errorf("%s: %w", program, err)
		}
	}
	if refused != nil {
		return "", refused
	}

	return "", fmt.Errorf("%w: %s is not in %s", ErrNotFound, name, cmp.Or(lookupEnv(env, "PATH"), defaultPath))
}

func checkProgram(name, dir string) error {
	full := name
	if !filepath.IsAbs(name) {
		full = filepath.Join(dir, name)
	}
	err := files.MayExecute(full)
	switch {
	case err == nil:
		return nil
	case files.IsAbsent(err):
		return fmt.Errorf("%w: %s does not exist", ErrNotFound, full)
	default:
		return fmt.Errorf("%s: %w", full, err)
	}
}

func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil || files.IsAbsent(err):
		return fmt.Errorf("%w: %s", ErrNoDir, dir)
	default:
		return fmt.Errorf("working directory: %w", err)
	}
}
