package command

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environ returns the environment without the configuration of muster, such as credentials, and without the
// variables of systemd for a service. Commands and manifests must not see these.
func Environ() []string {
	return ownVariables(func(name string) bool { return !IsHidden(name) })
}

// ownVariables returns the part of muster's own environment with suitable names.
func ownVariables(isSuitable func(name string) bool) []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !isSuitable(name)
	})
}

// IsHidden reports whether a variable is hidden from commands and manifests.
func IsHidden(name string) bool {
	return name == "NOTIFY_SOCKET" || slices.ContainsFunc([]string{"MUSTER_", "NATS_", "WATCHDOG_"}, func(own string) bool { return strings.HasPrefix(name, own) })
}

func environment(c Command) []string {
	env := []string{} // nil would mean the environment of muster
	switch {
	case c.OnlyEnv:
	case c.As != nil:
		env = append(ownVariables(isNeutral), c.As.variables()...)
	default:
		env = Environ()
		env = append(env, missingAccount(env)...)
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

// missingAccount returns HOME, USER and LOGNAME of the running user if env lacks them. systemd
// does not set them for services of root. A user without an account has the home directory /.
func missingAccount(env []string) (missing []string) {
	account, err := user.Current()
	if err != nil {
		account = &user.User{HomeDir: "/", Username: strconv.Itoa(os.Geteuid())}
	}
	for _, variable := range []struct{ name, value string }{{"HOME", account.HomeDir}, {"USER", account.Username}, {"LOGNAME", account.Username}} {
		if lookupEnv(env, variable.name) == "" {
			missing = append(missing, variable.name+"="+variable.value)
		}
	}

	return missing
}

func lookupEnv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}

	return ""
}

// FindProgram returns the path of the program that Run would start for a name.
// A missing one wraps ErrNotFound.
func FindProgram(name string) (string, error) {
	return findProgram(name, "", environment(Command{}))
}

// Check returns the error that Run would return if the command cannot start, as far as it is known without
// starting it.
func Check(c Command) error {
	_, _, done, err := program(c, environment(c))
	if err != nil {
		return err
	}
	done()
	if c.Umask != nil {
		return paths.OnThread(ownUmask)
	}

	return nil
}

// Programs returns the paths at which Run searches the program of a command.
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

// program returns the path of the program of a command, and of its open working directory, as openDir does. The
// account of the command must have access to both.
func program(c Command, env []string) (program, dir string, done func(), err error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return "", "", nil, fmt.Errorf("%w: no command is given", ErrNotFound)
	}
	if err := c.As.check(); err != nil {
		return "", "", nil, err
	}
	err = accessAs(c.As, func() error {
		if dir, done, err = openDir(c.Dir); err != nil {
			return err
		}
		if program, err = findProgram(c.Argv[0], c.Dir, env); err != nil {
			done()
		}

		return err
	})

	return program, dir, done, err
}

// searched returns the directories of PATH. It omits empty and relative ones, which would run files of the
// working directory.
func searched(env []string) []string {
	path := cmp.Or(lookupEnv(env, "PATH"), defaultPath)

	return slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool { return !filepath.IsAbs(dir) })
}

// findProgram returns the path of a program. A relative path is relative to dir, the working directory of the
// command.
func findProgram(name, dir string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, checkProgram(name, dir)
	}
	var refused error
	for _, d := range searched(env) {
		program := filepath.Join(d, name)
		err := mayExecute(program)
		if err == nil {
			return program, nil
		}
		// Skip directories that muster cannot search: the program may not exist there.
		if _, statErr := os.Stat(program); statErr == nil && refused == nil {
			refused = fmt.Errorf("%s %w: %w", program, ErrNotExecutable, err)
		}
	}
	if refused != nil {
		return "", refused
	}

	if strings.Contains(name, " ") {
		return "", blankName(name)
	}

	return "", fmt.Errorf("%w: %s is not in %s", ErrNotFound, name, shownPath(cmp.Or(lookupEnv(env, "PATH"), defaultPath)))
}

func blankName(name string) error { return fmt.Errorf("%w: %q %w", ErrNotFound, name, ErrBlankName) }

// The longest PATH that errors show in full, and the directories shown of a longer one.
const (
	maxShownPath  = 160
	shownPathDirs = 4
)

func shownPath(path string) string {
	dirs := filepath.SplitList(path)
	if len(path) <= maxShownPath || len(dirs) <= shownPathDirs {
		return path
	}
	first := strings.Join(dirs[:shownPathDirs], string(filepath.ListSeparator))

	return fmt.Sprintf("%s and %d more directories of PATH", first, len(dirs)-shownPathDirs)
}

func checkProgram(name, dir string) error {
	full := name
	if !filepath.IsAbs(name) {
		full = filepath.Join(dir, name)
	}
	err := mayExecute(full)
	switch {
	case err == nil:
		return nil
	case paths.IsAbsent(err) && strings.Contains(name, " "):
		return blankName(name)
	case paths.IsAbsent(err):
		return fmt.Errorf("%w: %s does not exist", ErrNotFound, full)
	default:
		return fmt.Errorf("%s %w: %w", full, ErrNotExecutable, err)
	}
}

// openDir opens the working directory of a command, and returns a path by which a new process finds it until
// done is called, even if another user replaces its path. Without a path it is muster's own directory.
func openDir(path string) (at string, done func(), err error) {
	if path == "" {
		return "", func() {}, nil
	}
	dir, err := paths.OpenDir(path)
	if err == nil {
		err = dir.MayEnter()
	}
	switch {
	case err == nil:
		return "/proc/self/fd/" + strconv.Itoa(dir.Fd()), func() { _ = dir.Close() }, nil
	case paths.IsAbsent(err):
		return "", nil, fmt.Errorf("%w: %s", ErrNoDir, path)
	case errors.Is(err, fs.ErrPermission):
		return "", nil, fmt.Errorf("%w: %w", ErrDirDenied, err)
	default:
		return "", nil, fmt.Errorf("working directory: %w", err)
	}
}

// mayExecute returns an error if the path cannot be executed: EACCES for a directory, like the system.
func mayExecute(path string) error {
	var st unix.Stat_t
	if err := paths.Retry(func() error { return unix.Stat(path, &st) }); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return unix.EACCES
	}

	return paths.Retry(func() error { return unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) })
}
