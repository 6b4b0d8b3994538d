package scaffold

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// writtenMode is the mode of files that templates write by function.
const writtenMode = 0o644

// rendering is what the templates of one scaffold yield.
type rendering struct {
	env   resource.Env
	spec  *Spec
	tree  *tree
	names template.Names
	// secret are the templates that use a secret, flows whether one may be in the path of a file.
	secret map[string]bool
	flows  bool
	// used reports whether a function has returned a secret since it was last called; nil where none can.
	used func() bool

	files []file
	// written are the places in files of those that templates write by function.
	written map[string]int
	// rendered counts the templates that are done.
	rendered int
	// failed is the last error of a function.
	failed error
	end    *event
}

// The errors of templates that use a secret.
var (
	errHidden     = errors.New("it uses a secret, so its error is not shown")
	errSecretPath = errors.New("the path of a file that a template writes depends on a secret, and paths are shown (give it another name)")
)

// render returns the files that the templates yield, in the order of their
// paths. It touches no files but the source.
func (p Choria) render(ctx context.Context, env resource.Env, spec *Spec) ([]file, error) {
	tree, err := p.tree(ctx, env, spec)
	if err != nil {
		return nil, err
	}
	r := rendering{env: env, spec: spec, tree: tree, secret: map[string]bool{}, written: map[string]int{}}
	if err := r.run(ctx); err != nil {
		return nil, err
	}

	return r.result()
}

// receive takes a file. That which a template writes once more replaces the first.
func (r *rendering) receive(f renderedFile) {
	out := file{path: filepath.Join(r.spec.Name, f.Name), content: f.Content, digest: digestOf(f.Content), mode: writtenMode, written: f.Written, by: r.current()}
	at, again := r.written[f.Name]
	switch {
	case f.Written && again:
		r.files[at] = out
		return
	case f.Written:
		r.written[f.Name] = len(r.files)
	case out.by != "":
		out.mode = r.tree.modes[out.by]
		r.takeUsed(out.by)
		r.rendered++
	}
	r.files = append(r.files, out)
}

// current returns the name of the template that is being rendered, if any.
func (r *rendering) current() string {
	if r.rendered < len(r.tree.templates) {
		return r.tree.templates[r.rendered]
	}

	return ""
}

// result returns the files that were received, and fails where two have the
// same path, or one is a directory of another.
func (r *rendering) result() ([]file, error) {
	files, given, texts := r.files, map[string]bool{}, ""
	if r.flows {
		texts = strings.Join(slices.Collect(maps.Values(r.tree.texts)), "\n")
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	for i, f := range files {
		files[i].secret = r.secret[f.by]
		if name := strings.TrimPrefix(f.path, r.spec.Name+"/"); f.written && r.flows && !strings.Contains(texts, name) {
			return nil, errSecretPath
		}
		if given[f.path] {
			return nil, fmt.Errorf("%s is written by a template, and is the file of another one: rename one of them", f.path)
		}
		for dir := filepath.Dir(f.path); dir != r.spec.Name; dir = filepath.Dir(dir) {
			if given[dir] {
				return nil, fmt.Errorf("%s is a file and a directory", dir)
			}
		}
		given[f.path] = true
	}

	return slices.DeleteFunc(files, func(f file) bool {
		return r.spec.SkipEmpty && !f.written && strings.TrimSpace(string(f.content)) == ""
	}), nil
}

// in adds the template that was being rendered to an error.
func (r *rendering) in(err error) error {
	if name := r.current(); name != "" {
		return fmt.Errorf("%s: %w", name, err)
	}

	return err
}

// failure returns the error that the renderer reports, with that of a function
// as its cause.
func (r *rendering) failure(text string) error {
	out := rewordedError{text: text}
	if r.failed != nil && strings.Contains(text, r.failed.Error()) {
		out.cause = r.failed
	}
	r.takeUsed(r.current())
	if r.secret[r.current()] {
		out.text = r.in(errHidden).Error()
	}

	return out
}

// rewordedError is an error with other words than its cause, if it has one.
type rewordedError struct {
	text  string
	cause error
}

func (e rewordedError) Error() string { return e.text }
func (e rewordedError) Unwrap() error { return e.cause }
