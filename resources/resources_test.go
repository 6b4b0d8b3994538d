package resources_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources"
)

func TestAll(t *testing.T) {
	types := resources.All()
	for i, name := range types.Names() {
		if typ, ok := types.Get(name); !ok || typ.Name != name {
			t.Errorf("%s is not found", name)
		}
		if slices.Index(types.Names(), name) != i {
			t.Errorf("two types are called %s", name)
		}
	}
}

// TestDocumented checks that the page of each type describes its providers; what
// its tables say is checked in docs.
func TestDocumented(t *testing.T) {
	for _, typ := range resources.All() {
		page, err := os.ReadFile(filepath.Join("..", "docs", "types", typ.Name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, provider := range typ.Providers {
			if !strings.Contains(string(page), "`"+provider+"`") {
				t.Errorf("docs/types/%s.md does not name the provider %s", typ.Name, provider)
			}
		}
	}
}
