package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
)

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

// Owed gives what is owed, empty when there is nothing.
func (j *FileJournal) Owed() ([]model.Ref, error) {
	data, err := j.host.Read(j.path, maxJournal)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var f journalFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%s is damaged, remove it after refreshing what subscribes in %s: %w", j.path, j.manifest, err)
	}

	return f.Owed, nil
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
	switch {
	case len(left) == len(owed):
		return nil
	case len(left) == 0:
		return j.host.Remove(j.path)
	}

	return j.write(ctx, left)
}

func (j *FileJournal) write(ctx context.Context, owed []model.Ref) error {
	data, err := json.Marshal(journalFile{Manifest: j.manifest, Owed: owed})
	if err != nil {
		return err
	}
	self := host.Attrs{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Mode: 0o600}
	dir := self
	dir.Mode = 0o700
	if err := j.host.MakeDirectory(filepath.Dir(j.path), dir); err != nil {
		return err
	}
	// A debt must be written down even when the run is being broken off.
	return j.host.Write(context.WithoutCancel(ctx), j.path, bytes.NewReader(data), self)
}
