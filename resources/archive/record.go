package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
)

// record is the state of an unpacked archive, in the state directory: an
// extraction that a kill prevented is made up for, and the checksum outlives
// the archive. The zero value is no record.
type record struct {
	Archive  string `json:"archive"`
	Checksum string `json:"checksum"`
	// Extracted is set once the archive is unpacked completely.
	Extracted bool `json:"extracted"`
	// Invalid marks content with this checksum that is not an archive.
	Invalid bool `json:"invalid,omitempty"`
}

// maxRecord bounds a record generously.
const maxRecord = 64 << 10

func (r record) owed() bool { return r.Archive != "" && !r.Extracted }

// recordPath returns the path of an archive's record, empty without a state
// directory.
func recordPath(h *host.Host, name string) string {
	if h.StateDir() == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(name))

	return filepath.Join(h.StateDir(), "archives", hex.EncodeToString(sum[:16])+".json")
}

// recall returns the record of an archive. A damaged one is a pending
// extraction: unpacking once more loses nothing.
func recall(h *host.Host, name string) (record, error) {
	path := recordPath(h, name)
	if path == "" {
		return record{}, nil
	}
	data, err := files.Read(path, maxRecord)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return record{}, nil
	case err != nil:
		return record{}, fmt.Errorf("could not read the record of the archive: %w", err)
	}
	var r record
	if json.Unmarshal(data, &r) != nil || r.Archive != name {
		r = record{Archive: name}
	}

	return r, nil
}

// remember writes a record durably, also in a cancelled run.
func remember(ctx context.Context, h *host.Host, r record) error {
	path := recordPath(h, r.Archive)
	if path == "" {
		return nil
	}
	if err := h.WriteRecord(ctx, path, r); err != nil {
		return fmt.Errorf("could not record the pending extraction: %w", err)
	}

	return nil
}

func forget(h *host.Host, name string) error {
	path := recordPath(h, name)
	if path == "" {
		return nil
	}

	return h.Remove(path)
}
