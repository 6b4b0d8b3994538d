package template

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/CloudyKit/jet/v6"
)

// namePrinted is the name of the function that checks printed values.
const namePrinted = "__printed"

// nullError is the error for a null value, which the libraries would print as <no value> or <nil>.
type nullError struct {
	source string
	// path is the path of the null value in the printed one, empty if that is null itself.
	path string
}

// Error returns the action with the problem.
func (e *nullError) Error() string {
	if e.path != "" {
		return "`" + e.source + "` is null at `" + e.path + "`"
	}

	return "`" + e.source + "` is null"
}

func (e *nullError) goHint() string {
	if e.path != "" {
		return "give it a value, or write {{ " + e.source + " | toJson }}"
	}

	return "give it a value, or write {{ " + e.source + " | default \"…\" }}"
}

func (e *nullError) jetHint() string {
	if e.path != "" {
		return "give it a value, or write [[ writeJson(" + e.source + ") ]]"
	}

	return "give it a value, or write [[ isset(" + e.source + ") ? " + e.source + " : \"…\" ]]"
}

// maxSource is the maximum length of an action in an error, in bytes.
const maxSource = 80

func clipped(source string) string {
	if len(source) > maxSource {
		return strings.ToValidUTF8(source[:maxSource], "") + "…"
	}

	return source
}

// PrintedByGo returns the source of an action that prints, shortened for an error, or the empty string.
func PrintedByGo(n *parse.ActionNode) string {
	if len(n.Pipe.Decl) > 0 {
		return ""
	}

	return clipped(n.Pipe.String())
}

func checkPrinted(root *parse.ListNode) {
	Visit(root, func(node any) {
		n, is := node.(*parse.ActionNode)
		if !is || PrintedByGo(n) == "" {
			return
		}
		source := PrintedByGo(n)
		text := &parse.StringNode{NodeType: parse.NodeString, Pos: n.Pos, Text: source}
		call := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{parse.NewIdentifier(namePrinted).SetPos(n.Pos), text}}
		n.Pipe.Cmds = append(n.Pipe.Cmds, call)
	})
}

// printed returns the value of an action, or a nullError.
func printed(source string, v any) (any, error) {
	if path, found := findNull(v); found {
		return nil, &nullError{source, path}
	}

	return v, nil
}

// CheckGo returns an error with a remedy for a value that is or contains null. source is the Go action
// that prints it. For the caller, a missing key is null.
func CheckGo(source string, v any) error {
	path, found := findNull(v)
	if !found {
		return nil
	}
	null := &nullError{source, path}
	message := null.Error()
	if path == "" {
		message = "`" + source + "` is missing or null"
	}

	return fmt.Errorf("%s (%s)", message, null.goHint())
}

// CheckJet returns an error with a remedy for a value that is or contains null. source is the Jet action
// that prints it.
func CheckJet(source string, v reflect.Value) error {
	if null := nullInJet(source, v); null != nil {
		return fmt.Errorf("%w (%s)", null, null.jetHint())
	}

	return nil
}

// nullInJet returns an error for a value that is or contains null. Jet prints nothing for a missing key.
func nullInJet(source string, v reflect.Value) *nullError {
	if !v.IsValid() || !v.CanInterface() {
		return nil
	}
	if path, found := findNull(v.Interface()); found {
		return &nullError{source, path}
	}

	return nil
}

// PrintedByJet returns the source of an action that prints a value, shortened for an error, or the empty string.
func PrintedByJet(n *jet.ActionNode) string {
	if n.Pipe == nil || n.Pipe.Cmds[0].Exprs != nil {
		return ""
	}
	for _, next := range n.Pipe.Cmds[1:] {
		if writer, is := next.BaseExpr.(*jet.IdentifierNode); !is || !slices.Contains([]string{"raw", "unsafe", "safeHtml", "safeJs"}, writer.Ident) {
			return ""
		}
	}

	return clipped(n.Pipe.Cmds[0].BaseExpr.String())
}

// checkPrinted wraps the value of an action that prints, so that null is an error.
func (r *rendering) checkPrinted(n *jet.ActionNode) {
	source := PrintedByJet(n)
	if source == "" {
		return
	}
	value := n.Pipe.Cmds[0].BaseExpr
	name := r.located(namePrinted+" "+source, n.NodeBase, func(args jet.Arguments) reflect.Value {
		v := args.Get(0)
		if null := nullInJet(source, v); null != nil {
			panic(null)
		}
		return v
	})
	n.Pipe.Cmds[0].CallExprNode = *jetCall(n.NodeBase, name, value)
}

// checkNull returns an error for an argument that is or contains null, which fmt would print as <nil>.
func checkNull(function string, args []any) error {
	for i, arg := range args {
		switch path, found := findNull(arg); {
		case found && path == "":
			return fmt.Errorf("argument %d of %s is null", i+1, function)
		case found:
			return fmt.Errorf("argument %d of %s is null at `%s`", i+1, function, path)
		}
	}

	return nil
}

// findNull returns the path of the first null value in a tree of mappings and lists, empty if
// the tree itself is null.
func findNull(v any) (path string, found bool) {
	path, found = nullWithin(v)

	return strings.TrimPrefix(path, "."), found
}

func nullWithin(v any) (path string, found bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if path, found := nullWithin(v[key]); found {
				return "." + key + path, true
			}
		}
	case []any:
		for i := range v {
			if path, found := nullWithin(v[i]); found {
				return fmt.Sprintf("[%d]%s", i, path), true
			}
		}
	}

	return "", false
}

func addPrinters(functions template.FuncMap) {
	for name, print := range map[string]func(...any) string{
		"print": fmt.Sprint, "println": fmt.Sprintln, "html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	} {
		functions[name] = func(args ...any) (string, error) {
			if err := checkNull(name, args); err != nil {
				return "", err
			}
			return print(args...), nil
		}
	}
	toString := functions["toString"].(func(any) string)
	functions["toString"] = func(v any) (string, error) {
		if err := checkNull("toString", []any{v}); err != nil {
			return "", err
		}
		return toString(v), nil
	}
}
