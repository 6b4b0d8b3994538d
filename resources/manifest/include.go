package manifest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// DefaultMaxDepth is how deep manifests may include one another, unless told otherwise.
const DefaultMaxDepth = 10

// mayInclude says whether a resource may include a manifest where it stands.
func (b *build) mayInclude(d declared) bool {
	holds := b.session.holds
	switch {
	case holds.DenyApply:
		b.problems.Add(d.pos, "remove it, or allow it with `allow_apply: true` where this manifest is included", "a manifest that is included with `allow_apply: false` cannot include another")
	case holds.Depth >= holds.MaxDepth:
		b.problems.Add(d.pos, "does it include itself?", "manifests include one another more than %d levels deep", holds.MaxDepth)
	default:
		return true
	}

	return false
}

// include reads the manifest that a resource includes and makes what it declares
// part of this one, in front of the resource. What cannot be read yet, because
// a resource of this run brings it, is read at the resource's turn.
func (b *build) include(ctx context.Context, res *resource.Resource, properties resource.Value) {
	s := b.session
	in := res.Type.Include(res.Spec)
	s.includedFile(in, placeOfName(properties, res.Pos))
	if res.Late != nil || s.broughtLater(in.Source, b.out.Resources) {
		b.openEnded = true
		res.Expand = func(ctx context.Context, spec resource.Spec) (resource.Expansion, error) {
			return s.expand(ctx, res, spec)
		}
		return
	}
	child, err := s.included(ctx, in, res)
	if err != nil {
		b.notIncluded(placeOfName(properties, res.Pos), in.Source, err)
		return
	}
	s.setDynamic()
	b.adopt(res, child)
}

// placeOfName is where a resource says what it is called.
func placeOfName(properties resource.Value, declared model.Position) model.Position {
	if name, ok := properties.Get(keyName); ok && !name.Pos.IsZero() {
		return name.Pos
	}

	return declared
}

// notIncluded reports what is wrong with an included manifest.
func (b *build) notIncluded(pos model.Position, source string, err error) {
	var problems model.Problems
	switch {
	case errors.As(err, &problems):
		b.problems = append(b.problems, problems...)
	case b.session.absent && !filepath.IsAbs(source) && errors.Is(err, fs.ErrNotExist):
		b.session.unsure = true // its absence is told with that of all files beside the manifest
	case b.session.tolerates():
	default:
		var hinted hintedError
		errors.As(err, &hinted)
		b.problems.Add(pos, hinted.hint, "cannot include %s: %s", source, err)
	}
}

// adopt takes over what an included manifest declares, but not what is here
// already and asks for the same.
func (b *build) adopt(res *resource.Resource, child *build) {
	have := make(map[model.Ref]*resource.Resource, len(b.out.Resources))
	for _, r := range b.out.Resources {
		have[r.Ref()] = r
	}
	twice := map[model.Ref]bool{}
	for _, r := range child.out.Resources {
		if first, ok := have[r.Ref()]; ok && first.IsSame(r) {
			twice[r.Ref()] = true
			continue
		}
		b.out.Resources = append(b.out.Resources, r)
	}
	for _, l := range child.links {
		if !twice[l.Ref] {
			b.links = append(b.links, l)
		}
	}
	res.Children = child.own
	b.problems = append(b.problems, child.problems...)
	b.openEnded = b.openEnded || child.openEnded
	b.out.Secrets = append(b.out.Secrets, child.out.Secrets...)
	b.out.Warnings = append(b.out.Warnings, child.out.Warnings...)
	b.session.learn(child.session.learnt()...)
	b.session.unsure = b.session.unsure || child.session.unsure
	b.session.besides(child)
}

