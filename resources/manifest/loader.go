package manifest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	// NoIncludes refuses a single resource that includes a manifest.
	NoIncludes bool
	// MaxDepth limits nested inclusions. Default: DefaultMaxDepth.
	MaxDepth int
	// RunOnly saves memory: the result has no values for Render.
	RunOnly bool
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

	// own are the resources of the document itself, for Render.
	own []*resource.Resource
	// values are the resolved properties of own, for Render.
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
	scope := o.loader.session(documentOf("", nil), Inputs{Dir: o.dir, Facts: facts}).newScope(ctx, inResources, data, resource.Outputs{})
	out, _ := newTemplates(scope).seen(ctx, "") // given facts cannot fail
	delete(out, expression.NameOutputs)         // a template cannot wait for outputs

	return out, resource.Secrets{Data: o.data, Used: scope.takeUsed}
}

// Tree fetches a tar.gz and unpacks it.
func (o origin) Tree(ctx context.Context, source string) (dir string, cleanup func() error, err error) {
	return o.loader.Tree(ctx, source)
}

// session is the state of one Resolve and of its deferred properties.
type session struct {
	*evaluator
	loader *Loader
	// parent is the session of the including document, by the including resource, prefix the path
	// of the document as named there. They are unset for the root document.
	parent *session
	by     *resource.Resource
	prefix string
	// excludedPaths are the paths of the excluded manifests that lead to the document.
	excludedPaths []string
	// resourceScope is the scope of the resources of the document.
	resourceScope resource.Scope
	// defaults are the defaults of the common properties.
	defaults model.Common
	// external are the data that win over the data of the document and of its child manifests.
	external map[string]any

	// declared are the properties of resources, for Check.
	declared []document.Value
	// includedFiles are the child manifests and the files that they name.
	includedFiles []File
}

// shared is the common state of a document and its child manifests.
type shared struct {
	// paths are the paths that the declared resources provide, by PathNeed, each with the first
	// resource.
	paths map[string]model.Ref
	// aliases maps an alias to its reference.
	aliases map[model.Ref]model.Ref
	// sensitive are the resources whose values and files are secret.
	sensitive map[model.Ref]bool
	// included are the resources whose manifest was read.
	included []*resource.Resource
	// including are all resources that include a manifest, without duplicates. instances are the
	// highest numbers of each name.
	including map[inclusionKey][]*resource.Resource
	instances map[model.Ref]int
	loops     loopLimit
	// reads counts the included manifests. isFull is set after the problem of
	// resource.MaxInclusions.
	reads  int
	isFull bool
}

// inclusionKey is equal for identical including resources. data is the text of the data.
type inclusionKey struct {
	ref  model.Ref
	data string
}

// instance returns the number of an including resource among those with its name. Identical
// resources share a number.
func (s *shared) instance(res *resource.Resource) int {
	ref := model.Ref{Type: res.Type.Name, Name: res.Meta().Name}
	key := inclusionKey{ref, fmt.Sprint(res.Type.Include(res.Spec).Data)}
	for _, other := range s.including[key] {
		if other.IsSame(res) {
			return other.Instance
		}
	}
	s.including[key] = append(slices.Clip(s.including[key]), res)
	s.instances[ref]++

	return s.instances[ref]
}

// clone returns a copy for one run, so that its additions do not affect the next run.
func (s *shared) clone() *shared {
	out := *s
	out.paths, out.aliases, out.sensitive = maps.Clone(s.paths), maps.Clone(s.aliases), maps.Clone(s.sensitive)
	out.included, out.including, out.instances = slices.Clone(s.included), maps.Clone(s.including), maps.Clone(s.instances)

	return &out
}

func (s *shared) provide(res *resource.Resource) {
	for _, p := range res.Type.Relations(res.Spec).Provides {
		if _, taken := s.paths[p.What]; !taken && !p.Implicit && strings.HasPrefix(p.What, resource.PathNeed("")) {
			s.paths[p.What] = res.Ref()
		}
	}
}

