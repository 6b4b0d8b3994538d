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

// link is the systemctl command for a unit with a file in another directory.
const link service.Action = "link"

// disable also disables units that are enabled until the next boot, which
// systemctl disable ignores.
func (c *changer) disable(ctx context.Context, env resource.Env, names ...string) error {
	if err := c.disableAt(ctx, env, nil, names); err != nil {
		return err
	}
	states, errs := c.reader.outcomes(ctx, env, names)
	var atRuntime []string
	for i, state := range states {
		if errs[i] == nil && state.Metadata.UnitFile == enabledRuntime {
			atRuntime = append(atRuntime, names[i])
		}
	}
	if err := errors.Join(errs...); err != nil || len(atRuntime) == 0 {
		return err
	}

	return c.disableAt(ctx, env, []string{"--runtime"}, atRuntime)
}

// disableAt runs systemctl disable, which removes a unit altogether when
// systemd knows it only by a link. Such links are restored, even after an
// error.
func (c *changer) disableAt(ctx context.Context, env resource.Env, options, names []string) error {
	linked := linkedUnits(c.reader.root, names)
	errs := []error{c.change(ctx, env, service.Disable, append(options, names...)...)}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	for _, l := range linked {
		if _, err := os.Lstat(l.path); !errors.Is(err, os.ErrNotExist) {
			continue
		}
		errs = append(errs, c.change(ctx, env, link, append(l.options, l.target)...))
	}

	return errors.Join(errs...)
}

// linkedUnit is a link to a unit file outside of systemd's directories, with
// the options of systemctl link that make it.
type linkedUnit struct {
	path, target string
	options      []string
}

// linkedUnits returns the links of services that are known by one.
func linkedUnits(root string, names []string) []linkedUnit {
	var out []linkedUnit
	for _, unit := range unitNames(names) {
		for dir, options := range map[string][]string{"/etc/systemd/system": nil, "/run/systemd/system": {"--runtime"}} {
			path := filepath.Join(root, dir, unit)
			target, err := os.Readlink(path)
			if err != nil || target == os.DevNull {
				continue
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(dir, target)
			}
			// A link of another name is an alias, which disabling removes. A file in a
			// directory of systemd is found without a link.
			if filepath.Base(target) == unit && !strings.HasSuffix(filepath.Dir(target), "/systemd/system") {
				out = append(out, linkedUnit{path: path, target: target, options: options})
			}
		}
	}

	return out
}
