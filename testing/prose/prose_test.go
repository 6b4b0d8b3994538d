// Package prose_test measures the English of the repository.
package prose_test

import (
	"bytes"
	"cmp"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// limits are odd phrases per 1,000 words. They only go down.
var limits = map[string]float64{"comments": 1.9, "documents": 1.3, "messages": 0.8}

// odd lists phrases that plain technical English avoids. Words in parentheses are alternatives.
var odd = phrases(
	"(that|those) of",
	"what (is|was|are|were|has|had|may|can|came|become|becomes|there|they|it|nobody|somebody|other|others)",
	"(whoever|whom|whose)",
	"who (is|was|has|may|can|asks|wrote|writes|reads|knows|runs|did)",
	"(nobody|somebody)",
	"nothing (is|was|of|else|more)",
	"(of|by|in|for|at|to|from|with) which",
	"is that",
	"(another|that) one", "one that", "such (a|an)",
	", too",
	"as of",
	"(told|tells|said)", "(says|say) so", "says of",
	"(goes|go|went) on",
	"(meanwhile|hitherto|whereby|thereof|thereby|therein|whereof|owed|owes)",
	"(is|are|has) to be",
	"by itself", "of (itself|its own|their own)",
	"kept",
	"(come|comes) (of|back|first|after|before)",
	"(take|takes) part",
)

// allowed are odd phrases after a word that makes them right.
var allowed = phrases("the user who")

// phrases returns every phrase that the patterns describe.
func phrases(patterns ...string) map[string]bool {
	all := map[string]bool{}
	for _, pattern := range patterns {
		made := []string{""}
		for word := range strings.FieldsSeq(pattern) {
			var next []string
			for alternative := range strings.SplitSeq(strings.Trim(word, "()"), "|") {
				for _, before := range made {
					next = append(next, strings.TrimSpace(before+" "+alternative))
				}
			}
			made = next
		}
		for _, phrase := range made {
			all[phrase] = true
		}
	}
	return all
}

// TestEnglish fails when the share of odd phrases grows, and names the worst lines.
func TestEnglish(t *testing.T) {
	total := map[string]*figure{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", ".rig", "testdata", "dist", "node_modules"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		return measure(path, total)
	})
	if err != nil {
		t.Fatal(err)
	}
	for kind, limit := range limits {
		f := total[kind]
		if f == nil {
			t.Fatalf("found no %s", kind)
		}
		share := 1000 * float64(f.odd) / float64(f.words)
		t.Logf("%s: %.2f per 1,000 words (%d in %d words)", kind, share, f.odd, f.words)
		if share > limit {
			slices.SortStableFunc(f.worst, func(a, b line) int { return cmp.Compare(b.odd, a.odd) })
			for _, l := range f.worst[:min(15, len(f.worst))] {
				t.Logf("%d  %s: %s", l.odd, l.place, l.text)
			}
			t.Errorf("%s have %.2f odd phrases per 1,000 words; the limit is %.1f. Rewrite the lines that this change adds", kind, share, limit)
		}
	}
}

// figure sums the words and odd phrases of one kind of text.
type figure struct {
	words, odd int
	worst      []line
}

type line struct {
	odd         int
	place, text string
}

func measure(path string, total map[string]*figure) error {
	var parts func([]byte, func(line int, kind, text string))
	switch filepath.Ext(path) {
	case ".go":
		parts = goParts
	case ".md":
		parts = markdownParts
	default:
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if generated.Match(text[:min(400, len(text))]) {
		return nil
	}
	test := strings.HasSuffix(path, "_test.go")
	parts(text, func(number int, kind, text string) {
		if test && kind == "messages" {
			return
		}
		f := total[kind]
		if f == nil {
			f = &figure{}
			total[kind] = f
		}
		f.words += len(strings.Fields(text))
		if n := count(text); n > 0 {
			f.odd += n
			f.worst = append(f.worst, line{n, fmt.Sprintf("%s:%d", path, number), strings.TrimSpace(text)})
		}
	})
	return nil
}

var generated = regexp.MustCompile(`DO NOT EDIT`)

// goParts yields the comments and the string literals with at least three words.
func goParts(text []byte, yield func(line int, kind, text string)) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		switch tok {
		case token.EOF:
			return
		case token.COMMENT:
			if strings.HasPrefix(literal, "//go:") {
				continue
			}
			number := file.Line(pos)
			for l := range strings.SplitSeq(literal, "\n") {
				yield(number, "comments", strings.Trim(l, "/* "))
				number++
			}
		case token.STRING:
			message, err := strconv.Unquote(literal)
			if err == nil && strings.Count(message, " ") >= 2 {
				yield(file.Line(pos), "messages", message)
			}
		}
	}
}

var code = regexp.MustCompile("`[^`]*`")

// markdownParts yields the lines outside code blocks.
func markdownParts(text []byte, yield func(line int, kind, text string)) {
	fenced := false
	number := 0
	for l := range bytes.SplitSeq(text, []byte("\n")) {
		number++
		if bytes.HasPrefix(bytes.TrimSpace(l), []byte("```")) {
			fenced = !fenced
		} else if !fenced && !bytes.HasPrefix(l, []byte("    ")) {
			yield(number, "documents", string(code.ReplaceAll(l, []byte("x"))))
		}
	}
}

// count returns the number of odd phrases in text.
func count(text string) int {
	words := tokens(strings.ToLower(text))
	n := 0
	for i := range words {
		for length := 1; length <= 3 && i+length <= len(words); length++ {
			if !odd[strings.Join(words[i:i+length], " ")] {
				continue
			}
			if i >= 2 && allowed[strings.Join(words[i-2:i+1], " ")] {
				continue
			}
			n++
			break
		}
	}
	return n
}

// tokens splits text into words and punctuation.
func tokens(text string) []string {
	var out []string
	start := -1
	for i, r := range text {
		inWord := unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_'
		if inWord && start < 0 {
			start = i
		}
		if inWord {
			continue
		}
		if start >= 0 {
			out = append(out, text[start:i])
			start = -1
		}
		if !unicode.IsSpace(r) {
			out = append(out, string(r))
		}
	}
	if start >= 0 {
		out = append(out, text[start:])
	}
	return out
}

// TestCount holds one example of each rule.
func TestCount(t *testing.T) {
	for text, want := range map[string]int{
		"the agent retries every 5 s":             0,
		"the name is that of the node":            2,
		"what is stored, and what was not":        2,
		"the user who runs it":                    0,
		"whoever runs it":                         1,
		"the bucket, too":                         1,
		"the list of which the server knows more": 1,
		"it has to be kept":                       2,
		"That one goes on":                        2,
	} {
		if got := count(text); got != want {
			t.Errorf("%q has %d odd phrases, want %d", text, got, want)
		}
	}
}
