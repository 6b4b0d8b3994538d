package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
)

// ErrJournalDamaged is a journal of which nobody can say what it owed.
var ErrJournalDamaged = errors.New("the journal of owed refreshes is damaged")

// FileJournal keeps the owed refreshes of one manifest in a file. It is used by
// one run at a time, which the run lock of the node ensures.
type FileJournal struct {
	host     *host.Host
	path     string
	manifest string
}

// maxJournal is far more than any manifest has subscribers.
const maxJournal = 16 << 20

// journalFile is the form on disk.
type journalFile struct {
	Manifest string      `json:"manifest"`
	Owed     []model.Ref `json:"owed"`
}

// NewFileJournal gives the journal of a manifest within a node's state
// directory. Nothing is written before something is owed.
func NewFileJournal(h *host.Host, stateDir, manifest string) *FileJournal {
	sum := sha256.Sum256([]byte(manifest))

	return &FileJournal{host: h, manifest: manifest, path: filepath.Join(stateDir, "owed", hex.EncodeToString(sum[:8])+".json")}
}

// Owed gives what is owed, empty when there is nothing. Its error may be
// ErrJournalDamaged, which then Owe and Settle fail with too: Reset helps.
func (j *FileJournal) Owed() ([]model.Ref, error) {
	data, err := j.host.Read(j.path, maxJournal)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, files.ErrTooLarge):
		return nil, fmt.Errorf("%w: %w", ErrJournalDamaged, err)
	case err != nil:
		return nil, err
	}
	var f journalFile
	err = json.Unmarshal(data, &f)
	if err == nil && f.Manifest != j.manifest {
		err = fmt.Errorf("it is of %q, not of %q", f.Manifest, j.manifest)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrJournalDamaged, j.path, err)
	}

	return f.Owed, nil
}

// Reset makes owed all that is owed. A damaged journal is kept beside, under a
// name that says so.
func (j *FileJournal) Reset(ctx context.Context, owed ...model.Ref) error {
	if _, err := j.Owed(); errors.Is(err, ErrJournalDamaged) {
		if err := j.setAside(ctx); err != nil {
			return fmt.Errorf("keeping the damaged journal: %w", err)
		}
	}

	return j.write(ctx, owed)
}

// setAside copies the journal: until there is a new one, the damaged one says
// that something may be owed.
func (j *FileJournal) setAside(ctx context.Context) error {
	digest, err := j.host.Digest(ctx, j.path)
	if err != nil {
		return err
	}
	f, err := j.host.Open(j.path)
	if err != nil {
		return err
	}
	defer f.Close()

	return j.host.Write(context.WithoutCancel(ctx), j.path+".damaged-"+digest[:16], f, files.OwnAttrs(0o600))
}

// Owe adds debts, and returns when they are on disk.
func (j *FileJournal) Owe(ctx context.Context, to ...model.Ref) error {
	owed, err := j.Owed()
	if err != nil {
		return err
	}
	for _, ref := range to {
		if !slices.Contains(owed, ref) {
			owed = append(owed, ref)
		}
	}

	return j.write(ctx, owed)
}

// Settle strikes a debt out; one that is not there is no error.
func (j *FileJournal) Settle(ctx context.Context, to model.Ref) error {
	owed, err := j.Owed()
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(owed), func(ref model.Ref) bool { return ref == to })
	if len(left) == len(owed) {
		return nil
	}

	return j.write(ctx, left)
}

func (j *FileJournal) write(ctx context.Context, owed []model.Ref) error {
	if len(owed) == 0 {
		return j.host.Remove(j.path)
	}

	return j.host.WriteRecord(ctx, j.path, journalFile{Manifest: j.manifest, Owed: owed})
}
