package systemd

import (
	"context"

	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/service"
)

// NewByBus returns a provider that reads units only over the D-Bus sockets below
// another root.
func NewByBus(root, sockets string) *Provider {
	p := New(root)
	p.reader.sources = []source{bus{root: sockets, timeout: busTimeout}}

	return p
}

// NewBySystemctl returns a provider that reads units only with systemctl.
func NewBySystemctl(root string) *Provider {
	p := New(root)
	p.reader.sources = []source{showCommand{}}

	return p
}

// Status reads one service.
func (p *Provider) Status(ctx context.Context, env resource.Env, name string) (*service.State, error) {
	states, errs := p.StatusAll(ctx, env, []string{name})

	return states[0], errs[0]
}

// Change applies an action to one service.
func (p *Provider) Change(ctx context.Context, env resource.Env, action service.Action, name string) error {
	return p.ChangeAll(ctx, env, action, []string{name})[0]
}
