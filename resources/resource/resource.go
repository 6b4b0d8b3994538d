package resource

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/watch"
)

// Resource is one resource of a manifest, ready for the engine.
type Resource struct {
	Type *Type
	// Spec are its properties. Deferred properties are not set.
	Spec Spec
	// Pos is the position of its declaration.
	Pos model.Position
	// Secrets are the secret values in its properties, which are never shown. A resource with secrets is
	// sensitive.
	Secrets []model.Secret
	// Excluded is why the control property excludes it; empty for a managed resource.
	Excluded string
	// Scope is the scope of the declaring manifest. At depth 0 the scope of the run applies.
	Scope Scope
	// Instance distinguishes including resources of the same name; 0 means 1.
	Instance int
	// Children are the resources of the manifest that it includes. A child that is the same as another
	// resource of the run is merged with it.
	Children []*Resource
	// Expand returns the Children from a manifest that could not be read before the run; nil for any other
	// resource. Its error may be model.Problems.
	Expand func(ctx context.Context, spec Spec) (Expansion, error)
	// Messages are the messages of the manifest that it includes.
	Messages Messages
	// NeverNoop means that its manifest sets noop to false, which a noop run ignores.
	NeverNoop bool
	// LeftOut are the names in the manifest of an excluded resource. References to them are valid. Nil
	// means unknown.
	LeftOut map[model.Ref]bool
	// Brings is the resource that provides the file of Expand; zero for none.
	Brings model.Ref
	// Taken are the required resources whose outputs or files an expression uses. Waiting are the
	// properties that wait for them.
	Taken   []Reference
	Waiting []string
	// ResolveDeferred returns the deferred properties from outputs, when the run reaches the resource; nil if
	// there are none. Its error may be model.Problems, or a PrerequisiteError for a missing file.
	ResolveDeferred func(ctx context.Context, outputs Outputs) (Spec, []model.Secret, error)
}

// Reference is a reference to another resource, with the property that holds it.
type Reference struct {
	Ref      model.Ref
	Property string
	Pos      model.Position
}

// Messages are shown before the first and after the last resource of a manifest,
// unless empty.
type Messages struct{ Before, After string }

// MaxInclusions limits the child manifests that are read before a run, and also the child manifests that
// are found during a run. A small manifest that includes itself several times with other data would
// have millions at the maximum depth.
const MaxInclusions = 1000

// Expansion is the content of a manifest that is included during the run.
type Expansion struct {
	// Resources are its resources and the resources of all manifests that it includes, in order.
	Resources []*Resource
	// Children are its own resources.
	Children []*Resource
	Messages Messages
	Secrets  []model.Secret
	Warnings model.Problems
}

// IsSame reports whether two resources have the same desired state. They are declared in different
// documents, or in a document that is included twice.
func (r *Resource) IsSame(other *Resource) bool {
	a, b := r.Scope, other.Scope
	switch {
	case r == other:
		return true
	case r.Type.Name != other.Type.Name, r.Excluded != other.Excluded, r.ResolveDeferred != nil, other.ResolveDeferred != nil,
		r.Pos.File == other.Pos.File && r.Pos != other.Pos,
		a.Noop != b.Noop, a.HealthCheckOnly != b.HealthCheckOnly, a.Dir != b.Dir && r.isBeside(),
		r.Type.NeedsOrigin && !reflect.DeepEqual(a.Origin, b.Origin):
		return false
	}

	brought := []model.Ref{r.Brings, other.Brings}

	return reflect.DeepEqual(named(withoutRequire(r.Spec, brought), other.Meta().Name), withoutRequire(other.Spec, brought))
}

// withoutRequire returns a spec that does not require some resources: a child manifest implicitly requires
// the resource that provides its file.
func withoutRequire(s Spec, refs []model.Ref) Spec {
	isBrought := func(ref model.Ref) bool { return slices.Contains(refs, ref) }
	if !slices.ContainsFunc(s.Meta().Require, isBrought) {
		return s
	}
	out := copied(s)
	meta := out.Meta()
	if meta.Require = slices.DeleteFunc(slices.Clone(meta.Require), isBrought); len(meta.Require) == 0 {
		meta.Require = nil
	}

	return out
}

func copied(s Spec) Spec {
	original := reflect.ValueOf(s)
	out := reflect.New(original.Type().Elem())
	out.Elem().Set(original.Elem())

	return out.Interface().(Spec)
}

// named returns s with another name if both names have the same canonical name.
func named(s Spec, name string) Spec {
	if _, several := s.(CanonicalNamer); !several || s.Meta().Name == name {
		return s
	}
	out := copied(s)
	out.Meta().Name = name
	if canonicalName(out) != canonicalName(s) {
		return s
	}

	return out
}

// isBeside reports whether the resource names a file beside its manifest.
func (r *Resource) isBeside() bool {
	name := r.Meta().Name
	if r.Type.Include == nil {
		p, ok := r.Type.Property(SourceProperty)
		if !ok || p.Of(r.Spec).Kind() != reflect.String {
			return false
		}
		name = p.Of(r.Spec).String()
	}

	return name != "" && !filepath.IsAbs(name) && !strings.Contains(name, "://")
}

// SourceProperty is the property for a file beside the manifest.
const SourceProperty = "source"

// Outputs are the values of the resources of a run, by reference.
type Outputs map[model.Ref]map[string]any

// Ref returns the reference of the resource by its name. A second instance has its number at the end.
func (r *Resource) Ref() model.Ref { return r.ref(r.Meta().Name) }

func (r *Resource) ref(name string) model.Ref {
	if r.Instance > 1 {
		name = fmt.Sprintf("%s (%d)", name, r.Instance)
	}

	return model.Ref{Type: r.Type.Name, Name: name}
}

// CanonicalRef returns the reference of a resource by its canonical name.
func (r *Resource) CanonicalRef() model.Ref {
	return r.ref(canonicalName(r.Spec))
}

func canonicalName(s Spec) string {
	if s, several := s.(CanonicalNamer); several {
		return s.CanonicalName()
	}

	return s.Meta().Name
}

// Watches returns the paths and units whose changes may be drift of the resource on a node with these
// facts. It returns nothing for a resource that is excluded, has deferred properties or has no suitable
// provider, and for a type that is not a Watcher.
func (r *Resource) Watches(facts model.Facts) []watch.Point {
	if r.Type.Watches == nil || r.Excluded != "" || r.ResolveDeferred != nil {
		return nil
	}
	p, err := r.Type.Select(facts, r.Spec)
	if err != nil {
		return nil
	}

	return PointsBeside(r.Type.Watches(p, r.Spec), r.Scope.Dir)
}

// Meta returns the common properties.
func (r *Resource) Meta() *model.Common { return r.Spec.Meta() }

// Sensitive reports whether the resource's values must not be shown.
func (r *Resource) Sensitive() bool { return r.Meta().Sensitive || len(r.Secrets) > 0 }

// Types is a set of types by name, in the order they are listed.
type Types []*Type

// Get returns a type by name.
func (ts Types) Get(name string) (*Type, bool) {
	i := slices.IndexFunc(ts, func(t *Type) bool { return t.Name == name })
	if i < 0 {
		return nil, false
	}

	return ts[i], true
}

// Names returns the names in their order.
func (ts Types) Names() []string {
	names := make([]string, len(ts))
	for i, t := range ts {
		names[i] = t.Name
	}

	return names
}

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
