package dnf

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/pkg/version"
	"github.com/musterfleet/muster/resources/resource"
)

// format is the output format of rpm, one line for each package. The last three fields may contain spaces.
const format = `%{NAME} %|EPOCH?{%{EPOCH}}:{0}| %{VERSION} %{RELEASE} %{ARCH} %{INSTALLTIME}\t%{LICENSE}\t%{URL}\t%{SUMMARY}\n`

// row is a line of rpm.
type row struct {
	name, epoch, version, release, arch, installed, license, url, summary string
}

func (r row) full() string { return r.epoch + ":" + r.version + "-" + r.release }

// is reports whether a row matches a name, which may end with an architecture.
func (r row) is(name string) bool { return r.name == name || r.name+"."+r.arch == name }

// isVersion reports whether dnf reads a name as a version of this package.
func (r row) isVersion(name string) bool {
	version, found := strings.CutPrefix(withoutArchitecture(name), r.name+"-")

	return found && slices.Contains([]string{r.version, r.version + "-" + r.release, r.epoch + ":" + r.version, r.full()}, version)
}

// parseRows reads lines of format and skips others, which report packages that
// are not installed.
func parseRows(lines []string) []row {
	var rows []row
	for _, line := range lines {
		parts := strings.SplitN(line, "\t", 4)
		f := strings.Split(parts[0], " ")
		if len(parts) != 4 || len(f) < 5 {
			continue
		}
		r := row{name: f[0], epoch: f[1], version: f[2], release: f[3], arch: f[4], license: parts[1], url: parts[2], summary: parts[3]}
		if len(f) > 5 {
			r.installed = f[5]
		}
		rows = append(rows, r)
	}

	return rows
}

// StatusAll runs rpm once.
func (p *Provider) StatusAll(ctx context.Context, env resource.Env, names []string) ([]*pkg.State, error) {
	argv := append([]string{"rpm", "-q", "--queryformat", format, "--"}, names...)
	lines, result, err := pkg.Ask(ctx, env, argv...)
	if err != nil {
		return nil, err
	}
	// The exit code is the number of packages that are not installed. With an unreadable database it is the
	// number of all packages.
	if strings.Contains(result.Stderr.String(), "error:") {
		return nil, pkg.Explain(argv, result, []pkg.Remedy{pkg.Says("error:", pkg.ErrBroken, "run `rpm --rebuilddb`")})
	}
	list, missing := p.readLocks()
	if missing != nil && !errors.Is(missing, pkg.ErrPlugin) {
		return nil, missing
	}
	rows := parseRows(lines)
	states := make([]*pkg.State, len(names))
	for i, name := range names {
		states[i] = p.stateOf(name, rows)
		states[i].Unhold, states[i].Removable, states[i].CannotHold = "dnf versionlock delete "+withoutArchitecture(name), true, missing
		states[i].Held = states[i].Metadata != nil && list.hold(states[i].Metadata)
	}

	return states, nil
}

// stateOf returns the state of a name, from the newest of its rows.
func (p *Provider) stateOf(name string, rows []row) *pkg.State {
	var newest *row
	for i := range rows {
		if r := &rows[i]; r.is(name) {
			if newest == nil {
				newest = r
			}
			// The versions are valid.
			if order, _ := version.CompareRPM(r.full(), newest.full()); order > 0 {
				newest = r
			}
		}
	}
	if newest == nil {
		return pkg.NewState(name, nil)
	}
	r := newest
	state := pkg.NewState(name, &pkg.Metadata{
		Name: r.name, Version: r.version + "-" + r.release, Arch: r.arch, License: r.license, URL: r.url, Summary: r.summary,
		Provider: "dnf", Full: r.full(), Extended: map[string]any{"epoch": r.epoch, "release": r.release},
	})
	if seconds, err := strconv.ParseInt(r.installed, 10, 64); err == nil {
		// The package may have changed at any time of that second.
		state.ChangedAt = time.Unix(seconds+1, 0)
	}

	return state
}

