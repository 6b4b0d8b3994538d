package scaffold

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/CloudyKit/jet/v6"
	library "github.com/choria-io/scaffold"

	"github.com/musterfleet/muster/resources/template"
)

// renderer serves one request.
type renderer struct {
	in      *gob.Decoder
	out     *gob.Encoder
	request request
	library *library.Scaffold
	// prepared are the texts that were rendered, as the library gets them.
	prepared map[string]string
	// current is the template that yields a file.
	current string
	// written are the sizes of the files that templates write by function, bytes
	// that of all files.
	written map[string]int
	bytes   int
}

// RenderMain renders what conn asks for. It touches no files.
func RenderMain(conn io.ReadWriter) {
	registerMessages()
	r := &renderer{in: gob.NewDecoder(conn), out: gob.NewEncoder(conn), prepared: map[string]string{}, written: map[string]int{}}
	err := contain()
	if err == nil {
		err = r.in.Decode(&r.request)
	}
	if err == nil {
		err = r.render()
	}
	r.end(err)
}

// end sends the last event. When nobody reads it any more, nobody waits for it.
func (r *renderer) end(err error) {
	var last event
	if err != nil {
		last.Error = err.Error()
	}
	_ = r.out.Encode(last)
}

// render sends the files of all templates.
func (r *renderer) render() (err error) {
	// Its own functions are never called; nothing can be written below the target.
	config := library.Config{SourceDirectory: ".", TargetDirectory: os.DevNull + "/none", MergeTargetDirectory: true, CustomLeftDelimiter: r.request.Left, CustomRightDelimiter: r.request.Right}
	if names := r.functions(); r.request.Go {
		functions := template.GoFunctions(names)
		functions["getHostByName"] = func(string) (string, error) { return "", errors.New("templates ask no name service") }
		functions[namePrinted] = printedByGo
		r.library, err = library.New(config, functions)
	} else {
		functions := template.JetFunctions(names)
		functions[nameInOrder], functions[namePrinted] = template.InOrder, printedByJet
		r.library, err = library.NewJet(config, functions)
	}
	for _, name := range r.request.Templates {
		if err != nil {
			return err
		}
		r.current = name
		text := ""
		if text, err = r.one(name, r.values()); err == nil {
			err = r.count(name, len(text))
		}
		if err == nil {
			err = r.out.Encode(event{File: &renderedFile{Name: name, Content: []byte(text)}})
		}
	}

	return err
}

// values returns a copy of the values: no template sees what another one did to them.
func (r *renderer) values() any {
	values := copyMessage(r.request.Values).(map[string]any)
	if r.request.Go {
		return values
	}
	variables := jet.VarMap{}
	for name, v := range values {
		variables.Set(name, v)
	}

	return variables
}

// one renders one template. Its error begins with the name and line.
func (r *renderer) one(name string, data any) (text string, err error) {
	defer func() {
		// The library lets panics through that it did not expect.
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			err = errors.New(place(name, r.request.Texts[name], err.Error()))
		}
	}()
	prepared, done := r.prepared[name]
	if !done {
		if prepared, err = r.request.prepare(r.request.Texts[name]); err != nil {
			return "", err
		}
		r.prepared[name] = prepared
	}

	return r.library.RenderString(prepared, data)
}

// count fails when the files exceed the limits.
func (r *renderer) count(name string, bytes int) error {
	r.bytes += bytes
	switch {
	case r.bytes > maxBytes:
		return fmt.Errorf("%s: the templates yield more than %d bytes in all files", name, maxBytes)
	case len(r.request.Templates)+len(r.written) > maxFiles:
		return fmt.Errorf("%s: the templates yield more than %d files", name, maxFiles)
	}

	return nil
}