func (l *Loader) session(doc *Document, in Inputs) *session {
	s := &session{
		loader: l, external: in.Data,
		evaluator: &evaluator{
			opts: &l.opts, doc: doc, dir: in.Dir, author: in.Author, programs: map[string]*expression.Program{}, signature: sync.OnceValue(signature),
			cache: map[string]any{}, isKnown: map[model.Secret]bool{}, warnings: map[string]model.Problem{},
			common: &shared{
				paths: map[string]model.Ref{}, aliases: map[model.Ref]model.Ref{}, sensitive: map[model.Ref]bool{},
				including: map[inclusionKey][]*resource.Resource{}, instances: map[model.Ref]int{},
			},
		},
		resourceScope: resource.Scope{Dir: in.Dir, Author: in.Author, MaxDepth: cmp.Or(in.MaxDepth, DefaultMaxDepth)}, defaults: model.Common{Drift: in.Drift},
	}
	if in.Untrusted != nil {
		s.distrust(in.Untrusted)
	}
	if in.Facts != nil {
		s.facts.all, s.facts.read = in.Facts, true
	}

	return s
}

// DecodeOne decodes the resource of an ensure request, without a manifest that it includes.
func (l *Loader) DecodeOne(typ string, properties document.Value) (*resource.Resource, error) {
	return l.decodeOne(typ, properties, false)
}

// ResolveDeclared is ResolveOne for a resource of the local user. It evaluates expressions with
// in.Data and the facts, and control may exclude the resource.
func (l *Loader) ResolveDeclared(ctx context.Context, typ string, properties document.Value, in Inputs) (*Resolved, error) {
	t, ok := l.opts.Types.Get(typ)
	if !ok {
		return nil, model.Problems{unknownType(l.opts.Types, typ, properties.Pos)}
	}
	s := l.session(documentOf("", nil), in)
	data := mergeData(nil, in.Data)
	b := &build{session: s, scope: s.newScope(ctx, inResources, data, nil), out: &Resolved{Data: data}, observeOnly: in.ObserveOnly}
	s.resourceScope.Origin = l.Origin(b.out)
	b.add(ctx, declaration{Type: t, pos: properties.Pos, properties: properties})
	b.dropNameWarnings()
	b.assemble(ctx)

	return b.finish(ctx, in)
}

// dropNameWarnings removes the warnings about the name, which matter only for repeated runs.
func (b *build) dropNameWarnings() {
	b.out.Warnings = slices.DeleteFunc(b.out.Warnings, func(w model.Problem) bool { return w.Property == keyName })
}

// ResolveOne resolves the resource of an ensure request, and the manifest that it includes. The
// resource is the last of the result. Its values are literal, without expressions. The error is the
// error of Resolve.
func (l *Loader) ResolveOne(ctx context.Context, typ string, properties document.Value, in Inputs) (*Resolved, error) {
	res, err := l.decodeOne(typ, properties, in.ObserveOnly)
	if err != nil {
		return nil, err
	}
	if in.NoIncludes && res.Type.Include != nil {
		return nil, model.ProblemAt(properties.Pos, "send a signed request: muster fleet ensure --noop --sign-key FILE", "the status of %s is a noop run of its manifest, and this node runs only what is signed", typ)
	}
	b := &build{session: l.session(documentOf("", nil), in), out: &Resolved{}, links: []resource.Links{resource.LinksOf(res)}}
	b.addResource(res, properties)
	b.dropNameWarnings()
	_, warnings := commandLines(res.Type, properties)
	b.out.Warnings.Append(warnings...)
	b.assemble(ctx)

	return b.finish(ctx, in)
}

// CompileCondition returns an error if a text is not a condition of control.
func (l *Loader) CompileCondition(text string) error {
	return l.session(documentOf("", nil), Inputs{}).compileCondition(text)
}

// Sensitive reports whether the values of a request must not be shown or stored. An invalid request
// is sensitive.
func (l *Loader) Sensitive(typ string, properties document.Value) bool {
	res, err := l.DecodeOne(typ, properties)

	return err != nil || res.Sensitive()
}

