package manifest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// DefaultMaxDepth is the default limit of nested inclusions.
const DefaultMaxDepth = 10

// assemble inserts the resources of included manifests before the including resources.
func (b *build) assemble(ctx context.Context) {
	for i, res := range b.own {
		switch {
		case res.Type.Include == nil:
		case res.Excluded != "":
			res.LeftOut = b.excludedRefs(ctx, inclusion{Resource: res, properties: b.values[i]})
			b.excludedUnknown = b.excludedUnknown || res.LeftOut == nil
		default:
			b.include(ctx, inclusion{Resource: res, properties: b.values[i]})
		}
		b.out.Resources = append(b.out.Resources, res)
	}
	if b.session.by == nil && b.session.doc.Name() != "" && !b.session.forOtherNode {
		b.checkTemplates()
	}
}

// templated is a Spec with a directory of templates. The path is empty if it needs none.
type templated interface{ Templates() string }

// checkTemplates reports missing template directories beside the manifest, unless a resource of the
// run may create them. Other directories are checked when the resource runs.
func (b *build) checkTemplates() {
	for _, res := range b.out.Resources {
		spec, is := res.Spec.(templated)
		dir := res.Scope.Dir
		if !is || dir == "" || res.Excluded != "" || res.ResolveDeferred != nil || res.Scope.HealthCheckOnly || spec.Templates() == "" || filepath.IsAbs(spec.Templates()) {
			continue
		}
		path, pos := filepath.Join(dir, spec.Templates()), res.Pos
		if i := slices.Index(b.own, res); i >= 0 {
			source, _ := b.values[i].Get(resource.SourceProperty)
			pos = source.Pos
		}
		others := slices.DeleteFunc(slices.Clone(b.out.Resources), func(other *resource.Resource) bool { return other == res })
		_, later := b.session.providedLater(path, others)
		info, err := os.Stat(path)
		switch {
		case later || b.openEnded || b.session.providedWithin(path):
		case errors.Is(err, fs.ErrNotExist):
			b.problems.Add(pos, "a relative path is relative to the manifest that names it", "`source`: there is no directory %s beside this manifest, and no resource creates it", spec.Templates())
		case err == nil && !info.IsDir():
			b.problems.Add(pos, "", "`source`: %s beside this manifest is not a directory of templates", spec.Templates())
		}
	}
}

// inclusion is a resource that includes a manifest, with the path of the manifest.
type inclusion struct {
	*resource.Resource
	properties document.Value
	path       string
}

func (i *inclusion) namePosition() model.Position {
	if name, ok := i.properties.Get(keyName); ok && !name.Pos.IsZero() {
		return name.Pos
	}

	return i.Pos
}

// hide returns a function that marks secret texts in the data of the inclusion.
func (i *inclusion) hide(known []model.Secret) func(any) any {
	all, _ := i.properties.Get("sensitive")

	return func(v any) any {
		text, is := v.(string)
		for _, s := range []model.Secret{model.NewSecret(text), model.NewDerived(text)} {
			if is && (all.Text == "true" || slices.Contains(known, s) || slices.Contains(i.Secrets, s)) {
				return s
			}
		}
		return v
	}
}

// include reads the manifest of a resource and adopts its declarations. A manifest that a resource
// of this run creates is read during the run.
func (b *build) include(ctx context.Context, i inclusion) {
	s, source := b.session, i.Meta().Name
	if s.resourceScope.Depth >= s.resourceScope.MaxDepth {
		b.openEnded = true
		b.problems.Add(i.namePosition(), "does it include itself?", "manifests are nested more than %d levels deep: %s", s.resourceScope.MaxDepth, strings.Join(append(s.inclusions(), source), " -> "))
		return
	}
	var err error
	if i.path, err = s.besideManifest(source); err != nil {
		b.notIncluded(&i, err)
		return
	}
	if s.forOtherNode && !filepath.IsAbs(source) && !strings.Contains(source, "://") {
		s.includedFiles = append(s.includedFiles, File{Path: source, Pos: i.namePosition()})
	}
	if slices.ContainsFunc(s.common.included, i.IsSame) || s.isWithin(i.Resource) {
		return // its resources are known, or it is a cycle, which CheckLinks reports
	}
	s.setDynamic()
	brings, later := s.providedLater(i.path, b.out.Resources)
	if i.ResolveDeferred != nil || later {
		b.includeLater(i, brings)
		return
	}
	if s.common.reads++; s.common.reads > resource.MaxInclusions {
		b.openEnded = true
		if !s.common.isFull {
			s.common.isFull = true
			b.problems.Add(i.namePosition(), "does a manifest include itself?", "more than %d child manifests are included", resource.MaxInclusions)
		}
		return
	}
	child, err := s.include(ctx, &i, i.Spec, s.common)
	if err != nil {
		b.notIncluded(&i, err)
		return
	}
	b.adopt(i.Resource, child)
	s.common.included = append(s.common.included, i.Resource)
}

