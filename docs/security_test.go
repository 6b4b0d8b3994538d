package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryPromiseHasItsTest finds the tests that security.md names.
func TestEveryPromiseHasItsTest(t *testing.T) {
	text := page(t, "security.md")
	named := regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(text, -1)
	if len(named) < 20 || len(named) != strings.Count(text, ".Test")+strings.Count(text, ".Fuzz")-strings.Count(text, "`package.Test`") {
		t.Errorf("%d tests are named in a form that is found", len(named))
	}
	for _, name := range named {
		files, err := filepath.Glob(filepath.Join("..", name[1], "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			source, err := os.ReadFile(file)
			return err == nil && (strings.Contains(string(source), "\nfunc "+name[2]+"(t *testing.T)") || strings.Contains(string(source), "\nfunc "+name[2]+"(f *testing.F)"))
		}) {
			t.Errorf("there is no test %s in %s", name[2], name[1])
		}
	}
}

// TestEveryRowHasATest: a row without one promises nothing.
func TestEveryRowHasATest(t *testing.T) {
	section := ""
	rows := 0
	for line := range strings.Lines(page(t, "security.md")) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.TrimSpace(title)
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !slices.Contains([]string{"A local user of a node", "A node", "An operator's laptop", "NATS itself", "The network", "The fleet over HTTP"}, section) || len(cells) < 3 || strings.HasPrefix(line, "|---") || strings.HasSuffix(strings.TrimSpace(line), "| test |") {
			continue
		}
		rows++
		if !strings.Contains(cells[len(cells)-1], ".Test") {
			t.Errorf("no test: %s", line)
		}
	}
	if rows < 20 {
		t.Errorf("only %d rows", rows)
	}
}
