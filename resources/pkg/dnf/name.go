package dnf

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
)

// available is the repoquery format that parseRows reads.
const available = "%{name} %{epoch} %{version} %{release} %{arch}\t\t\t\n"

// checkVersion refuses a version with an architecture, which dnf accepts and
// rpm lacks.
func checkVersion(name, version string) error {
	at := strings.LastIndexByte(version, '.')
	if at < 0 || !slices.Contains(architectures(), version[at+1:]) {
		return nil
	}

	return fmt.Errorf("a version has no architecture: name the package %s%s, with ensure %s", name, version[at:], version[:at])
}

// checkNames refuses names of new packages for which dnf would install another
// one: a name with a version, or a provided name. found reports whether all
// names are packages; dnf itself reports unknown names.
func (p *Provider) checkNames(ctx context.Context, env resource.Env, requests []pkg.Request) (found bool, err error) {
	names := pkg.Names(requests, pkg.Request.IsInstall)
	if len(names) == 0 {
		return true, nil
	}
	rows, err := p.repoquery(ctx, env, names...)
	if err != nil {
		return false, err
	}
	found = true
	for _, name := range names {
		if slices.ContainsFunc(rows, func(r row) bool { return r.is(name) }) {
			continue
		}
		found = false
		meant, err := p.meant(ctx, env, name)
		if err != nil {
			return false, err
		}
		if len(meant) > 0 {
			return false, fmt.Errorf("%w: %s is not a package name: dnf would install %s; use that name, with the version in ensure", pkg.ErrNoPackage, name, strings.Join(meant, ", "))
		}
	}

	return found, nil
}

// meant returns the packages that dnf would install for a name.
func (p *Provider) meant(ctx context.Context, env resource.Env, name string) ([]string, error) {
	rows, err := p.repoquery(ctx, env, name)
	if err == nil && len(rows) == 0 {
		rows, err = p.repoquery(ctx, env, "--whatprovides", name)
	}
	var out []string
	for _, r := range rows {
		if !slices.Contains(out, r.name) {
			out = append(out, r.name)
		}
	}

	return out, err
}

func (p *Provider) repoquery(ctx context.Context, env resource.Env, arguments ...string) ([]row, error) {
	lines, err := p.changer().Run(ctx, env, append([]string{"dnf", "repoquery", "--qf", available}, arguments...)...)

	return parseRows(lines), err
}
