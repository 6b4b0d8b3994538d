//go:build system

package archive_test

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/testing/hosttest"
)

func TestSystemUnpackOntoAFullFileSystem(t *testing.T) {
	hosttest.NeedRoot(t)
	dir := hosttest.MountTmpfs(t, "size=1m", 0)
	bundle := zip(t, pack(t, regular("big", strings.Repeat("x", 2<<20), 0o644)))
	err := archive.Unpack(t.Context(), bytes.NewReader(bundle), dir, archive.Limits{})
	if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, archive.ErrNotArchive) {
		t.Errorf("the error is %v", err)
	}
}
