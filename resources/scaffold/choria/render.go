package choria

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/CloudyKit/jet/v6"
	library "github.com/choria-io/scaffold"

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
func render(ctx context.Context, env resource.Env, spec *scaffold.Spec, masked bool) (files []file, err error) {
	dir, cleanup, err := source(ctx, env, spec)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cleanup()) }()
	tree, err := read(ctx, env, dir)
	if err != nil {
		return nil, err
	}
	r := &renderer{spec: spec, tree: tree, out: nowhere, names: names(ctx, env, spec, masked)}
	if tree.mentions("render", "write") {
		end, err := r.workshop(env, dir)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	if err := r.begin(); err != nil {
		return nil, err
	}

	return r.files(ctx)
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

// nowhere is a target that nothing can be written to.
const nowhere = "/dev/null/scaffold"

// renderer renders one tree by the library, template by template and into
// memory: the library's own way goes through two temporary directories, which a
// kill would leave behind, and runs post where nobody could kill it.
type renderer struct {
	spec  *scaffold.Spec
	tree  *tree
	names template.Names
	// root is where the library finds what templates render, out where they write.
	root, out string
	library   *library.Scaffold
	data      any
}

func (r *renderer) begin() (err error) {
	left, right := r.spec.Delimiters()
	cfg := library.Config{TargetDirectory: r.out, MergeTargetDirectory: true, CustomLeftDelimiter: left, CustomRightDelimiter: right, SourceDirectory: r.root}
	if r.root == "" {
		cfg.SourceDirectory = r.tree.dir
	}
	values := r.values()
	if r.spec.Engine == scaffold.EngineGo {
		r.data = values
		r.library, err = library.New(cfg, template.GoFunctions(r.names))
	} else {
		variables := jet.VarMap{}
		for name, v := range values {
			variables.Set(name, v)
		}
		r.data = variables
		r.library, err = library.NewJet(cfg, template.JetFunctions(r.names))
	}
	if err != nil || r.root == "" {
		return err
	}
	// It knows its source only once it has rendered that. The source is a link,
	// which it does not follow then, so it renders nothing.
	_, err = r.library.RenderNoop(r.data)

	return err
}

func (r *renderer) values() map[string]any {
	out := map[string]any{}
	for _, name := range []string{"Facts", "Data", "Environ"} {
		out[name], out[strings.ToLower(name)] = r.names[name], r.names[name]
	}

	return out
}

// workshop makes the directory that templates write into, and a link to the
// source beside it.
func (r *renderer) workshop(env resource.Env, dir string) (end func() error, err error) {
	temp, err := env.Host.TempDir("scaffold")
	if err != nil {
		return nil, err
	}
	end = func() error { return os.RemoveAll(temp) }
	r.root, r.out = filepath.Join(temp, "source"), filepath.Join(temp, "out")
	err = errors.Join(os.Symlink(dir, r.root), os.Mkdir(r.out, 0o700))
	for _, sub := range r.tree.directories {
		err = errors.Join(err, os.Mkdir(filepath.Join(r.out, sub), 0o700))
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}

	return end, nil
}

func (r *renderer) files(ctx context.Context) ([]file, error) {
	var out []file
	for _, t := range r.tree.templates {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		text, err := r.render(t)
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
func (r *renderer) render(t oneTemplate) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: %v", t.name, p)
		}
	}()
	left, _ := r.spec.Delimiters()
	text, err = r.library.RenderString(t.text, r.data)
	if err != nil {
		return "", template.Placed(template.Template{Name: t.name, Text: t.text}, left, err)
	}
	if r.spec.Engine == scaffold.EngineGo && strings.Contains(text, noValue) && !strings.Contains(t.text, noValue) {
		before, _, _ := strings.Cut(text, noValue)
		return "", fmt.Errorf("%s: line %d of what it gives has %s: a key that it names is missing, write {{ get .Data \"name\" | default \"…\" }} where it may be", t.name, 1+strings.Count(before, "\n"), noValue)
	}

	return text, nil
}

// written adds what templates wrote.
func (r *renderer) written(files []file) ([]file, error) {
	if r.root == "" {
		return files, nil
	}

	return files, filepath.WalkDir(r.out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f := r.file(strings.TrimPrefix(path, r.out), content, writtenMode)
		if slices.ContainsFunc(files, func(other file) bool { return other.path == f.path }) {
			return fmt.Errorf("%s is written by a template, and is there as a template too", f.path)
		}
		files = append(files, f)
		return nil
	})
}
