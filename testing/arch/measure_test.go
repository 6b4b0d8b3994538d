package arch_test

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/arch"
)

func TestPrintMeasuresProductCodeOnly(t *testing.T) {
	methods := strings.Repeat("func (T) M() {}\n", 26)
	tree, err := arch.Parse(map[string]string{
		"model/a.go":                 "// Package model is.\npackage model\n\n// T is.\ntype T struct{ A, B int }\n\n" + methods,
		"model/a_test.go":            strings.Repeat("\n", 5000) + "package model\n",
		"testing/a.go":               strings.Repeat("\n", 5000) + "package testing\n",
		"schemas/internal/gen/a.go":  strings.Repeat("\n", 5000) + "package gen\n",
		"resources/manifest/long.go": "package manifest\n" + strings.Repeat("\n", 1600),
	})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	arch.Print(&out, tree)
	for _, want := range []string{"1633 lines in 2 files, 2 packages", "1601  resources/manifest\n", "26  model/T\n", "structs over 12 fields:\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
