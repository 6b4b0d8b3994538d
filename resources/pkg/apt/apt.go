// Package apt manages packages on Debian, Ubuntu and their derivatives.
package apt

import (
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

// Provider manages packages with apt and dpkg. Make it with New.
type Provider struct {
	// LockTimeout bounds the wait for the lock of another process.
	LockTimeout time.Duration
	bin         string
	// failed is guarded by the lock of the type.
	failed failure
	past   past
}

// New returns the provider.
func New() *Provider {
	return &Provider{LockTimeout: pkg.LockTimeout, bin: "/usr/bin"}
}

// Name is apt.
func (*Provider) Name() string { return "apt" }

// IsManageable reports whether apt and dpkg are installed; apt is the first
// choice on Debian's family.
func (p *Provider) IsManageable(facts model.Facts, spec resource.Spec) (bool, int, error) {
	if err := checkName(spec.Meta().Name); err != nil {
		return false, 0, err
	}

	return pkg.Manageable(facts, []string{p.bin + "/apt-get", p.bin + "/dpkg-query"}, "debian")
}

// ChangeAll runs one apt-get for all requests with the same options. For new packages it first checks
// that apt would not install another package instead.
func (p *Provider) ChangeAll(ctx context.Context, env resource.Env, requests []pkg.Request) error {
	if slices.ContainsFunc(requests, pkg.Request.IsInstall) {
		if _, err := p.Simulate(ctx, env, requests); err != nil {
			return err
		}
	}
	for _, argv := range commands(requests) {
		err := p.changer().Change(ctx, env, argv...)
		if broken, rest := unavailable(err, requests); len(broken) > 0 {
			// apt refuses all changes until dpkg has removed this package.
			if err = p.changer().Change(ctx, env, removal(broken)...); err == nil && len(rest) > 0 {
				err = p.ChangeAll(ctx, env, rest)
			}
			return err
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// forceRemoval makes dpkg remove a package that needs a reinstallation.
const forceRemoval = "--force-remove-reinstreq"

// unavailable returns the request to remove a package that apt must reinstall first but cannot
// download, and the other requests.
func unavailable(err error, requests []pkg.Request) (broken, rest []pkg.Request) {
	var f *pkg.Failure
	if !errors.As(err, &f) || !errors.Is(err, pkg.ErrBroken) || len(f.Packages) == 0 {
		return nil, nil
	}
	for _, r := range requests {
		if len(broken) == 0 && r.IsRemoval() && r.Is(f.Packages[0]) {
			broken = append(broken, r)
		} else {
			rest = append(rest, r)
		}
	}

	return broken, rest
}

func removal(broken []pkg.Request, options ...string) []string {
	action := "--remove"
	if broken[0].Action == pkg.Purge {
		action = "--purge"
	}

	return append(append([]string{"dpkg"}, options...), forceRemoval, action, pkg.WithoutNative(broken[0].Name))
}

// commands returns the commands for requests: apt-get commands, one for each set of options, then the commands
// that hold or release.
func commands(requests []pkg.Request) [][]string {
	var out [][]string
	for rest := slices.DeleteFunc(slices.Clone(requests), pkg.Request.ChangesHold); len(rest) > 0; {
		var same, others []pkg.Request
		for _, r := range rest {
			if slices.Equal(options(r), options(rest[0])) {
				same = append(same, r)
			} else {
				others = append(others, r)
			}
		}
		out = append(out, append([]string{"apt-get"}, arguments(same)...))
		rest = others
	}
	for _, action := range []pkg.Action{pkg.Hold, pkg.Unhold} {
		argv := []string{"apt-mark", string(action)}
		for _, r := range requests {
			if r.Action == action {
				argv = append(argv, r.Name)
			}
		}
		if len(argv) > 2 {
			out = append(out, argv)
		}
	}

	return out
}

// options returns the options of a request. They apply to all packages of a command.
func options(r pkg.Request) []string {
	var out []string
	if r.Action == pkg.Purge {
		out = append(out, "--purge")
	}
	if r.Held {
		out = append(out, "--allow-change-held-packages")
	}
	if r.Recommends != nil && !r.IsRemoval() {
		out = append(out, map[bool]string{true: "--install-recommends", false: "--no-install-recommends"}[*r.Recommends])
	}
	if r.Release != "" && !r.IsRemoval() {
		out = append(out, "-t", r.Release)
	}

	return out
}

// arguments returns the arguments for requests with the same options. A hyphen after a name removes that
// package in the transaction of the installations.
func arguments(requests []pkg.Request) []string {
	var names []string
	var exact, repair bool
	removals := 0
	for _, r := range requests {
		name := r.Name
		switch {
		case r.IsRemoval():
			removals++
		case r.Action == pkg.Reinstall:
			repair = true
		case r.Candidate != "":
			name += "=" + r.Candidate
		case r.Version != pkg.EnsureLatest && r.Version != model.EnsurePresent:
			name, exact = name+"="+withoutZeroEpoch(r.Version), true
		}
		names = append(names, name)
	}
	// apt waits for a lock silently, so muster waits instead.
	common := append([]string{"-o", "DPkg::Lock::Timeout=0", "-o", exactNames, "-o", "DPkg::Pre-Invoke::=echo " + dpkgBegins, "-o", noCache}, options(requests[0])...)
	if removals > 0 {
		common = append(common, "-o", "DPkg::Options::="+forceRemoval)
	}
	if removals == len(requests) {
		return append(append([]string{"-q", "-y", "remove"}, common...), names...)
	}
	argv := append([]string{"install", "-y", "-q", "-o", "DPkg::Options::=--force-confold"}, common...)
	if exact {
		argv = append(argv, "--allow-downgrades")
	}
	if repair {
		argv = append(argv, "--reinstall")
	}
	for i, r := range requests {
		if r.IsRemoval() {
			names[i] += "-"
		}
	}

	return append(argv, names...)
}

// exactNames prevents apt from reading an unknown name with a dot or plus as a regular expression that
// matches other packages.
const exactNames = "APT::Cmd::Pattern-Only=true"

// dpkgBegins is the line that apt prints before it calls dpkg. The output of dpkg may arrive
// late.
const dpkgBegins = pkg.Marker + "dpkg begins"

var begins = regexp.MustCompile("^" + dpkgBegins)

func (p *Provider) changer() pkg.Changer {
	return pkg.Changer{
		Environment: []string{"DEBIAN_FRONTEND=noninteractive", "APT_LISTBUGS_FRONTEND=none", "APT_LISTCHANGES_FRONTEND=none"},
		Remedies:    remedies(),
		Timeout:     p.LockTimeout,
		Begins:      begins,
	}
}

// refresh is the remedy for a package without a list entry, provider the remedy for a virtual package.
const (
	refresh  = "check its name and the repositories, or refresh the package lists (cache_max_age)"
	provider = "it is a virtual one, so name one of those that provide it"
)

func remedies() []pkg.Remedy {
	const (
		repair   = "run `dpkg --configure -a`, then `apt-get --fix-broken install`"
		versions = "`apt-cache madison` shows those there are; refresh the package lists (cache_max_age) when it is new"
		held     = "release what `apt-mark showhold` lists with `apt-mark unhold`"
		room     = "make room, for example with `apt-get clean`"
	)

	return []pkg.Remedy{
		pkg.Says(`are you root\?`, pkg.ErrNotRoot, "run muster as root"),
		pkg.Says(`lock - open \(13: Permission denied\)`, pkg.ErrNotRoot, "run muster as root"),
		pkg.Says("dpkg was interrupted", pkg.ErrBroken, repair),
		pkg.Says("--fix-broken install", pkg.ErrBroken, repair),
		pkg.Says(`The package (\S+) needs to be reinstalled, but I can't find an archive for it`, pkg.ErrBroken, "remove it with ensure: absent, or add the repository that has it"),
		pkg.Says("Held packages were changed", pkg.ErrHeld, held),
		pkg.Says("Version '[^']*' for '([^']*)' was not found", pkg.ErrNoVersion, versions),
		pkg.Says(`Unable to locate package (\S+)`, pkg.ErrNoPackage, refresh),
		{Says: regexp.MustCompile(`(?m)^Package (\S+) is a virtual package provided by:(?:\n .*)+`), Err: pkg.ErrNoPackage, Do: provider},
		pkg.Says(`Package '([^']*)' has no installation candidate`, pkg.ErrNoPackage, refresh),
		{Says: regexp.MustCompile(`(?m)^.*unmet dependencies:\n (\S+) : .*$`), Err: pkg.ErrUnmet, Do: "name versions that go together, or add the repository of the missing package"},
		pkg.Says("don't have enough free space", pkg.ErrNoSpace, room),
		pkg.Says("No space left on device", pkg.ErrNoSpace, room),
		// The failed script of a package, or of its file.
		{Says: regexp.MustCompile(`(?m)^dpkg: error processing (?:package |archive (?:\S*/)?)([^\s_:]+).*\n.*script subprocess returned error.*$`), Err: pkg.ErrScript, Do: "fix the problem it reports, then " + repair},
		{Says: regexp.MustCompile(`(?m)^dpkg: dependency problems prevent \w+ of ([^\s:]+).*:(?:\n .*)+`), Err: pkg.ErrUnmet, Do: repair},
		{Says: regexp.MustCompile(`(?m)^dpkg: error processing (?:package |archive (?:\S*/)?)([^\s_:]+).*:(?:\n .*)+`), Err: pkg.ErrRefused, Do: "fix the problem that dpkg reports, then " + repair},
		{Says: regexp.MustCompile(`(?m)^dpkg(?:-deb)?: error: .*$`), Err: pkg.ErrRefused, Do: "fix the problem that dpkg reports, then " + repair},
		pkg.Says("The repository .* is not signed", pkg.ErrKey, "add the key of the repository, and name it in signed-by"),
		pkg.Says("Failed to fetch", pkg.ErrDownload, "check the repositories and the network, or refresh the package lists (cache_max_age)"),
	}
}

// Watches returns the database of dpkg, which changes at the end of each operation.
func (*Provider) Watches() []watch.Point {
	return []watch.Point{{Kind: watch.Path, Name: dpkgStatus, After: "/var/lib/dpkg/lock-frontend"}}
}

// CheckHolds returns nil, because apt-mark is a part of apt.
func (*Provider) CheckHolds(context.Context, resource.Env) error { return nil }

// VersionCmp compares as dpkg does: epoch, upstream version, revision.
func (*Provider) VersionCmp(a, b string) (int, error) { return version.CompareDeb(a, b) }

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

// withoutZeroEpoch returns a version as repositories write it.
func withoutZeroEpoch(version string) string {
	epoch, rest, found := strings.Cut(version, ":")
	if found && epoch != "" && strings.Trim(epoch, "0") == "" {
		return rest
	}

	return version
}
