package fleetcmd

import (
	"log/slog"
	"strings"

	"github.com/musterfleet/muster/kvstore/requests"
)

// WarnLost warns that answers of a target may be lost, by an error that wraps requests.ErrLost; then is what
// becomes of those.
func WarnLost(log *slog.Logger, target, then string, err error) {
	why := strings.TrimPrefix(err.Error(), requests.ErrLost.Error()+": ")
	log.Warn(requests.ErrLost.Error()+": "+then, "target", target, "error", why)
}
