package chaos

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
)

// judge looks at a world.
type judge struct{ *world }

// judge waits until everything holds that must hold after any fault, and fails the test
// when it does not come.
func (w *world) judge() {
	w.t.Helper()
	judge{w}.all()
}

func (w judge) all() {
	w.t.Helper()
	if w.doubt.Load() {
		w.put()
	}
	began := time.Now()
	for _, look := range []struct {
		what string
		at   func() error
	}{
		{"all files are in their desired state", w.checkFiles},
		{"the state of the node is true", w.checkState},
		{"no litter is left", w.checkLitter},
		{"nothing is left open", w.checkOpen},
		{"the reports are complete", w.checkReports},
		{"all files are as they were", w.checkFiles},
	} {
		await(w.t, look.what, look.at)
	}
	w.t.Logf("all is well after %s", time.Since(began).Round(time.Millisecond))
}

// patience is how long the judge waits.
const patience = 100 * time.Second

// await waits until something holds, and fails the test with the last reason why it does
// not.
func await(t *testing.T, what string, holds func() error) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not after %s: %s: %v", patience, what, err)
		}
	}
}

// desired returns the newest version in the bucket.
func (w judge) desired() (version int64, revision uint64, err error) {
	e, err := w.store.Get(w.t.Context(), siteKey)
	if err != nil {
		return 0, 0, err
	}
	first, _, _ := strings.Cut(string(e.Value), "\n")
	version, err = strconv.ParseInt(strings.TrimPrefix(first, "# "), 10, 64)
	// Servers other than the leader also answer, with the data that they have.
	if stored := w.stored.Load(); err == nil && e.Revision < stored {
		err = fmt.Errorf("revision %d was read, not yet %d", e.Revision, stored)
	}

	return version, e.Revision, err
}

// checkFiles returns the files that differ from the bucket.
func (w judge) checkFiles() error {
	version, _, err := w.desired()
	if err != nil {
		return err
	}
	for i, path := range w.files {
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if want := contentOf(version, i); info.Mode() != 0o644 || string(text) != want {
			return fmt.Errorf("%s is %s, %q, want %q", path, info.Mode(), text, want)
		}
	}
	first, err := os.Stat(w.files[0])
	if err != nil {
		return err
	}
	mark, err := os.Stat(w.mark)
	if err != nil {
		return err
	}
	if mark.ModTime().Before(first.ModTime()) {
		return fmt.Errorf("what follows %s ran at %s, before its change of %s", w.files[0], mark.ModTime(), first.ModTime())
	}

	return nil
}

// checkState returns what the node says wrongly, in the bucket and on its machine.
func (w judge) checkState() error {
	version, revision, err := w.desired()
	if err != nil {
		return err
	}
	stored, err := w.store.State(w.t.Context(), node)
	if err != nil {
		return err
	}
	if stored.Started.Before(w.started) {
		return fmt.Errorf("the stored state is of an earlier agent: %+v", stored)
	}
	if err := w.checkWatches(stored.Watches); err != nil {
		return err
	}
	if polled := strings.Contains(stored.Message, "limit of watches reached"); polled != (w.watches > 0) || !polled && stored.Message != "" || stored.Outbox > 0 || len(stored.Flapping) > 0 {
		return fmt.Errorf("the stored state is %+v", stored)
	}
	if err := w.checkManifests(revision, stored.Manifests); err != nil {
		return fmt.Errorf("stored: %w (version %d)", err, version)
	}
	if w.agent == nil || w.uid != os.Geteuid() {
		return nil // it answers only its own user
	}
	var s model.AgentStatus
	if err := status.Ask(w.t.Context(), w.state, "GET", "/v1/status", nil, &s); err != nil {
		return err
	}
	if s.PID != w.agent.pid() || !s.NATS.Connected || len(s.Running) > 0 || s.Outbox > 0 || len(s.Notices) > 0 && w.watches == 0 {
		return fmt.Errorf("the agent says %+v", s)
	}
	if err := w.checkWatches(s.Watches); err != nil {
		return err
	}
	said := map[string]model.ManifestState{}
	for _, m := range s.Manifests {
		said[m.Key] = m.State
	}

	return w.checkManifests(revision, said)
}

// checkWatches returns that other resources are watched than can be.
func (w judge) checkWatches(count int) error {
	if all := len(w.files) + w.others; w.watches == 0 && count != all || w.watches > 0 && count >= all {
		return fmt.Errorf("%d of %d resources are watched, with %d watches", count, all, w.watches)
	}

	return nil
}

func (w judge) checkManifests(revision uint64, all map[string]model.ManifestState) error {
	if site := all[siteKey]; site.Revision != revision || site.Counts.Total != len(w.files)+1 {
		return fmt.Errorf("not revision %d: %+v", revision, site)
	}
	for key, m := range all {
		if failed := m.Outcome == model.OutcomeFailed; failed != w.pardons.failing[key] || failed != (m.Error != "") || m.Seen != 0 || m.Late != "" {
			return fmt.Errorf("%s: %+v", key, m)
		}
	}
	if len(all) != 1+len(w.pardons.failing) {
		return fmt.Errorf("%d manifests", len(all))
	}

	return nil
}

// stateFiles are what a state directory has while nothing runs.
const stateFiles = `^(agent\.lock|agent\.sock|control\.json|format|litter|run\.lock|seen\.json|assignments(/[^/.][^/]*\.json)?|bundles|outbox(/([a-z0-9.-]+\.(log|json)|cursor|lock|format))?|owed|requests|tmp|refreshes(/[^/.]+\.json)?)$`

// checkLitter returns leftover files.
func (w judge) checkLitter() error {
	known := map[string]bool{w.dir: true, w.sub(): true}
	for _, path := range w.files {
		known[path], known[filepath.Dir(path)] = true, true
	}
	var left []string
	look := func(root string, wanted func(path string) bool) error {
		return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && path != root && !wanted(path) {
				left = append(left, path)
			}
			return err
		})
	}
	inState := regexp.MustCompile(stateFiles)
	err := errors.Join(
		look(w.dir, func(path string) bool { return known[path] }),
		look(w.state, func(path string) bool {
			return inState.MatchString(path[len(w.state)+1:]) || w.pardons.litter && strings.HasPrefix(filepath.Base(path), ".muster-")
		}),
	)
	if err != nil || len(left) > 0 {
		return errors.Join(fmt.Errorf("left: %v", left), err)
	}

	return nil
}
