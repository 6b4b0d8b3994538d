package note_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/musterfleet/muster/testing/note"
	"github.com/musterfleet/muster/testing/typetest"
)

func TestContract(t *testing.T) {
	properties := func(more typetest.Properties) func(string) typetest.Properties {
		return func(dir string) typetest.Properties {
			more["name"] = filepath.Join(dir, "hostname")
			return more
		}
	}
	holding := func(text string) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "hostname"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	typetest.Run(t, typetest.Config{
		Type: note.New(note.Plain{}),
		Cases: []typetest.Case{
			{Name: "nothing there", Properties: properties(typetest.Properties{"value": "web01"}), Message: "Would have set the value"},
			{Name: "removed by hand", Properties: properties(typetest.Properties{"value": "web01"}), Message: "Would have set the value", Drift: func(t testing.TB, dir string) {
				if err := os.Remove(filepath.Join(dir, "hostname")); err != nil {
					t.Error(err)
				}
			}},
			{Name: "another value", Setup: holding("db01\n"), Properties: properties(typetest.Properties{"value": "web01"}), Message: "Would have set the value"},
			{Name: "the value", Setup: holding("web01\n"), Properties: properties(typetest.Properties{"value": "web01"})},
			{Name: "absent", Setup: holding("web01\n"), Properties: properties(typetest.Properties{"ensure": "absent"}), Message: "Would have removed the note"},
			{Name: "absent already", Properties: properties(typetest.Properties{"ensure": "absent"})},
			{Name: "no note", Properties: func(dir string) typetest.Properties { return typetest.Properties{"name": dir, "value": "x"} }, Error: "is a directory, not a note"},
		},
	})
}
