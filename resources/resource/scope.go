package resource

// Scope is what holds for all resources of a manifest. A child manifest gets a
// strengthened copy; nothing ever flows back.
type Scope struct {
	// Noop means that nothing is changed.
	Noop bool
	// HealthCheckOnly means that only health checks are made.
	HealthCheckOnly bool
	// Dir is the manifest's own directory, empty for one that has none.
	Dir string
	// Depth is 0 for the root.
	Depth int
	// MaxDepth is the deepest level allowed.
	MaxDepth int
	// DenyApply means that no other manifest may be included here.
	DenyApply bool
	// FailOnError means that the manifest ends at its first failure.
	FailOnError bool
}

// Unchanging says that nothing of the node is changed.
func (s Scope) Unchanging() bool { return s.Noop || s.HealthCheckOnly }

// Within gives the scope of a manifest that is included where s holds, of what
// the inclusion asks for: what s forbids stays forbidden.
func (s Scope) Within(i Inclusion, dir string) Scope {
	return Scope{
		Noop: s.Noop || i.Noop, HealthCheckOnly: s.HealthCheckOnly || i.HealthCheckOnly,
		Dir: dir, Depth: s.Depth + 1, MaxDepth: s.MaxDepth, DenyApply: s.DenyApply || i.DenyApply,
	}
}
