package resource

import (
	"context"

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
	// Taken are those among the required resources of which an expression takes the
	// outputs, or reads a file that they make; Waiting are the properties that wait for them.
	Taken   []Need
	Waiting []string
	// Late gives the properties at the resource's turn, of the outputs of what ran
	// before it; nil when they are known already. Its error may be model.Problems.
	Late func(ctx context.Context, outputs Outputs) (Spec, []model.Secret, error)
}

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
