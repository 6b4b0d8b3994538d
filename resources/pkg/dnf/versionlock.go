package dnf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/resource"
)

// The package and the configuration of the dnf plugin that locks versions.
const (
	pluginPackage = "python3-dnf-plugin-versionlock"
	pluginConf    = "/etc/dnf/plugins/versionlock.conf"
)

// maxList limits how much of the configuration and of the list is read.
const maxList = 1 << 20

// ignoreLocks is the option of a command that ignores the list.
const ignoreLocks = "--disableplugin=versionlock"

// locks are the entries of the list that lock a version.
type locks []string

// readLocks returns the entries of the list. Without the plugin the error wraps pkg.ErrPlugin.
func (p *Provider) readLocks() (locks, error) {
	missing := resource.PrerequisiteError{
		Needs: []string{resource.PathNeed(p.conf), "package:" + pluginPackage},
		Err:   fmt.Errorf("%w: hold needs versionlock: install %s, and enable it in %s", pkg.ErrPlugin, pluginPackage, p.conf),
	}
	text, err := files.Read(p.conf, maxList)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing
	}
	if err != nil {
		return nil, err
	}
	list, enabled := parseConf(string(text))
	if list == "" || !enabled {
		return nil, missing
	}
	text, err = files.Read(list, maxList)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}

	return parseLocks(string(text)), nil
}

// parseConf returns the path of the list, empty for none, and whether the plugin
// is enabled.
func parseConf(text string) (list string, enabled bool) {
	enabled = true
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, "=")
		switch value = strings.TrimSpace(value); strings.TrimSpace(key) {
		case "locklist":
			list = value
		case "enabled":
			enabled = !slices.Contains([]string{"0", "no", "false", "off"}, strings.ToLower(value))
		}
	}

	return list, enabled
}

func parseLocks(text string) locks {
	var out locks
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.ContainsAny(line[:1], "#!") {
			out = append(out, line)
		}
	}

	return out
}

// versioned matches the part of an entry after the package name, if the entry locks a version.
var versioned = regexp.MustCompile(`^(\d+:)?\d[^-]*(-[^-]+)?$`)

// of returns the entries that lock a package at any version. It ignores the architecture, because the plugin
// locks all architectures.
func (l locks) of(name string) locks {
	return slices.DeleteFunc(slices.Clone(l), func(entry string) bool {
		version, found := strings.CutPrefix(entry, withoutArchitecture(name)+"-")
		return !found || !versioned.MatchString(version)
	})
}

func (l locks) hold(m *pkg.Metadata) bool {
	version, _, _ := strings.Cut(m.Version, "-")
	epoch, _, _ := strings.Cut(m.Full, ":")
	var forms []string
	for _, v := range []string{m.Version, m.Full} {
		forms = append(forms, m.Name+"-"+v, m.Name+"-"+v+"."+m.Arch)
	}
	forms = append(forms, m.Name+"-"+version, m.Name+"-"+epoch+":"+version)

	return slices.ContainsFunc(l.of(m.Name), func(entry string) bool {
		return slices.ContainsFunc(forms, func(form string) bool {
			matches, err := path.Match(entry, form)
			return err == nil && matches
		})
	})
}

// entry returns the lock of the installed version, in the form of the plugin.
func entry(m *pkg.Metadata) string { return m.Name + "-" + m.Full + ".*" }

// onlyLocked returns the requests, with Held only for packages in the list: the option that ignores the
// list applies to all packages of a command.
func (p *Provider) onlyLocked(requests []pkg.Request) []pkg.Request {
	list, _ := p.readLocks()
	out := slices.Clone(requests)
	for i, r := range out {
		out[i].Held = r.Held && len(list.of(r.Name)) > 0
	}

	return out
}

// changeLocks locks the installed versions of packages to hold, and deletes the entries of packages to
// release. It deletes old entries last, so a held package always has an entry.
func (p *Provider) changeLocks(ctx context.Context, env resource.Env, requests []pkg.Request) error {
	if !slices.ContainsFunc(requests, pkg.Request.ChangesHold) {
		return nil
	}
	list, err := p.readLocks()
	if err != nil {
		return err
	}
	var held []string
	var old, added locks
	for _, r := range requests {
		if r.ChangesHold() {
			old = append(old, list.of(r.Name)...)
		}
		if r.Action == pkg.Hold {
			held = append(held, r.Name)
		}
	}
	if len(held) > 0 {
		states, err := p.StatusAll(ctx, env, held)
		if err != nil {
			return err
		}
		for _, s := range states {
			if s.Metadata != nil {
				added = append(added, entry(s.Metadata))
			}
		}
	}
	if err := p.versionlock(ctx, env, without(added, old), "add", "--raw"); err != nil {
		return err
	}

	return p.versionlock(ctx, env, without(old, added), "delete")
}

// CheckHolds runs the plugin, because it may be configured but not installed.
func (p *Provider) CheckHolds(ctx context.Context, env resource.Env) error {
	if _, err := p.readLocks(); err != nil {
		return err
	}
	err := p.changer().Change(ctx, env, "dnf", "--disablerepo=*", "-C", "versionlock", "list")
	if errors.Is(err, pkg.ErrPlugin) {
		err = resource.PrerequisiteError{Needs: []string{"package:" + pluginPackage}, Err: err}
	}

	return err
}

// versionlock runs the command of the plugin, which needs no repository.
func (p *Provider) versionlock(ctx context.Context, env resource.Env, entries locks, command ...string) error {
	if len(entries) == 0 {
		return nil
	}

	return p.changer().Change(ctx, env, slices.Concat([]string{"dnf", "--disablerepo=*", "versionlock"}, command, entries)...)
}

func without(entries, others locks) locks {
	return slices.DeleteFunc(slices.Clone(entries), func(entry string) bool { return slices.Contains(others, entry) })
}
