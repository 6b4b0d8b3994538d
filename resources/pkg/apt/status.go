package apt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

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

// parseStatus reads the lines of dpkg-query.
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
