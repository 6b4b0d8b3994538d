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

// Journal stores the pending refreshes of one manifest. A run records the refreshes that a change
// causes before it makes the change, and clears each refresh after it was made.
type Journal interface {
	// Add returns after the refreshes are on disk.
	Add(ctx context.Context, refs ...model.Ref) error
	// Clear removes a refresh. Clearing a refresh that is not pending is not an error.
	Clear(ctx context.Context, ref model.Ref) error
	// Pending returns the refreshes of earlier runs. Its error wraps ErrDamagedJournal if they are
	// lost.
	Pending() ([]model.Ref, error)
	// Reset replaces all pending refreshes by refs.
	Reset(ctx context.Context, refs ...model.Ref) error
}

// ErrDamagedJournal is the error of an unreadable journal.
var ErrDamagedJournal = errors.New("the journal of pending refreshes is damaged")

// FileJournal is a Journal in a file of the state directory. It is safe for concurrent use: the
// runs of a manifest share one FileJournal, and the run lock of the node excludes other processes.
type FileJournal struct {
	mu       sync.Mutex
	host     *host.Host
	path     string
	manifest string
}

// journalRecord is the format on disk.
type journalRecord struct {
	Manifest string      `json:"manifest"`
	Owed     []model.Ref `json:"owed"`
}

// NewFileJournal returns the journal of a manifest in a state directory. It writes nothing while no
// refresh is pending.
func NewFileJournal(h *host.Host, stateDir, manifest string) *FileJournal {
	sum := sha256.Sum256([]byte(manifest))

	return &FileJournal{host: h, manifest: manifest, path: filepath.Join(stateDir, "owed", hex.EncodeToString(sum[:8])+".json")}
}

// Pending returns the pending refreshes. After an error that wraps ErrDamagedJournal, Add and Clear
// fail until Reset.
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

// Reset replaces all pending refreshes by refs. It saves a damaged journal beside, with the suffix
// .damaged and its digest.
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

// setAside copies the damaged journal instead of moving it. Until a new journal exists, the damaged
// journal shows that refreshes may be pending.
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

// Add adds refreshes and returns after they are on disk.
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

// Clear removes a refresh. Clearing a refresh that is not pending is not an error.
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
