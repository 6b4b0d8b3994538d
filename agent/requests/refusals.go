package requests

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"github.com/musterfleet/muster/resources/host"
)

// maxRefusals is how many rejected commands are remembered. They are kept apart from
// the requests: any number of them may be queued, and must not displace what was
// executed and could come again.
const maxRefusals = 1000

// refusals are the commands that were rejected and reported, on disk: what waits in the
// stream comes again at each start.
type refusals struct {
	host *host.Host
	path string
	log  *slog.Logger

	mu sync.Mutex
	// sums are those of ids with their content, the oldest first.
	sums []string
}

func openRefusals(h *host.Host, dir string, log *slog.Logger) *refusals {
	r := &refusals{host: h, path: filepath.Join(dir, "refusals"), log: log}
	var err error
	if r.sums, err = host.ReadRecord[[]string](r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("rejected commands are not known, and are reported again", "error", err)
	}

	return r
}

// refusalOf tells a rejected command from others. Content is part of it: whoever knows
// an id must not have another's command ignored.
func refusalOf(id string, data []byte) string { return fileName(id + "\x00" + string(data)) }

// has reports whether a command was rejected before.
func (r *refusals) has(id string, data []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return slices.Contains(r.sums, refusalOf(id, data))
}

// add remembers a rejected command.
func (r *refusals) add(ctx context.Context, id string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sums = append(r.sums, refusalOf(id, data))
	r.sums = r.sums[max(len(r.sums)-maxRefusals, 0):]
	if err := r.host.WriteRecord(ctx, r.path, r.sums); err != nil {
		r.log.ErrorContext(ctx, "cannot record rejected command", "id", id, "error", err)
	}
}
