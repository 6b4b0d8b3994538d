package agent

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
)

// maxUpgrade bounds the file that says why an upgrade was undone.
const maxUpgrade = 64 << 10

// reportUpgrade reports an upgrade that was undone, which the package leaves in the
// file upgrade of the state directory (deploy/package/upgrade). A kill in between
// reports it twice.
func (a *Agent) reportUpgrade(ctx context.Context) {
	path := filepath.Join(a.Config().StateDir, "upgrade")
	text, err := files.Read(path, maxUpgrade)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		why := strings.TrimSpace(string(text))
		a.log.ErrorContext(ctx, "upgrade undone", "error", why)
		a.report.Node("", model.NodeRefused, bounds.Text(why))
		err = a.host.Remove(path)
	}
	if err != nil {
		a.log.WarnContext(ctx, "cannot report an upgrade that was undone", "error", err)
	}
}
