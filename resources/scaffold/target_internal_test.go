package scaffold

import (
	"os"
	"testing"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
)

// TestDigestOfRemovedFile removes a file after the look. The file counts as missing.
func TestDigestOfRemovedFile(t *testing.T) {
	dir := t.TempDir()
	hosttest.MakeTree(t, dir, "a")
	target := target{env: resource.Env{Host: hosttest.New(t)}, spec: &Spec{}, state: &State{Metadata: &Metadata{TargetExists: true}}}
	target.spec.Name = dir
	f := file{path: dir + "/a"}
	if err := target.look(&f); err != nil || f.before.Kind != files.File {
		t.Fatal(f.before.Kind, err)
	}
	if err := os.Remove(f.path); err != nil {
		t.Fatal(err)
	}
	if digest, err := target.digest(t.Context(), &f); digest != "" || f.before.Kind != files.Absent || err != nil {
		t.Errorf("digest %q, kind %v, error %v", digest, f.before.Kind, err)
	}
}
