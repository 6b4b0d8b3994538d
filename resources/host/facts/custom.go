package facts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
)

const maxFactFile = 4 << 20

// ErrIgnored means that facts.d contains a program or a .yml file.
var ErrIgnored = errors.New("not read for facts")

// readCustom reads the fact files of a configuration directory. It returns an error for each damaged file and
// each file that other users may change, and skips these.
func readCustom(dir string) (map[string]any, error) {
	facts := map[string]any{}
	if dir == "" {
		return facts, nil
	}
	paths, errs := customPaths(dir)
	for _, path := range paths {
		one, err := ReadFile(path)
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		merge(facts, one)
	}

	return facts, errors.Join(errs...)
}

// Stamp returns a text that changes with the fact files of a configuration directory. It does not read them.
func Stamp(dir string) string {
	if dir == "" {
		return ""
	}
	paths, _ := customPaths(dir)
	var out strings.Builder
	for _, path := range paths {
		var at unix.Stat_t
		if unix.Stat(path, &at) == nil {
			fmt.Fprintln(&out, path, at.Dev, at.Ino, at.Size, at.Mode, at.Uid, at.Ctim)
		}
	}

	return out.String()
}

// customPaths returns the possible paths of the fact files of a configuration directory, in the order of
// merging. The errors contain one ErrIgnored for the programs in facts.d and one for its .yml files.
func customPaths(dir string) (paths []string, errs []error) {
	paths = []string{filepath.Join(dir, "facts.json"), filepath.Join(dir, "facts.yaml")}
	dir = filepath.Join(dir, "facts.d")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	var programs, renamed []string
	for _, entry := range entries {
		name := entry.Name()
		info, err := entry.Info()
		switch isRegular := err == nil && info.Mode().IsRegular(); {
		case strings.HasPrefix(name, "."):
		case slices.Contains([]string{".json", ".yaml"}, filepath.Ext(name)):
			paths = append(paths, filepath.Join(dir, name))
		case isRegular && filepath.Ext(name) == ".yml":
			renamed = append(renamed, name)
		case isRegular && info.Mode().Perm()&0o111 != 0:
			programs = append(programs, name)
		}
	}
	if len(programs) > 0 {
		errs = append(errs, fmt.Errorf("%s: programs are %w: %s (let a timer write their output to a .json or .yaml file there)", dir, ErrIgnored, names(programs)))
	}
	if len(renamed) > 0 {
		errs = append(errs, fmt.Errorf("%s: .yml files are %w: %s (rename them to .yaml)", dir, ErrIgnored, names(renamed)))
	}

	return paths, errs
}

func names(all []string) string {
	const shown = 5
	if more := len(all) - shown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:shown], ", "), more)
	}

	return strings.Join(all, ", ")
}

// ReadFile reads a fact file like Parse. A file that is not regular or exceeds 4 MiB is a model.Problem. A
// missing file wraps fs.ErrNotExist. A file that other users may change wraps paths.ErrUntrusted.
func ReadFile(path string) (map[string]any, error) {
	text, err := files.ReadTrusted(path, maxFactFile, paths.Author{})
	switch {
	case errors.Is(err, files.ErrNotRegular), errors.Is(err, files.ErrTooLarge):
		return nil, model.Problem{
			Pos:     model.Position{File: path},
			Message: "is not a fact file",
			Hint:    fmt.Sprintf("it must be a regular file of at most %d MiB", maxFactFile>>20),
		}
	case err != nil:
		return nil, err
	}

	return Parse(path, text)
}

// Parse reads a fact file with a mapping or without content: JSON if its name ends in .json, otherwise YAML.
// Numbers that JSON lacks, such as 0644, become text. Errors are model.Problems.
func Parse(name string, text []byte) (map[string]any, error) {
	v, problems := document.Read(name, text, maxFactFile)
	facts := map[string]any{}
	switch {
	case len(problems) > 0:
		return nil, problems
	case v.Kind == document.Null:
		return facts, nil
	case v.Kind != document.Map:
		return nil, model.ProblemAt(v.Pos, "write them as name: value", "facts must be a mapping, not %s", v.Kind)
	}
	if err := json.Unmarshal(v.AppendJSON(nil), &facts); err != nil {
		return nil, model.ProblemAt(model.Position{File: name}, "", "%v", err)
	}

	return facts, nil
}
