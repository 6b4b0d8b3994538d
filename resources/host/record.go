package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/state"
)

// maxRecord is larger than the largest record, of a scaffold with 100,000 files.
const maxRecord = 64 << 20

// ErrDamaged means that WriteRecord did not write the record.
var ErrDamaged = errors.New("damaged")

// ReadRecord reads a record of WriteRecord. The error wraps fs.ErrNotExist, paths.ErrUntrusted if other users
// may write the record, or ErrDamaged for a record that is too large or not valid.
func ReadRecord[T any](path string) (record T, err error) {
	data, err := files.ReadTrusted(path, maxRecord, paths.Author{})
	switch {
	case errors.Is(err, files.ErrTooLarge):
		return record, fmt.Errorf("%w: %w", ErrDamaged, err)
	case err != nil:
		return record, err
	}
	if err := json.Unmarshal(data, &record); err != nil {
		return *new(T), fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}

	return record, nil
}

// recordPath returns the path of the record of a name in a folder of the state directory, empty without a
// state directory.
func (h *Host) recordPath(folder, name string) string {
	if h.StateDir() == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(name))

	return filepath.Join(h.StateDir(), folder, hex.EncodeToString(sum[:16])+".json")
}

// Recall returns the record of a name that Remember wrote, and whether there is one. A damaged record is the
// zero value.
func Recall[T any](h *Host, folder, name string) (record T, found bool, err error) {
	path := h.recordPath(folder, name)
	if path == "" {
		return record, false, nil
	}
	switch record, err = ReadRecord[T](path); {
	case errors.Is(err, fs.ErrNotExist):
		return record, false, nil
	case err != nil && !errors.Is(err, ErrDamaged):
		return record, false, fmt.Errorf("could not read the record of %s: %w", name, err)
	default:
		return record, true, nil
	}
}

// Remember writes a record of a name durably, also after ctx has ended. Without a state directory the error
// wraps state.ErrNone.
func (h *Host) Remember(ctx context.Context, folder, name string, record any) error {
	path := h.recordPath(folder, name)
	if path == "" {
		return fmt.Errorf("what was done to %s cannot be remembered: %w", name, state.ErrNone)
	}

	return h.WriteRecord(ctx, path, record)
}

// Forget removes the record of a name, if there is one.
func (h *Host) Forget(folder, name string) error {
	path := h.recordPath(folder, name)
	if path == "" {
		return nil
	}

	return h.Remove(path)
}
