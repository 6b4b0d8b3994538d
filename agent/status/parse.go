package status

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/pkg/version"
)

// maxLine is the maximum length of a line of a package database, in bytes.
const maxLine = 1 << 20

var errTooMany = fmt.Errorf("more than %d packages are installed", model.MaxPackages)

// parseDpkg returns the unpacked packages of a dpkg status file.
func parseDpkg(r io.Reader) ([]model.Package, error) {
	var out []model.Package
	var p model.Package
	state := ""
	end := func() error {
		if p.Name != "" && isUnpacked(state) {
			if len(out) == model.MaxPackages {
				return errTooMany
			}
			out = append(out, p)
		}
		p, state = model.Package{Manager: version.Deb}, ""
		return nil
	}
	_ = end() // begins the first package
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch field {
		case "":
			if lines.Text() == "" {
				if err := end(); err != nil {
					return nil, err
				}
			}
		case "Package":
			p.Name = value
		case "Version":
			p.Version = value
		case "Architecture":
			p.Arch = value
		case "Status":
			state = value
		}
	}

	return out, cmp.Or(lines.Err(), end())
}

// isUnpacked reports whether a package with a status has its files on the disk.
func isUnpacked(status string) bool {
	words := strings.Fields(status)
	if len(words) != 3 {
		return false
	}
	switch words[2] {
	case "installed", "unpacked", "half-configured", "triggers-awaited", "triggers-pending":
		return true
	default:
		return false
	}
}

// rpmFormat prints one line per package.
const rpmFormat = `%{NAME}\t%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\t%{ARCH}\n`

// parseRPM returns the packages in lines of rpmFormat. It skips the keys of repositories, which rpm lists as packages.
func parseRPM(text string) ([]model.Package, error) {
	var out []model.Package
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case len(f) != 3:
			return nil, fmt.Errorf("unexpected output of rpm: %.80q", line)
		case f[0] == "gpg-pubkey":
			continue
		case len(out) == model.MaxPackages:
			return nil, errTooMany
		}
		out = append(out, model.Package{Name: f[0], Version: f[1], Arch: strings.Replace(f[2], "(none)", "", 1), Manager: version.RPM})
	}

	return out, nil
}
