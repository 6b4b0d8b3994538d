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
	goLeft, goRight = "{{", "}}"
	// nameStep is the function that every turn of a loop goes through.
	nameStep = "__step"
	// goName is what the template is called in the errors of the library.
	goName = "t"
)

// Go renders a template of text/template. Its functions are those of sprig and
// of names; env and expandenv see Environ and nothing else of the environment.
// A key that a mapping does not have is an error. Errors are *Error.
func Go(ctx context.Context, t Template, names Names, limits Limits) (string, error) {
	if err := checkNested(t, goLeft, goRight); err != nil {
		return "", err
	}
	out := &output{ctx: ctx, limits: limits}
	reached := 0
	step := template.FuncMap{nameStep: func(offset int) (string, error) {
		reached = offset
		return "", out.step(true)
	}}
	parsed, err := template.New(goName).Option("missingkey=error").Funcs(limits.Again.wrap(GoFunctions(names))).Funcs(step).Parse(t.Text)
	if err != nil {
		return "", goError(t, err, true)
	}
	for _, each := range parsed.Templates() {
		if each.Tree != nil {
			guardLoops(each.Root, step)
			guard(each.Root, each.Root.Position(), step)
		}
	}
	err = parsed.Execute(out, names.Values())
	switch {
	case err == nil:
		return out.text.String(), nil
	case context.Cause(ctx) != nil:
		return "", &Error{Pos: at(t.Name, t.Text, reached), Err: context.Cause(ctx)}
	}
	for _, stopped := range stops {
		if errors.Is(err, stopped) {
			return "", &Error{Pos: at(t.Name, t.Text, reached), Err: stopped}
		}
	}

	return "", goError(t, err, false)
}

// GoFunctions gives the functions that Go templates have: those of sprig, and
// those of names, which come before them.
func GoFunctions(names Names) template.FuncMap {
	functions := sprigFunctions()
	environ, _ := names["Environ"].(map[string]any)
	env := func(name string) string {
		text, _ := environ[name].(string)
		return text
	}
	functions["env"] = env
	functions["expandenv"] = func(text string) string { return os.Expand(text, env) }
	// Its arguments are the other way round here, so that a pipe can end in it.
	repeat, own := functions["repeat"], names.Functions()
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

// goError makes an Error of one of the library, whose text begins with the place.
func goError(t Template, err error, syntax bool) error {
	out := &Error{Pos: model.Position{File: t.Name, Line: 1, Column: 1}, Syntax: syntax, Err: err}
	found := regexp.MustCompile(`(?s)^template: ` + goName + `:(\d+)(?::(\d+))?: (?:executing "[^"]*" at <(.*?)>: )?(.*)$`).FindStringSubmatch(err.Error())
	if found == nil {
		return out
	}
	out.Pos.Line, _ = strconv.Atoi(found[1])
	if offset, err := strconv.Atoi(found[2]); err == nil {
		out.Pos.Column = columnOf(t.Text, out.Pos.Line, offset)
	} else {
		out.Pos.Column = column(t.Text, out.Pos.Line, goLeft)
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
