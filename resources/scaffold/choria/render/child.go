package render

import (
	"encoding/gob"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// child serves one request.
type child struct {
	in      *gob.Decoder
	out     *gob.Encoder
	request Request
}

// Main renders what conn asks for. Its working directory is empty, and stands
// in one that it may write to.
func Main(conn io.ReadWriter) {
	Register()
	c := &child{in: gob.NewDecoder(conn), out: gob.NewEncoder(conn)}
	err := contain()
	if err == nil {
		err = c.in.Decode(&c.request)
	}
	if err == nil {
		err = c.render()
	}
	c.end(err)
}

// end sends the last event. When nobody reads it any more, nobody waits for it.
func (c *child) end(err error) {
	var last Event
	if err != nil {
		last.Error = err.Error()
	}
	_ = c.out.Encode(last)
}

// render sends the files of all templates.
func (c *child) render() error {
	c.prepare()
	p, err := c.newPass("../target", c.request.Values)
	if err != nil {
		return err
	}
	if err := c.writeTexts(); err != nil {
		return err
	}
	for _, name := range c.request.Templates {
		file := File{Name: name}
		text, err := p.render(name)
		if err == nil {
			file.Content, err = []byte(text), p.count(int64(len(text)))
		}
		if err != nil {
			return errors.New(place(name, c.request.Texts[name], err.Error()))
		}
		if err := c.out.Encode(Event{File: &file}); err != nil {
			return err
		}
	}

	return c.sendWritten(p)
}

// sendWritten sends the files that templates have written by their function.
func (c *child) sendWritten(p *pass) error {
	for _, name := range slices.Sorted(maps.Keys(p.written)) {
		content, err := os.ReadFile(filepath.Join(p.target, name))
		if err != nil {
			return err
		}
		if err := c.out.Encode(Event{File: &File{Name: name, Content: content, Written: true}}); err != nil {
			return err
		}
	}

	return nil
}

// prepare orders what templates range over, and finds the directories of the
// source, where they may write.
func (c *child) prepare() {
	writes, ordered := c.inTexts("write"), inOrder(c.request.Left, c.request.Right)
	for name, text := range c.request.Texts {
		if !c.request.Go && strings.Contains(text, "range") {
			c.request.Texts[name] = ordered(text)
		}
		if dir := filepath.Dir(name); writes && dir != "." {
			c.request.Directories = append(c.request.Directories, dir)
		}
	}
}

// writeTexts writes the templates where the function render reads them.
func (c *child) writeTexts() error {
	if !c.inTexts("render") {
		return nil
	}
	for name, text := range c.request.Texts {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
	}

	return nil
}

func (c *child) inTexts(words string) bool {
	for _, text := range c.request.Texts {
		if strings.Contains(text, words) {
			return true
		}
	}

	return false
}

// call asks muster for the result of a function.
func (c *child) call(call Call) (any, error) {
	for i, arg := range call.Args {
		var err error
		if call.Args[i], err = Plain(arg); err != nil {
			return nil, err
		}
	}
	var reply Reply
	if err := errors.Join(c.out.Encode(Event{Call: &call}), c.in.Decode(&reply)); err != nil {
		return nil, err
	}
	if reply.Failed {
		return nil, errors.New(reply.Error)
	}

	return Copy(reply.Value), nil
}
