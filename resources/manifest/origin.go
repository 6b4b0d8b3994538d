package manifest

import (
	"context"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
)

// origin is a manifest as its resources see it when they run.
type origin struct {
	loader *Loader
	dir    string
	data   map[string]any
}

// Origin returns what the resources of a manifest may ask of it when they run:
// the names of templates, and what is elsewhere. Without a manifest, for an
// ensure request, r is nil.
func (l *Loader) Origin(r *Resolved) resource.Origin {
	o := origin{loader: l}
	if r != nil {
		o.dir, o.data = r.dir, r.Data
	}

	return o
}

// Names makes new names every time, so that a run sees what the machine and the
// buckets say then.
func (o origin) Names(ctx context.Context, facts model.Facts, data map[string]any) (map[string]any, resource.Secrets) {
	if data == nil {
		data = o.data
	}
	scope := o.loader.session(emptyDocument(""), Inputs{Dir: o.dir, Facts: facts}).Scope(ctx, inResources, data, resource.Outputs{})
	out := scope.TemplateNames(ctx)
	delete(out, expression.NameOutputs) // what they take must be known when they are looked at

	return out, resource.Secrets{Data: o.data, Used: scope.TakeUsed}
}

// Tree fetches a tar.gz and unpacks it.
func (o origin) Tree(ctx context.Context, source string) (dir string, cleanup func() error, err error) {
	return o.loader.Tree(ctx, source)
}
