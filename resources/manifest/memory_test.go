// Memory is measured without the race detector, like the product.

//go:build !race

package manifest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/testing/heap"
)

// repeated returns a text of about a megabyte that repeats a part with its number.
func repeated(part string) string {
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		b.WriteString(strings.ReplaceAll(part, "#", fmt.Sprintf("%05d", i)))
	}

	return b.String()
}

// TestMemoryOfChecking measures the memory of reading and checking a document, in multiples of its
// size. Most documents have the shortest values (docs/decisions/0020). The limits are 1.5 times the
// measured values.
func TestMemoryOfChecking(t *testing.T) {
	if !heap.Alone(t) {
		return
	}
	for name, tc := range map[string]struct {
		text string
		most float64
	}{
		"resources with a mistake":          {"muster:\n resources:\n" + repeated("  - file: [/srv/app/#: {x: 1}]\n"), 85},
		"entries of no type":                {"muster:\n resources:\n" + repeated("  - x: 1\n"), 125},
		"a broken expression":               {"muster:\n resources:\n" + repeated("  - file: [/srv/app/#: {content: \"${ x\"}]\n"), 65},
		"data of short values":              {"data:\n" + repeated(" a#: 1\n") + "muster: {resources: []}\n", 75},
		"a list of short values":            {"data:\n x:\n" + repeated("  - a\n") + "muster: {resources: []}\n", 70},
		"overrides":                         {"overrides:\n" + repeated(" a#: {b: 1}\n") + "muster: {resources: []}\n", 100},
		"files as they are, in a list":      {string(files(1 << 20 / 390)), 15},
		"files of the shortest, one by one": {"muster:\n resources:\n" + repeated("  - file: [/a#: {owner: a, group: b, mode: \"1\"}]\n"), 85},
	} {
		t.Run(name, func(t *testing.T) {
			data := []byte(tc.text)
			l := manifest.NewLoader(manifest.Options{Types: resources.All()})
			peak := heap.Peak(func() {
				if doc, err := manifest.Parse("m.yaml", data); err == nil {
					_, _ = l.Resolve(context.Background(), doc, manifest.Inputs{})
				}
			})
			times := float64(peak) / float64(len(data))
			t.Logf("%.1f times its size", times)
			if times > tc.most {
				t.Errorf("%.1f times its size", times)
			}
		})
	}
}