// included reads and resolves the manifest of an inclusion, as far as it can be
// without the resources around it.
func (s *session) included(ctx context.Context, in resource.Inclusion, res *resource.Resource) (*build, error) {
	if in.Source == "" {
		return nil, errors.New("it has no name")
	}
	path, err := s.besideManifest(in.Source)
	if err != nil {
		return nil, err
	}
	src, err := s.loader.Fetch(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := src.Close(); err != nil {
		return nil, err
	}
	doc, err := s.loader.Parse(src)
	if err != nil {
		return nil, err
	}
	given := Inputs{Data: mergeDeep(hidden(in.Data, res.Secrets), s.external), Dir: src.Dir}
	child := s.loader.session(doc, given)
	child.parent, child.prefix, child.absent = s, in.Source, s.absent
	child.provided, child.aliases = s.provided, s.aliases
	child.holds = s.holds.Within(in, src.Dir)

	return child.declare(ctx, given)
}

// besideManifest gives the path of a file that a manifest names.
func (s *session) besideManifest(source string) (string, error) {
	switch {
	case filepath.IsAbs(source):
		return source, nil
	case s.dir == "" && !s.absent:
		return "", hintedError{errors.New("the path is relative, and this manifest has no directory"), "make a bundle of the manifest and its files, or give an absolute path"}
	}

	return filepath.Join(s.dir, source), nil
}

// expand reads, at its turn, a manifest that could not be read before the run.
func (s *session) expand(ctx context.Context, res *resource.Resource, spec resource.Spec) (resource.Expansion, error) {
	in := res.Type.Include(spec)
	child, err := s.included(ctx, in, res)
	if errors.Is(err, fs.ErrNotExist) {
		path, _ := s.besideManifest(in.Source)
		return resource.Expansion{}, resource.Missing{Need: pathWord + path, Err: err}
	}
	if err != nil {
		return resource.Expansion{}, err
	}
	if len(child.problems) > 0 {
		return resource.Expansion{}, finish(child.problems)
	}

	return resource.Expansion{Resources: child.out.Resources, Children: child.own, Secrets: child.session.learnt(), Warnings: child.out.Warnings}, nil
}

// pathWord begins the relation of what brings a path.
const pathWord = "path:"

// broughtLater says that a file is managed by a resource of this run, or is not
// there and may be brought by one: a command, or whatever has to do with a
// directory above it.
func (s *session) broughtLater(source string, before []*resource.Resource) bool {
	path, err := s.besideManifest(source)
	if err != nil || s.absent {
		return false
	}
	if _, managed := s.provided[pathWord+path]; managed {
		return true
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, managed := s.provided[pathWord+dir]; managed {
			return true
		}
	}

	return slices.ContainsFunc(before, func(r *resource.Resource) bool {
		return r.Type.Writes == resource.Everything && r.Excluded == ""
	})
}

// hidden gives data in which what is secret is marked as such.
func hidden(data map[string]any, secrets []model.Secret) map[string]any {
	if len(secrets) == 0 {
		return data
	}
	out, _ := hide(data, secrets).(map[string]any)

	return out
}

func hide(v any, secrets []model.Secret) any {
	switch v := v.(type) {
	case string:
		if i := slices.Index(secrets, model.NewSecret(v)); i >= 0 {
			return secrets[i]
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = hide(v[i], secrets)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key := range v {
			out[key] = hide(v[key], secrets)
		}
		return out
	}

	return v
}

// besides notes the files beside an included manifest as files beside this one.
func (s *session) besides(child *build) {
	if !s.absent {
		return
	}
	dir := filepath.Dir(child.session.prefix)
	for _, f := range child.session.files() {
		if !filepath.IsAbs(f.Path) {
			f.Path = filepath.Join(dir, f.Path)
		}
		s.includedFiles = append(s.includedFiles, f)
	}
}

// files are those that a manifest names relative to its own directory.
func (s *session) files() []File {
	var out Checked
	for _, v := range s.declared {
		out.addSource(v)
	}
	for _, path := range s.relative {
		out.add(File{Path: path, Pos: model.Position{File: s.doc.name}})
	}
	for _, f := range s.includedFiles {
		out.add(f)
	}

	return out.Files
}

// includedFile notes the manifest that a resource includes from beside this one.
func (s *session) includedFile(in resource.Inclusion, pos model.Position) {
	if s.absent && in.Source != "" && !filepath.IsAbs(in.Source) && !strings.Contains(in.Source, "://") {
		s.includedFiles = append(s.includedFiles, File{Path: in.Source, Pos: pos})
	}
}
