// Package dnf manages packages on Fedora, Red Hat Enterprise Linux and their
// derivatives.
package dnf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/watch"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/pkg/version"
	"github.com/musterfleet/muster/resources/resource"
)

// Provider manages packages with dnf and rpm. Make it with New.
type Provider struct {
	// LockTimeout bounds the wait for the lock of another process.
	LockTimeout time.Duration
	bin         string
	// conf is the configuration of versionlock.
	conf string
}

// New returns the provider.
func New() *Provider {
	return &Provider{LockTimeout: pkg.LockTimeout, bin: "/usr/bin", conf: pluginConf}
}

// Name is dnf.
func (*Provider) Name() string { return "dnf" }

// IsManageable reports whether dnf and rpm are installed; dnf is the first
// choice on Fedora's and Red Hat's families.
func (p *Provider) IsManageable(facts model.Facts, spec resource.Spec) (bool, int, error) {
	if err := checkVersion(spec.Meta().Name, spec.Meta().Ensure); err != nil {
		return false, 0, err
	}
	if s, ok := spec.(*pkg.Spec); ok && s.TargetRelease != "" {
		return false, 0, errors.New("target_release is for apt, repositories of dnf have none (enable the repository in a file of /etc/yum.repos.d, and name the version in ensure)")
	}

	return pkg.Manageable(facts, []string{p.bin + "/dnf", p.bin + "/rpm"}, "rhel", "fedora")
}

// ChangeAll runs one dnf for each kind of request: removals, because an installation may need them, then downgrades,
// then installations. For new packages it first checks that dnf would not install another package instead.
// Then it locks and releases versions.
func (p *Provider) ChangeAll(ctx context.Context, env resource.Env, requests []pkg.Request) error {
	for _, s := range steps(p.onlyLocked(requests)) {
		if slices.ContainsFunc(s.requests, pkg.Request.IsInstall) {
			if _, err := p.simulate(ctx, env, s); err != nil {
				return err
			}
		}
		lines, err := p.changer().Run(ctx, env, s.argv("-y")...)
		if err == nil && s.command == "remove" {
			err = unseen(lines)
		}
		if err != nil {
			return pkg.About(named(err, s.requests), s.requests)
		}
		// Without its epoch a higher version may seem lower.
		if s.command == "downgrade" && slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "of lowest version already installed") }) {
			s.command = "install"
			if err := p.changer().Change(ctx, env, s.argv("-y")...); err != nil {
				return err
			}
		}
	}

	return p.changeLocks(ctx, env, requests)
}

// named replaces the packages of an error by the names in the requests. rpm reports names without
// an architecture.
func named(err error, requests []pkg.Request) error {
	var f *pkg.Failure
	if !errors.As(err, &f) {
		return err
	}
	for i, name := range f.Packages {
		at := slices.IndexFunc(requests, func(r pkg.Request) bool { return withoutArchitecture(r.Name) == name })
		if at >= 0 {
			f.Packages[i] = requests[at].Name
		}
	}

	return err
}

// step is one command of dnf.
type step struct {
	command  string
	options  []string
	requests []pkg.Request
}

// argv returns the command with its answer to questions.
func (s step) argv(answer string, options ...string) []string {
	argv := append(append(append([]string{"dnf"}, options...), s.command, answer), s.options...)
	for _, r := range s.requests {
		argv = append(argv, argument(r))
	}

	return argv
}

func steps(requests []pkg.Request) []step {
	var out []step
	commands := []string{"remove", "downgrade", "install"}
	for _, r := range requests {
		if r.ChangesHold() {
			continue
		}
		s := step{command: "install"}
		switch {
		case r.IsRemoval():
			s.command = "remove"
		case r.Action == pkg.Downgrade:
			s.command = "downgrade"
		case r.Version == pkg.EnsureLatest && r.Action == pkg.Upgrade:
			// Without this option dnf accepts the installed version.
			s.options = []string{"--best"}
		}
		if r.Recommends != nil && !r.IsRemoval() {
			s.options = append(s.options, fmt.Sprintf("--setopt=install_weak_deps=%t", *r.Recommends))
		}
		if r.Held && !r.IsRemoval() {
			s.options = append(s.options, ignoreLocks)
		}
		at := slices.IndexFunc(out, func(o step) bool { return o.command == s.command && slices.Equal(o.options, s.options) })
		if at < 0 {
			at, out = len(out), append(out, s)
		}
		out[at].requests = append(out[at].requests, r)
	}
	slices.SortStableFunc(out, func(a, b step) int {
		return cmp.Or(slices.Index(commands, a.command)-slices.Index(commands, b.command), len(a.options)-len(b.options))
	})

	return out
}

// argument returns the argument of dnf for a request.
func argument(r pkg.Request) string {
	if r.IsRemoval() || r.Version == model.EnsurePresent || r.Version == pkg.EnsureLatest {
		return r.Name
	}

	return exact(r.Name, r.Version)
}

// exact returns the argument for a version of a package; the architecture comes
// last.
func exact(name, version string) string {
	bare := withoutArchitecture(name)
	if bare != name && !strings.Contains(version, "-") {
		version += "-*"
	}

	return bare + "-" + version + name[len(bare):]
}

