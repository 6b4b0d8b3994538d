package main

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	shellquote "github.com/kballard/go-shellquote"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/resources"
)

// TestTaughtCommands: every command in texts of the dashboard is a command of muster. In its sources a
// command is the end of a text, with late values joined by +. The test is not parallel, because two command
// lines at a time would set the library's global switch.
func TestTaughtCommands(t *testing.T) {
	env := cli.NewEnv(resources.All(), strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, cli.NewInterrupt())
	var names []string
	for _, c := range commands(env).Model().Commands {
		names = append(names, c.Name)
	}
	command := regexp.MustCompile(`\bmuster (?:` + strings.Join(names, "|") + `)\b[^<]*`)
	taught := map[string]bool{}
	for _, text := range textsOf(t, "../../fleet/web") {
		if found := command.FindString(text); found != "" {
			taught[found] = true
		}
	}
	for text := range taught {
		args, err := shellquote.Split(text)
		if err == nil {
			err = parses(args[1:])
		}
		if err != nil {
			t.Errorf("the dashboard teaches %q: %v", text, err)
		}
	}
	if len(taught) < 8 {
		t.Errorf("only %d commands are found", len(taught))
	}
}

// parses returns the error of a command line, without running it.
func parses(args []string) error {
	app := commands(cli.NewEnv(resources.All(), strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, cli.NewInterrupt()))
	_, err := parse(app, args)

	return errors.Join(newLine(app, args).misread(), err)
}

// textsOf returns the texts in the Go files of a folder that users see: but for tests, and for the
// rooms below it that serve something else than pages.
func textsOf(t *testing.T, folder string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "api" || d.Name() == "metrics" || d.Name() == "access"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				out = append(out, textOf(n))
				return n.Op != token.ADD
			case *ast.BasicLit:
				out = append(out, textOf(n))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return out
}

// textOf returns the text of an expression, with 1 for late values.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return textOf(e.X) + textOf(e.Y)
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	}

	return "1"
}
