package markdown_test

import (
	"slices"
	"testing"

	"github.com/musterfleet/muster/testing/markdown"
)

const page = "# One page\n\ntext [a](b.md#c)\n\n## First: it\n\n| key | what |\n|---|---|\n| `a`, `b` | `no` |\n\n### Below\n\n| `c` | x |\n\n## Second\n\n| `d` | x |\n\n" +
	"```yaml wrong\n# not a heading [x](y)\nkey: 1\n```\n\n```\nplain\n```\n"

func TestMarkdown(t *testing.T) {
	blocks := []markdown.Block{{Language: "yaml", Info: "wrong", Text: "# not a heading [x](y)\nkey: 1\n", Line: 19}, {Text: "plain\n", Line: 24}}
	if got := markdown.Blocks(page); !slices.Equal(got, blocks) {
		t.Errorf("the blocks are %+v", got)
	}
	if got := markdown.Rows(markdown.Section(page, "## First: it")); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("the rows are %q", got)
	}
	if got := markdown.Section(page, "## Third"); got != "" {
		t.Errorf("a section that is not there is %q", got)
	}
	if got := markdown.Links(page); !slices.Equal(got, []string{"b.md#c"}) {
		t.Errorf("the links are %q", got)
	}
	if got := markdown.Anchors(page); !slices.Equal(got, []string{"one-page", "first-it", "below", "second"}) {
		t.Errorf("the anchors are %q", got)
	}
}