// available is the repoquery format that parseRows reads.
const available = "%{name} %{epoch} %{version} %{release} %{arch}\t\t\t\n"

// Candidates runs dnf once with its cached lists, which Refresh keeps current.
// Without an upgrade the installed version is the candidate.
func (p *Provider) Candidates(ctx context.Context, env resource.Env, names []string, _ string) (map[string]string, error) {
	states, err := p.StatusAll(ctx, env, names)
	if err != nil {
		return nil, err
	}
	argv := []string{"dnf", "-C", "repoquery", "--upgrades", "--latest-limit=1", "--qf", available}
	// The plan decides about locked versions.
	if list, _ := p.readLocks(); len(list) > 0 {
		argv = append(argv, ignoreLocks)
	}
	argv = append(argv, names...)
	lines, err := p.changer().Run(ctx, env, argv...)
	if err != nil {
		return nil, err
	}
	rows := parseRows(lines)
	out := map[string]string{}
	for i, name := range names {
		if m := states[i].Metadata; m != nil {
			out[name] = m.Full
		}
		if upgrade := p.stateOf(name, rows); upgrade.Metadata != nil {
			out[name] = upgrade.Metadata.Full
		}
	}

	return out, nil
}

// stamp is the file that dnf touches after it made its cache.
const stamp = "/var/cache/dnf/last_makecache"

// Refresh fetches lists that are older than maxAge and, before Candidates, lists that are too old for dnf. It
// does not use the quiet mode, in which dnf does not report a wait for another process.
func (p *Provider) Refresh(ctx context.Context, env resource.Env, maxAge time.Duration, latest bool) error {
	at, err := pkg.Refreshed(env, p.Name(), stamp)
	switch {
	case err != nil:
		return err
	case maxAge > 0 && time.Since(at) > maxAge:
		began := time.Now()
		if err := p.makeCache(ctx, env, "--refresh"); err != nil {
			return err
		}
		return pkg.NoteRefresh(ctx, env, p.Name(), began)
	case latest:
		return p.makeCache(ctx, env)
	default:
		return nil
	}
}

// makeCache fetches the lists. A repository that dnf skips is an error, because its newer versions are
// unknown.
func (p *Provider) makeCache(ctx context.Context, env resource.Env, options ...string) error {
	argv := append(append([]string{"dnf"}, options...), "makecache")
	lines, err := p.changer().Run(ctx, env, argv...)
	if err != nil {
		return err
	}
	// dnf reports repositories with skip_if_unavailable.
	if at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "Ignoring repositories: ") }); at >= 0 {
		return resource.CommandError{Err: fmt.Errorf("%w: check the repositories and the network", pkg.ErrDownload), Output: strings.Join(lines[max(0, at-3):at+1], "\n")}
	}

	return nil
}

// CheckAbsent runs rpm twice, and dnf for each name that an installed package provides, and for each name
// with the version of an installed package. A name of a package in a repository is correct.
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
	installed, _, err := pkg.Ask(ctx, env, append([]string{"rpm", "-q", "--queryformat", format, "--"}, names...)...)
	if err != nil {
		return nil, err
	}
	versions := map[string]row{}
	for _, r := range parseRows(installed) {
		for _, name := range names {
			if r.isVersion(name) {
				versions[name], found[name] = r, append(found[name], r.name)
			}
		}
	}
	out := map[string]error{}
	for name, providers := range found {
		names, _, err := pkg.Ask(ctx, env, "dnf", "-C", "-q", "repoquery", "--qf", "%{name}", name)
		if err != nil {
			return nil, err
		}
		switch r, isVersion := versions[name]; {
		case slices.Contains(names, name):
		case isVersion:
			out[name] = fmt.Errorf("%w: %s is version %s-%s of the package %s: use the name %s, and remove the version", pkg.ErrNoPackage, name, r.version, r.release, r.name, r.name)
		default:
			out[name] = pkg.Virtual(name, providers)
		}
	}

	return out, nil
}
