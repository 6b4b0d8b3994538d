package document

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
)

// The parser does not read some valid YAML. This file rewrites such text and keeps all positions.

// yaml12 matches the directive of YAML 1.2. The parser only accepts the directive of 1.1, and
// treats both versions alike.
var yaml12 = regexp.MustCompile(`\A(?:[ \t]*(?:#[^\n]*)?\r?\n)*%YAML[ \t]+1\.2[ \t]*(?:#[^\n]*)?\r?\n`)

func asYAML11(data []byte) []byte {
	head := yaml12.Find(data)
	if head == nil {
		return data
	}
	out := bytes.Clone(data)
	out[bytes.LastIndex(head, []byte("1.2"))+len("1.")] = '1'

	return out
}

// blockHead matches a line that ends with the head of a literal or folded block: the text before
// the key or value, the text up to the `|`, and the indicators.
var blockHead = regexp.MustCompile(`^((?: *(?:- +)*))((?:.*?[-:] +)?(?:[&!][^ ]+ +)*[|>])([-+0-9]{0,2}) *(?:#.*)?\r?\n?$`)

// asIndented adds the indentation to the head of each block with a tab at the start of its text. The
// parser would read this tab as indentation. changed is false if there is no such block.
func asIndented(data []byte) (out []byte, changed bool) {
	lines := bytes.SplitAfter(data, []byte("\n"))
	var blocks blockScan
	for i, line := range lines {
		_, at := blocks.next(line)
		if at == nil || i+1 == len(lines) {
			continue
		}
		next := lines[i+1]
		indent := spaces(next)
		by := indent - max(blocks.parent, 0)
		if by < 1 || by > 9 || !bytes.HasPrefix(next[indent:], []byte("\t")) || bytes.ContainsAny(line[at[6]:at[7]], "0123456789") {
			continue
		}
		lines[i] = append(strconv.AppendInt(bytes.Clone(line[:at[5]]), int64(by), 10), line[at[5]:]...)
		changed = true
	}

	return bytes.Join(lines, nil), changed
}

// blockScan finds the texts of literal and folded blocks, line by line.
type blockScan struct {
	inside bool
	parent int
}

// next reports whether a line belongs to such a text. Otherwise it returns the submatches of
// blockHead, or nil if no text begins after the line.
func (b *blockScan) next(line []byte) (inside bool, head []int) {
	ends := bytes.HasPrefix(line, []byte("---")) || bytes.HasPrefix(line, []byte("..."))
	if b.inside && !ends && (len(bytes.TrimSpace(line)) == 0 || spaces(line) > b.parent) {
		return true, nil
	}
	if bytes.ContainsAny(line, "|>") {
		head = blockHead.FindSubmatchIndex(line)
	}
	if b.inside = head != nil; b.inside {
		b.parent = blockParent(line, head[3])
	}

	return false, head
}

// blockParent returns the column of the key or dash before a block, or -1 for a document. The
// indentation of the block is relative to it.
func blockParent(line []byte, first int) int {
	switch {
	case bytes.HasPrefix(line, []byte("--- ")):
		return -1
	case bytes.IndexByte([]byte("|>&!"), line[first]) >= 0:
		return bytes.LastIndexByte(line[:first], '-')
	default:
		return first
	}
}

func spaces(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }

// lineBreaks are the characters that the parser reads as line breaks, as in YAML 1.1. In YAML 1.2 they
// are text, so they are hidden from the parser and restored afterwards.
const lineBreaks = "\u0085\u2028\u2029"

// hideBreaks replaces lineBreaks by private use characters that the document does not contain, and
// returns the replacer that restores them.
func hideBreaks(data []byte) ([]byte, *strings.Replacer) {
	var forth, back []string
	next := rune(0xe000)
	for _, r := range lineBreaks {
		for bytes.ContainsRune(data, next) {
			next++
		}
		forth = append(forth, string(r), string(next))
		back = append(back, string(next), string(r))
		next++
	}

	return []byte(strings.NewReplacer(forth...).Replace(string(data))), strings.NewReplacer(back...)
}

// valueCounter estimates the number of values in a YAML text, so that a document with too many is
// refused before parsing. The parser takes about 200 bytes per value. It counts separators outside
// of quotes, comments and literal or folded blocks.
type valueCounter struct {
	total int
	// quote is the quote of the text that continues from the line before, or 0.
	quote byte
	// flow is the number of open brackets and braces.
	flow int
}

func countValues(data []byte) int {
	var c valueCounter
	var blocks blockScan
	for line := range bytes.Lines(data) {
		if inside, _ := blocks.next(line); !inside {
			c.line(line)
		}
	}

	return c.total
}

func (c *valueCounter) line(line []byte) {
	begins := true
	for i := 0; i < len(line); i++ {
		b := line[i]
		switch {
		case c.quote != 0:
			if b == '\\' && c.quote == '"' {
				i++
			} else if b == c.quote {
				c.quote = 0
			}
		case b == '#' && (i == 0 || isBlank(line[i-1:])):
			return
		case begins && (b == '"' || b == '\''):
			c.quote, begins = b, false
		case begins && (b == '[' || b == '{'):
			c.total++
			c.flow++
		case c.flow > 0 && (b == ']' || b == '}'):
			c.flow--
		case c.flow > 0 && b == ',', b == ':' && (c.flow > 0 || isBlank(line[i+1:])), begins && (b == '-' || b == '?') && isBlank(line[i+1:]):
			c.total++
			begins = true
		default:
			begins = begins && isBlank(line[i:])
		}
	}
}

func isBlank(text []byte) bool { return len(text) == 0 || strings.IndexByte(" \t\r\n", text[0]) >= 0 }