func decode(t *resource.Type, properties document.Value, pos model.Position, observeOnly bool) (*resource.Resource, model.Problems) {
	if observeOnly {
		return resource.DecodeQuestion(t, properties, pos)
	}

	return resource.Decode(t, properties, pos)
}

func (l *Loader) decodeOne(typ string, properties document.Value, observeOnly bool) (*resource.Resource, error) {
	t, ok := l.opts.Types.Get(typ)
	if !ok {
		return nil, model.Problems{unknownType(l.opts.Types, typ, properties.Pos)}
	}
	res, problems := decode(t, properties, properties.Pos, observeOnly)
	if i := slices.IndexFunc(properties.Entries, func(e document.Entry) bool { return e.Key == keyControl }); i >= 0 {
		problems.Add(properties.Entries[i].Pos, "evaluate the condition before the request", "`control` is not allowed in a request")
	}
	if len(problems) > 0 {
		return nil, tidyProblems(problems)
	}

	return res, nil
}

// Checked is the result of Check.
type Checked struct {
	// Resources are the resources that do not depend on the node.
	Resources []*resource.Resource
	// Files are the files that the manifest names relative to its directory.
	Files    []File
	Warnings model.Problems
}

// File is a path that a manifest names relative to its own directory.
type File struct {
	Path string
	// Pos is the position of the path. For an expression that reads a file it is the document.
	Pos model.Position
	// HasExpression reports whether Path contains an expression that only the node can evaluate.
	HasExpression bool
}

// Check checks a document without its node. It compiles expressions that depend on the node (facts,
// environment, buckets, files), and assumes that their values are valid. The error is the error of
// Resolve. Checked contains the files also after an error.
func (l *Loader) Check(ctx context.Context, doc *Document, in Inputs) (*Checked, error) {
	s := l.elsewhere(doc, in)
	resolved, err := s.resolve(ctx, in)
	if err != nil {
		return &Checked{Files: s.files()}, err
	}

	return &Checked{Resources: resolved.Resources, Files: s.files(), Warnings: resolved.Warnings}, nil
}

// CheckCondition checks the text of a Condition without its node. The error is the error of
// Condition.
func (l *Loader) CheckCondition(ctx context.Context, name string, v document.Value) error {
	r := resolver{scope: l.elsewhere(documentOf(v.Pos.File, nil), Inputs{}).newScope(ctx, inData, nil, nil)}
	r.condition(ctx, name, v)

	return r.problems.Err()
}

func (l *Loader) elsewhere(doc *Document, in Inputs) *session {
	there := *l
	there.opts.Facts, there.opts.Environ, there.opts.KV, there.opts.Registrations = nil, nil, nil, nil
	in.Facts = nil
	s := there.session(doc, in)
	s.forOtherNode = true

	return s
}

// sourceBeside returns the source of a resource if it is a file beside the manifest.
func sourceBeside(properties document.Value) (document.Value, bool) {
	v, ok := properties.Get(resource.SourceProperty)

	return v, ok && v.IsScalar() && !v.Secret && v.Text != "" && !filepath.IsAbs(v.Text) && !strings.Contains(v.Text, "://")
}

func (b *build) checkSource(properties document.Value) {
	v, beside := sourceBeside(properties)
	if beside && !v.Deferred && b.session.dir == "" && !b.session.forOtherNode {
		b.problems.Add(v.Pos, "make a bundle of the manifest and its files, or give an absolute path", "`source` %s is relative, and this manifest has no directory", v.Text)
	}
}

// Condition evaluates an expression that must be true or false on the node. v is its text and
// position, name is its name in problems. The expression can use facts and the environment. The
// error is model.Problems.
func (l *Loader) Condition(ctx context.Context, name string, v document.Value, in Inputs) (bool, error) {
	s := l.session(documentOf(v.Pos.File, nil), in)
	r := resolver{scope: s.newScope(ctx, inData, nil, nil)}
	yes, _ := r.condition(ctx, name, v)

	return yes, r.problems.Err()
}
