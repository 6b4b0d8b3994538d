// Package resources lists the resource types that muster has.
package resources

import (
	"github.com/musterfleet/muster/resources/apply"
	"github.com/musterfleet/muster/resources/archive"
	"github.com/musterfleet/muster/resources/edits"
	"github.com/musterfleet/muster/resources/exec"
	"github.com/musterfleet/muster/resources/file"
	"github.com/musterfleet/muster/resources/link"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/pkg/apt"
	"github.com/musterfleet/muster/resources/pkg/dnf"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
	"github.com/musterfleet/muster/resources/service"
	"github.com/musterfleet/muster/resources/service/systemd"
)

// All returns new values of all types. List one type per line.
func All() resource.Types {
	return resource.Types{
		file.New(file.Posix{}),
		link.New(link.Posix{}),
		edits.Line(edits.Posix{}),
		edits.Block(edits.Posix{}),
		edits.Setting(edits.Posix{}),
		exec.New(exec.Posix{}, exec.Shell("/bin/sh")),
		pkg.New(apt.New(), dnf.New()),
		service.New(systemd.New("/")),
		archive.New(archive.NewHTTP(archive.HTTPOptions{})),
		scaffold.New(scaffold.NewChoria()),
		apply.New(apply.CCMManifest{}),
	}
}
