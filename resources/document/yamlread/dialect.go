package yamlread

import (
	"bytes"
	"regexp"
	"strconv"
)

// What the parser does not read although it is YAML is written in another way
// for it, so that every place stays where it is.

// yaml12 matches a document that declares YAML 1.2 before it begins. The
// parser knows the sign of 1.1 only, and means no other thing by it.
var yaml12 = regexp.MustCompile(`\A(?:[ \t]*(?:#[^\n]*)?\r?\n)*%YAML[ \t]+1\.2[ \t]*(?:#[^\n]*)?\r?\n`)

// asYAML11 returns data without the sign of YAML 1.2.
func asYAML11(data []byte) []byte {
	head := yaml12.Find(data)
	if head == nil {
		return data
	}
	out := bytes.Clone(data)
	out[bytes.LastIndex(head, []byte("1.2"))+len("1.")] = '1'

	return out
}

// blockHead is a line that ends with the head of a literal or folded block: in
// front what precedes the key or value, all up to behind the `|`, and what
// the head says.
var blockHead = regexp.MustCompile(`^((?: *(?:- +)*))((?:.*?[-:] +)?(?:[&!][^ ]+ +)*[|>])([-+0-9]{0,2}) *(?:#.*)?\r?\n?$`)

// asIndented returns data with the indentation written to the head of each block
// whose text begins with a tab: the parser takes such a tab for indentation.
// changed is false when there is none.
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

// next reports whether a line is of such a text, or else where the parts of
// blockHead are in it, nil when a text does not begin behind it.
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

// blockParent is the column that the indentation of a block is counted from:
// that of its key, or of the dash when it is an item itself; -1 for a document.
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
