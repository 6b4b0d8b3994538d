package template

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/musterfleet/muster/model"
)

const (
	goLeft  = "{{"
	goRight = "}}"
	// nameStep is the function that every turn of a loop goes through.
	nameStep = "__step"
	// goName is what the template is called in the errors of the library.
	goName = "t"
)

// Go renders a template of text/template. Its functions are those of sprig and
// of names; env and expandenv see Environ and nothing else of the environment.
// A key that a mapping does not have is an error. Errors are *Error.
func Go(ctx context.Context, t Template, names Names, limits Limits) (string, error) {
	r := goRendering{budget: &budget{ctx: ctx, limits: limits}, left: goLeft, right: goRight, missing: "error", functions: limits.Again.wrap(goFunctions(names))}

	return r.render(t, names.values())
}

// goRendering is how Go templates are rendered.
type goRendering struct {
	*budget
	left, right string
	// missing is what comes of a key that a mapping does not have.
	missing   string
	functions template.FuncMap
}

// render renders a template with what its dot is.
func (r goRendering) render(t Template, dot any) (string, error) {
	if err := checkNested(t, r.left, r.right); err != nil {
		return "", err
	}
	out := &output{budget: r.budget}
	reached := 0
	step := template.FuncMap{nameStep: func(offset int) (string, error) {
		reached = offset
		return "", out.step(true)
	}}
	parsed, err := template.New(goName).Delims(r.left, r.right).Option("missingkey=" + r.missing).Funcs(r.functions).Funcs(step).Parse(t.Text)
	if err != nil {
		return "", r.failed(t, err, true)
	}
	for _, each := range parsed.Templates() {
		if each.Tree != nil {
			guardLoops(each.Root, step)
			guard(each.Root, each.Root.Position(), step)
		}
	}
	err = parsed.Execute(out, dot)
	var within *Error
	switch {
	case err == nil:
		return out.text.String(), nil
	case errors.As(err, &within):
		return "", within
	case context.Cause(r.ctx) != nil:
		return "", &Error{Pos: at(t.Name, t.Text, reached), Err: context.Cause(r.ctx)}
	}
	for _, stopped := range stops {
		if errors.Is(err, stopped) {
			return "", &Error{Pos: at(t.Name, t.Text, reached), Err: stopped}
		}
	}

	return "", r.failed(t, err, false)
}

// goFunctions gives the functions that Go templates have: those of sprig, and
// those of names, which come before them.
func goFunctions(names Names) template.FuncMap {
	functions := sprigFunctions()
	environ, _ := names["Environ"].(map[string]any)
	env := func(name string) string {
		text, _ := environ[name].(string)
		return text
	}
	functions["env"] = env
	functions["expandenv"] = func(text string) string { return os.Expand(text, env) }
	// Its arguments are the other way round here, so that a pipe can end in it.
	repeat, own := functions["repeat"], names.functions()
	maps.Copy(functions, own)
	functions["repeat"] = repeat

	return functions
}

// guardLoops puts a step into the body of every loop, with the place of the
// loop, and before all that assigns.
func guardLoops(list *parse.ListNode, step template.FuncMap) {
	if list == nil {
		return
	}
	nodes := list.Nodes
	list.Nodes = nil
	for _, node := range nodes {
		if action, is := node.(*parse.ActionNode); is && len(action.Pipe.Decl) > 0 {
			list.Nodes = append(list.Nodes, stepAt(action.Position(), step)...)
		}
		list.Nodes = append(list.Nodes, node)
		switch n := node.(type) {
		case *parse.IfNode:
			guardLoops(n.List, step)
			guardLoops(n.ElseList, step)
		case *parse.WithNode:
			guardLoops(n.List, step)
			guardLoops(n.ElseList, step)
		case *parse.RangeNode:
			guardLoops(n.List, step)
			guardLoops(n.ElseList, step)
			guard(n.List, n.Position(), step)
		}
	}
}

// guard puts a step at the beginning of a list.
func guard(list *parse.ListNode, place parse.Pos, step template.FuncMap) {
	list.Nodes = append(stepAt(place, step), list.Nodes...)
}

// stepAt makes a step that tells a place.
func stepAt(place parse.Pos, step template.FuncMap) []parse.Node {
	return template.Must(template.New(goName).Funcs(step).Parse(fmt.Sprintf("{{%s %d}}", nameStep, place))).Root.Nodes
}

// failed makes an Error of one of the library, whose text begins with the place.
func (r goRendering) failed(t Template, err error, syntax bool) error {
	out := &Error{Pos: model.Position{File: t.Name, Line: 1, Column: 1}, Syntax: syntax, Err: err}
	found := regexp.MustCompile(`(?s)^template: ` + goName + `:(\d+)(?::(\d+))?: (?:executing "[^"]*" at <(.*?)>: )?(.*)$`).FindStringSubmatch(err.Error())
	if found == nil {
		return out
	}
	out.Pos.Line, _ = strconv.Atoi(found[1])
	if offset, err := strconv.Atoi(found[2]); err == nil {
		out.Pos.Column = columnOf(t.Text, out.Pos.Line, offset)
	} else {
		out.Pos.Column = column(t.Text, out.Pos.Line, r.left)
	}
	message := found[4]
	if missing := regexp.MustCompile(`^map has no entry for key (".*")$`).FindStringSubmatch(message); missing != nil {
		out.Hint = "write {{ lookup \"data.name\" \"default\" }}, or {{ get .Data " + missing[1] + " }}, where it may be missing"
	}
	if found[3] != "" {
		message = "`" + found[3] + "`: " + message
	}
	out.Err = said{message, err}

	return out
}

// said is an error in other words.
type said struct {
	message string
	err     error
}

func (s said) Error() string { return s.message }
func (s said) Unwrap() error { return s.err }

// IsGo says that a text holds an action of a Go template, IsJet one of a Jet template.
func IsGo(text string) bool { return strings.Contains(text, goLeft) }

// IsJet says that a text holds an action of a Jet template.
func IsJet(text string) bool { return strings.Contains(text, JetLeft) }

// Hint gives what to do about an error, where there is something to say.
func Hint(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Hint
	}

	return ""
}
