package pkg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/resources/resource"
)

// refreshed is the result of the refresh of package lists in a run.
type refreshed struct {
	run string
	err error
}

// locked calls f while no other command of this type runs.
func (t *Type) locked(ctx context.Context, f func() error) error {
	select {
	case t.busy <- struct{}{}:
		defer func() { <-t.busy }()
		return f()
	case <-ctx.Done():
		return fmt.Errorf("waiting for another package operation: %w", context.Cause(ctx))
	}
}

// Prepare refreshes old package lists once in each run, and lists that are older than their repositories
// each time. Only packages with ensure latest report a failed refresh.
func (t *Type) Prepare(ctx context.Context, env resource.Env, p PackageProvider, specs []*Spec) error {
	maxAge, latest := time.Duration(0), false
	for _, s := range specs {
		latest = latest || s.Ensure == EnsureLatest
		if age := s.CacheMaxAge.Std(); age > 0 && (maxAge == 0 || age < maxAge) {
			maxAge = age
		}
	}
	if maxAge == 0 && !latest {
		return nil
	}

	return t.locked(ctx, func() error {
		run := runOf(env)
		if done, ok := t.lists[p.Name()]; ok && run != "" && done.run == run {
			if maxAge > 0 {
				if err := p.Refresh(ctx, env, Following, false); err != nil {
					warn(ctx, env, p, err)
				}
			}
			return nil
		}
		err := p.Refresh(ctx, env, maxAge, latest)
		if err != nil {
			warn(ctx, env, p, err)
		}
		t.lists[p.Name()] = refreshed{run: run, err: err}
		return nil
	})
}

func warn(ctx context.Context, env resource.Env, p PackageProvider, err error) {
	env.Log.WarnContext(ctx, "package lists not refreshed, using the existing ones", "provider", p.Name(), "error", err)
}

// StatusAll reads all packages with one command, and with another command the candidates of packages with
// ensure latest. It simulates the pending changes.
func (t *Type) StatusAll(ctx context.Context, env resource.Env, p PackageProvider, specs []*Spec) ([]*State, []error) {
	states, errs := make([]*State, len(specs)), make([]error, len(specs))
	err := t.locked(ctx, func() error {
		found, err := p.StatusAll(ctx, env, distinct(specs, func(*Spec) bool { return true }))
		if err != nil {
			return err
		}
		candidates, err := candidatesOf(ctx, env, p, specs)
		if err != nil {
			return err
		}
		installed := byName(found)
		for i, spec := range specs {
			if errs[i] = t.stale(env, p, spec); errs[i] == nil {
				states[i], errs[i] = stateFor(p, spec, installed[spec.Name], candidates[wanted{spec.Name, spec.TargetRelease}])
			}
		}
		foresee(ctx, env, p, specs, states)
		return checkAbsent(ctx, env, p, specs, states)
	})
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
	}

	return states, errs
}

// checkAbsent sets NotAbsent of packages with ensure absent or purged that are not installed.
func checkAbsent(ctx context.Context, env resource.Env, p PackageProvider, specs []*Spec, states []*State) error {
	var names []string
	for i, s := range specs {
		if s.isRemoved() && states[i] != nil && !states[i].installed() && !states[i].Residue && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	found, err := p.CheckAbsent(ctx, env, names)
	if err != nil {
		return err
	}
	for i, s := range specs {
		if states[i] != nil && slices.Contains(names, s.Name) {
			states[i].NotAbsent = found[s.Name]
		}
	}

	return nil
}

// Virtual returns the error for a virtual package that installed packages provide.
func Virtual(name string, providers []string) error {
	return fmt.Errorf("%w: %s is a virtual package, provided by %s: name the provider to remove it", ErrNoPackage, name, strings.Join(providers, ", "))
}

// wanted is a package with ensure latest, in one release or in all.
type wanted struct{ name, release string }

func candidatesOf(ctx context.Context, env resource.Env, p PackageProvider, specs []*Spec) (map[wanted]string, error) {
	out := map[wanted]string{}
	var releases []string
	for _, s := range specs {
		if s.Ensure == EnsureLatest && !slices.Contains(releases, s.TargetRelease) {
			releases = append(releases, s.TargetRelease)
		}
	}
	for _, release := range releases {
		names := distinct(specs, func(s *Spec) bool { return s.Ensure == EnsureLatest && s.TargetRelease == release })
		found, err := p.Candidates(ctx, env, names, release)
		if err != nil {
			return nil, err
		}
		for name, version := range found {
			out[wanted{name, release}] = version
		}
	}

	return out, nil
}

func byName(states []*State) map[string]*State {
	out := map[string]*State{}
	for _, state := range states {
		out[state.Name] = state
	}

	return out
}

func distinct(specs []*Spec, pick func(*Spec) bool) []string {
	var names []string
	for _, s := range specs {
		if pick(s) {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)

	return slices.Compact(names)
}

// stale returns an error for a package with ensure latest if this run could not refresh the lists.
func (t *Type) stale(env resource.Env, p PackageProvider, spec *Spec) error {
	lists := t.lists[p.Name()]
	if spec.Ensure != EnsureLatest || spec.CacheMaxAge == 0 || lists.err == nil || lists.run != runOf(env) {
		return nil
	}

	return fmt.Errorf("the latest version is unknown: %w", lists.err)
}

func runOf(env resource.Env) string { return strings.Join(env.RunEnv, " ") }

func stateFor(p PackageProvider, spec *Spec, found *State, candidate string) (*State, error) {
	if found == nil {
		return nil, unreported(p, spec.Name)
	}
	state := *found
	version := spec.Ensure
	if spec.Ensure == EnsureLatest {
		state.Candidate, version = candidate, candidate
	}
	if !state.installed() || version == "" || (!spec.wantsVersion() && spec.Ensure != EnsureLatest) {
		return &state, nil
	}
	have := state.Ensure
	// The epoch counts only if the wanted version has an epoch.
	if strings.Contains(version, ":") {
		have = state.Metadata.Full
	}
	var err error
	if state.order, err = p.VersionCmp(have, version); err != nil {
		return nil, err
	}

	return &state, nil
}

func unreported(p PackageProvider, name string) error {
	return fmt.Errorf("%s did not report %s", p.Name(), name)
}

const refreshes = "refreshes"

// Refreshed returns the time of the last refresh of a provider's lists, from the record of NoteRefresh
// or the stamp files of the package manager. The zero time means never.
func Refreshed(env resource.Env, provider string, stamps ...string) (time.Time, error) {
	last, _, err := host.Recall[time.Time](env.Host, refreshes, provider)
	if err != nil {
		return last, err
	}
	for _, path := range stamps {
		entry, err := env.Host.Look(path)
		if err != nil {
			return last, err
		}
		if entry.Kind == files.File && entry.ModTime.After(last) {
			last = entry.ModTime
		}
	}

	return last, nil
}

// NoteRefresh records when a refresh began, if there is a state directory. Package managers do not touch
// current lists, so their times are no proof.
func NoteRefresh(ctx context.Context, env resource.Env, provider string, began time.Time) error {
	if err := env.Host.Remember(ctx, refreshes, provider, began); !errors.Is(err, state.ErrNone) {
		return err
	}

	return nil
}
