package desired

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/host"
)

// controlRecord is the record on disk.
type controlRecord struct {
	controlBucketRecord
	// Keys are the active documents.
	Keys map[string]model.Entry `json:"keys"`
}

// controlBucketRecord is the stored state of the bucket: Stream and Kept of model.Sync.
type controlBucketRecord struct {
	Stream time.Time `json:"stream,omitzero"`
	Kept   []string  `json:"kept,omitempty"`
}

// store stores a record in a file. Without a path it stores nothing.
type controlStore struct {
	host *host.Host
	path string
}

// read reads the record. It logs and ignores a damaged record, because the bucket is read anyway.
func (s controlStore) read(log *slog.Logger) (controlRecord, error) {
	if s.path == "" {
		return controlRecord{}, nil
	}
	out, err := host.ReadRecord[controlRecord](s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case errors.Is(err, host.ErrDamaged):
		log.Warn("stored control documents ignored, the bucket has them", "error", err)
		err = nil
	}

	return out, err
}

func (s controlStore) write(ctx context.Context, r controlRecord) error {
	if s.path == "" {
		return nil
	}

	return s.host.WriteRecord(ctx, s.path, r)
}

// CheckControl checks the stored documents at a path. It returns the reason why OpenControl would skip one.
func CheckControl(path string) error {
	r, err := host.ReadRecord[controlRecord](path)
	for key, e := range r.Keys {
		if _, failed := decode(e); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", key, failed))
		}
	}

	return err
}

// controlDocument is an active pause, labels or groups document.
type controlDocument struct {
	entry  model.Entry
	pause  *model.Pause
	labels map[string]string
	groups model.Groups
}

// decode decodes the value of a key without verifying signatures. The error is permanent.
func decode(e model.Entry) (controlDocument, error) {
	_, name, ok := model.SplitKey(e.Key)
	if !ok || !model.IsControlKey(e.Key) {
		return controlDocument{}, fmt.Errorf("%w: %q is no control key", model.ErrInvalidControl, e.Key)
	}
	if e.Refused != "" {
		return controlDocument{}, fmt.Errorf("%w: %s", model.ErrInvalidControl, e.Refused)
	}
	content, err := signed.Content(e.Value)
	if err != nil {
		return controlDocument{}, fmt.Errorf("%w: %w", model.ErrInvalidControl, err)
	}
	out := controlDocument{entry: e}
	switch name {
	case model.ControlPause:
		p, err := model.DecodePause(content)
		out.pause = &p
		return out, err
	case model.ControlGroups:
		g, err := model.DecodeGroups(content)
		out.groups = g
		return out, err
	default:
		l, err := model.DecodeLabels(content)
		out.labels = l.Labels
		return out, err
	}
}
