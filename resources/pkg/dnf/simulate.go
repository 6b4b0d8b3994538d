package dnf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
)

// Simulate runs dnf with the cached lists and declines the transaction. It does not judge an installation
// that may depend on a removal, because dnf makes these changes one after the other.
func (p *Provider) Simulate(ctx context.Context, env resource.Env, requests []pkg.Request) ([]pkg.Package, error) {
	var removed []pkg.Package
	for i, s := range steps(p.onlyLocked(requests)) {
		more, err := p.simulate(ctx, env, s, "-C")
		if i > 0 && errors.Is(err, pkg.ErrUnmet) {
			continue
		}
		if err != nil {
			return nil, err
		}
		removed = append(removed, more...)
	}

	return removed, nil
}

// simulate returns the packages that one command would remove in addition. It returns ErrNoPackage
// if dnf would install another package for the name of a new one.
func (p *Provider) simulate(ctx context.Context, env resource.Env, s step, options ...string) ([]pkg.Package, error) {
	argv := s.argv("--assumeno", options...)
	lines, err := p.changer().Run(ctx, env, argv...)
	if err != nil {
		return nil, pkg.About(err, s.requests)
	}
	if s.command == "remove" {
		if err := unseen(lines); err != nil {
			return nil, err
		}
	}
	table := parseTable(lines)
	for _, r := range s.requests {
		installed := slices.ContainsFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, "Package "+r.Name+"-") && strings.HasSuffix(line, "is already installed.")
		})
		if !r.IsInstall() || installed || slices.ContainsFunc(table.installed, func(row row) bool { return row.is(r.Name) }) {
			continue
		}
		if len(s.requests) > 1 {
			return p.simulate(ctx, env, step{s.command, s.options, []pkg.Request{r}}, options...)
		}
		var instead []string
		for _, row := range table.installed {
			instead = append(instead, row.name)
		}
		for _, line := range lines {
			if installed, ok := strings.CutSuffix(line, " is already installed."); ok {
				instead = append(instead, strings.TrimPrefix(installed, "Package "))
			}
		}
		return nil, &pkg.Failure{
			Cause: fmt.Sprintf("dnf would install %s for %s", strings.Join(instead, ", "), r.Name), Err: pkg.ErrNoPackage,
			Do: "name the package itself, with its version in ensure", Packages: []string{r.Name},
		}
	}

	return table.removed(s.requests), nil
}

// unseen returns an error if dnf would silently skip the removal of an installed package.
func unseen(lines []string) error {
	i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "No packages marked for removal") })
	if i < 0 {
		return nil
	}

	return &pkg.Failure{Cause: lines[i], Err: pkg.ErrHeld, Do: "dnf does not see that it is installed: " + release, Output: strings.Join(lines[:i+1], "\n")}
}

// table is the transaction that dnf prints: the requested packages, and the packages that would be
// removed.
type table struct{ installed, gone []row }

// parseTable reads lines of a name, an architecture and a version below a heading. A line with a
// long name continues in the next line.
func parseTable(lines []string) table {
	var out table
	heading, name := "", ""
	for _, line := range lines {
		f := strings.Fields(line)
		switch {
		case len(f) > 0 && !strings.HasPrefix(line, " "):
			heading, name = line, ""
			continue
		case len(f) == 3 && f[0] == "replacing":
			bare, arch := cutArchitecture(strings.TrimSuffix(f[1], "."))
			out.gone = append(out.gone, row{name: bare, arch: arch, version: f[2]})
			continue
		case len(f) == 1:
			name = f[0]
			continue
		case len(f) < 4:
			continue
		}
		if name != "" {
			f = append([]string{name}, f...)
		}
		name = ""
		r := row{name: f[0], arch: f[1], version: f[2]}
		switch {
		case heading == "Installing:" || heading == "Upgrading:" || heading == "Downgrading:":
			out.installed = append(out.installed, r)
		case strings.HasPrefix(heading, "Removing"):
			out.gone = append(out.gone, r)
		}
	}

	return out
}

// cutArchitecture splits name.arch.
func cutArchitecture(text string) (name, arch string) {
	at := strings.LastIndexByte(text, '.')
	if at < 0 {
		return text, ""
	}

	return text[:at], text[at+1:]
}

func (t table) removed(requests []pkg.Request) []pkg.Package {
	var out []pkg.Package
	for _, r := range t.gone {
		if !slices.ContainsFunc(requests, func(q pkg.Request) bool { return q.IsRemoval() && r.is(q.Name) }) {
			out = append(out, pkg.Package{Names: []string{r.name, r.name + "." + r.arch}, Version: r.version})
		}
	}

	return out
}
