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

// Options are the options of a Loader. Only Types is required. A manifest that needs a missing
// option is rejected with a remedy.
type Options struct {
	// Types are the known resource types.
	Types resource.Types
	// Facts returns the facts of the node. Resolve calls it at most once, and only if an expression
	// uses facts.
	Facts func(ctx context.Context) (model.Facts, error)
	// Environ is the value of Environ in expressions.
	Environ map[string]string
	// Registrations implements the function registrations.
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

// ReadRegistrations returns the current registrations. The argument * matches everything.
type ReadRegistrations func(ctx context.Context, cluster, protocol, service, address string) ([]registration.Registration, error)

// Loader fetches and resolves manifests. It is safe for concurrent use if the functions of its
// options are.
type Loader struct {
	opts   Options
	client *http.Client
}

// NewLoader returns a loader.
func NewLoader(o Options) *Loader {
	o.MaxBytes, o.MaxBundleBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes), cmp.Or(o.MaxBundleBytes, model.MaxBundle)
	o.HTTPStall = cmp.Or(o.HTTPStall, defaultStall)

	return &Loader{opts: o, client: web.NewClient(web.Options{Timeout: fetchTimeout, HeaderTimeout: defaultStall})}
}

// Inputs are the inputs of Resolve besides the document.
type Inputs struct {
	// Data wins over all data of the document. It may contain model.Secret.
	Data map[string]any
	// Untrusted is the reason why others may change parts of Data; nil if only the author may.
	Untrusted error
	// Dir is the directory of relative paths, or empty.
	Dir string
	// Author may change the templates and manifests that the document names.
	Author paths.Author
	// Facts replaces Options.Facts if set.
	Facts model.Facts
	// Known reports whether an earlier command of the session declared a resource. Nil means never.
	Known func(model.Ref) bool
	// Drift is the default of the property drift.
	Drift model.Drift
	// ObserveOnly requires no properties, for a single resource that is only observed.
	ObserveOnly bool
	// MaxDepth limits nested inclusions. Default: DefaultMaxDepth.
	MaxDepth int
}

// Resolved is a resolved manifest.
type Resolved struct {
	// Secrets are all secrets seen, also parts of secret mappings and lists. The run redacts them
	// in other texts.
	Secrets []model.Secret
	// Resources are validated, in the order of the document. The resources of a child manifest
	// precede the including resource.
	Resources []*resource.Resource
	// Data are the resolved data. Secrets are model.Secret.
	Data map[string]any
	// FailOnError stops a run at the first failure.
	FailOnError bool
	// Flapping limits repairs before a resource counts as flapping.
	Flapping model.Flapping
	// Limit is the maximum number of changes per minute for an agent; 0 means no limit.
	Limit int
	// PreMessage and PostMessage are shown before and after a run.
	PreMessage, PostMessage string
	// Warnings do not prevent the run.
	Warnings model.Problems
	// Static reports whether the result depends only on the document and Inputs.Data.
	Static bool
	// Inputs are the paths of the child manifests and of the files that expressions read before the
	// run.
	Inputs []string

	// own are the resources of the document itself.
	own []*resource.Resource
	// values are the resolved properties of own.
	values []document.Value
	dir    string
	// ccm reports whether the section of the document is ccm.
	ccm bool
}

// Parse parses a fetched source with the size limit of the loader.
func (l *Loader) Parse(s *Source) (*Document, error) {
	return parse(s.Name, s.Data, l.opts.MaxBytes)
}

// origin gives the resources of a manifest access to template names and sources during a run.
type origin struct {
	loader *Loader
	dir    string
	data   map[string]any
}

// Origin returns the origin of the resources of a manifest. r is nil for an ensure request.
func (l *Loader) Origin(r *Resolved) resource.Origin {
	o := origin{loader: l}
	if r != nil {
		o.dir, o.data = r.dir, r.Data
	}

	return o
}

// Names returns the names for templates. They read files and buckets during the run.
func (o origin) Names(ctx context.Context, facts model.Facts, data map[string]any) (map[string]any, resource.Secrets) {
	if data == nil {
		data = o.data
	}
	scope := o.loader.session(emptyDocument(""), Inputs{Dir: o.dir, Facts: facts}).newScope(ctx, inResources, data, resource.Outputs{})
	out, _ := newTemplates(scope).seen(ctx, "") // given facts cannot fail
	delete(out, expression.NameOutputs)         // a template cannot wait for outputs

	return out, resource.Secrets{Data: o.data, Used: scope.takeUsed}
}

// Tree fetches a tar.gz and unpacks it.
func (o origin) Tree(ctx context.Context, source string) (dir string, cleanup func() error, err error) {
	return o.loader.Tree(ctx, source)
}
