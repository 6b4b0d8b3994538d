package manifest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/manifest"
)

// TestInclusionsEnd checks that a small manifest cannot include itself forever by changing its data
// at each level.
func TestInclusionsEnd(t *testing.T) {
	dir, child := t.TempDir(), "data: {d: x}\nmuster:\n  resources:\n"
	for i := range 3 {
		child += fmt.Sprintf("    - apply:\n        - child.yaml: {data: {d: \"${ Data.d + '%d' }\"}, control: {if: \"len(Data.d) < 9\"}}\n", i)
	}
	if err := os.WriteFile(filepath.Join(dir, "child.yaml"), []byte(child), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := resolve(t, "muster:\n  resources:\n    - apply:\n        - child.yaml: {data: {d: a}}\n", manifest.Options{Types: resources.All()}, manifest.Inputs{Dir: dir})
	if err == nil || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), "more than 1000 child manifests are included") {
		t.Errorf("%.500v", err)
	}
}
