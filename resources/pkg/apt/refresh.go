package apt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
)

// The files with the repositories and the lists of apt, and the record of a refresh by the daily
// job.
const (
	sourcesFile  = "/etc/apt/sources.list"
	sourcesDir   = "/etc/apt/sources.list.d"
	listsDir     = "/var/lib/apt/lists"
	dpkgStatus   = "/var/lib/dpkg/status"
	successStamp = "/var/lib/apt/periodic/update-success-stamp"
)

// Refresh runs apt-get update if the lists are older than maxAge or than the repository files. A list that
// cannot be fetched is an error.
func (p *Provider) Refresh(ctx context.Context, env resource.Env, maxAge time.Duration, _ bool) error {
	if maxAge == 0 {
		return nil
	}
	at, err := pkg.Refreshed(env, p.Name(), successStamp)
	if err != nil {
		return err
	}
	if changed, err := listsChanged(); err == nil && changed.After(at) {
		at = changed
	}
	sources, err := sourcesChanged()
	if err != nil {
		return err
	}
	if time.Since(at) <= maxAge && !sources.After(at) {
		return nil
	}
	// A run repeats a failed refresh only after a change of its repositories.
	if maxAge == pkg.Following && env.RunID != "" && p.failed.run == env.RunID && !sources.After(p.failed.at) {
		return nil
	}
	began := time.Now()
	p.failed = failure{run: env.RunID, at: began}
	// Without this option apt accepts the old lists if a server does not answer.
	if err := p.changer().Change(ctx, env, "apt-get", "update", "-q", "-o", "APT::Update::Error-Mode=any"); err != nil {
		return err
	}

	p.failed = failure{}

	return pkg.NoteRefresh(ctx, env, p.Name(), began)
}

// failure is a failed refresh of a run.
type failure struct {
	run string
	at  time.Time
}

// sourcesChanged returns the time of the last change of the repository files.
func sourcesChanged() (time.Time, error) {
	paths := []string{sourcesFile, sourcesDir}
	entries, err := os.ReadDir(sourcesDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, err
	}
	for _, e := range entries {
		paths = append(paths, filepath.Join(sourcesDir, e.Name()))
	}
	var last time.Time
	for _, path := range paths {
		info, err := os.Stat(path)
		if err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}

	return last, nil
}

// listsChanged returns when the lists last changed, or os.ErrNotExist.
func listsChanged() (time.Time, error) {
	entries, err := os.ReadDir(listsDir)
	if err != nil {
		return time.Time{}, err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "Release") {
			info, err := os.Stat(listsDir)
			if err != nil {
				return time.Time{}, err
			}
			return info.ModTime(), nil
		}
	}

	return time.Time{}, os.ErrNotExist
}
