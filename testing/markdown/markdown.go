// Package markdown reads what tests want to know of the documentation: its
// fenced blocks, its tables, its links.
package markdown

import (
	"regexp"
	"strings"
)

// Block is a fenced block.
type Block struct {
	// Language is the first word after the fence, Info what follows it.
	Language, Info string
	Text           string
	// Line is the line of the fence, from 1.
	Line int
}

// Blocks returns the fenced blocks of a page, in their order.
func Blocks(page string) []Block {
	var out []Block
	var open *Block
	for i, line := range strings.Split(page, "\n") {
		fence, is := strings.CutPrefix(line, "```")
		switch {
		case is && open == nil:
			language, info, _ := strings.Cut(fence, " ")
			open = &Block{Language: language, Info: info, Line: i + 1}
		case is:
			out = append(out, *open)
			open = nil
		case open != nil:
			open.Text += line + "\n"
		}
	}

	return out
}

// Section returns the text below a heading, up to the next heading of the same or a higher level; empty
// without such a heading.
func Section(page, heading string) string {
	level := len(heading) - len(strings.TrimLeft(heading, "#"))
	_, rest, found := strings.Cut("\n"+page, "\n"+heading+"\n")
	if !found {
		return ""
	}
	var out strings.Builder
	for line := range strings.Lines(rest) {
		hashes := len(line) - len(strings.TrimLeft(line, "#"))
		if hashes > 0 && hashes <= level {
			break
		}
		out.WriteString(line)
	}

	return out.String()
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// Rows returns the words in code style in the first cells of the tables of a
// text, in their order.
func Rows(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 || strings.TrimSpace(cells[0]) != "" {
			continue
		}
		for _, found := range codeSpan.FindAllStringSubmatch(cells[1], -1) {
			out = append(out, found[1])
		}
	}

	return out
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Links returns the targets of the links of a page, fenced blocks left out.
func Links(page string) []string {
	var out []string
	for _, found := range link.FindAllStringSubmatch(prose(page), -1) {
		out = append(out, found[1])
	}

	return out
}

var notInAnchors = regexp.MustCompile(`[^a-z0-9 _-]`)

// Anchors returns the anchors of the headings of a page, as GitHub makes them.
func Anchors(page string) []string {
	var out []string
	for line := range strings.Lines(prose(page)) {
		text, is := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !is || line[0] != '#' {
			continue
		}
		anchor := notInAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), "")
		out = append(out, strings.ReplaceAll(anchor, " ", "-"))
	}

	return out
}

// prose returns a page without its fenced blocks.
func prose(page string) string {
	var out strings.Builder
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			out.WriteString(line)
		}
	}

	return out.String()
}
