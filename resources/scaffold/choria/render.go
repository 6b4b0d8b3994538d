package choria

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
	"github.com/musterfleet/muster/resources/scaffold/choria/render"
	"github.com/musterfleet/muster/resources/template"
)

const (
	// writtenMode is the mode of files that templates write by function.
	writtenMode = 0o644
	// noValue is what a Go template yields for a missing key.
	noValue = "<no value>"
)

// render returns the files that the templates yield, in the order of their
// paths. It does not touch the target.
func (p Provider) render(ctx context.Context, env resource.Env, spec *scaffold.Spec) ([]file, error) {
	tree, err := p.tree(ctx, env, spec)
	if err != nil {
		return nil, err
	}
	dir, err := env.Host.MemoryDir(ctx, "scaffold")
	if err == nil {
		files, err := renderIn(ctx, dir, env, spec, tree)
		if err == nil || !strings.Contains(err.Error(), unix.ENOSPC.Error()) || env.Host.StateDir() == "" {
			return files, err
		}
	}
	if dir, err = env.Host.TempDir("scaffold"); err != nil {
		return nil, err
	}

	return renderIn(ctx, dir, env, spec, tree)
}

// renderIn renders in a temporary directory, and removes that.
func renderIn(ctx context.Context, dir string, env resource.Env, spec *scaffold.Spec, tree *tree) ([]file, error) {
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			env.Log.WarnContext(ctx, "cannot remove temporary directory", "directory", dir, "error", err)
		}
	}()
	p := process{env: env, spec: spec, tree: tree, dir: dir}
	if err := p.run(ctx); err != nil {
		return nil, err
	}

	return p.result()
}

// result returns the files that were received, and fails where one cannot stand
// beside another, or lacks a value.
func (p *process) result() ([]file, error) {
	files, given := p.files, map[string]bool{}
	secret := p.writesSecret()
	for i, f := range files {
		files[i].secret = f.secret || f.written && secret
		if name := strings.TrimPrefix(f.path, p.spec.Name+"/"); f.written && p.flows && !p.tree.contains(name) {
			return nil, errSecretPath
		}
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	for i, f := range files {
		if i > 0 && f.path == files[i-1].path {
			return nil, fmt.Errorf("%s is written by a template, and is there as a template too", f.path)
		}
		for dir := filepath.Dir(f.path); dir != p.spec.Name; dir = filepath.Dir(dir) {
			if given[dir] {
				return nil, fmt.Errorf("%s is a file and a directory", dir)
			}
		}
		given[f.path] = true
		if err := p.checkValues(f); err != nil {
			return nil, err
		}
	}

	return slices.DeleteFunc(files, func(f file) bool {
		return p.spec.SkipEmpty && !f.written && strings.TrimSpace(string(f.content)) == ""
	}), nil
}

// checkValues refuses what a Go template yields for a missing key, unless a
// template, the data or a function has these words: the library has no option for it.
func (p *process) checkValues(f file) error {
	before, _, found := strings.Cut(string(f.content), noValue)
	if !found || p.spec.Engine != scaffold.EngineGo || p.noValue || strings.Contains(fmt.Sprint(p.tree.texts, p.names.Values()), noValue) {
		return nil
	}

	return fmt.Errorf("%s: line %d of the result has %s: a key is missing, write {{ get .Data \"name\" | default \"…\" }} where it may be", strings.TrimPrefix(f.path, p.spec.Name+"/"), 1+strings.Count(before, "\n"), noValue)
}

// learnNames sets the names that the templates see, and judges the templates.
func (p *process) learnNames(ctx context.Context) {
	p.names = template.Names{"Facts": maps.Clone(map[string]any(p.env.Facts)), "Environ": map[string]any{}}
	p.names["facts"], p.names["environ"] = p.names["Facts"], p.names["Environ"]
	var known resource.Secrets
	if origin := p.env.Scope.Origin; origin != nil {
		p.names, known = origin.Names(ctx, p.env.Facts)
	}
	overlay(p.names, p.spec.Data)
	p.used = known.Used
	data, own := maps.Clone(known.Data), p.spec.Data
	if data == nil {
		data = map[string]any{}
	}
	if p.spec.Sensitive {
		own, _ = hideAll(own).(map[string]any)
	}
	maps.Copy(data, own)
	p.judge(data)
}

// renders matches what a template that shows another one contains.
var renders = regexp.MustCompile(`\b(render|include|import|extends)\b`)

// judge finds the templates that use a secret, and those that may show one which does.
func (p *process) judge(data map[string]any) {
	p.secret = map[string]bool{}
	left, right := p.spec.Delimiters()
	for name, text := range p.tree.texts {
		j := template.Judge{Data: data}
		j.Text(text, left, right, p.spec.Engine != scaffold.EngineGo)
		if p.flows = p.flows || j.Flows; j.Found != template.Unused {
			p.secret[name] = true
		}
	}
	if len(p.secret) == 0 {
		return
	}
	for name, text := range p.tree.texts {
		p.secret[name] = p.secret[name] || renders.MatchString(text)
	}
}

// writesSecret reports whether a template that writes files uses a secret.
func (p *process) writesSecret() bool {
	for name, secret := range p.secret {
		if secret && strings.Contains(p.tree.texts[name], "write") {
			return true
		}
	}

	return false
}

// takeUsed reports whether a function returned a secret to the template name.
func (p *process) takeUsed(name string) {
	if p.used != nil && p.used() {
		p.secret[name], p.flows = true, true
	}
}

// overlay puts the data of the scaffold over those of the manifest.
func overlay(names template.Names, own map[string]any) {
	data := map[string]any{}
	if of, is := names["Data"].(map[string]any); is {
		maps.Copy(data, of)
	}
	maps.Copy(data, own)
	names["Data"], names["data"] = data, data
}

// hideAll makes a secret of every string: any may hold one.
func hideAll(v any) any {
	return render.Replace(v, func(v any) any {
		if text, is := v.(string); is {
			return model.NewSecret(text)
		}
		return v
	})
}

// rewordedError is an error with other words than its cause.
type rewordedError struct {
	text  string
	cause error
}

func (e rewordedError) Error() string { return e.text }
func (e rewordedError) Unwrap() error { return e.cause }

// failure returns the error that the renderer reports, with the paths of the
// target in place of temporary ones.
func (p *process) failure(text string) error {
	text = strings.NewReplacer(p.dir+"/target", p.spec.Name, p.dir+"/source/", "", p.dir+"/source", "source", p.dir, filepath.Dir(p.spec.Name)).Replace(text)
	name := p.current()
	p.takeUsed(name)
	switch failed := p.failed != nil && strings.Contains(text, p.failed.Error()); {
	case p.secret[name] && !strings.Contains(text, unix.ENOSPC.Error()):
		err := p.in(errHidden)
		if failed {
			err = rewordedError{text: err.Error(), cause: p.failed}
		}
		return err
	case failed:
		return rewordedError{text: text, cause: p.failed}
	}

	return errors.New(text)
}
