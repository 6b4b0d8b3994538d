//go:build system

package rigs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/markdown"
	"github.com/musterfleet/muster/testing/rigs"
)

// missing returns the first line of a page that an output does not have after the lines before it.
func missing(page, output string) string {
	lines := strings.Split(output, "\n")
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		want := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*"))
		at := slices.IndexFunc(lines, want.MatchString)
		if at < 0 {
			return line
		}
		lines = lines[at+1:]
	}

	return ""
}

// runPage runs the examples of the page of a type on a machine, and compares the results with the page.
func runPage(t *testing.T, m *rigs.Machine, typ string, examples int) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(rigs.Checkout(t), "docs", "types", typ+".md"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	blocks := markdown.Blocks(string(page))
	for i, b := range blocks {
		if first, _, _ := strings.Cut(b.Text, "\n"); b.Language == "yaml" {
			put(t, m, "/root/"+strings.TrimPrefix(first, "# "), b.Text)
		}
		if b.Language != "sh" || b.Info != "run" {
			continue
		}
		ran++
		r := m.Run("sh", "-euc", "exec 2>&1; cd /root; export NO_COLOR=1\n"+b.Text)
		if r.Code != 0 {
			t.Errorf("line %d: exit code %d\n%s", b.Line, r.Code, r.Stdout)
		}
		if line := missing(blocks[i+1].Text, r.Stdout); line != "" {
			t.Errorf("line %d: %q is not in its place in\n%s", b.Line, line, r.Stdout)
		}
	}
	if ran != examples {
		t.Errorf("%d examples were run", ran)
	}
}