func (s *session) isWithin(res *resource.Resource) bool {
	return s.by != nil && (s.by.IsSame(res) || s.parent.isWithin(res))
}

func (s *session) inclusions() []string {
	if s.by == nil {
		return []string{s.doc.Name()}
	}

	return append(s.parent.inclusions(), s.by.Meta().Name)
}

// includeLater makes a resource read its manifest when it runs, after the resource that creates it.
func (b *build) includeLater(i inclusion, brings model.Ref) {
	b.openEnded = true
	if brings != (model.Ref{}) {
		requireAlso(i.Spec, []model.Ref{brings})
		i.Brings = brings
	}
	i.Expand = func(ctx context.Context, spec resource.Spec) (resource.Expansion, error) {
		return b.session.expand(ctx, &i, spec)
	}
}

func (b *build) notIncluded(i *inclusion, err error) {
	b.openEnded = true
	hint := expression.HintOf(err)
	switch {
	case b.session.forOtherNode && (errors.Is(err, errOnOtherNode) || errors.Is(err, fs.ErrNotExist)):
		b.session.unsure = true // a missing file beside the manifest is reported with all files
	case hint == "" && errors.Is(err, fs.ErrNotExist):
		hint = "a relative path is relative to the manifest that names it"
		fallthrough
	default:
		if info, failed := os.Stat(i.path); failed == nil && info.IsDir() {
			err, hint = errors.New("it is a directory"), "write "+filepath.Join(i.Meta().Name, model.BundleManifest)
		}
		b.problems.Add(i.namePosition(), hint, "cannot include %s: %s", i.Meta().Name, err)
	}
}

func (b *build) adopt(res *resource.Resource, child *build) {
	res.Children, res.Messages = child.own, child.messages()
	b.out.Resources = append(b.out.Resources, child.out.Resources...)
	b.out.Warnings = append(b.out.Warnings, child.out.Warnings...)
	b.links = append(b.links, child.links...)
	b.problems.Append(child.problems...)
	b.openEnded, b.excludedUnknown = b.openEnded || child.openEnded, b.excludedUnknown || child.excludedUnknown
	b.session.learn(child.session.Secrets()...)
	b.session.unsure = b.session.unsure || child.session.unsure
	b.session.besides(child.session)
}

func (b *build) messages() resource.Messages {
	return resource.Messages{Before: b.out.PreMessage, After: b.out.PostMessage}
}

// include reads and resolves a child manifest without its links. Its error is the error of reading.
func (s *session) include(ctx context.Context, i *inclusion, spec resource.Spec, common *shared) (*build, error) {
	in := i.Type.Include(spec)
	if s.forOtherNode && (filepath.IsAbs(in.Source) || s.dir == "") {
		return nil, errOnOtherNode
	}
	s.noteInput(i.path)
	text, err := files.ReadTrusted(i.path, s.opts.MaxBytes, s.author)
	switch {
	case err != nil:
		return nil, err
	case bytes.HasPrefix(text, gzipMagic):
		return nil, expression.WithHint(errors.New("it is packed"), "unpack it beside this manifest")
	}
	doc, err := parse(i.path, text, s.opts.MaxBytes)
	if err != nil {
		return &build{session: s, out: &Resolved{}, problems: model.AsProblems(err), openEnded: true}, nil
	}
	dir := filepath.Dir(i.path)
	child := s.loader.session(doc, Inputs{Dir: dir, Author: s.author, Data: s.external})
	child.parent, child.by, child.prefix, child.outer, child.forOtherNode, child.unsure = s, i.Resource, in.Source, s.evaluator, s.forOtherNode, s.unsure
	child.common = common
	child.resourceScope, child.defaults = s.resourceScope.Within(in, dir), *spec.Meta()
	if child.excludedPaths = s.excludedPaths; i.Excluded != "" {
		child.excludedPaths = append(slices.Clone(s.excludedPaths), i.path)
	}

	data, _ := template.Copy(in.Data, i.hide(s.Secrets())).(map[string]any)

	return child.declare(ctx, mergeData(data, s.external))
}

// besideManifest returns the path of a file that a manifest names.
func (s *session) besideManifest(source string) (string, error) {
	switch {
	case source == "":
		return "", errors.New("it has no name")
	case filepath.IsAbs(source):
		return source, nil
	case s.dir == "" && !s.forOtherNode:
		return "", expression.WithHint(errors.New("the path is relative, and this manifest has no directory"), "make a bundle of the manifest and its files, or give an absolute path")
	}

	return filepath.Join(s.dir, source), nil
}

