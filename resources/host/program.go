package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// defaultPath is searched when the environment has no PATH at all.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is what a command gets: what steers muster itself, its
// credentials first of all, is none of its business.
func environment(c Command) []string {
	env := make([]string, 0, len(c.Env)+64)
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "MUSTER_") && !strings.HasPrefix(entry, "NATS_") {
			env = append(env, entry)
		}
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

// findProgram gives the path of a program. A relative one is relative to dir,
// as the system sees it after it has gone there.
func findProgram(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, checkProgram(name, dir)
	}
	path := lookupEnv(env, "PATH")
	if path == "" {
		path = defaultPath
	}
	var refused error
	for _, d := range filepath.SplitList(path) {
		// An empty or relative directory would run whatever lies about where muster stands.
		if !filepath.IsAbs(d) {
			continue
		}
		program := filepath.Join(d, name)
		switch err := executable(program); {
		case err == nil:
			return program, nil
		case !isAbsent(err) && refused == nil:
			refused = fmt.Errorf("%s: %w", program, err)
		}
	}
	if refused != nil {
		return "", refused
	}

	return "", fmt.Errorf("%w: %s is not in %s", ErrNotFound, name, path)
}

func checkProgram(name, dir string) error {
	full := name
	if !filepath.IsAbs(name) {
		full = filepath.Join(dir, name)
	}
	err := executable(full)
	switch {
	case err == nil:
		return nil
	case isAbsent(err):
		return fmt.Errorf("%w: %s does not exist", ErrNotFound, full)
	default:
		return fmt.Errorf("%s: %w", full, err)
	}
}

// executable says why a path cannot be executed. That of a directory is EACCES, as for the system.
func executable(path string) error {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Stat(path, &st) }); err != nil {
		return err
	}
	if kindOf(&st) != File {
		return unix.EACCES
	}

	return retry(func() error { return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) })
}

func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil || isAbsent(err):
		return fmt.Errorf("%w: %s", ErrNoDir, dir)
	default:
		return fmt.Errorf("working directory: %w", err)
	}
}
