package yamlread

import (
	"encoding/base64"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
)

const (
	// maxExpanded and maxExpandedBytes limit the expansion of all aliases together.
	maxExpanded      = 200_000
	maxExpandedBytes = 64 << 20
)

// converter converts nodes of the YAML parser to nodes of a tree.
type converter struct {
	Texts
	cursor   Cursor
	nodes    []Node
	restore  *strings.Replacer
	problems model.Problems
	// open are the anchored nodes being converted, to detect an alias inside its own anchor.
	open map[*yaml.Node]bool
	// aliases is the nesting depth of aliases.
	aliases int
	budget  *budget
	// values counts the converted values.
	values int
	// stopped reports that a limit was exceeded and nothing more is converted.
	stopped bool
	// pieces are the pieces that contain the nodes; nil for a whole document.
	pieces []lines
	// merges are the entries that `<<` adds to the mapping of a piece.
	merges []*yaml.Node
}

// budget counts the expansion of the aliases of a document, and limits the anchored values, which
// the parser stores.
type budget struct{ values, bytes, kept int }

func newConverter(s *Source, restore *strings.Replacer, b *budget) *converter {
	return &converter{Texts: Texts{Source: s}, cursor: NewCursor(s), restore: restore, budget: b}
}

// offset returns the offset of a node.
func (c *converter) offset(n *yaml.Node) uint32 {
	return c.cursor.Seek(positionIn(c.pieces, n.Line, n.Column))
}

func (c *converter) pos(n *yaml.Node) model.Position {
	line, column := positionIn(c.pieces, n.Line, n.Column)

	return model.Position{File: c.Name, Line: line, Column: column}
}

func (c *converter) stop(n *yaml.Node, hint, format string, args ...any) {
	c.stopped = true
	c.problems.Add(c.pos(n), hint, format, args...)
}

// add appends a node without a value and returns its index.
func (c *converter) add(n *yaml.Node) int {
	c.nodes = append(c.nodes, Node{At: c.offset(n)})

	return len(c.nodes) - 1
}

// value appends the content of a node.
func (c *converter) value(n *yaml.Node, depth int) {
	switch {
	case c.stopped:
		c.add(n)
		return
	case depth > MaxDepth:
		c.stop(n, "", "nested deeper than %d levels", MaxDepth)
		c.add(n)
		return
	case c.aliases > 0 && !c.withinBudget(n):
		c.add(n)
		return
	}
	if c.values++; c.values > MaxValues {
		c.stopped = true
		c.problems.Append(TooMany(c.Name))
	}
	if n.Anchor != "" {
		if c.open == nil {
			c.open = map[*yaml.Node]bool{}
		}
		c.open[n] = true
		defer delete(c.open, n)
	}
	if len(c.open) > 0 && c.aliases == 0 {
		if c.budget.kept--; c.budget.kept == 0 {
			c.stop(n, "use fewer anchors (`&`)", "too many values are anchored")
		}
	}
	switch n.Kind {
	case yaml.AliasNode:
		c.alias(n, depth)
	case yaml.SequenceNode:
		c.list(n, depth)
	case yaml.MappingNode:
		c.mapping(n, depth)
	default:
		c.scalar(n, c.add(n))
	}
}

// withinBudget counts the expansion of aliases. Without this limit a few lines could expand to
// billions of values.
func (c *converter) withinBudget(n *yaml.Node) bool {
	c.budget.values++
	c.budget.bytes += len(n.Value)
	if c.budget.values <= maxExpanded && c.budget.bytes <= maxExpandedBytes {
		return true
	}
	c.stop(n, "", "the aliases of the document expand to too much: more than %d values or %d MiB", maxExpanded, maxExpandedBytes>>20)

	return false
}

func (c *converter) alias(n *yaml.Node, depth int) {
	if c.open[n.Alias] {
		c.problems.Add(c.pos(n), "", "the alias `*%s` is inside its own anchor", n.Value)
		c.add(n)
		return
	}
	c.aliases++
	defer func() { c.aliases-- }()

	c.value(n.Alias, depth)
}

func (c *converter) list(n *yaml.Node, depth int) {
	i := c.add(n)
	if n.Tag != "!!seq" {
		c.badTag(n)
	}
	for _, item := range n.Content {
		c.value(item, depth+1)
	}
	c.nodes[i].Kind, c.nodes[i].Size = List, uint32(len(c.nodes)-i)
}

// scalar sets the text of the node of n.
func (c *converter) scalar(n *yaml.Node, i int) {
	kind, text := String, n.Value
	tagged := n.Style&yaml.TaggedStyle != 0
	switch n.Tag {
	case "!!null":
		kind, text = Null, ""
	case "!!bool":
		kind = Bool
	case "!!int", "!!float":
		kind = Number
	case "!!str", "!!timestamp", "!!merge":
	case "!!binary":
		text = c.binary(n)
	default:
		c.badTag(n)
	}
	if tagged && !tagFits(n.Tag, n.Value) {
		c.problems.Add(c.pos(n), "", "%q is no %s", n.Value, n.Tag)
	}
	if c.restore != nil {
		text = c.restore.Replace(text)
	}
	c.nodes[i].Kind = kind
	c.SetText(&c.nodes[i], text)
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

func (c *converter) binary(n *yaml.Node) string {
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
	if err != nil {
		c.problems.Add(c.pos(n), "", "`!!binary` does not hold base64: %v", err)
		return n.Value
	}

	return string(raw)
}

func (c *converter) badTag(n *yaml.Node) {
	c.problems.Add(c.pos(n), "remove the tag, or quote the text if it begins with `!`", "the tag `%s` has no meaning here", n.Tag)
}