func architectures() []string {
	return []string{"x86_64", "i686", "i386", "aarch64", "armv7hl", "ppc64le", "s390x", "riscv64", "noarch"}
}

func (p *Provider) changer() pkg.Changer {
	return pkg.Changer{Remedies: remedies(), Timeout: p.LockTimeout, Begins: begins, Scripts: scripts(), Declined: "Operation aborted."}
}

// begins matches the line that dnf prints before it changes anything.
var begins = regexp.MustCompile(`^Running transaction`)

// scripts are the remedies for failed scripts as rpm and dnf report them. A failed script may or may not
// prevent the change of its package.
func scripts() []pkg.Remedy {
	const do = "fix the problem it reports"

	return []pkg.Remedy{
		{Says: regexp.MustCompile(`(?m)^(?:error|warning): %\w+\((\S+?)-[^-\s]+-[^-\s]+\) scriptlet failed.*$`), Err: pkg.ErrScript, Do: do},
		{Says: regexp.MustCompile(`(?m)^Error in \w+ scriptlet in rpm package (\S+)$`), Err: pkg.ErrScript, Do: do},
	}
}

// The remedies for excluded packages and for versions.
const (
	release = "remove it from exclude in /etc/dnf or from `dnf versionlock list`"
	others  = "`dnf list --showduplicates` shows those there are"
)

func remedies() []pkg.Remedy {
	const (
		unmet   = "name versions that go together, or add the repository of the missing package"
		room    = "make room, for example with `dnf clean all`"
		servers = "check the repositories and the network"
		key     = "name the key as gpgkey of its repository, or import it with `rpm --import`"
	)

	return slices.Concat([]pkg.Remedy{
		pkg.Says("superuser privileges", pkg.ErrNotRoot, "run muster as root"),
		pkg.Says("Cache-only enabled but no cache", pkg.ErrDownload, "refresh the package lists (cache_max_age)"),
		pkg.Says("No such command: versionlock", pkg.ErrPlugin, "install "+pluginPackage),
		pkg.Says("rpmdb open failed", pkg.ErrBroken, "run `rpm --rebuilddb`"),
		pkg.Says(`All matches were filtered out by exclude filtering for argument: (\S+)`, pkg.ErrHeld, release),
		pkg.Says("Failed to download metadata", pkg.ErrDownload, servers),
		{Says: regexp.MustCompile(`(?m)^(?:Public key for|Package) (\S+?)-[^-\s]+-[^-\s]+\.rpm is not (?:installed|signed).*$`), Err: pkg.ErrKey, Do: key},
		pkg.Says("you do not have any GPG public keys installed", pkg.ErrKey, key),
		pkg.Says("GPG check FAILED", pkg.ErrKey, key),
		pkg.Says(`(?:No match for argument: |No package )(\S+)(?: available\.)?`, pkg.ErrNoPackage, "check its name and version; "+others),
		pkg.Says("No packages marked for downgrade", pkg.ErrNoVersion, others),
		pkg.Says(`nothing provides .* needed by (\S+?)(?:-[^-\s]+-[^-\s]+)`, pkg.ErrUnmet, unmet),
		pkg.Says("conflicting requests", pkg.ErrUnmet, unmet),
	}, scripts(), []pkg.Remedy{
		pkg.Says("needs more space", pkg.ErrNoSpace, room),
		pkg.Says("needed on the", pkg.ErrNoSpace, room),
		{Says: regexp.MustCompile(`(?m)^Error: Transaction (?:test|check) error:(?:\n +\S.*)+`), Err: pkg.ErrRefused, Do: "fix the problem that rpm reports"},
		{Says: regexp.MustCompile(`(?m)^error: .+$`), Err: pkg.ErrRefused, Do: "fix the problem that rpm reports"},
		pkg.Says("Error opening", pkg.ErrDownload, "check the repositories, or refresh the package lists (cache_max_age)"),
		pkg.Says("Error downloading packages", pkg.ErrDownload, servers),
	})
}

// Watches returns the database of rpm in its possible forms, which changes at the end of each operation,
// and the list of locked versions.
func (*Provider) Watches() []watch.Point {
	out := resource.WatchPaths("/etc/dnf/plugins/versionlock.list")
	for _, name := range []string{"rpmdb.sqlite", "Packages.db", "Packages"} {
		out = append(out, watch.Point{Kind: watch.Path, Name: "/var/lib/rpm/" + name, After: "/var/lib/rpm/.rpm.lock"})
	}

	return out
}

// VersionCmp compares as rpm does, and then as text: epoch, version and, if both have one,
// release.
func (*Provider) VersionCmp(a, b string) (int, error) { return version.CompareRPMStrictly(a, b) }

// withoutArchitecture returns a name or a version without the architecture at its end, if there is one.
func withoutArchitecture(name string) string {
	if at := strings.LastIndexByte(name, '.'); at >= 0 && slices.Contains(architectures(), name[at+1:]) {
		return name[:at]
	}

	return name
}

// checkVersion refuses a version with an architecture, which dnf accepts and
// rpm lacks.
func checkVersion(name, version string) error {
	bare := withoutArchitecture(version)
	if bare == version {
		return nil
	}

	return fmt.Errorf("a version has no architecture: name the package %s%s, with ensure %s", name, version[len(bare):], bare)
}
