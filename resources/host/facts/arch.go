package facts

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// packageArch returns the architecture of native packages: amd64 for dpkg and x86_64 for rpm.
// It reads the record of dpkg, because a 64-bit kernel may run a 32-bit system.
// Without dpkg it returns the architecture of the kernel.
func packageArch(root, kernelArch string) string {
	f, err := os.Open(filepath.Join(root, "var/lib/dpkg/status"))
	if err != nil {
		return kernelArch
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for isDpkg := false; lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case name == "Package":
			isDpkg = value == "dpkg"
		case name == "Architecture" && isDpkg:
			return value
		}
	}

	return kernelArch
}
