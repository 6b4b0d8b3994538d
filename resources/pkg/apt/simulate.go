package apt

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
)

// The lines of a simulation: a package to install, an installed package, and a package to remove.
var (
	installs  = regexp.MustCompile(`^Inst (\S+) `)
	installed = regexp.MustCompile(`^(\S+) is already the newest version`)
	removes   = regexp.MustCompile(`^(?:Remv|Purg) (\S+) \[([^\]]*)\]`)
)

// Simulate runs apt-get -s, which does not need root. If apt would install another package for a
// name, the error is ErrNoPackage. Results are cached within a run until packages or repositories
// change.
func (p *Provider) Simulate(ctx context.Context, env resource.Env, requests []pkg.Request) ([]pkg.Package, error) {
	p.past.follow(env.RunID)
	if err := p.past.refused(requests); err != nil {
		return nil, err
	}
	if removed, done := p.past.accepted(requests); done {
		return removed, nil
	}
	removed, err := p.simulate(ctx, env, requests)
	p.past.note(requests, removed, err)

	return removed, err
}

func (p *Provider) simulate(ctx context.Context, env resource.Env, requests []pkg.Request) ([]pkg.Package, error) {
	var lines []string
	for _, argv := range commands(requests) {
		if argv[0] != "apt-get" {
			continue
		}
		// The log of the simulation would change the machine.
		argv = append([]string{"apt-get", "-s", "-o", "Dir::Log::Planner="}, argv[1:]...)
		more, result, err := pkg.Ask(ctx, env, argv...)
		switch {
		case err != nil:
			return nil, err
		case result.ExitCode != 0:
			err = pkg.Explain(argv, result, remedies())
			if broken, _ := unavailable(err, requests); len(broken) > 0 {
				return nil, simulateRemoval(ctx, env, broken)
			}
			if name := readAsModifier(err, requests); name != "" {
				return nil, missing(ctx, env, name, refresh)
			}
			return nil, p.withProviders(ctx, env, err)
		}
		lines = append(lines, more...)
	}
	for _, r := range requests {
		if !r.IsInstall() || isInstalling(lines, r.Name) {
			continue
		}
		do := refresh
		if bare, ok := strings.CutSuffix(r.Name, "+"); ok && isInstalling(lines, bare) {
			do = "apt reads it as install " + bare + ": remove the +"
		}
		return nil, missing(ctx, env, r.Name, do)
	}

	return removed(lines, requests), nil
}

// isInstalling reports whether the lines of a simulation install a package, or report its newest
// version as installed.
func isInstalling(lines []string, name string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		return slices.ContainsFunc([]*regexp.Regexp{installs, installed}, func(re *regexp.Regexp) bool {
			m := re.FindStringSubmatch(line)
			return m != nil && m[1] == pkg.WithoutNative(name)
		})
	})
}

// readAsModifier returns the name of a request if apt took its plus sign for an instruction. The
// error of apt then names the package without the plus sign.
func readAsModifier(err error, requests []pkg.Request) string {
	var f *pkg.Failure
	if !errors.As(err, &f) || !errors.Is(err, pkg.ErrNoPackage) || pkg.About(err, requests) != err {
		return ""
	}
	for _, r := range requests {
		if bare, ok := strings.CutSuffix(r.Name, "+"); ok && slices.Contains(f.Packages, bare) {
			return r.Name
		}
	}

	return ""
}

// withProviders replaces the error about a missing version of a virtual package by an error with the
// providers.
func (p *Provider) withProviders(ctx context.Context, env resource.Env, err error) error {
	var f *pkg.Failure
	if !errors.As(err, &f) || !errors.Is(err, pkg.ErrNoVersion) || len(f.Packages) != 1 {
		return err
	}
	candidates, failed := p.Candidates(ctx, env, f.Packages, "")
	if failed != nil || candidates[f.Packages[0]] != "" {
		return err
	}

	return missing(ctx, env, f.Packages[0], refresh)
}

func simulateRemoval(ctx context.Context, env resource.Env, broken []pkg.Request) error {
	argv := removal(broken, "--no-act")
	_, result, err := pkg.Ask(ctx, env, argv...)
	if err == nil && result.ExitCode != 0 {
		err = pkg.Explain(argv, result, remedies())
	}

	return err
}

