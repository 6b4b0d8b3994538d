// Package apt manages packages on Debian, Ubuntu and their derivatives.
package apt

import (
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
)

// Provider manages packages with apt and dpkg. Make it with New.
type Provider struct {
	pkg.Single
	// LockTimeout bounds the wait for the lock of another process.
	LockTimeout time.Duration
	bin         string
	// failed is guarded by the lock of the type.
	failed failure
}

// New returns the provider.
func New() *Provider {
	p := &Provider{LockTimeout: pkg.LockTimeout, bin: "/usr/bin"}
	p.Single = pkg.Single{All: p}

	return p
}

// Name is apt.
func (*Provider) Name() string { return "apt" }

// IsManageable reports whether apt and dpkg are installed; apt is the first
// choice on Debian's family.
func (p *Provider) IsManageable(facts model.Facts, spec resource.Spec) (bool, int, error) {
	if err := checkName(spec.Meta().Name); err != nil {
		return false, 0, err
	}

	return pkg.Manageable(facts, []string{p.bin + "/apt-get", p.bin + "/dpkg-query"}, pkg.DebianFamilies(), pkg.RedHatFamilies())
}

// ChangeAll runs one apt-get for all requests. Those for latest name the
// current candidates.
func (p *Provider) ChangeAll(ctx context.Context, env resource.Env, requests []pkg.Request) error {
	latest := pkg.Names(requests, func(r pkg.Request) bool { return r.Version == pkg.EnsureLatest && r.Action != pkg.Uninstall })
	var candidates map[string]string
	if len(latest) > 0 {
		var err error
		if candidates, err = p.Candidates(ctx, env, latest); err != nil {
			return err
		}
	}
	if err := p.checkSigns(ctx, env, requests); err != nil {
		return err
	}
	repair, err := p.repairs(ctx, env, requests)
	if err != nil {
		return err
	}
	lines, err := p.changer().Run(ctx, env, arguments(requests, candidates, repair)...)
	if err == nil {
		warnOfRemoved(ctx, env, requests, lines)
	}

	return err
}

// repairs reports whether a package to install is half installed, which apt
// leaves so unless it is to reinstall.
func (p *Provider) repairs(ctx context.Context, env resource.Env, requests []pkg.Request) (bool, error) {
	names := pkg.Names(requests, pkg.Request.IsInstall)
	if len(names) == 0 {
		return false, nil
	}
	rows, err := p.query(ctx, env, names)

	return slices.ContainsFunc(rows, func(r row) bool { return r.status == "half-installed" }), err
}

// arguments returns the command for requests. A hyphen after a name removes it
// in the transaction of the installations.
func arguments(requests []pkg.Request, candidates map[string]string, repair bool) []string {
	var names []string
	exact, removals := false, 0
	for _, r := range requests {
		name := r.Name
		switch {
		case r.Action == pkg.Uninstall:
			removals++
		case r.Version == pkg.EnsureLatest && candidates[r.Name] != "":
			name += "=" + candidates[r.Name]
		case r.Version != pkg.EnsureLatest && r.Version != model.EnsurePresent:
			name, exact = name+"="+withoutZeroEpoch(r.Version), true
		}
		names = append(names, name)
	}
	// Without Pattern-Only an unknown name with a dot is a regular expression, and
	// all matches are installed. apt waits for a lock silently, so it must not
	// wait itself.
	options := []string{"-o", "DPkg::Lock::Timeout=0", "-o", "APT::Cmd::Pattern-Only=true", "-o", "DPkg::Pre-Invoke::=echo " + dpkgBegins}
	if removals == len(requests) {
		return append(append([]string{"apt-get", "-q", "-y", "remove"}, options...), names...)
	}
	argv := append([]string{"apt-get", "install", "-y", "-q", "-o", "DPkg::Options::=--force-confold"}, options...)
	if exact {
		argv = append(argv, "--allow-downgrades")
	}
	if repair {
		argv = append(argv, "--reinstall")
	}
	for i, r := range requests {
		if r.Action == pkg.Uninstall {
			names[i] += "-"
		}
	}

	return append(argv, names...)
}

// dpkgBegins is printed by apt before it calls dpkg, whose output may come
// late.
const dpkgBegins = "muster: dpkg begins"

var begins = regexp.MustCompile("^" + dpkgBegins)

func (p *Provider) changer() pkg.Changer {
	return pkg.Changer{
		Environment: []string{"DEBIAN_FRONTEND=noninteractive", "APT_LISTBUGS_FRONTEND=none", "APT_LISTCHANGES_FRONTEND=none"},
		Remedies:    remedies(),
		Timeout:     p.LockTimeout,
		Begins:      begins,
	}
}

// refresh is the remedy for a package that is in no list.
const refresh = "check its name and the repositories, or refresh the package lists (cache_max_age)"

// scriptFailed matches dpkg's report of a failed script, of a package or its
// file.
var scriptFailed = regexp.MustCompile(`(?m)^dpkg: error processing (?:package |archive (?:\S*/)?)([^\s_:]+).*\n.*script subprocess returned error.*$`)

func remedies() []pkg.Remedy {
	const repair = "run `dpkg --configure -a`, then `apt-get --fix-broken install`"

	return []pkg.Remedy{
		{Says: "are you root?", Err: pkg.ErrNotRoot, Do: "run muster as root"},
		{Says: "lock - open (13: Permission denied)", Err: pkg.ErrNotRoot, Do: "run muster as root"},
		{Says: "dpkg was interrupted", Err: pkg.ErrBroken, Do: repair},
		{Says: "--fix-broken install", Err: pkg.ErrBroken, Do: repair},
		{Says: "Held packages were changed", Err: pkg.ErrHeld, Do: "release what `apt-mark showhold` lists with `apt-mark unhold`"},
		{Says: "Version '", Err: pkg.ErrNoVersion, Do: "`apt-cache madison` shows those there are; refresh the package lists (cache_max_age) when it is new"},
		{Says: "Unable to locate package", Err: pkg.ErrNoPackage, Do: refresh},
		{Says: "is a virtual package", Err: pkg.ErrNoPackage, Do: "it is a virtual one, so name one of those that provide it"},
		{Says: "has no installation candidate", Err: pkg.ErrNoPackage, Do: refresh},
		{Says: "unmet dependencies", Err: pkg.ErrUnmet, Do: "name versions that go together, or add the repository that has what is missing"},
		{Says: "don't have enough free space", Err: pkg.ErrNoSpace, Do: "make room, for example with `apt-get clean`"},
		{Says: "No space left on device", Err: pkg.ErrNoSpace, Do: "make room, for example with `apt-get clean`"},
		{About: scriptFailed, Err: pkg.ErrScript, Do: "fix the problem it reports, then " + repair},
		{Says: "Failed to fetch", Err: pkg.ErrDownload, Do: "check the repositories and the network, or refresh the package lists (cache_max_age)"},
	}
}
