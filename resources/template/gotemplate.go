package template

import (
	"context"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/musterfleet/muster/model"
)

const (
	goLeft, goRight = "{{", "}}"
	// nameStep is the function that counts the steps of a template.
	nameStep = "__step"
)

// Go renders a template of text/template. Its functions are the functions of names and of sprig; env
// and expandenv read only Environ. A missing key is an error. Errors are *Error.
func Go(ctx context.Context, t Template, names Names, limits Limits) (string, error) {
	if err := scan(t, goLeft, goRight, false, limits.Judge); err != nil {
		return "", err
	}
	out := &output{ctx: ctx, limits: limits}
	step := template.FuncMap{nameStep: func() (string, error) { return "", out.step(true) }, namePrinted: printed}
	parsed, err := template.New(t.Name).Option("missingkey=error").Funcs(GoFunctions(names)).Funcs(step).Parse(t.Text)
	if err != nil {
		failed := newError(t.Name, err)
		failed.Syntax = true
		if name := withoutDot.FindStringSubmatch(failed.Message); name != nil {
			failed.Hint = "write ." + name[1] + " in a Go template, or rename the file to end in .templ"
		}
		return "", failed
	}
	for _, each := range parsed.Templates() {
		if each.Tree != nil {
			if err := checkLiterals(t, each.Root); err != nil {
				return "", err
			}
			checkPrinted(each.Root)
			guardLoops(each.Root)
			guard(each.Root, each.Root.Position())
		}
	}
	if err = parsed.Execute(out, names.Values()); err != nil {
		return "", goError(t, out, err)
	}

	return out.text.String(), nil
}

// GoFunctions returns the functions of Go templates: the functions of names and of sprig. A function
// of names replaces a function of sprig.
func GoFunctions(names Names) template.FuncMap {
	functions := sprigFunctions()
	environ, _ := names["Environ"].(map[string]any)
	env := func(name string) string {
		text, _ := environ[name].(string)
		return text
	}
	functions["env"] = env
	functions["expandenv"] = func(text string) string { return os.Expand(text, env) }
	// The arguments of this function are swapped, so that a pipe can end in it.
	repeat, own := functions["repeat"], names.Functions()
	maps.Copy(functions, own)
	functions["repeat"] = repeat

	return functions
}

func guardLoops(list *parse.ListNode) {
	if list == nil {
		return
	}
	nodes := list.Nodes
	list.Nodes = nil
	for _, node := range nodes {
		if action, is := node.(*parse.ActionNode); is && len(action.Pipe.Decl) > 0 {
			list.Nodes = append(list.Nodes, stepAt(action.Position()))
		}
		list.Nodes = append(list.Nodes, node)
		switch n := node.(type) {
		case *parse.IfNode:
			guardLoops(n.List)
			guardLoops(n.ElseList)
		case *parse.WithNode:
			guardLoops(n.List)
			guardLoops(n.ElseList)
		case *parse.RangeNode:
			guardLoops(n.List)
			guardLoops(n.ElseList)
			guard(n.List, n.Position())
		}
	}
}

func guard(list *parse.ListNode, place parse.Pos) {
	list.Nodes = slices.Insert(list.Nodes, 0, stepAt(place))
}

// stepAt returns a step at a position, for its errors.
func stepAt(place parse.Pos) parse.Node {
	call := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: place, Args: []parse.Node{parse.NewIdentifier(nameStep).SetPos(place)}}
	pipe := &parse.PipeNode{NodeType: parse.NodePipe, Pos: place, Cmds: []*parse.CommandNode{call}}

	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: place, Pipe: pipe}
}

// withoutDot matches the error for Data, Facts or Environ without the dot.
var withoutDot = regexp.MustCompile(`function "(Data|Facts|Environ)" not defined`)

// noKey matches the error of the library about a missing key.
var noKey = regexp.MustCompile(`map has no entry for key (".*")$`)

func goError(t Template, out *output, err error) error {
	failed := newError(t.Name, err)
	failed.Syntax = false
	if missing := noKey.FindStringSubmatch(failed.Message); missing != nil {
		failed.Hint = "write {{ lookup \"data.name\" \"default\" }}, or {{ get .Data " + missing[1] + " }}, where it may be missing"
	}
	var null *nullError
	if errors.As(err, &null) {
		failed.Message, failed.Hint = null.Error(), null.goHint()
	}
	if out.stopped != nil {
		failed.Message, failed.Err = out.stopped.Error(), out.stopped
	}

	return failed
}

// expressionLeft matches the start of an expression of a manifest.
var expressionLeft = regexp.MustCompile(`\$\{[^{}]*?\b(?:(?:Data|Facts|Environ)\s*(?:\?\.|[.\[|])|(?:lookup|readFile|file|kvGet|registrations|secret|outputs|template|jet)\s*\()`)

// checkLiterals refuses expressions of a manifest in the literal text of a Go template, which
// does not evaluate them.
func checkLiterals(t Template, root *parse.ListNode) (err error) {
	Visit(root, func(node any) {
		text, is := node.(*parse.TextNode)
		if !is || err != nil {
			return
		}
		if at := expressionLeft.FindIndex(text.Text); at != nil {
			found := string(text.Text[at[0]:at[1]])
			err = &Error{
				Pos: model.Position{File: t.Name, Line: 1 + strings.Count(t.Text[:int(text.Pos)+at[0]], "\n")}, Syntax: true,
				Message: "a Go template does not evaluate the expression that begins with `" + clipped(found) + "`",
				Hint:    "write {{ .Data.name }}, rename the file to end in .templ, or write {{ \"${\" }} for a literal `${`",
			}
		}
	})

	return err
}

// IsGo reports whether a text contains an action of a Go template.
func IsGo(text string) bool { return strings.Contains(text, goLeft) }

// IsJet reports whether a text contains an action of a Jet template.
func IsJet(text string) bool { return strings.Contains(text, jetLeft) }
