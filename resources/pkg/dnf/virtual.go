package dnf

import (
	"context"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
)

// CheckAbsent runs rpm once, and dnf for each name that an installed package provides. A name of a
// package in a repository is not virtual.
func (p *Provider) CheckAbsent(ctx context.Context, env resource.Env, names []string) (map[string]error, error) {
	argv := append([]string{"rpm", "-q", "--whatprovides", "--queryformat", `=%{NAME}[ %{PROVIDES}]\n`, "--"}, names...)
	lines, _, err := pkg.Ask(ctx, env, argv...)
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, line := range lines {
		line, isPackage := strings.CutPrefix(line, "=")
		if !isPackage {
			continue
		}
		words := strings.Fields(line)
		for _, name := range names {
			if len(words) > 1 && words[0] != name && slices.Contains(words[1:], name) && !slices.Contains(found[name], words[0]) {
				found[name] = append(found[name], words[0])
			}
		}
	}
	out := map[string]error{}
	for name, providers := range found {
		names, _, err := pkg.Ask(ctx, env, "dnf", "-C", "-q", "repoquery", "--qf", "%{name}", name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(names, name) {
			out[name] = pkg.Virtual(name, providers)
		}
	}

	return out, nil
}
