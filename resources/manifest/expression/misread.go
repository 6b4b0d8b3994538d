package expression

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
)

// maxQuoted is the longest part of an expression that an error quotes.
const maxQuoted = 60

// Misread explains the error of reading a key of a value that has no such keys: a key of a text, a
// number or a list, or a position of a mapping. is is false for any other error.
func (p *Program) Misread(err error, vars map[string]any) (message, hint string, is bool) {
	var at *file.Error
	if !errors.As(err, &at) || !slices.ContainsFunc([]string{"cannot fetch ", "invalid operation: int(", "reflect.Value.MapIndex: "}, func(prefix string) bool {
		return strings.HasPrefix(at.Message, prefix)
	}) {
		return "", "", false
	}
	node := p.Node()
	found := read{at: at.Location}
	ast.Walk(&node, &found)
	if found.member == nil {
		return "", "", false
	}
	of, key := quoted(found.member.Node), keyOf(found.member)
	c := follow(found.member.Node, vars)
	switch {
	case strings.HasSuffix(at.Message, " from <nil>"):
		return of + " is not set", "write `?." + key + "` where it may be unset", true
	case c.path == "":
		return of + " has no key `" + key + "`", "", true
	}
	message = fmt.Sprintf("%s is %s and has no key `%s`", of, KindOf(c.value), key)
	switch v := c.value.(type) {
	case []any:
		hint = "read an item, such as `" + c.path + "[0]`"
	case map[string]any:
		if keys := KeysOf(v); len(keys) > 0 {
			hint = "read a key, such as `" + c.path + "." + keys[0] + "`"
		}
	default:
		hint = "write `" + c.path + "` for its value"
	}

	return message, hint, true
}

// read finds the node that reads a key, by location.
type read struct {
	at     file.Location
	member *ast.MemberNode
}

// Visit is called for every node.
func (r *read) Visit(node *ast.Node) {
	if member, is := (*node).(*ast.MemberNode); is && member.Location() == r.at {
		r.member = member
	}
}

// keyOf returns the key or the position in brackets that a node reads.
func keyOf(member *ast.MemberNode) string {
	if name, is := member.Property.(*ast.StringNode); is {
		return name.Value
	}

	return "[" + member.Property.String() + "]"
}

// quoted returns a part of an expression in backquotes.
func quoted(node ast.Node) string {
	text := node.String()
	if len(text) > maxQuoted {
		return "the value"
	}

	return "`" + text + "`"
}
