package choria

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

// record is what the state directory holds about the files of a target that
// post commands ran on.
type record struct {
	Target string          `json:"target"`
	Files  map[string]past `json:"files"`
}

// past is a rendered file, its commands, and what these left.
type past struct {
	Rendered   string      `json:"rendered"`
	Mode       fs.FileMode `json:"mode"`
	Post       string      `json:"post"`
	Left       string      `json:"left"`
	Attributes files.Attrs `json:"attributes"`
}

func pastOf(f file, commands [][]string, left string, entry files.Entry) past {
	return past{Rendered: f.digest, Mode: f.mode, Post: digestOf(fmt.Appendf(nil, "%q", commands)), Left: left, Attributes: attributesOf(entry)}
}

// maxRecord is more than the record of 100,000 files takes.
const maxRecord = 64 << 20

func recordPath(h *host.Host, target string) string {
	return filepath.Join(h.StateDir(), "scaffolds", digestOf([]byte(target))[:32]+".json")
}

// recall returns the record of a target. A damaged one is empty: then the files
// are written, and the commands run, once more.
func recall(h *host.Host, target string) (record, error) {
	r, none := record{}, record{Target: target, Files: map[string]past{}}
	if h.StateDir() == "" {
		return none, nil
	}
	data, err := files.Read(recordPath(h, target), maxRecord)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("could not read the record of the scaffold: %w", err)
	case json.Unmarshal(data, &r) != nil || r.Target != target || r.Files == nil:
		return none, nil
	}

	return r, nil
}

// save writes the record, also when the run is ending. It is durable afterwards.
func (r record) save(ctx context.Context, h *host.Host) error {
	if h.StateDir() == "" {
		return fmt.Errorf("post needs to remember what it did: %w", files.ErrNoStateDir)
	}
	if err := h.WriteRecord(ctx, recordPath(h, r.Target), r); err != nil {
		return fmt.Errorf("could not write the record of the scaffold: %w", err)
	}

	return nil
}

func forget(h *host.Host, target string) error {
	if h.StateDir() == "" {
		return nil
	}

	return h.Remove(recordPath(h, target))
}

// digestOf returns the hex SHA-256 of a text.
func digestOf(text []byte) string {
	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:])
}
