package systemd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

// link is what systemctl does to a unit whose file is elsewhere.
const link service.Action = "link"

// disable also disables what is enabled until the next boot, which systemctl
// takes for something else.
func (p *Provider) disable(ctx context.Context, env resource.Env, names ...string) error {
	if err := p.disableAt(ctx, env, nil, names); err != nil {
		return err
	}
	states, errs := p.StatusAll(ctx, env, names)
	var atRuntime []string
	for i, state := range states {
		if errs[i] == nil && state.Metadata.UnitFile == enabledRuntime {
			atRuntime = append(atRuntime, names[i])
		}
	}
	if err := errors.Join(errs...); err != nil || len(atRuntime) == 0 {
		return err
	}

	return p.disableAt(ctx, env, []string{"--runtime"}, atRuntime)
}

// disableAt runs systemctl disable, which takes a unit for whose file there is
// only a link out of systemd altogether. Such links are put back, whatever else
// came of it.
func (p *Provider) disableAt(ctx context.Context, env resource.Env, options, names []string) error {
	linked := p.linked(names)
	errs := []error{p.change(ctx, env, service.Disable, append(options, names...)...)}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	for _, l := range linked {
		if _, err := os.Lstat(l.path); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		errs = append(errs, p.change(ctx, env, link, append(l.options, l.target)...))
	}

	return errors.Join(errs...)
}

// linkedUnit is a link by which systemd knows of a unit whose file is not in any
// of its directories, and the options that systemctl link makes it with.
type linkedUnit struct {
	path, target string
	options      []string
}

// linked returns the links of services that are known by one.
func (p *Provider) linked(names []string) []linkedUnit {
	var out []linkedUnit
	for _, unit := range unitNames(names) {
		for dir, options := range map[string][]string{"/etc/systemd/system": nil, "/run/systemd/system": {"--runtime"}} {
			path := filepath.Join(p.root, dir, unit)
			target, err := os.Readlink(path)
			if err != nil || target == os.DevNull {
				continue
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(dir, target)
			}
			// A link of another name is an alias, which is to go. What is in a directory
			// of systemd's is found without a link.
			if filepath.Base(target) == unit && !strings.HasSuffix(filepath.Dir(target), "/systemd/system") {
				out = append(out, linkedUnit{path: path, target: target, options: options})
			}
		}
	}

	return out
}
