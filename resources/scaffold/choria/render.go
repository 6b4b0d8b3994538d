package choria

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
	"github.com/musterfleet/muster/resources/template"
)

const (
	// partials is the directory of templates that others render; it gives no files.
	partials = "_partials"
	// writtenMode is that of files that a template makes by write.
	writtenMode = 0o644
	// noValue is what a Go template writes for a key that is missing.
	noValue = "<no value>"
)

// render gives the files that the templates come to, in the order of their
// paths. Nothing of the target is touched or looked at.
func (p Provider) render(ctx context.Context, env resource.Env, spec *scaffold.Spec, masked bool) ([]file, error) {
	tree, err := p.tree(ctx, env, spec)
	if err != nil {
		return nil, err
	}

	return newRenderer(spec, tree, names(ctx, env, spec, masked)).files(ctx)
}

// names are what the templates see.
func names(ctx context.Context, env resource.Env, spec *scaffold.Spec, masked bool) template.Names {
	out := template.Names{}
	if env.Scope.Origin != nil {
		out = env.Scope.Origin.Names(ctx, env.Facts, masked)
	} else {
		facts := map[string]any{}
		maps.Copy(facts, env.Facts)
		out["Facts"], out["facts"], out["Environ"], out["environ"] = facts, facts, map[string]any{}, map[string]any{}
	}
	data := map[string]any{}
	if of, is := out["Data"].(map[string]any); is {
		maps.Copy(data, of)
	}
	maps.Copy(data, spec.Data)
	out["Data"], out["data"] = data, data

	return out
}

// limits are far more than any scaffold needs.
var limits = template.Limits{Bytes: 128 << 20, Steps: 1 << 22}

// renderer renders one tree into memory.
type renderer struct {
	spec *scaffold.Spec
	tree *tree
	set  template.Set
}

func newRenderer(spec *scaffold.Spec, t *tree, names template.Names) *renderer {
	left, right := spec.Delimiters()

	return &renderer{spec: spec, tree: t, set: template.Set{
		Go: spec.Engine == scaffold.EngineGo, Left: left, Right: right, Texts: t.texts, Names: names, Limits: limits,
	}}
}

func (r *renderer) files(ctx context.Context) ([]file, error) {
	var out []file
	for _, t := range r.tree.templates {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		text, err := r.render(ctx, t.name)
		if err != nil {
			return nil, err
		}
		if r.spec.SkipEmpty && strings.TrimSpace(text) == "" {
			continue
		}
		out = append(out, r.file(t.name, []byte(text), t.mode))
	}
	out, err := r.written(out)
	slices.SortFunc(out, func(a, b file) int { return strings.Compare(a.path, b.path) })

	return out, err
}

func (r *renderer) file(name string, content []byte, mode fs.FileMode) file {
	return file{path: filepath.Join(r.spec.Name, name), content: content, digest: digestOf(content), mode: mode}
}

// render renders one template. Its errors say where in it they are.
func (r *renderer) render(ctx context.Context, name string) (string, error) {
	text, err := r.set.Render(ctx, name)
	if err != nil {
		if hint := template.Hint(err); hint != "" {
			err = fmt.Errorf("%w (%s)", err, hint)
		}
		return "", err
	}
	if r.spec.Engine == scaffold.EngineGo && strings.Contains(text, noValue) && !strings.Contains(r.tree.texts[name], noValue) {
		before, _, _ := strings.Cut(text, noValue)
		return "", fmt.Errorf("%s: line %d of what it gives has %s: a key that it names is missing, write {{ get .Data \"name\" | default \"…\" }} where it may be", name, 1+strings.Count(before, "\n"), noValue)
	}

	return text, nil
}

// written adds what templates wrote.
func (r *renderer) written(files []file) ([]file, error) {
	given := map[string]bool{}
	for _, f := range files {
		given[f.path] = true
	}
	for name, text := range r.set.Written() {
		f := r.file(name, []byte(text), writtenMode)
		if given[f.path] {
			return nil, fmt.Errorf("%s is written by a template, and is there as a template too", f.path)
		}
		files = append(files, f)
	}
	if len(r.set.Written()) == 0 {
		return files, nil
	}
	for _, f := range files {
		given[f.path] = true
	}
	for _, f := range files {
		for dir := filepath.Dir(f.path); dir != r.spec.Name; dir = filepath.Dir(dir) {
			if given[dir] {
				return nil, fmt.Errorf("%s is a file and a directory: %s is to be in it", dir, f.path)
			}
		}
	}

	return files, nil
}
