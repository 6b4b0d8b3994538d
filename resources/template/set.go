package template

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"text/template"
)

// The functions that templates of a set have beside those of its names.
const (
	nameRender = "render"
	nameWrite  = "write"
)

// Set are templates that render one another by their paths, with render(path,
// dot), and write files, with write(path, text). Its fields are not changed once
// it renders, and one of its templates is rendered at a time.
type Set struct {
	// Go says that they are Go templates; else they are Jet templates.
	Go bool
	// Left and Right begin and end an action.
	Left, Right string
	// Texts are the templates by their paths, which are relative and clean.
	Texts map[string]string
	Names Names
	// Limits hold for each template that is rendered by Render, with all that this
	// renders, but Bytes for all of them together.
	Limits Limits

	budget  budget
	written map[string]string
	// functions are those of Go templates, of which there are many.
	functions template.FuncMap
}

// errOutside is a path that leads out of where it belongs.
var errOutside = errors.New("the path leads out of it")

// Render renders the template of a path. A key that is missing is no error, in
// neither language. Errors are *Error, with the place in whichever template it was.
func (s *Set) Render(ctx context.Context, name string) (string, error) {
	s.budget = budget{ctx: ctx, limits: s.Limits, bytes: s.budget.bytes}

	return s.render(name, s.Names.values())
}

// Written gives the texts that templates have written, by their clean paths.
func (s *Set) Written() map[string]string { return s.written }

func (s *Set) render(name string, dot any) (string, error) {
	t := Template{Name: name, Text: s.Texts[name]}
	if s.Go {
		if s.functions == nil {
			s.functions = goFunctions(s.names())
		}
		return goRendering{budget: &s.budget, left: s.Left, right: s.Right, missing: "default", functions: s.functions}.render(t, dot)
	}
	r := newRendering(&s.budget, t, s.load)
	r.left, r.right = s.Left, s.Right

	return r.render(s.names(), dot)
}

// names are those of the set with the functions of its own, which come first.
func (s *Set) names() Names {
	out := Names{}
	for name, v := range s.Names {
		out[name] = v
	}
	out[nameRender], out[nameWrite] = s.renderOther, s.write

	return out
}

// renderOther is the function render.
func (s *Set) renderOther(name string, dot any) (string, error) {
	at, err := within(name)
	if err != nil {
		return "", fmt.Errorf("%s is not in the source: %w", name, err)
	}
	if _, have := s.Texts[at]; !have {
		return "", fmt.Errorf("there is no template %s in the source", at)
	}
	// A function of a template that calls itself takes many frames and no step.
	if err := s.budget.step(false); err != nil {
		return "", err
	}

	return s.render(at, dot)
}

// write is the function write.
func (s *Set) write(name, text string) (string, error) {
	at, err := within(name)
	if err != nil {
		return "", fmt.Errorf("%s is not in the target: %w", name, err)
	}
	if s.budget.bytes += int64(len(text)); s.Limits.Bytes > 0 && s.budget.bytes > s.Limits.Bytes {
		return "", fmt.Errorf("%w: %d bytes", ErrTooLarge, s.Limits.Bytes)
	}
	if s.written == nil {
		s.written = map[string]string{}
	}
	s.written[at] = text

	return "", nil
}

// load gives what a Jet template includes.
func (s *Set) load(name string) (string, error) {
	text, have := s.Texts[strings.TrimPrefix(name, "/")]
	if !have {
		return "", fmt.Errorf("there is no template %s in the source", strings.TrimPrefix(name, "/"))
	}

	return text, nil
}

// within cleans a path, which must name something below the directory it is relative to.
func within(name string) (string, error) {
	out := path.Clean("./" + name)
	if out == "." || out == ".." || strings.HasPrefix(out, "../") {
		return "", errOutside
	}

	return out, nil
}
