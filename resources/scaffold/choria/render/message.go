// Package render renders the templates of a scaffold with the library
// choria-io/scaffold. It runs in a process of its own, because the library
// renders without bounds and writes to the disk (docs/decisions/0007).
package render

import (
	"encoding/gob"
	"fmt"
	"reflect"
	"time"

	"github.com/musterfleet/muster/resources/template"
)

// Command is the hidden command by which muster starts itself to render.
const Command = "render-scaffold"

// Request asks for the rendering of a tree of templates. It is the first
// message to the renderer.
type Request struct {
	Go          bool
	Left, Right string
	// Texts are all templates by name, partials included; Templates names those
	// that yield a file, in the order in which they render.
	Texts     map[string]string
	Templates []string
	// Values are the names that are no functions.
	Values    map[string]any
	Functions []string
	// Target is the directory that the files are for, as errors show it.
	Target string
}

// Event is a message of the renderer: a call that waits for a Reply, a file,
// or, with neither, the end.
type Event struct {
	Call *Call
	File *File
	// Error is why the rendering failed, empty at its successful end.
	Error string
}

// Call asks for the result of a function of the manifest.
type Call struct {
	Function string
	Args     []any
}

// Reply answers a Call.
type Reply struct {
	Value  any
	Failed bool
	Error  string
}

// File is the result of a template, or a file that a template has written.
type File struct {
	Name    string
	Content []byte
	Written bool
}

// null replaces nil, which gob does not encode within lists and mappings.
type null bool

// Register prepares gob for the values of messages.
func Register() {
	for _, v := range []any{null(true), time.Time{}, []any{}, map[string]any{}} {
		gob.Register(v)
	}
}

// Plain returns a copy of a value that a message can carry: of the basic types,
// time.Time, []byte, []any and map[string]any.
func Plain(v any) (any, error) {
	switch v.(type) {
	case string, []byte, time.Time:
		return v, nil
	}
	r := reflect.ValueOf(v)
	switch kind := r.Kind(); {
	case !r.IsValid(), kind == reflect.Pointer && r.IsNil():
		return null(true), nil
	case kind == reflect.Pointer:
		return Plain(r.Elem().Interface())
	case kind == reflect.Bool:
		return r.Bool(), nil
	case kind == reflect.Int:
		return int(r.Int()), nil
	case r.CanInt():
		return r.Int(), nil
	case r.CanUint():
		return r.Uint(), nil
	case r.CanFloat():
		return r.Float(), nil
	case kind == reflect.String:
		return r.String(), nil
	case kind == reflect.Slice || kind == reflect.Array:
		out := make([]any, r.Len())
		for i := range out {
			var err error
			if out[i], err = Plain(r.Index(i).Interface()); err != nil {
				return nil, err
			}
		}
		return out, nil
	case kind == reflect.Map && r.Type().Key().Kind() == reflect.String:
		out := make(map[string]any, r.Len())
		for all := r.MapRange(); all.Next(); {
			var err error
			if out[all.Key().String()], err = Plain(all.Value().Interface()); err != nil {
				return nil, err
			}
		}
		return out, nil
	}

	return nil, fmt.Errorf("a %T cannot be passed to templates or by them", v)
}

// Copy returns a deep copy of a value that a message carried.
func Copy(v any) any {
	return template.Copy(v, func(v any) any {
		if _, is := v.(null); is {
			return nil
		}
		return v
	})
}
