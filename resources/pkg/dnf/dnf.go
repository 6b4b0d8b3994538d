// Package dnf manages packages on Fedora, Red Hat Enterprise Linux and their
// derivatives.
package dnf

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
)

// Provider manages packages with dnf and rpm. Make it with New.
type Provider struct {
	pkg.Single
	// LockTimeout bounds the wait for the lock of another process.
	LockTimeout time.Duration
	bin         string
}

// New returns the provider.
func New() *Provider {
	p := &Provider{LockTimeout: pkg.LockTimeout, bin: "/usr/bin"}
	p.Single = pkg.Single{All: p}

	return p
}

// Name is dnf.
func (*Provider) Name() string { return "dnf" }

// IsManageable reports whether dnf and rpm are installed; dnf is the first
// choice on Fedora's and Red Hat's families.
func (p *Provider) IsManageable(facts model.Facts, spec resource.Spec) (bool, int, error) {
	if err := checkVersion(spec.Meta().Name, spec.Meta().Ensure); err != nil {
		return false, 0, err
	}

	return pkg.Manageable(facts, []string{p.bin + "/dnf", p.bin + "/rpm"}, pkg.RedHatFamilies(), pkg.DebianFamilies())
}

// ChangeAll runs one dnf for each kind of request: removals, which may make
// room, then downgrades, then installations.
func (p *Provider) ChangeAll(ctx context.Context, env resource.Env, requests []pkg.Request) error {
	found, err := p.checkNames(ctx, env, requests)
	if err != nil {
		return err
	}
	changer := p.changer()
	if found {
		// The package is known to exist.
		changer.Remedies = append([]pkg.Remedy{{Says: "No match for argument", Err: pkg.ErrNoVersion, Do: others}}, changer.Remedies...)
	}
	for _, argv := range commands(requests) {
		lines, err := changer.Run(ctx, env, argv...)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(lines, isUnseen); argv[1] == "remove" && i >= 0 {
			return resource.CommandError{Err: fmt.Errorf("%w: dnf does not see that it is installed: %s", pkg.ErrHeld, release), Output: strings.Join(lines[:i+1], "\n")}
		}
		// Without its epoch a higher version may look lower.
		if argv[1] == "downgrade" && slices.ContainsFunc(lines, isLowest) {
			argv = slices.Clone(argv)
			argv[1] = "install"
			if err := p.changer().Change(ctx, env, argv...); err != nil {
				return err
			}
		}
	}

	return nil
}

// isUnseen matches dnf's report that it ignores an installed package.
func isUnseen(line string) bool { return strings.Contains(line, "No packages marked for removal") }

func isLowest(line string) bool { return strings.Contains(line, "of lowest version already installed") }

// commands returns the commands for requests.
func commands(requests []pkg.Request) [][]string {
	var remove, downgrade, install, best []string
	for _, r := range requests {
		switch {
		case r.Action == pkg.Uninstall:
			remove = append(remove, r.Name)
		case r.Action == pkg.Downgrade:
			downgrade = append(downgrade, exact(r.Name, r.Version))
		case r.Version == model.EnsurePresent:
			install = append(install, r.Name)
		case r.Version == pkg.EnsureLatest && r.Action == pkg.Upgrade:
			best = append(best, r.Name)
		case r.Version == pkg.EnsureLatest:
			install = append(install, r.Name)
		default:
			install = append(install, exact(r.Name, r.Version))
		}
	}
	var out [][]string
	add := func(names []string, command ...string) {
		if len(names) > 0 {
			out = append(out, append(append([]string{"dnf"}, command...), names...))
		}
	}
	add(remove, "remove", "-y")
	add(downgrade, "downgrade", "-y")
	add(install, "install", "-y")
	// Without --best the installed version is good enough.
	add(best, "install", "-y", "--best")

	return out
}

// exact returns the argument for a version of a package; the architecture comes
// last.
func exact(name, version string) string {
	at := strings.LastIndexByte(name, '.')
	if at < 0 || !slices.Contains(architectures(), name[at+1:]) {
		return name + "-" + version
	}
	if !strings.Contains(version, "-") {
		version += "-*"
	}

	return name[:at] + "-" + version + name[at:]
}

// architectures are those that a name may end with.
func architectures() []string {
	return []string{"x86_64", "i686", "i386", "aarch64", "armv7hl", "ppc64le", "s390x", "riscv64", "noarch"}
}

func (p *Provider) changer() pkg.Changer {
	return pkg.Changer{Remedies: remedies(), Timeout: p.LockTimeout, Begins: begins}
}

// begins is printed before dnf changes anything.
var begins = regexp.MustCompile(`^Running transaction`)

// scriptFailed matches the report of rpm for a script that prevents the change
// of its package, and of dnf for others.
var scriptFailed = regexp.MustCompile(`(?m)^(?:error: %\w+\(|Error in \w+ scriptlet in rpm package )(\S+?)(?:-[^-\s]+-[^-\s]+\) scriptlet failed.*)?$`)

// The remedies for excluded packages and for versions.
const (
	release = "remove it from exclude in /etc/dnf or from `dnf versionlock list`"
	others  = "`dnf list --showduplicates` shows those there are"
)

func remedies() []pkg.Remedy {
	return []pkg.Remedy{
		{Says: "superuser privileges", Err: pkg.ErrNotRoot, Do: "run muster as root"},
		{Says: "rpmdb open failed", Err: pkg.ErrBroken, Do: "run `rpm --rebuilddb`"},
		{Says: "All matches were filtered out by exclude filtering", Err: pkg.ErrHeld, Do: release},
		{Says: "Failed to download metadata", Err: pkg.ErrDownload, Do: "check the repositories and the network"},
		{Says: "No match for argument", Err: pkg.ErrNoPackage, Do: "check its name and version; " + others},
		{Says: "No packages marked for downgrade", Err: pkg.ErrNoVersion, Do: others},
		{Says: "nothing provides", Err: pkg.ErrUnmet, Do: "name versions that go together, or add the repository that has what is missing"},
		{Says: "conflicting requests", Err: pkg.ErrUnmet, Do: "name versions that go together, or add the repository that has what is missing"},
		{About: scriptFailed, Err: pkg.ErrScript, Do: "fix the problem it reports"},
		{Says: "needs more space", Err: pkg.ErrNoSpace, Do: "make room, for example with `dnf clean all`"},
		{Says: "needed on the", Err: pkg.ErrNoSpace, Do: "make room, for example with `dnf clean all`"},
		{Says: "Error opening", Err: pkg.ErrDownload, Do: "check the repositories, or refresh the package lists (cache_max_age)"},
		{Says: "Error downloading packages", Err: pkg.ErrDownload, Do: "check the repositories and the network"},
	}
}
