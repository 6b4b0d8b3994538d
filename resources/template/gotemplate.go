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
	goDelimiter = "{{"
	// nameStep is the function that every turn of a loop goes through.
	nameStep = "__step"
	// goName is what the template is called in the errors of the library.
	goName = "t"
)

// Go renders a template of text/template. Its functions are those of sprig and
// of names; env and expandenv see Environ and nothing else of the environment.
// A key that a mapping does not have is an error. Errors are *Error.
func Go(ctx context.Context, t Template, names Names, limits Limits) (string, error) {
	out := &output{ctx: ctx, limit: limits.Bytes}
	functions := GoFunctions(names)
	loop := 0
	functions[nameStep] = func(offset int) (string, error) {
		loop = offset
		return "", out.step()
	}
	parsed, err := template.New(goName).Option("missingkey=error").Funcs(functions).Parse(t.Text)
	if err != nil {
		return "", goError(t, err, true)
	}
	for _, each := range parsed.Templates() {
		if each.Tree != nil {
			guardLoops(each.Root, functions)
		}
	}
	switch err := parsed.Execute(out, names.values()); {
	case errors.Is(err, ErrTooMuch):
		return "", &Error{Pos: at(t.Name, t.Text, loop), Err: ErrTooMuch}
	case err != nil && context.Cause(ctx) != nil:
		return "", &Error{Pos: at(t.Name, t.Text, loop), Err: context.Cause(ctx)}
	case err != nil:
		return "", goError(t, err, false)
	}

	return out.text.String(), nil
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
	repeat, own := functions["repeat"], names.functions()
	maps.Copy(functions, own)
	functions["repeat"] = repeat

	return functions
}

// guardLoops puts a step into the body of every loop, with the place of the loop.
func guardLoops(list *parse.ListNode, functions template.FuncMap) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.IfNode:
			guardLoops(n.List, functions)
			guardLoops(n.ElseList, functions)
		case *parse.WithNode:
			guardLoops(n.List, functions)
			guardLoops(n.ElseList, functions)
		case *parse.RangeNode:
			guardLoops(n.List, functions)
			guardLoops(n.ElseList, functions)
			step := template.Must(template.New(goName).Funcs(functions).Parse(fmt.Sprintf("{{%s %d}}", nameStep, n.Position())))
			n.List.Nodes = append(step.Root.Nodes, n.List.Nodes...)
		}
	}
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
		out.Pos.Column = column(t.Text, out.Pos.Line, goDelimiter)
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

// Placed makes an Error of one that a library gave for a template, whatever that
// called it there, where its text tells the place. open is what begins an action.
func Placed(t Template, open string, err error) error {
	text := err.Error()
	if found := regexp.MustCompile(`(?s)(?:^|: )template: /?([^:]*):(\d+)(?::(\d+))?: (?:executing ".*?" at <(.*?)>: )?(.*)$`).FindStringSubmatch(text); found != nil {
		return placed(t, open, err, found[1], found[2], found[3], found[4], found[5])
	}
	if found := regexp.MustCompile(`(?s)Jet Runtime Error \("/?(.*?)":(\d+)\): (.*)$`).FindStringSubmatch(text); found != nil {
		return placed(t, open, err, found[1], found[2], "", "", found[3])
	}

	return &Error{Pos: model.Position{File: t.Name, Line: 1, Column: 1}, Err: err}
}

// placed takes the words of an error apart. The text of another template, which
// one renders, is not known.
func placed(t Template, open string, err error, name, line, offset, at, message string) error {
	out := &Error{Pos: model.Position{File: t.Name, Line: 1, Column: 1}}
	out.Pos.Line, _ = strconv.Atoi(line)
	bytes, atByte := strconv.Atoi(offset)
	switch {
	case name != libraryName:
		out.Pos.File, out.Pos.Column = name, 1
	case atByte == nil:
		out.Pos.Column = columnOf(t.Text, out.Pos.Line, bytes)
	default:
		out.Pos.Column = column(t.Text, out.Pos.Line, open)
	}
	if at != "" {
		message = "`" + at + "`: " + message
	}
	if found := regexp.MustCompile(`(?s)^identifier "(\w+)" not available`).FindStringSubmatch(message); found != nil {
		message = "unknown name `" + found[1] + "`"
	}
	out.Err = said{message, err}

	return out
}

// libraryName is what the library for scaffolds calls a template that it renders as text.
const libraryName = "string"

// said is an error in other words.
type said struct {
	message string
	err     error
}

func (s said) Error() string { return s.message }
func (s said) Unwrap() error { return s.err }

// IsGo says that a text holds an action of a Go template, IsJet one of a Jet template.
func IsGo(text string) bool { return strings.Contains(text, goDelimiter) }

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
