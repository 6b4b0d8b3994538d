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

// maxRefusals limits the remembered rejected commands. They are stored apart from the requests: a
// flood of them must not displace executed requests, which could be delivered again.
const maxRefusals = 1000

// refusals stores which commands were rejected and reported. The stream delivers them again at each
// start.
type refusals struct {
	host *host.Host
	path string
	log  *slog.Logger

	mu sync.Mutex
	// sums holds the checksums of ids and contents, oldest first.
	sums []string
}

func openRefusals(h *host.Host, dir string, log *slog.Logger) *refusals {
	r := &refusals{host: h, path: filepath.Join(dir, "refusals"), log: log}
	var err error
	if r.sums, err = host.ReadRecord[[]string](r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("cannot read rejected commands; they are reported again", "error", err)
	}

	return r
}

// refusalOf returns the checksum of a command. It covers the content: otherwise a sender who knows an
// id could cause another command with this id to be ignored.
func refusalOf(id string, data []byte) string { return fileName(id + "\x00" + string(data)) }

// has reports whether a command was rejected before.
func (r *refusals) has(id string, data []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return slices.Contains(r.sums, refusalOf(id, data))
}

// add stores a rejected command.
func (r *refusals) add(ctx context.Context, id string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sums = append(r.sums, refusalOf(id, data))
	r.sums = r.sums[max(len(r.sums)-maxRefusals, 0):]
	if err := r.host.WriteRecord(ctx, r.path, r.sums); err != nil {
		r.log.ErrorContext(ctx, "cannot record rejected command", "id", id, "error", err)
	}
}