// missing returns the error for a name that no package has, with the remedy, or with the packages
// that provide the name.
func missing(ctx context.Context, env resource.Env, name, do string) error {
	f := &pkg.Failure{Cause: "Unable to locate package " + name, Err: pkg.ErrNoPackage, Do: do, Packages: []string{name}}
	lines, _, err := pkg.Ask(ctx, env, "apt-cache", "showpkg", "-o", exactNames, "--", name)
	if err != nil {
		return err
	}
	if names := reverseProvides(lines, name); len(names) > 0 {
		f.Cause, f.Do = "Package "+name+" is a virtual package provided by "+strings.Join(names, ", "), provider
	}

	return f
}

// reverseProvides returns the packages that provide a name, by the output of apt-cache showpkg.
func reverseProvides(lines []string, name string) []string {
	var names []string
	is, lists := false, false
	for _, line := range lines {
		switch found, ok := strings.CutPrefix(line, "Package: "); {
		case ok:
			is, lists = found == pkg.WithoutNative(name), false
		case line == "Reverse Provides: ":
			lists = is
		case lists && line != "":
			provider, _, _ := strings.Cut(line, " ")
			names = append(names, provider)
		}
	}
	slices.Sort(names)

	return slices.Compact(names)
}

// removed returns the packages that apt would remove in addition to the requests.
func removed(lines []string, requests []pkg.Request) []pkg.Package {
	var out []pkg.Package
	for _, line := range lines {
		m := removes.FindStringSubmatch(line)
		if m == nil || slices.ContainsFunc(requests, func(r pkg.Request) bool { return r.IsRemoval() && r.Is(m[1]) }) {
			continue
		}
		out = append(out, pkg.Package{Names: []string{m[1]}, Version: m[2]})
	}

	return out
}

// past caches the simulations of a run. The lock of the type guards it.
type past struct {
	run string
	// repositories and packages identify the state that the simulations are valid for.
	repositories, packages string
	// removals are the additional removals of accepted requests.
	removals map[string][]pkg.Package
	// refusals are the errors of requests that no repository can meet.
	refusals map[string]error
}

// follow drops the simulations of other runs and outdated ones.
func (p *past) follow(run string) {
	repositories, packages := stamps(configuration, listsDir), stamps(dpkgStatus)
	if run == "" || run != p.run || repositories != p.repositories {
		p.refusals = nil
	}
	if p.refusals == nil || packages != p.packages {
		p.removals = nil
	}
	p.run, p.repositories, p.packages = run, repositories, packages
}

// refused returns the error of the first request that no repository can meet.
func (p *past) refused(requests []pkg.Request) error {
	for _, r := range requests {
		if err := p.refusals[key(r)]; err != nil {
			return err
		}
	}

	return nil
}

// accepted returns the additional removals of requests. done is false if the requests were not
// simulated together.
func (p *past) accepted(requests []pkg.Request) (removed []pkg.Package, done bool) {
	removed, done = p.removals[key(requests...)]

	return removed, done
}

func (p *past) note(requests []pkg.Request, removed []pkg.Package, err error) {
	if p.run == "" {
		return
	}
	if p.refusals == nil {
		p.refusals = map[string]error{}
	}
	if p.removals == nil {
		p.removals = map[string][]pkg.Package{}
	}
	switch {
	case err == nil:
		p.removals[key(requests...)] = removed
	case errors.Is(err, pkg.ErrNoPackage) || errors.Is(err, pkg.ErrNoVersion):
		for _, r := range requests {
			if about := pkg.About(err, []pkg.Request{r}); about != err {
				p.refusals[key(r)] = about
			}
		}
	}
}

// key identifies requests by their commands.
func key(requests ...pkg.Request) string {
	var b strings.Builder
	for _, argv := range commands(requests) {
		if argv[0] != "apt-get" {
			continue
		}
		b.WriteString(strings.Join(argv, " ") + "\n")
	}

	return b.String()
}

// stamps identifies the content of files, and of directories with their folders, by time and size.
func stamps(paths ...string) string {
	var b strings.Builder
	for _, path := range paths {
		_ = filepath.WalkDir(path, func(path string, entry fs.DirEntry, _ error) error {
			if info, err := os.Stat(path); err == nil {
				b.WriteString(path + " " + strconv.FormatInt(info.ModTime().UnixNano(), 10) + " " + strconv.FormatInt(info.Size(), 10) + "\n")
			}
			return nil
		})
	}

	return b.String()
}
