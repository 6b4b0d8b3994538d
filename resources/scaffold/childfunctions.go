package scaffold

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/resources/template"
)

// own begins the names of functions that replace those of the library.
const own = "__"

// functions returns what templates call: what muster answers, and the two
// functions of the library that use the disk.
func (r *renderer) functions() template.Names {
	environ, _ := copyMessage(r.request.Values["Environ"]).(map[string]any)
	out := template.Names{"Environ": environ, own + "write": r.write, own + "render": r.include}
	for _, name := range r.request.Functions {
		out[name] = func(args ...any) (any, error) {
			v, err := r.call(name, args)
			return v, r.of(name, err)
		}
	}

	return out
}

// of returns the error of a function, with its name where the language adds none.
func (r *renderer) of(function string, err error) error {
	if err == nil || r.request.Go {
		return err
	}

	return fmt.Errorf("%s: %w", function, err)
}

// call asks muster for the result of a function.
func (r *renderer) call(name string, args []any) (any, error) {
	for i := range args {
		var err error
		if args[i], err = plain(args[i]); err != nil {
			return nil, err
		}
	}
	var reply functionReply
	if err := errors.Join(r.out.Encode(event{Call: &functionCall{Function: name, Args: args}}), r.in.Decode(&reply)); err != nil {
		return nil, err
	}
	if reply.Failed {
		return nil, errors.New(reply.Error)
	}

	return copyMessage(reply.Value), nil
}

// write yields one more file. That of the library makes no directories.
func (r *renderer) write(name, content string) (string, error) {
	path := filepath.Join(r.request.Target, name)
	below, is := strings.CutPrefix(path, r.request.Target+"/")
	if !is {
		return "", r.of("write", fmt.Errorf("%s is not in target directory %s", path, r.request.Target))
	}
	before := r.written[below]
	r.written[below] = len(content)
	err := r.count(r.current, len(content)-before)
	if err == nil {
		err = r.out.Encode(event{File: &renderedFile{Name: below, Content: []byte(content), Written: true}})
	}
	if err != nil {
		// A template could catch an error.
		r.end(err)
		os.Exit(1)
	}

	return "", nil
}

// include renders another template. That of the library does not name it.
func (r *renderer) include(name string, data any) (string, error) {
	path := strings.TrimPrefix(filepath.Clean(name), "/")
	if _, have := r.request.Texts[path]; !have {
		return "", r.of("render", fmt.Errorf("there is no template %q in the source", name))
	}
	text, err := r.one(path, data)

	return text, r.of("render", err)
}
