package document

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
)

const (
	// maxDepth is how deep a document may be nested.
	maxDepth = 100
	// maxExpanded and maxExpandedBytes are what all aliases together may expand to.
	maxExpanded      = 200_000
	maxExpandedBytes = 64 << 20
)

// converter makes values of YAML nodes.
type converter struct {
	name     string
	restore  *strings.Replacer
	problems model.Problems
	// open are the anchored nodes being converted, to find an alias inside of what it names.
	open map[*yaml.Node]bool
	// aliases is how many aliases deep the conversion is.
	aliases  int
	expanded int
	bytes    int
	// stopped reports whether a limit was hit: nothing further is converted.
	stopped bool

	// The lines of the nodes from the line after on are shift lines further down in the document.
	after, shift int
	// pieces are the items that the nodes do not have, of the list that run is; taken counts how often they were used.
	run    listRun
	pieces []piece
	taken  int
}

func (c *converter) pos(n *yaml.Node) model.Position {
	line := n.Line
	if line >= c.after {
		line += c.shift
	}

	return model.Position{File: c.name, Line: line, Column: n.Column}
}

func (c *converter) stop(n *yaml.Node, hint, format string, args ...any) {
	c.stopped = true
	c.problems.Add(c.pos(n), hint, format, args...)
}

func (c *converter) value(n *yaml.Node, depth int) Value {
	v := Value{Pos: c.pos(n)}
	switch {
	case c.stopped:
		return v
	case depth > maxDepth:
		c.stop(n, "", "nested deeper than %d levels", maxDepth)
		return v
	case c.aliases > 0 && !c.withinBudget(n):
		return v
	}
	if n.Anchor != "" {
		if c.open == nil {
			c.open = map[*yaml.Node]bool{}
		}
		c.open[n] = true
		defer delete(c.open, n)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return c.alias(n, depth)
	case yaml.SequenceNode:
		c.list(&v, n, depth)
	case yaml.MappingNode:
		c.mapping(&v, n, depth)
	default:
		c.scalar(&v, n)
	}

	return v
}

// withinBudget counts what aliases expand to; without it a few lines could
// expand to billions of values.
func (c *converter) withinBudget(n *yaml.Node) bool {
	c.expanded++
	c.bytes += len(n.Value)
	if c.expanded <= maxExpanded && c.bytes <= maxExpandedBytes {
		return true
	}
	c.stop(n, "", "the aliases of the document expand to too much: more than %d values or %d MiB", maxExpanded, maxExpandedBytes>>20)

	return false
}

func (c *converter) alias(n *yaml.Node, depth int) Value {
	if c.open[n.Alias] {
		c.problems.Add(c.pos(n), "", "the alias `*%s` is inside of what it names", n.Value)
		return Value{Pos: c.pos(n)}
	}
	c.aliases++
	defer func() { c.aliases-- }()

	return c.value(n.Alias, depth)
}

func (c *converter) list(v *Value, n *yaml.Node, depth int) {
	v.Kind = List
	if n.Tag != "!!seq" {
		c.badTag(n)
	}
	if c.isCut(n) {
		v.Pos.Line = n.Line
		v.Items = c.cutItems(depth)
	}
	v.Items = slices.Grow(v.Items, len(n.Content))
	for _, item := range n.Content {
		v.Items = append(v.Items, c.value(item, depth+1))
	}
}

func (c *converter) scalar(v *Value, n *yaml.Node) {
	v.Kind, v.Text = String, n.Value
	tagged := n.Style&yaml.TaggedStyle != 0
	switch n.Tag {
	case "!!null":
		v.Kind, v.Text = Null, ""
	case "!!bool":
		v.Kind = Bool
	case "!!int", "!!float":
		v.Kind = Number
	case "!!str", "!!timestamp", "!!merge":
	case "!!binary":
		c.binary(v, n)
	default:
		c.badTag(n)
	}
	if tagged && !tagFits(n.Tag, n.Value) {
		c.problems.Add(v.Pos, "", "%q is no %s", n.Value, n.Tag)
	}
	if c.restore != nil {
		v.Text = c.restore.Replace(v.Text)
	}
}

func tagFits(tag, text string) bool {
	var err error
	switch tag {
	case "!!int":
		_, err = strconv.ParseInt(text, 0, 64)
	case "!!float":
		_, err = strconv.ParseFloat(text, 64)
	case "!!bool":
		_, err = strconv.ParseBool(text)
	case "!!null":
		return text == "" || text == "~" || strings.EqualFold(text, "null")
	}

	return err == nil
}

func (c *converter) binary(v *Value, n *yaml.Node) {
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
	if err != nil {
		c.problems.Add(v.Pos, "", "`!!binary` does not hold base64: %v", err)
		return
	}
	v.Text = string(raw)
}

func (c *converter) badTag(n *yaml.Node) {
	c.problems.Add(c.pos(n), "remove the tag, or quote the text if it begins with `!`", "the tag `%s` has no meaning here", n.Tag)
}
