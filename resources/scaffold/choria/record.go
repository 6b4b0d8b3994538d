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
	"strings"

	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
)

// record is what a node remembers of the files of a target that post commands
// ran on, in its state directory.
type record struct {
	Target string          `json:"target"`
	Files  map[string]past `json:"files"`
}

// past is what was rendered of a file, and what its post commands left.
type past struct {
	Rendered string      `json:"rendered"`
	Mode     fs.FileMode `json:"mode"`
	// Post is the digest of the commands.
	Post       string     `json:"post"`
	Left       string     `json:"left"`
	Attributes attributes `json:"attributes"`
}

// maxRecord is more than the record of 100,000 files takes.
const maxRecord = 64 << 20

func recordPath(h *host.Host, target string) string {
	return filepath.Join(h.StateDir(), "scaffolds", digestOf(target)[:32]+".json")
}

// recall gives the record of a target. A damaged one remembers nothing: then
// the files are written, and the commands run, once more.
func recall(h *host.Host, target string) (record, error) {
	none := record{Target: target, Files: map[string]past{}}
	if h.StateDir() == "" {
		return none, nil
	}
	data, err := h.Read(recordPath(h, target), maxRecord)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("could not read what is remembered of the scaffold: %w", err)
	}
	var r record
	if json.Unmarshal(data, &r) != nil || r.Target != target || r.Files == nil {
		return none, nil
	}

	return r, nil
}

// remember is durable when it returns, also when the run is being broken off.
func remember(ctx context.Context, h *host.Host, r record) error {
	if h.StateDir() == "" {
		return fmt.Errorf("post needs to remember what it did: %w", files.ErrNoStateDir)
	}
	if err := h.WriteRecord(ctx, recordPath(h, r.Target), r); err != nil {
		return fmt.Errorf("could not remember what post did: %w", err)
	}

	return nil
}

func forget(h *host.Host, target string) error {
	if h.StateDir() == "" {
		return nil
	}

	return h.Remove(recordPath(h, target))
}

// digestOf gives the hex SHA-256 of a text, or of commands.
func digestOf[T string | []byte | [][]string](v T) string {
	var text []byte
	switch v := any(v).(type) {
	case string:
		text = []byte(v)
	case []byte:
		text = v
	case [][]string:
		for _, words := range v {
			text = append(text, strings.Join(words, "\x00")+"\x00\x00"...)
		}
	}
	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:])
}
