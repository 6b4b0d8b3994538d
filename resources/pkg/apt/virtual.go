package apt

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
)

// provides is the format of dpkg-query: one line per package with its state and provided names.
const provides = `${Package}\t${db:Status-Status}\t${Provides}\n`

// CheckAbsent runs dpkg-query once. It runs apt-cache only if a package provides one of the names
// or a name ends with a plus. A name with a candidate in a repository is a real package.
func (p *Provider) CheckAbsent(ctx context.Context, env resource.Env, names []string) (map[string]error, error) {
	lines, _, err := pkg.Ask(ctx, env, "dpkg-query", "-W", "-f="+provides)
	if err != nil {
		return nil, err
	}
	found := providersOf(lines, names)
	asked := slices.Sorted(maps.Keys(found))
	for _, name := range names {
		if bare, ok := strings.CutSuffix(name, "+"); ok {
			asked = append(asked, name, bare)
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	candidates, err := p.Candidates(ctx, env, asked, "")
	if err != nil {
		return nil, err
	}
	out := map[string]error{}
	for _, name := range names {
		bare, isPlus := strings.CutSuffix(name, "+")
		switch {
		case candidates[name] != "":
		case len(found[name]) > 0:
			out[name] = pkg.Virtual(name, found[name])
		case isPlus && (candidates[bare] != "" || isInstalled(lines, bare)):
			out[name] = fmt.Errorf("%w: %s, which apt would read as install %s: remove the +", pkg.ErrNoPackage, name, bare)
		}
	}

	return out, nil
}

// isInstalled reports whether a package is installed, by lines of provides.
func isInstalled(lines []string, name string) bool {
	return slices.ContainsFunc(lines, func(line string) bool {
		found, _, ok := parseProvides(line)
		return ok && found == name
	})
}

// parseProvides returns the package of a line of provides, and the names that it provides. ok is
// false if the package is not installed.
func parseProvides(line string) (name, provided string, ok bool) {
	f := strings.SplitN(line, "\t", 3)
	if len(f) != 3 || f[1] == "not-installed" || f[1] == "config-files" {
		return "", "", false
	}

	return f[0], f[2], true
}

// providersOf returns the installed packages that provide names.
func providersOf(lines, names []string) map[string][]string {
	out := map[string][]string{}
	for _, line := range lines {
		provider, list, ok := parseProvides(line)
		if !ok {
			continue
		}
		for provided := range strings.SplitSeq(list, ",") {
			provided, _, _ = strings.Cut(strings.TrimSpace(provided), " ")
			for _, name := range names {
				if provided != "" && pkg.WithoutNative(name) == provided && provider != provided {
					out[name] = append(out[name], provider)
				}
			}
		}
	}

	return out
}
