package resource

import (
	"context"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/paths"
)

// Scope holds for all resources of a manifest. A child manifest gets a
// strengthened copy.
type Scope struct {
	// Noop means that the run makes no changes.
	Noop bool
	// HealthCheckOnly means that only health checks are made.
	HealthCheckOnly bool
	// Dir is the directory of the manifest, empty for a manifest without a directory.
	Dir string
	// Author is the user who may change the templates of the manifest.
	Author paths.Author
	// Depth is 0 for the root.
	Depth int
	// MaxDepth is the deepest level allowed.
	MaxDepth int
	// Origin is where the resources come from; nil where it is unknown.
	Origin Origin
	// DenyApply means that no other manifest may be included here.
	DenyApply bool
	// FailOnError means that the manifest ends at its first failure.
	FailOnError bool
}

// ReadOnly reports whether the run must not change the node.
func (s Scope) ReadOnly() bool { return s.Noop || s.HealthCheckOnly }

// Within returns the scope of a manifest that is included where s holds: what s
// forbids stays forbidden.
func (s Scope) Within(i Inclusion, dir string) Scope {
	return Scope{
		Noop: s.Noop || i.Noop, HealthCheckOnly: s.HealthCheckOnly || i.HealthCheckOnly,
		Dir: dir, Author: s.Author, Depth: s.Depth + 1, MaxDepth: s.MaxDepth, DenyApply: s.DenyApply || i.DenyApply,
	}
}

// Origin is where a manifest comes from, as its resources need it when they run.
type Origin interface {
	// Names returns the names that templates may use and the secrets among them. The names are Facts,
	// Data and Environ, also in small letters, and the functions of expressions. data replaces the data
	// of the manifest, unless it is nil.
	Names(ctx context.Context, facts model.Facts, data map[string]any) (map[string]any, Secrets)
	// Tree fetches a tar.gz by http(s):// or obj:// and unpacks it. Unless there
	// is an error the caller calls cleanup, which removes it.
	Tree(ctx context.Context, source string) (dir string, cleanup func() error, err error)
}

// Secrets describes the secrets among the names of templates.
type Secrets struct {
	// Data is the data of the manifest, with every secret as a model.Secret.
	Data map[string]any
	// Used reports whether a function has returned a secret since it was last
	// called; nil where none can.
	Used func() bool
}
