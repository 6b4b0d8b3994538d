package resource

import (
	"context"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/paths"
)

// Scope applies to all resources of a manifest. A child manifest gets a copy that may only be stricter.
type Scope struct {
	// Noop means that the run makes no changes.
	Noop bool
	// HealthCheckOnly means that the run only makes health checks.
	HealthCheckOnly bool
	// Dir is the directory of the manifest, empty for a manifest without a directory.
	Dir string
	// Author is the user who may change the templates of the manifest.
	Author paths.Author
	// Depth is 0 for the root.
	Depth int
	// MaxDepth is the deepest level allowed.
	MaxDepth int
	// Origin is the manifest of the resources; nil if it is unknown.
	Origin Origin
	// DenyApply means that no other manifest may be included here.
	DenyApply bool
	// FailOnError means that the manifest ends at its first failure.
	FailOnError bool
}

// ReadOnly reports whether the run must not change the node.
func (s Scope) ReadOnly() bool { return s.Noop || s.HealthCheckOnly }

// Within returns the scope of an included manifest: restrictions of s remain.
func (s Scope) Within(i Inclusion, dir string) Scope {
	return Scope{
		Noop: s.Noop || i.Noop, HealthCheckOnly: s.HealthCheckOnly || i.HealthCheckOnly,
		Dir: dir, Author: s.Author, Depth: s.Depth + 1, MaxDepth: s.MaxDepth, DenyApply: s.DenyApply || i.DenyApply,
	}
}

// Origin is a manifest, for its resources during the run.
type Origin interface {
	// Names returns the names that templates may use and the secrets among them. The names are Facts,
	// Data and Environ, also in small letters, and the functions of expressions. data replaces the data
	// of the manifest, unless it is nil.
	Names(ctx context.Context, facts model.Facts, data map[string]any) (map[string]any, Secrets)
	// Tree fetches a tar.gz by http(s):// or obj:// and unpacks it. Without an error the caller must call
	// cleanup, which removes it.
	Tree(ctx context.Context, source string) (dir string, cleanup func() error, err error)
}

// Secrets describes the secrets among the names of templates.
type Secrets struct {
	// Data is the data of the manifest, with every secret as a model.Secret.
	Data map[string]any
	// Used reports whether a function has returned a secret since the last call of Used; nil if no
	// function can.
	Used func() bool
}
