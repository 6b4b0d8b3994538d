package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	shellquote "github.com/kballard/go-shellquote"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/resources"
)

// inline is a command between backticks.
var inline = regexp.MustCompile("`(?:sudo )?(muster [^`\n]*)`")

// leftOut are the errors of commands in sentences that contain only a flag.
var leftOut = regexp.MustCompile(`^(required argument '.*' not provided|expected argument for flag .*)$`)

// placeholder replaces what stands for a number or a type.
var placeholder = strings.NewReplacer(" N", " 1", " TYPE", " file", " SIZE", " 1MB")

// TestInlineCommands: each command that a sentence of the documentation has can be typed. It is not parallel: two
// command lines at a time would set the library's one switch.
func TestInlineCommands(t *testing.T) {
	var paths []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	parsed := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(path) == "CHANGELOG.md" || filepath.Base(filepath.Dir(path)) == "decisions" {
			continue // these are of the time when they were written
		}
		for _, found := range inline.FindAllStringSubmatch(string(text), -1) {
			args, err := shellquote.Split(placeholder.Replace(found[1]))
			if err == nil && isWhole(args) {
				err = parses(args[1:])
				parsed++
			}
			if err != nil && !leftOut.MatchString(err.Error()) {
				t.Errorf("%s: `%s`: %v", path, found[1], err)
			}
		}
	}
	if parsed < 60 {
		t.Errorf("only %d commands are parsed", parsed)
	}
}

// isWhole reports whether a command has arguments, none of them is left out, and it does not print its help at once.
func isWhole(args []string) bool {
	all := commands(cli.NewEnv(resources.All(), strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, cli.NewInterrupt())).Model().Commands
	rest := args[1:]
	for len(rest) > 0 {
		at := -1
		for i, c := range all {
			if c.Name == rest[0] {
				at = i
			}
		}
		if at < 0 {
			break
		}
		all, rest = all[at].Commands, rest[1:]
	}

	return len(rest) > 0 && !strings.ContainsAny(strings.Join(rest, " "), "…|<>[") && !strings.Contains(rest[0], "--help")
}
