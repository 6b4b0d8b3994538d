package facts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPackageArch(t *testing.T) {
	t.Parallel()
	if got := packageArch(t.TempDir(), "x86_64"); got != "x86_64" {
		t.Errorf("without dpkg it is %q", got)
	}
	root := t.TempDir()
	path := filepath.Join(root, "var/lib/dpkg/status")
	status := "Package: debconf\nArchitecture: all\nProvides: " + strings.Repeat("x", 100_000) + "\n\nPackage: dpkg\nStatus: install ok installed\nArchitecture: i386\n\nPackage: zsh\nArchitecture: amd64\n"
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(status), 0o644)); err != nil {
		t.Fatal(err)
	}
	if got := packageArch(root, "x86_64"); got != "i386" {
		t.Errorf("with dpkg of i386 it is %q", got)
	}
}