// expand reads, during the run, a manifest that could not be read before.
func (s *session) expand(ctx context.Context, i *inclusion, spec resource.Spec) (resource.Expansion, error) {
	child, err := s.include(ctx, i, spec, s.common.clone())
	if errors.Is(err, fs.ErrNotExist) {
		return resource.Expansion{}, resource.PrerequisiteError{Needs: []string{resource.PathNeed(i.path)}, Err: fmt.Errorf("cannot include %s: %w", i.Meta().Name, err)}
	}
	if err != nil {
		return resource.Expansion{}, err
	}
	if len(child.problems) > 0 {
		return resource.Expansion{}, tidyProblems(child.problems)
	}

	return resource.Expansion{Resources: child.out.Resources, Children: child.own, Messages: child.messages(), Secrets: child.session.Secrets(), Warnings: child.out.Warnings}, nil
}

// providedLater reports whether a resource of this run manages a file or a directory above it, or
// whether the file is missing and a command may create it.
func (s *session) providedLater(path string, before []*resource.Resource) (by model.Ref, later bool) {
	if s.forOtherNode {
		return by, false
	}
	for at := path; at != filepath.Dir(at); at = filepath.Dir(at) {
		if by, managed := s.common.paths[resource.PathNeed(at)]; managed {
			return by, true
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return by, false
	}

	return by, slices.ContainsFunc(before, func(r *resource.Resource) bool {
		return r.Type.Writes == resource.Everything && r.Excluded == ""
	})
}

func (s *session) providedWithin(dir string) bool {
	for word := range s.common.paths {
		if strings.HasPrefix(word, resource.PathNeed(dir)+"/") {
			return true
		}
	}

	return false
}

// inherit sets the common properties of a resource to the defaults of its manifest.
func (s *session) inherit(meta *model.Common) {
	meta.Drift = cmp.Or(meta.Drift, s.defaults.Drift)
	meta.Timeout = cmp.Or(meta.Timeout, s.defaults.Timeout)
	if meta.Retry == 0 {
		meta.Retry, meta.Delay = s.defaults.Retry, cmp.Or(meta.Delay, s.defaults.Delay)
	}
	meta.Limit = cmp.Or(meta.Limit, s.defaults.Limit)
}

// besides records the files beside a child manifest as files beside this one.
func (s *session) besides(child *session) {
	if !s.forOtherNode || child == s {
		return
	}
	dir := filepath.Dir(child.prefix)
	for _, f := range child.files() {
		f.Path = filepath.Join(dir, f.Path)
		s.includedFiles = append(s.includedFiles, f)
	}
}

// files returns the files that a manifest and its child manifests name relative to its directory.
func (s *session) files() []File {
	var all []File
	for _, properties := range s.declared {
		// A path that begins with an expression may be absolute.
		if v, beside := sourceBeside(properties); beside && !(v.Deferred && (strings.HasPrefix(v.Text, "${") || strings.HasPrefix(v.Text, "{{"))) {
			all = append(all, File{Path: v.Text, Pos: v.Pos, HasExpression: v.Deferred})
		}
	}
	for _, path := range s.relative {
		all = append(all, File{Path: path, Pos: model.Position{File: s.doc.Name()}})
	}
	var out []File
	for _, f := range append(all, s.includedFiles...) {
		if !slices.ContainsFunc(out, func(have File) bool { return have.Path == f.Path }) {
			out = append(out, f)
		}
	}

	return out
}

// excludedRefs returns the references of all resources of an excluded manifest, because other
// resources may refer to them. It returns nil if some are unknown, for example if the manifest
// cannot be read here. It ignores other problems of the manifest.
func (b *build) excludedRefs(ctx context.Context, i inclusion) map[model.Ref]bool {
	s := b.session
	var err error
	if i.path, err = s.besideManifest(i.Meta().Name); err != nil || s.resourceScope.Depth >= s.resourceScope.MaxDepth || slices.Contains(s.excludedPaths, i.path) {
		return nil
	}
	if _, later := s.providedLater(i.path, b.out.Resources); later {
		return nil
	}
	child, err := s.include(ctx, &i, i.Spec, s.common.clone())
	if err != nil || child.openEnded || child.excludedUnknown || len(child.session.doc.Problems()) > 0 {
		return nil
	}
	out := child.allExcludedRefs()
	for _, l := range child.links {
		for _, name := range l.Names() {
			out[name] = true
		}
	}

	return out
}

func (b *build) allExcludedRefs() map[model.Ref]bool {
	out := map[model.Ref]bool{}
	for _, res := range b.out.Resources {
		maps.Copy(out, res.LeftOut)
	}

	return out
}
