package manifest

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/web"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
)

// Options are what a loader of manifests is made from. All but Types may be left out; what
// needs the missing part is then refused with its remedy.
type Options struct {
	// Types are the resource types that a manifest may name.
	Types resource.Types
	// Facts returns the facts of the node. It is called at most once a Resolve,
	// and only when something asks for facts.
	Facts func(ctx context.Context) (model.Facts, error)
	// Environ is what expressions see as Environ.
	Environ map[string]string
	// Registrations returns what the function registrations asks for; each of its
	// words may be the wildcard *.
	Registrations ReadRegistrations
	// Warn receives the warnings about data documents.
	Warn func(model.Problem)
	// KV reads kv://bucket/key and the values of the function kvGet.
	KV func(ctx context.Context, bucket, key string) ([]byte, error)
	// Object reads obj://bucket/name. The caller closes it.
	Object func(ctx context.Context, bucket, name string) (io.ReadCloser, error)
	// HTTPStall is the longest pause of a server within its response. Default: 30 seconds.
	HTTPStall time.Duration
	// Stdin is the source "-".
	Stdin io.Reader
	// Unpack unpacks a bundle (tar.gz) into a new directory. cleanup removes it.
	Unpack func(ctx context.Context, r io.Reader) (dir string, cleanup func() error, err error)
	// MaxBytes is the largest document or file that is read at once. Default: 16 MiB.
	// MaxBundleBytes is the largest packed bundle. Default: 1 GiB.
	MaxBytes, MaxBundleBytes int64
}

// ReadRegistrations returns the registrations that hold now; of a word that is *
// every one.
type ReadRegistrations func(ctx context.Context, cluster, protocol, service, address string) ([]registration.Registration, error)

// Loader fetches and resolves manifests. It is safe for concurrent use when
// the functions of its options are.
type Loader struct {
	opts   Options
	client *http.Client
}

// NewLoader makes a loader.
func NewLoader(o Options) *Loader {
	o.MaxBytes, o.MaxBundleBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes), cmp.Or(o.MaxBundleBytes, model.MaxBundle)
	o.HTTPStall = cmp.Or(o.HTTPStall, defaultStall)

	return &Loader{opts: o, client: web.NewClient(web.Options{Timeout: fetchTimeout, HeaderTimeout: defaultStall})}
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
	// ObserveOnly requires no properties, for a single resource that is only observed.
	ObserveOnly bool
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
	return parse(s.Name, s.Data, l.opts.MaxBytes)
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
