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
	"sync"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
)

// Journal keeps the pending refreshes of one manifest.
type Journal interface {
	// Add is durable when it returns.
	Add(ctx context.Context, refs ...model.Ref) error
	// Clear removes one; a refresh that is not pending is no error.
	Clear(ctx context.Context, ref model.Ref) error
	// Pending returns those of earlier runs. Its error wraps ErrDamaged when they
	// cannot be known any more.
	Pending() ([]model.Ref, error)
	// Reset makes refs all that are pending, whatever the journal held.
	Reset(ctx context.Context, refs ...model.Ref) error
}

// ErrDamaged is a journal that cannot be read any more.
var ErrDamagedJournal = errors.New("the journal of pending refreshes is damaged")

// FileJournal is a Journal in a file of the state directory. It is safe for concurrent use: the
// runs of a manifest share one FileJournal, and the run lock of the node excludes other processes.
type FileJournal struct {
	mu       sync.Mutex
	host     *host.Host
	path     string
	manifest string
}

// journalRecord is the form on disk.
type journalRecord struct {
	Manifest string      `json:"manifest"`
	Owed     []model.Ref `json:"owed"`
}

// NewFileJournal returns the journal of a manifest within a state directory. It writes
// nothing before a refresh is pending.
func NewFileJournal(h *host.Host, stateDir, manifest string) *FileJournal {
	sum := sha256.Sum256([]byte(manifest))

	return &FileJournal{host: h, manifest: manifest, path: filepath.Join(stateDir, "owed", hex.EncodeToString(sum[:8])+".json")}
}

// Pending returns what is pending, empty when nothing is. After an error that
// wraps ErrDamaged, Add and Clear fail too until Reset.
func (f *FileJournal) Pending() ([]model.Ref, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	return f.pending()
}

func (f *FileJournal) pending() ([]model.Ref, error) {
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
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, err := f.pending(); errors.Is(err, ErrDamagedJournal) {
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
	f.mu.Lock()
	defer f.mu.Unlock()
	pending, err := f.pending()
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
	f.mu.Lock()
	defer f.mu.Unlock()
	pending, err := f.pending()
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

// CheckJournal returns an error if the journal at a path is damaged.
func CheckJournal(path string) error {
	_, err := host.ReadRecord[journalRecord](path)

	return err
}
