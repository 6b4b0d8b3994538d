package manifest

import (
	"cmp"
	"context"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
)

// Loader fetches and resolves manifests. It is safe for concurrent use when
// the functions of its options are.
type Loader struct {
	*fetcher
	eval Options
}

// NewLoader makes a loader.
func NewLoader(o Options) *Loader {
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)

	return &Loader{fetcher: newFetcher(o.FetchOptions), eval: o}
}

// Inputs are what goes into a Resolve besides the document.
type Inputs struct {
	// Data wins over all data of the document. It may hold model.Secret.
	Data map[string]any
	// Untrusted is why others may change parts of Data; nil if only the author may.
	Untrusted error
	// Dir is the directory that relative paths are under; empty when there is none.
	Dir string
	// Author is who may change the templates and manifests that the document names.
	Author paths.Author
	// Facts, when set, are used instead of Options.Facts.
	Facts model.Facts
	// Known reports whether a resource which the document does not declare is known all
	// the same, from earlier commands of a session. Nil knows none.
	Known func(model.Ref) bool
	// Drift is that of resources that do not say it themselves.
	Drift model.Drift
	// MaxDepth is how deep manifests may include one another; 0 means DefaultMaxDepth.
	MaxDepth int
}

// Resolved is what a manifest comes to.
type Resolved struct {
	// Secrets are all secrets that were seen, also within values that are secret as
	// a whole, for a run to recognise them in the texts of others.
	Secrets []model.Secret
	// Resources are in the order of the document, validated; those of a manifest
	// that it includes come before the resource that includes it.
	Resources []*resource.Resource
	// Data are the resolved data; secrets among them are model.Secret.
	Data map[string]any
	// FailOnError stops a run at the first failure.
	FailOnError bool
	// Flapping says from when on a resource flaps.
	Flapping model.Flapping
	// Limit is how many changes an agent makes a minute at most; 0 is any number.
	Limit int
	// PreMessage and PostMessage are shown before and after a run.
	PreMessage, PostMessage string
	// Warnings are worth telling and stop nothing.
	Warnings model.Problems
	// Static reports whether nothing but the document and Inputs.Data went in, so
	// resolving it again returns the same.
	Static bool
	// Inputs are the paths of the included manifests and of the files that expressions read
	// before the run.
	Inputs []string

	// own are the resources that the document itself declares.
	own []*resource.Resource
	// values are the properties of own as resolved.
	values []document.Value
	dir    string
	// ccm reports whether the document has the section ccm instead of muster.
	ccm bool
}

// Parse is Parse for a source that the loader fetched, with its limit.
func (l *Loader) Parse(s *Source) (*Document, error) {
	return parse(s.Name, s.Data, l.eval.MaxBytes)
}

// Render returns the manifest with everything resolved, as YAML that muster
// applies again. Secrets, and the values of sensitive resources, are redacted;
// expressions that must wait stay as they are, with the data they may need;
// what control excluded stays excluded. The same input makes the same bytes.
func (r *Resolved) Render() ([]byte, error) {
	return renderYAML(renderInput{CCM: r.ccm, Data: r.Data, FailOnError: r.FailOnError, Flapping: r.Flapping, Limit: r.Limit, PreMessage: r.PreMessage, PostMessage: r.PostMessage, Resources: r.own, Values: r.values})
}

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
