package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/watch"
)

// The databases of the package managers, below the root directory.
const (
	dpkgStatus = "var/lib/dpkg/status"
	dpkgLock   = "var/lib/dpkg/lock-frontend"
	rpmDir     = "var/lib/rpm"
)

// rpmDatabases returns the file names of the database in all versions of rpm.
func rpmDatabases() []string { return []string{"rpmdb.sqlite", "Packages.db", "Packages"} }

// rpmTimeout bounds one call of rpm.
const rpmTimeout = time.Minute

// Machine reads the packages of the machine with the file system at Root.
type Machine struct {
	Root string
	Run  func(ctx context.Context, c command.Command) (command.Result, error)
}

// Read returns the installed packages, sorted by name. It parses the database of dpkg, and runs
// rpm if that has a database.
func (m Machine) Read(ctx context.Context) ([]model.Package, error) {
	var out []model.Package
	file, err := os.Open(filepath.Join(m.Root, dpkgStatus))
	switch {
	case err == nil:
		out, err = parseDpkg(file)
		err = errors.Join(err, file.Close())
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the packages of dpkg: %w", err)
	}
	if m.hasRPM() {
		found, err := m.readRPM(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the packages of rpm: %w", err)
		}
		out = append(out, found...)
	}
	slices.SortStableFunc(out, func(a, b model.Package) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Arch, b.Arch), cmp.Compare(a.Version, b.Version))
	})

	return out, nil
}

func (m Machine) hasRPM() bool {
	return slices.ContainsFunc(rpmDatabases(), func(name string) bool {
		_, err := os.Stat(filepath.Join(m.Root, rpmDir, name))
		return err == nil
	})
}

func (m Machine) readRPM(ctx context.Context) ([]model.Package, error) {
	ctx, cancel := context.WithTimeout(ctx, rpmTimeout)
	defer cancel()
	result, err := m.Run(ctx, command.Command{Argv: []string{"rpm", "-qa", "--queryformat", rpmFormat}})
	if err != nil {
		return nil, err
	}
	if result.ExitCode != 0 {
		return nil, fmt.Errorf("rpm -qa ended with exit code %d: %.200s", result.ExitCode, result.Stderr.String())
	}

	return parseRPM(result.Stdout.String())
}

// Points returns the files that change with the installed packages. A change counts once the
// package manager has released its lock.
func (m Machine) Points() []watch.Point {
	at := func(path string) string { return filepath.Join(m.Root, path) }
	out := []watch.Point{{Kind: watch.Path, Name: at(dpkgStatus), After: at(dpkgLock)}}
	for _, name := range rpmDatabases() {
		out = append(out, watch.Point{Kind: watch.Path, Name: at(filepath.Join(rpmDir, name)), After: at(filepath.Join(rpmDir, ".rpm.lock"))})
	}

	return out
}
