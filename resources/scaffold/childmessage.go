package scaffold

import (
	"encoding/gob"
	"fmt"
	"reflect"
	"time"

	"github.com/musterfleet/muster/resources/template"
)

// RenderCommand is the hidden command by which muster starts itself to render.
const RenderCommand = "render-scaffold"

// request asks for the rendering of a tree of templates. It is the first
// message to the renderer.
type request struct {
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

// event is a message of the renderer: a call that waits for a functionReply, a file,
// or, with neither, the end.
type event struct {
	Call *functionCall
	File *renderedFile
	// Error is why the rendering failed, empty at its successful end.
	Error string
}

// functionCall asks for the result of a function of the manifest.
type functionCall struct {
	Function string
	Args     []any
}

// functionReply answers a call.
type functionReply struct {
	Value  any
	Failed bool
	Error  string
}

// renderedFile is the result of a template, or a file that a template has written.
type renderedFile struct {
	Name    string
	Content []byte
	Written bool
}

// null replaces nil, which gob does not encode within lists and mappings.
type null bool

// registerMessages prepares gob for the values of messages.
func registerMessages() {
	for _, v := range []any{null(true), time.Time{}, []any{}, map[string]any{}} {
		gob.Register(v)
	}
}

// plain returns a copy of a value that a message can carry: of the basic types,
// time.Time, []byte, []any and map[string]any.
func plain(v any) (any, error) {
	switch v.(type) {
	case string, []byte, time.Time:
		return v, nil
	}
	r := reflect.ValueOf(v)
	switch kind := r.Kind(); {
	case !r.IsValid(), kind == reflect.Pointer && r.IsNil():
		return null(true), nil
	case kind == reflect.Pointer:
		return plain(r.Elem().Interface())
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
			if out[i], err = plain(r.Index(i).Interface()); err != nil {
				return nil, err
			}
		}
		return out, nil
	case kind == reflect.Map && r.Type().Key().Kind() == reflect.String:
		out := make(map[string]any, r.Len())
		for all := r.MapRange(); all.Next(); {
			var err error
			if out[all.Key().String()], err = plain(all.Value().Interface()); err != nil {
				return nil, err
			}
		}
		return out, nil
	}

	return nil, fmt.Errorf("a %T cannot be passed to templates or by them", v)
}

// copyMessage returns a deep copy of a value that a message carried.
func copyMessage(v any) any {
	return template.Copy(v, func(v any) any {
		if _, is := v.(null); is {
			return nil
		}
		return v
	})
}
