package status

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/pkg/version"
)

const (
	// minInterval is the minimum time between two inventories of a node.
	minInterval = 5 * time.Minute
	// maxInterval is the time after which packages are read although no watch reported a change, and stored although
	// they did not change, because the store may have lost them.
	maxInterval = time.Hour
	// maxSpread spreads the inventories of nodes that install packages at the same time.
	maxSpread = 30 * time.Second
)

// Source reads the packages of a machine.
type Source interface {
	// Read returns the installed packages in a fixed order.
	Read(ctx context.Context) ([]model.Package, error)
	Points() []watch.Point
}

// Publisher stores the inventory of a node when its packages change.
type Publisher struct {
	Node   string
	Source Source
	// Arm watches a point; nil disables watching.
	Arm func(p watch.Point, wake func()) (watch.Watch, error)
	Put func(ctx context.Context, i model.Inventory) error
	// Off reports whether the configuration disables the inventory.
	Off func() bool
	Log *slog.Logger

	stored   []model.Package
	storedAt time.Time
}

// Run stores inventories until ctx ends. It logs a failure and retries.
func (p *Publisher) Run(ctx context.Context) error {
	changed := tasks.NewSignal()
	for _, point := range p.Source.Points() {
		if p.Arm == nil {
			break
		}
		w, err := p.Arm(point, changed.Notify)
		if err != nil {
			p.Log.DebugContext(ctx, "cannot watch the package database, reading it every hour", "path", point.Name, "error", err)
			continue
		}
		defer w.Close()
	}
	var wait tasks.Backoff
	failing := false
	for ctx.Err() == nil {
		if err := p.once(ctx); err != nil && ctx.Err() == nil {
			level := slog.LevelDebug
			if !failing {
				level = slog.LevelWarn
			}
			failing = true
			p.Log.Log(ctx, level, "inventory not stored, will retry", "error", err)
			tasks.Pause(ctx, min(wait.Next(), minInterval), nil)
			continue
		}
		failing = false
		wait.Reset()
		tasks.Pause(ctx, tasks.Spread(minInterval, tasks.Jitter), nil)
		tasks.Pause(ctx, tasks.Spread(maxInterval, tasks.Jitter), changed)
		tasks.Pause(ctx, rand.N(maxSpread), nil)
	}

	return nil
}

// once stores the packages if they changed or maxInterval has passed.
func (p *Publisher) once(ctx context.Context) error {
	if p.Off() {
		return nil
	}
	all, err := p.Source.Read(ctx)
	now := time.Now()
	if err != nil || len(all) == 0 || slices.Equal(all, p.stored) && now.Sub(p.storedAt) < maxInterval {
		return err
	}
	if err := p.Put(ctx, model.Inventory{Node: p.Node, At: now.UTC(), Packages: all}); err != nil {
		return err
	}
	p.stored, p.storedAt = all, now

	return nil
}

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

// maxLine is the maximum length of a line of a package database, in bytes.
const maxLine = 1 << 20

var errTooMany = fmt.Errorf("more than %d packages are installed", model.MaxPackages)

func parseDpkg(r io.Reader) ([]model.Package, error) {
	var out []model.Package
	var p model.Package
	state := ""
	end := func() error {
		if p.Name != "" && isUnpacked(state) {
			if len(out) == model.MaxPackages {
				return errTooMany
			}
			out = append(out, p)
		}
		p, state = model.Package{Manager: version.Deb}, ""
		return nil
	}
	_ = end() // begins the first package
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch field {
		case "":
			if lines.Text() == "" {
				if err := end(); err != nil {
					return nil, err
				}
			}
		case "Package":
			p.Name = value
		case "Version":
			p.Version = value
		case "Architecture":
			p.Arch = value
		case "Status":
			state = value
		}
	}

	return out, cmp.Or(lines.Err(), end())
}

func isUnpacked(status string) bool {
	words := strings.Fields(status)
	if len(words) != 3 {
		return false
	}
	switch words[2] {
	case "installed", "unpacked", "half-configured", "triggers-awaited", "triggers-pending":
		return true
	default:
		return false
	}
}

// rpmFormat prints one line per package.
const rpmFormat = `%{NAME}\t%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\t%{ARCH}\n`

// parseRPM returns the packages in lines of rpmFormat. It skips the keys of repositories, which rpm lists as packages.
func parseRPM(text string) ([]model.Package, error) {
	var out []model.Package
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case len(f) != 3:
			return nil, fmt.Errorf("unexpected output of rpm: %.80q", line)
		case f[0] == "gpg-pubkey":
			continue
		case len(out) == model.MaxPackages:
			return nil, errTooMany
		}
		out = append(out, model.Package{Name: f[0], Version: f[1], Arch: strings.Replace(f[2], "(none)", "", 1), Manager: version.RPM})
	}

	return out, nil
}
