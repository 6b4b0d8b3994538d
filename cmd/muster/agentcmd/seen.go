package agentcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/resources/host"
)

// maxSeen bounds the file that remembers what the bucket held.
const maxSeen = 256 << 20

// seen stores on disk what a node saw of the bucket.
type seen struct {
	host *host.Host
	log  *slog.Logger
}

func (s seen) file() string { return filepath.Join(s.host.StateDir(), "seen.json") }

// Remember stores what the bucket holds for after a restart, also during a
// shutdown.
func (s seen) Remember(ctx context.Context, m watch.Memory) error {
	return s.host.WriteRecord(ctx, s.file(), m)
}

// Recall reads what was remembered. A damaged file counts as none: the bucket is
// read anyway.
func (s seen) Recall() (watch.Memory, error) {
	var out watch.Memory
	text, err := s.host.Read(s.file(), maxSeen)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("the last known assignments: %w", err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		s.log.Warn("last known assignments are damaged, ignored", "file", s.file(), "error", err)
		return watch.Memory{}, nil
	}

	return out, nil
}
