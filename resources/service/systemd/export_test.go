package systemd

// NewByBus returns a provider that reads units only over the D-Bus sockets below
// another root.
func NewByBus(root, sockets string) *Provider {
	p := New(root)
	p.reader.sources = []source{bus{root: sockets, timeout: busTimeout}}

	return p
}

// NewBySystemctl returns one that reads them only with systemctl.
func NewBySystemctl(root string) *Provider {
	p := New(root)
	p.reader.sources = []source{showCommand{}}

	return p
}
