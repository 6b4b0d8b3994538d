package apt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
)

// checkName refuses names that apt reads as another package.
func checkName(name string) error {
	bare, arch, qualified := strings.Cut(name, ":")
	switch {
	case strings.HasSuffix(name, "-"):
		return fmt.Errorf("a package name must not end with -, because apt would remove it: set ensure: absent")
	case qualified && (arch == "" || arch == "any" || arch == "native"):
		return fmt.Errorf("%q is not a package architecture: name it %s", ":"+arch, bare)
	case qualified && strings.HasSuffix(arch, "+"):
		return fmt.Errorf("an architecture does not end with +")
	default:
		return nil
	}
}

// checkSigns refuses a name with a trailing + that no package has: apt would
// take the sign for an instruction, and install the package named without it.
func (p *Provider) checkSigns(ctx context.Context, env resource.Env, requests []pkg.Request) error {
	for _, r := range requests {
		name, _, _ := strings.Cut(r.Name, ":")
		if !strings.HasSuffix(name, "+") {
			continue
		}
		argv := []string{"apt-cache", "pkgnames", "--", name}
		names, result, err := pkg.Ask(ctx, env, argv...)
		switch {
		case err != nil:
			return err
		case result.ExitCode != 0:
			return pkg.Explain(argv, result, remedies())
		case !slices.Contains(names, name):
			return fmt.Errorf("%w: %s: "+refresh, pkg.ErrNoPackage, name)
		}
	}

	return nil
}

// withoutZeroEpoch returns a version as repositories write it.
func withoutZeroEpoch(version string) string {
	epoch, rest, found := strings.Cut(version, ":")
	if found && epoch != "" && strings.Trim(epoch, "0") == "" {
		return rest
	}

	return version
}

// warnOfRemoved logs packages that were removed in favour of the requested
// ones.
func warnOfRemoved(ctx context.Context, env resource.Env, requests []pkg.Request, lines []string) {
	at := slices.Index(lines, "The following packages will be REMOVED:")
	if at < 0 {
		return
	}
	var removed []string
	for _, line := range lines[at+1:] {
		if !strings.HasPrefix(line, "  ") {
			break
		}
		for _, name := range strings.Fields(line) {
			if !slices.ContainsFunc(requests, func(r pkg.Request) bool { return r.Action == pkg.Uninstall && pkg.WithoutNative(r.Name) == name }) {
				removed = append(removed, name)
			}
		}
	}
	if len(removed) > 0 {
		env.Log.WarnContext(ctx, "other packages were removed", "removed", strings.Join(removed, " "))
	}
}
