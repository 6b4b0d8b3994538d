package fleetcmd

import (
	"log/slog"
	"strings"

	"github.com/musterfleet/muster/kvstore/requests"
)

// WarnLost warns that answers may be lost. err wraps requests.ErrLost; then describes the consequence.
func WarnLost(log *slog.Logger, target, then string, err error) {
	why := strings.TrimPrefix(err.Error(), requests.ErrLost.Error()+": ")
	log.Warn(requests.ErrLost.Error()+": "+then, "target", target, "error", why)
}
