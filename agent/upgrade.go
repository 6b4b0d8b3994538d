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

// maxUpgrade limits the file with the reason why an upgrade was reverted.
const maxUpgrade = 64 << 10

// reportUpgrade reports a reverted upgrade, which the package records in the file upgrade of the state
// directory (deploy/package/upgrade). A kill in between may repeat the report.
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
		a.log.WarnContext(ctx, "cannot report a reverted upgrade", "error", err)
	}
}
