package bundles_test

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/agent/assignments/bundles"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
)

var errBroken = errors.New("it goes on")

// broken is a bundle that ends with an error.
type broken struct{}

func (broken) GetBundle(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), failing{})), nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errBroken }

func TestNothingStaysOfABrokenDownload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := bundles.Store{Host: host.New(host.Options{StateDir: dir}), Source: broken{}, Dir: filepath.Join(dir, "bundles")}
	_, _, err := store.Open(t.Context(), "group.all.motd", model.DigestOf([]byte("x")))
	if err == nil || !strings.Contains(err.Error(), errBroken.Error()) {
		t.Errorf("open = %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
