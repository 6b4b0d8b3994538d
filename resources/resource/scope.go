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
	// DenyApply means that no apply resource may stand here.
	DenyApply bool
}
