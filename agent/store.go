package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
)

// maxStored bounds a file of the agent's own that is read back.
const maxStored = 64 << 20

// record is what is kept on disk about one assignment.
type record struct {
	Key string `json:"key"`
	// Good is the last version that could be run.
	Good *model.Entry `json:"good,omitempty"`
	// Applied is the sum of the version whose run succeeded, so that a restart
	// knows whether a change is still asked for.
	Applied string `json:"applied,omitempty"`
	// Refused is what was said about versions that were not accepted; it is said once.
	Refused []refusal `json:"refused,omitempty"`
}

// refusal is a version that was not accepted.
type refusal struct {
	Revision uint64 `json:"revision"`
	Sum      string `json:"sum"`
	Problems string `json:"problems"`
}

// store keeps records, one file each.
type store struct {
	host *host.Host
	dir  string
	log  *slog.Logger
}

func newStore(h *host.Host, stateDir string, log *slog.Logger) (*store, error) {
	s := &store{host: h, dir: filepath.Join(stateDir, "assignments"), log: log}

	return s, makeOwnDir(h, s.dir)
}

// makeOwnDir makes a directory that only the agent may enter.
func makeOwnDir(h *host.Host, dir string) error { return h.MakeDirectory(dir, files.OwnAttrs(0o700)) }

// all gives what is on disk. A file that cannot be read is logged and left out:
// the bucket has it, and the others must not suffer.
func (s *store) all() ([]record, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var out []record
	for _, e := range entries {
		key, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		r, err := s.read(key)
		if err != nil {
			s.log.Error("a stored assignment cannot be read", "key", key, "error", err)
			continue
		}
		out = append(out, r)
	}

	return out, nil
}

func (s *store) read(key string) (record, error) {
	var r record
	data, err := s.host.Read(s.path(key), maxStored)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, err
	}
	if _, _, ok := model.SplitKey(key); !ok || r.Key != key || (r.Good != nil && r.Good.Key != key) {
		return r, fmt.Errorf("%s is that of %q", s.path(key), r.Key)
	}

	return r, nil
}

func (s *store) write(ctx context.Context, r record) error {
	return s.host.WriteRecord(ctx, s.path(r.Key), r)
}

func (s *store) remove(key string) error { return s.host.Remove(s.path(key)) }

func (s *store) path(key string) string { return filepath.Join(s.dir, key+".json") }
