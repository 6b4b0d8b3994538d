package facts

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
)

// maxStatusLine limits a line of the dpkg database. Some packages provide thousands of names.
const maxStatusLine = 1 << 20

// packageArch returns the architecture of native packages, amd64 for dpkg and x86_64 for rpm.
// It is the architecture of the package dpkg, because a 64-bit kernel may run a 32-bit system,
// or else of the kernel.
func packageArch(root, kernelArch string) string {
	f, err := os.Open(filepath.Join(root, "var/lib/dpkg/status"))
	if err != nil {
		return kernelArch
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxStatusLine)
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
