package manifest

import (
	"context"
	"io"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest/eval"
	"github.com/musterfleet/muster/resources/manifest/render"
	"github.com/musterfleet/muster/resources/manifest/source"
	"github.com/musterfleet/muster/resources/manifest/syntax"
	"github.com/musterfleet/muster/resources/resource"
)

// Options are what a Loader is made from. All but Types may be left out; what
// needs the missing part is then refused with its remedy.
type Options struct {
	// Types are the resource types that a manifest may name.
	Types resource.Types
	// Facts returns the facts of the node. It is called at most once a Resolve,
	// and only when something asks for facts.
	Facts func(ctx context.Context) (model.Facts, error)
	// Environ is what expressions see as Environ.
	Environ map[string]string
	// KV reads kv://bucket/key and what kvGet asks for.
	KV func(ctx context.Context, bucket, key string) ([]byte, error)
	// Registrations returns what the function registrations asks for; each of its
	// words may be the wildcard *.
	Registrations eval.ReadRegistrations
	// Object reads obj://bucket/name. The caller closes it.
	Object func(ctx context.Context, bucket, name string) (io.ReadCloser, error)
	// HTTPStall is how long a server may send nothing in the middle of its answer;
	// 0 means 30 seconds.
	HTTPStall time.Duration
	// Stdin is what "-" reads.
	Stdin io.Reader
	// Unpack unpacks a bundle (tar.gz) into a new directory. cleanup removes it.
	Unpack func(ctx context.Context, r io.Reader) (dir string, cleanup func() error, err error)
	// MaxBytes is the largest document and file that is read whole; 0 means DefaultMaxBytes.
	MaxBytes int64
	// MaxBundleBytes is the largest packed bundle; 0 means DefaultMaxBundleBytes.
	MaxBundleBytes int64
}

// Loader fetches and resolves manifests. It is safe for concurrent use when
// the functions of its options are.
type Loader struct {
	*source.Fetcher
	eval eval.Options
}

// NewLoader makes a loader.
func NewLoader(o Options) *Loader {
	if o.MaxBytes == 0 {
		o.MaxBytes = syntax.DefaultMaxBytes
	}

	eval := eval.Options{Types: o.Types, Facts: o.Facts, Environ: o.Environ, KV: o.KV, Registrations: o.Registrations, MaxBytes: o.MaxBytes}

	fetch := source.Options{KV: o.KV, Object: o.Object, HTTPStall: o.HTTPStall, Stdin: o.Stdin, Unpack: o.Unpack, MaxBytes: o.MaxBytes, MaxBundleBytes: o.MaxBundleBytes}

	return &Loader{Fetcher: source.New(fetch), eval: eval}
}

// Inputs are what goes into a Resolve besides the document.
type Inputs struct {
	// Data wins over all data of the document. It may hold model.Secret.
	Data map[string]any
	// Dir is the directory that relative paths are under; empty when there is none.
	Dir string
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
	// that it includes stand in front of the resource that includes it.
	Resources []*resource.Resource
	// Data are the resolved data; secrets among them are model.Secret.
	Data map[string]any
	// FailOnError stops a run at the first failure.
	FailOnError bool
	// PreMessage and PostMessage are shown before and after a run.
	PreMessage, PostMessage string
	// Warnings are worth telling and stop nothing.
	Warnings model.Problems
	// Static reports whether nothing but the document and Inputs.Data went in, so
	// resolving it again returns the same.
	Static bool

	// own are the resources that the document itself declares.
	own []*resource.Resource
	// values are the properties of own as resolved.
	values []resource.Value
	dir    string
}

// Parse is Parse for a source that the loader fetched, with its limit.
func (l *Loader) Parse(s *source.Source) (*syntax.Document, error) {
	return syntax.ParseWithin(s.Name, s.Data, l.eval.MaxBytes)
}

// Render returns the manifest with everything resolved, as YAML that muster
// applies again. Secrets, and the values of sensitive resources, are redacted;
// expressions that must wait stay as they are, with the data they may need;
// what control excluded stays excluded. The same input makes the same bytes.
func (r *Resolved) Render() ([]byte, error) {
	return render.YAML(render.Manifest{Data: r.Data, FailOnError: r.FailOnError, PreMessage: r.PreMessage, PostMessage: r.PostMessage, Resources: r.own, Values: r.values})
}
