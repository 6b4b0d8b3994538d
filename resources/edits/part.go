// Package edits has the resource types for parts of a file: line, block and setting. They share one editor,
// which reads a file once, applies all parts in memory and writes once.
package edits

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Part is the properties of a part of a file.
type Part interface {
	resource.Spec
	// Edit applies the part to a text. It is pure. beside are all parts of the file.
	Edit(before Text, beside []Part) Edit
	// ref returns the reference of the resource.
	ref() model.Ref
	// id identifies the part within its file.
	id() string
	// isComplete reports whether the properties describe a desired state. Others only query the current state.
	isComplete() bool

	path() string
	creation() *Creation
}

// Edit is the result of a part for a text.
type Edit struct {
	// After is the text after the change.
	After Text
	// Change describes the change. It is zero if the part is in its desired state.
	Change model.Change
	// Present reports whether the part is in the text before the change.
	Present bool
	// Lines are the numbers of the lines that hold the part before the change.
	Lines []int
	// Err is why the text must not be changed.
	Err error
}

// actionEdit is the action of every change.
const actionEdit = "edit"

// isDue reports whether the edit changes the text.
func (e Edit) isDue() bool { return e.Err == nil && e.Change.Action != "" }

// numbers returns the numbers of lines before the run.
func (t Text) numbers(lines []int) []int {
	var out []int
	for _, i := range lines {
		out = append(out, int(t.lines[i].number))
	}

	return out
}

// Target is the file of a part.
type Target struct {
	model.Common
	Path string `json:"path,omitempty" filled:"true" jsonschema_description:"The file; default: the name, if it is an absolute path"`
}

// path returns the path of the file, empty if it is not known yet.
func (t *Target) path() string {
	if t.Path == "" && filepath.IsAbs(t.Name) {
		return t.Name
	}

	return t.Path
}

func (t *Target) isAbsent() bool { return t.Ensure == model.EnsureAbsent }

func (t *Target) validatePath(out *model.Problems) {
	switch {
	case t.Path != "":
		resource.CheckPath(out, "path", "the path", t.Path)
	case filepath.IsAbs(t.Name):
		resource.CheckPath(out, "name", "the path", t.Name)
	default:
		out.Property("path", "for example path: /etc/app.conf", "`path` is required, because the name is no absolute path")
	}
}

// Creation describes how the file of a part is written.
type Creation struct {
	Create    bool   `json:"create,omitempty" jsonschema_description:"Create a missing file, with owner, group and mode"`
	Owner     string `json:"owner,omitempty" jsonschema_description:"Owner of a new file, name or numeric id; only with create"`
	Group     string `json:"group,omitempty" jsonschema_description:"Group of a new file, name or numeric id; only with create"`
	Mode      string `json:"mode,omitempty" jsonschema_description:"Permissions of a new file in octal; only with create"`
	Validator string `json:"validate,omitempty" line:"any" filled:"true" sensitive:"true" jsonschema_description:"A command that must accept the new content before it takes its place, with {} for the path of the new file: sshd -tf {}"`
}

func (c *Creation) creation() *Creation { return c }

func (c *Creation) validateCreation(out *model.Problems, ensure string) {
	resource.CheckValidator(out, c.Validator)
	if c.Create {
		resource.CheckAccount(out, ensure, "owner", c.Owner)
		resource.CheckAccount(out, ensure, "group", c.Group)
		resource.CheckMode(out, ensure, c.Mode)
		return
	}
	for property, value := range c.attributes {
		if value != "" && ensure != model.EnsureAbsent {
			out.Property(property, "set create: true, or manage it with a `file` without content for the same path", "`%s` is only for a new file", property)
		}
	}
}

// attributes yields the properties of a new file.
func (c *Creation) attributes(yield func(property, value string) bool) {
	_ = yield("owner", c.Owner) && yield("group", c.Group) && yield("mode", c.Mode)
}

// warnings returns the warnings of a part: a mode that is probably decimal or, with ensure: absent, the properties
// without effect. ofPresent are the set properties of its type.
func (c *Creation) warnings(ensure string, ofPresent ...string) (out model.Problems) {
	more := ofPresent
	if ensure != model.EnsureAbsent {
		resource.WarnDecimalMode(&out, "", c.Mode)
		return out
	}
	if c.Create {
		more = append(more, "create")
	}
	for property, value := range c.attributes {
		if value != "" {
			more = append(more, property)
		}
	}
	for _, property := range more {
		out.Property(property, "remove it, or use ensure: present", "`%s` has no effect with ensure: absent", property)
	}

	return out
}

// Where is where new lines go.
type Where struct {
	After  string `json:"after,omitempty" filled:"true" jsonschema_description:"Regular expression (RE2): add after the last line that it matches"`
	Before string `json:"before,omitempty" filled:"true" jsonschema_description:"Regular expression (RE2): add before the first line that it matches"`
	At     string `json:"at,omitempty" jsonschema:"enum=start,enum=end" jsonschema_description:"Where to add without after and before: start or end of the file; default: end"`
}

const (
	atStart = "start"
	atEnd   = "end"
)

func (w *Where) validateWhere(out *model.Problems) {
	checkExpression(out, "after", w.After)
	checkExpression(out, "before", w.Before)
	switch w.At {
	case "", atStart, atEnd:
	default:
		out.Property("at", "one of start, end", "invalid `at` %q", w.At)
	}
	if set := w.set(); len(set) > 1 {
		out.Property(set[1], "keep one of them", "`%s` exclude each other", strings.Join(set, "` and `"))
	}
}

// warnWhere reports words that Ansible uses for the start and the end.
func (w *Where) warnWhere() (out model.Problems) {
	if w.After == "EOF" {
		out.Property("after", "remove it: new lines go to the end", "`after: EOF` looks for a line with EOF")
	}
	if w.Before == "BOF" {
		out.Property("before", "write at: start", "`before: BOF` looks for a line with BOF")
	}

	return out
}

func (w *Where) properties(yield func(property, value string) bool) {
	_ = yield("after", w.After) && yield("before", w.Before) && yield("at", w.At)
}

// set returns the names of the properties that are set.
func (w *Where) set() []string {
	var out []string
	for property, value := range w.properties {
		if value != "" {
			out = append(out, property)
		}
	}

	return out
}

// find returns the line before which new lines go.
func (w *Where) find(t Text) (int, error) {
	switch {
	case w.After != "":
		found := t.matching(w.After)
		if len(found) == 0 {
			return 0, fmt.Errorf("no line matches `after`, %q: correct it, or remove it to add at the end", w.After)
		}
		return found[len(found)-1] + 1, nil
	case w.Before != "":
		found := t.matching(w.Before)
		if len(found) == 0 {
			return 0, fmt.Errorf("no line matches `before`, %q: correct it, or remove it to add at the end", w.Before)
		}
		return found[0], nil
	case w.At == atStart:
		return 0, nil
	default:
		return len(t.lines), nil
	}
}
