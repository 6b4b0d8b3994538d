package desired

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
)

// record is the stored record of an assignment.
type record struct {
	Key string `json:"key"`
	// Good is the last version that resolved.
	Good *model.Entry `json:"good,omitempty"`
	// Newest is the last known version of the bucket, if it differs.
	Newest *model.Entry `json:"newest,omitempty"`
	// Applied is the sum of the version with a successful run. After a restart it shows whether a change is
	// still requested.
	Applied string `json:"applied,omitempty"`
	// Refused are the rejected versions. Each is reported once.
	Refused []rejection `json:"refused,omitempty"`
}

// rejection is a rejected version.
type rejection struct {
	Revision uint64 `json:"revision"`
	Sum      string `json:"sum"`
	Problems string `json:"problems"`
}

// is reports whether an entry is the rejected version.
func (r rejection) is(e model.Entry) bool {
	return r.Revision == e.Revision && r.Sum == sumOf(e)
}

// bucketRecord is the stored state of the bucket.
type bucketRecord struct {
	// Stream and Kept are the fields of model.Sync.
	Stream time.Time `json:"stream,omitzero"`
	Kept   []string  `json:"kept,omitempty"`
}

// store stores records in one file each, and seen.json beside them.
type assignmentStore struct {
	host *host.Host
	dir  string
	seen string
	log  *slog.Logger
}

func openAssignments(h *host.Host, stateDir string, log *slog.Logger) (*assignmentStore, error) {
	s := &assignmentStore{host: h, dir: filepath.Join(stateDir, "assignments"), seen: filepath.Join(stateDir, "seen.json"), log: log}

	return s, h.MakeDirectory(s.dir, files.OwnAttrs(0o700))
}

// bucket reads the stored state of the bucket. It logs and ignores a damaged file, because the bucket is read
// anyway.
func (s *assignmentStore) bucket() (bucketRecord, error) {
	out, err := host.ReadRecord[bucketRecord](s.seen)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case errors.Is(err, host.ErrDamaged):
		s.log.Warn("stored state of the bucket ignored", "error", err)
		err = nil
	}

	return out, err
}

func (s *assignmentStore) writeBucket(ctx context.Context, b bucketRecord) error {
	return s.host.WriteRecord(ctx, s.seen, b)
}

// all reads all records. It logs and skips an unreadable record, because the bucket has it.
func (s *assignmentStore) all() ([]record, error) {
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
			s.log.Error("stored assignment is unreadable, ignored", "key", key, "error", err)
			continue
		}
		out = append(out, r)
	}

	return out, nil
}

func (s *assignmentStore) read(key string) (record, error) {
	r, err := host.ReadRecord[record](s.path(key))
	if err != nil {
		return r, err
	}
	if _, _, ok := model.SplitKey(key); !ok || r.Key != key || (r.Good != nil && r.Good.Key != key) || (r.Newest != nil && r.Newest.Key != key) {
		return r, fmt.Errorf("%s is that of %q", s.path(key), r.Key)
	}

	return r, nil
}

func (s *assignmentStore) write(ctx context.Context, r record) error {
	return s.host.WriteRecord(ctx, s.path(r.Key), r)
}

func (s *assignmentStore) remove(key string) error { return s.host.Remove(s.path(key)) }

func (s *assignmentStore) path(key string) string { return filepath.Join(s.dir, key+".json") }
