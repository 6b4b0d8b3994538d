// Package resources lists the resource types that muster has.
package resources

import (
	"github.com/musterfleet/muster/resources/apply"
	"github.com/musterfleet/muster/resources/apply/ccmmanifest"
	"github.com/musterfleet/muster/resources/archive"
	"github.com/musterfleet/muster/resources/archive/http"
	"github.com/musterfleet/muster/resources/exec"
	execposix "github.com/musterfleet/muster/resources/exec/posix"
	"github.com/musterfleet/muster/resources/exec/shell"
	"github.com/musterfleet/muster/resources/file"
	fileposix "github.com/musterfleet/muster/resources/file/posix"
	"github.com/musterfleet/muster/resources/pkg"
	"github.com/musterfleet/muster/resources/pkg/apt"
	"github.com/musterfleet/muster/resources/pkg/dnf"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
	"github.com/musterfleet/muster/resources/scaffold/choria"
	"github.com/musterfleet/muster/resources/service"
	"github.com/musterfleet/muster/resources/service/systemd"
)

// All returns every type, each call a new one: one line each.
func All() resource.Types {
	return resource.Types{
		file.New(fileposix.Provider{}),
		exec.New(execposix.Provider{}, shell.New()),
		pkg.New(apt.New(), dnf.New()),
		service.New(systemd.New("/")),
		archive.New(http.New(http.Options{})),
		scaffold.New(choria.New()),
		apply.New(ccmmanifest.Provider{}),
	}
}
