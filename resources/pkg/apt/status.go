package apt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
)

// format is the output format of dpkg-query, one line for each package.
const format = `${Package}\t${Version}\t${Architecture}\t${db:Status-Status}\t${db:Status-Want}\t${Homepage}\t${binary:Summary}\n`

// fields is the number of fields in format.
const fields = 7

// row is a line of dpkg-query.
type row struct {
	name, version, arch, status, want, homepage, summary string
}

func parseStatus(lines []string) ([]row, error) {
	var rows []row
	for _, line := range lines {
		f := strings.SplitN(line, "\t", fields)
		if len(f) != fields || f[0] == "" {
			return nil, fmt.Errorf("unexpected output of dpkg-query: %q", line)
		}
		rows = append(rows, row{f[0], f[1], f[2], f[3], f[4], f[5], f[6]})
	}

	return rows, nil
}

// StatusAll runs dpkg-query once.
func (p *Provider) StatusAll(ctx context.Context, env resource.Env, names []string) ([]*pkg.State, error) {
	rows, err := p.query(ctx, env, names)
	if err != nil {
		return nil, err
	}
	states := make([]*pkg.State, len(names))
	for i, name := range names {
		states[i] = stateOf(name, rows)
		states[i].Unhold = "apt-mark unhold " + name
		if m := states[i].Metadata; m != nil {
			states[i].ChangedAt = unpackedAt(m)
		}
	}

	return states, nil
}

// noCache prevents apt from caching its knowledge of installed packages: apt does not notice
// a change within the same second.
const noCache = "Dir::Cache::pkgcache="

// infoDir is the directory with the file lists that dpkg writes for unpacked packages.
const infoDir = "/var/lib/dpkg/info"

// unpackedAt returns when a package was unpacked, the zero time if that is unknown.
func unpackedAt(m *pkg.Metadata) time.Time {
	for _, name := range []string{m.Name, m.Name + ":" + m.Arch} {
		if info, err := os.Stat(filepath.Join(infoDir, name+".list")); err == nil {
			return info.ModTime()
		}
	}

	return time.Time{}
}

// query returns the rows of the packages that are known to dpkg.
func (*Provider) query(ctx context.Context, env resource.Env, names []string) ([]row, error) {
	argv := []string{"dpkg-query", "-W", "-f=" + format, "--"}
	for _, name := range names {
		argv = append(argv, pkg.WithoutNative(name))
	}
	lines, result, err := pkg.Ask(ctx, env, argv...)
	if err != nil {
		return nil, err
	}
	// 1 means that a package is unknown.
	if result.ExitCode > 1 {
		return nil, pkg.Explain(argv, result, []pkg.Remedy{pkg.Says("dpkg-query: error", pkg.ErrBroken, "run `dpkg --audit` and see /var/lib/dpkg")})
	}
	return parseStatus(lines)
}

// stateOf returns the state of a name. A name without an architecture means the architecture of the
// node. A package that is neither absent nor installed is broken.
func stateOf(name string, rows []row) *pkg.State {
	bare, arch, qualified := strings.Cut(name, ":")
	state := pkg.NewState(name, nil)
	for _, r := range rows {
		if native := !qualified || pkg.IsNative(arch); r.name != bare || (native && !pkg.IsNative(r.arch)) || (!native && arch != r.arch) {
			continue
		}
		held := r.want == "hold"
		if r.status == "not-installed" || r.status == "config-files" || r.version == "" {
			state.Held = state.Held || (held && state.Metadata == nil)
			state.Residue = state.Residue || r.status == "config-files"
			continue
		}
		state = pkg.NewState(name, &pkg.Metadata{
			Name: r.name, Version: r.version, Arch: r.arch, URL: r.homepage, Summary: r.summary, Provider: "apt",
			Full: r.version, Extended: map[string]any{"status": r.status, "want": r.want},
		})
		state.Held = held
		if r.status != "installed" {
			state.Broken = r.status
		}
	}

	return state
}

