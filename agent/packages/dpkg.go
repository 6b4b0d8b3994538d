package packages

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/pkg/version"
)

// Limits of a database: other programs write it.
const (
	maxPackages = 100_000
	maxLine     = 1 << 20
)

// errTooMany reports a database with too many packages.
var errTooMany = fmt.Errorf("more than %d packages are installed", maxPackages)

// parseDpkg returns the unpacked packages of a dpkg status file.
func parseDpkg(r io.Reader) ([]model.Package, error) {
	var out []model.Package
	var p model.Package
	state := ""
	end := func() error {
		if p.Name != "" && isUnpacked(state) {
			if len(out) == maxPackages {
				return errTooMany
			}
			out = append(out, p)
		}
		p, state = model.Package{Manager: version.Deb}, ""
		return nil
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	err := end()
	for err == nil && lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch field {
		case "":
			if lines.Text() == "" {
				err = end()
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

	return out, errors.Join(err, lines.Err(), end())
}

// isUnpacked reports whether the files of a package with a status are on the disk.
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

// rpmFormat is the output of rpm, a line for each package.
const rpmFormat = `%{NAME}\t%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\t%{ARCH}\n`

// parseRPM reads lines of rpmFormat. The keys of repositories are no packages.
func parseRPM(text string) ([]model.Package, error) {
	var out []model.Package
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case len(f) != 3:
			return nil, fmt.Errorf("unexpected output of rpm: %.80q", line)
		case f[0] == "gpg-pubkey":
			continue
		case len(out) == maxPackages:
			return nil, errTooMany
		}
		out = append(out, model.Package{Name: f[0], Version: f[1], Arch: strings.Replace(f[2], "(none)", "", 1), Manager: version.RPM})
	}

	return out, nil
}
