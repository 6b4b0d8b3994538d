package yamlread

import (
	"bytes"
	"regexp"
	"strconv"
)

// The parser does not read some valid YAML. This file rewrites such text and keeps all positions.

// yaml12 matches the directive of YAML 1.2. The parser only accepts the directive of 1.1, and
// treats both versions alike.
var yaml12 = regexp.MustCompile(`\A(?:[ \t]*(?:#[^\n]*)?\r?\n)*%YAML[ \t]+1\.2[ \t]*(?:#[^\n]*)?\r?\n`)

// asYAML11 removes the directive of YAML 1.2.
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

// asIndented adds the indentation to the head of each block whose text begins with a tab, because
// the parser reads this tab as indentation. changed is false if there is none.
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

// blockParent returns the column from which the indentation of a block counts: the column of its
// key, or of the dash of an item; -1 for a document.
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
