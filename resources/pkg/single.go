package pkg

import (
	"context"

	"github.com/musterfleet/muster/resources/resource"
)

// Single implements the methods for one package with those for many.
type Single struct{ All Batcher }

// Install installs a version: present, latest or a version number.
func (s Single) Install(ctx context.Context, env resource.Env, pkg, version string) error {
	return s.All.ChangeAll(ctx, env, []Request{{Action: Install, Name: pkg, Version: version}})
}

// Upgrade changes to a higher version or to latest.
func (s Single) Upgrade(ctx context.Context, env resource.Env, pkg, version string) error {
	return s.All.ChangeAll(ctx, env, []Request{{Action: Upgrade, Name: pkg, Version: version}})
}

// Downgrade changes to a lower version.
func (s Single) Downgrade(ctx context.Context, env resource.Env, pkg, version string) error {
	return s.All.ChangeAll(ctx, env, []Request{{Action: Downgrade, Name: pkg, Version: version}})
}

// Uninstall removes a package.
func (s Single) Uninstall(ctx context.Context, env resource.Env, pkg string) error {
	return s.All.ChangeAll(ctx, env, []Request{{Action: Uninstall, Name: pkg}})
}

// Status reads which version is installed.
func (s Single) Status(ctx context.Context, env resource.Env, pkg string) (*State, error) {
	states, err := s.All.StatusAll(ctx, env, []string{pkg})
	if err != nil {
		return nil, err
	}

	return states[0], nil
}
