package resource

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/musterfleet/muster/model"
)

// Resource is one resource of a manifest, ready for the engine.
type Resource struct {
	Type *Type
	// Spec are its properties. Of a late resource those that wait for its turn are
	// not set.
	Spec Spec
	// Pos is where it is declared.
	Pos model.Position
	// Secrets are the secret values among its properties and within them; nothing
	// of them is ever shown, and Decode makes a resource that has any sensitive.
	Secrets []model.Secret
	// Excluded says why the control property excludes it; empty when it is managed.
	Excluded string
	// Scope is what holds for it beyond what holds for the run: that of the
	// manifest that declares it. At depth 0 that of the run holds.
	Scope Scope
	// Children are the resources of the manifest it includes. One that is the same
	// as another of the run stands for that.
	Children []*Resource
	// Expand gives the Children of a manifest that could not be read before the
	// run; nil for any other. Its error may be model.Problems.
	Expand func(ctx context.Context, spec Spec) (Expansion, error)
	// Messages are what the manifest it includes shows.
	Messages Messages
	// NeverNoop says that its manifest sets noop to false, which does not help it
	// where nothing is changed.
	NeverNoop bool
	// LeftOut are the names of all that the manifest declares which an excluded
	// resource would include: they may be referred to. Nil is when they are not known.
	LeftOut map[model.Ref]bool
	// Brings is the resource of this run that brings what Expand reads; zero for none.
	Brings model.Ref
	// Taken are those among the required resources of which an expression takes the
	// outputs, or reads a file that they make; Waiting are the properties that wait for them.
	Taken   []Reference
	Waiting []string
	// Late gives the properties at the resource's turn, of the outputs of what ran
	// before it; nil when they are known already. Its error may be model.Problems,
	// and a PrerequisiteError where a file that is read is not there.
	Late func(ctx context.Context, outputs Outputs) (Spec, []model.Secret, error)
}

// Messages are what a manifest shows before its first resource has its turn and
// after its last one had it; empty is nothing.
type Messages struct{ Before, After string }

// Expansion is what a manifest came to that is included during the run.
type Expansion struct {
	// Resources are those of it and of all it includes, in order.
	Resources []*Resource
	// Children are those of it.
	Children []*Resource
	Messages Messages
	Secrets  []model.Secret
	Warnings model.Problems
}

// IsSame says that two resources, declared in different documents or in one that
// is included twice, ask for the same.
func (r *Resource) IsSame(other *Resource) bool {
	a, b := r.Scope, other.Scope
	switch {
	case r == other:
		return true
	case r.Type.Name != other.Type.Name, r.Excluded != other.Excluded, r.Late != nil, other.Late != nil,
		r.Pos.File == other.Pos.File && r.Pos != other.Pos,
		a.Noop != b.Noop, a.HealthCheckOnly != b.HealthCheckOnly, a.Dir != b.Dir && r.isBeside(),
		r.Type.NeedsOrigin && !reflect.DeepEqual(a.Origin, b.Origin):
		return false
	}

	return reflect.DeepEqual(r.Spec, other.Spec)
}

// isBeside says that the resource names a file that is beside its manifest.
func (r *Resource) isBeside() bool {
	name := r.Meta().Name
	if r.Type.Include == nil {
		p, ok := r.Type.Property(SourceProperty)
		if !ok || p.Field(r.Spec).Kind() != reflect.String {
			return false
		}
		name = p.Field(r.Spec).String()
	}

	return name != "" && !filepath.IsAbs(name) && !strings.Contains(name, "://")
}

// SourceProperty is the property by which types name a file beside the manifest.
const SourceProperty = "source"

// Outputs are the values that resources of a run gave, by reference.
type Outputs map[model.Ref]map[string]any

// Ref gives the resource's reference by its name.
func (r *Resource) Ref() model.Ref { return model.Ref{Type: r.Type.Name, Name: r.Meta().Name} }

// Meta gives the common properties.
func (r *Resource) Meta() *model.Common { return r.Spec.Meta() }

// Sensitive says that nothing of the resource's values may be shown.
func (r *Resource) Sensitive() bool { return r.Meta().Sensitive || len(r.Secrets) > 0 }

// Types is a set of types by name, in the order they are listed.
type Types []*Type

// Get finds a type by name.
func (ts Types) Get(name string) (*Type, bool) {
	for _, t := range ts {
		if t.Name == name {
			return t, true
		}
	}

	return nil, false
}

// Names gives the names in their order.
func (ts Types) Names() []string {
	names := make([]string, len(ts))
	for i, t := range ts {
		names[i] = t.Name
	}

	return names
}