// Candidates runs apt-cache once.
func (p *Provider) Candidates(ctx context.Context, env resource.Env, names []string, release string) (map[string]string, error) {
	argv := []string{"apt-cache", "policy", "-o", noCache, "-o", exactNames}
	if release != "" {
		argv = append(argv, "-t", release)
	}
	argv = append(append(argv, "--"), names...)
	lines, result, err := pkg.Ask(ctx, env, argv...)
	if err != nil {
		return nil, err
	}
	if result.ExitCode != 0 {
		return nil, pkg.Explain(argv, result, remedies())
	}

	out := parsePolicy(lines)
	for _, name := range names {
		// apt omits the architecture of the node.
		if bare, _, qualified := strings.Cut(name, ":"); qualified && out[name] == "" && out[bare] != "" {
			out[name] = out[bare]
		}
	}

	return out, nil
}

// parsePolicy reads the candidates of apt-cache policy, without (none).
func parsePolicy(lines []string) map[string]string {
	out := map[string]string{}
	name := ""
	for _, line := range lines {
		if !strings.HasPrefix(line, " ") {
			name = strings.TrimSuffix(line, ":")
			continue
		}
		if version, ok := strings.CutPrefix(line, "  Candidate: "); ok && name != "" && version != "(none)" {
			out[name] = version
		}
	}

	return out
}

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
		if bare, ok := strings.CutSuffix(pkg.WithoutNative(name), "+"); ok {
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
		bare, isPlus := strings.CutSuffix(pkg.WithoutNative(name), "+")
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

// The configuration of apt with its repositories, the lists, and the record of a refresh by the daily job.
const (
	configuration = "/etc/apt"
	sourcesFile   = configuration + "/sources.list"
	sourcesDir    = configuration + "/sources.list.d"
	listsDir      = "/var/lib/apt/lists"
	dpkgStatus    = "/var/lib/dpkg/status"
	successStamp  = "/var/lib/apt/periodic/update-success-stamp"
)

// Refresh runs apt-get update if the lists are older than maxAge or than the repository files. A list that
// cannot be fetched is an error.
func (p *Provider) Refresh(ctx context.Context, env resource.Env, maxAge time.Duration, _ bool) error {
	if maxAge == 0 {
		return nil
	}
	at, err := pkg.Refreshed(env, p.Name(), successStamp)
	if err != nil {
		return err
	}
	sources, err := sourcesChanged(sourcesDir)
	if err != nil {
		return err
	}
	at = model.LaterTime(at, listsChanged())
	if time.Since(at) <= maxAge && !sources.After(at) {
		return nil
	}
	// A run repeats a failed refresh only after a change of its repositories.
	if maxAge == pkg.Following && env.RunID != "" && p.failed.run == env.RunID && !sources.After(p.failed.at) {
		return nil
	}
	began := time.Now()
	p.failed = failure{run: env.RunID, at: began}
	// Without this option apt accepts the old lists if a server does not answer.
	if err := p.changer().Change(ctx, env, "apt-get", "update", "-q", "-o", "APT::Update::Error-Mode=any"); err != nil {
		return err
	}

	p.failed = failure{}

	return pkg.NoteRefresh(ctx, env, p.Name(), began)
}

// failure is a failed refresh of a run.
type failure struct {
	run string
	at  time.Time
}

// sourcesChanged returns the time of the last change of the repository files, with the files in dir.
func sourcesChanged(dir string) (time.Time, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, err
	}
	paths := []string{sourcesFile, dir}
	for _, e := range entries {
		paths = append(paths, filepath.Join(dir, e.Name()))
	}

	return lastChanged(paths...), nil
}

// listsChanged returns when the lists last changed, the zero time for no lists.
func listsChanged() time.Time {
	if found, _ := filepath.Glob(listsDir + "/*Release"); len(found) == 0 {
		return time.Time{}
	}

	return lastChanged(listsDir)
}

func lastChanged(paths ...string) (last time.Time) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}

	return last
}
