package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
)

// File is a Journal in a file. One run uses it at a time, which the run lock of
// the node ensures.
type FileJournal struct {
	host     *host.Host
	path     string
	manifest string
}

// content is the form on disk.
type journalRecord struct {
	Manifest string      `json:"manifest"`
	Owed     []model.Ref `json:"owed"`
}

// NewFile returns the journal of a manifest within a state directory. It writes
// nothing before a refresh is pending.
func NewFileJournal(h *host.Host, stateDir, manifest string) *FileJournal {
	sum := sha256.Sum256([]byte(manifest))

	return &FileJournal{host: h, manifest: manifest, path: filepath.Join(stateDir, "owed", hex.EncodeToString(sum[:8])+".json")}
}

// Pending returns what is pending, empty when nothing is. After an error that
// wraps ErrDamaged, Add and Clear fail too until Reset.
func (f *FileJournal) Pending() ([]model.Ref, error) {
	c, err := host.ReadRecord[journalRecord](f.path)
	if err == nil && c.Manifest != f.manifest {
		err = fmt.Errorf("%w: %s is of %q, not of %q", host.ErrDamaged, f.path, c.Manifest, f.manifest)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, host.ErrDamaged):
		return nil, fmt.Errorf("%w: %w", ErrDamagedJournal, err)
	default:
		return c.Owed, err
	}
}

// Reset makes refs all that are pending. A damaged journal is kept beside, under
// a name that ends with .damaged and its digest.
func (f *FileJournal) Reset(ctx context.Context, refs ...model.Ref) error {
	if _, err := f.Pending(); errors.Is(err, ErrDamagedJournal) {
		if err := f.setAside(ctx); err != nil {
			return fmt.Errorf("keeping the damaged journal: %w", err)
		}
	}

	return f.write(ctx, refs)
}

// setAside copies the journal and does not move it: until there is a new one,
// the damaged one shows that something may be pending.
func (f *FileJournal) setAside(ctx context.Context) error {
	digest, err := f.host.Digest(ctx, f.path)
	if err != nil {
		return err
	}
	damaged, err := files.Open(f.path)
	if err != nil {
		return err
	}
	defer damaged.Close()

	return f.host.Write(context.WithoutCancel(ctx), f.path+".damaged-"+digest[:16], damaged, files.OwnAttrs(0o600))
}

// Add adds refreshes, and returns when they are on disk.
func (f *FileJournal) Add(ctx context.Context, refs ...model.Ref) error {
	pending, err := f.Pending()
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if !slices.Contains(pending, ref) {
			pending = append(pending, ref)
		}
	}

	return f.write(ctx, pending)
}

// Clear removes a refresh; one that is not pending is no error.
func (f *FileJournal) Clear(ctx context.Context, ref model.Ref) error {
	pending, err := f.Pending()
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(pending), func(r model.Ref) bool { return r == ref })
	if len(left) == len(pending) {
		return nil
	}

	return f.write(ctx, left)
}

func (f *FileJournal) write(ctx context.Context, refs []model.Ref) error {
	if len(refs) == 0 {
		return f.host.Remove(f.path)
	}

	return f.host.WriteRecord(ctx, f.path, journalRecord{Manifest: f.manifest, Owed: refs})
}

// CheckRecord reads the journal at a path, of whichever manifest it is.
func CheckJournal(path string) error {
	_, err := host.ReadRecord[journalRecord](path)

	return err
}
