package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
)

// ErrNoSession is a session store that is not there, or is none.
var ErrNoSession = errors.New("no session store")

// maxTransaction bounds the size of one stored transaction.
const maxTransaction = 16 << 20

// Session is a directory of transactions, one file each, by which resources of
// several commands reach each other (spec/formats.md, "Sessions").
type Session struct {
	host *host.Host
	dir  string
}

// OpenSession opens an existing store. The error wraps ErrNoSession.
func OpenSession(h *host.Host, dir string) (*Session, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w; make one with `eval $(muster session new)`", ErrNoSession, err)
	case !info.IsDir():
		return nil, fmt.Errorf("%w: %s is not a directory", ErrNoSession, dir)
	}

	return &Session{host: h, dir: dir}, nil
}

// Append stores a transaction under its event id.
func (s *Session) Append(ctx context.Context, t *model.Transaction) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	self := host.Attrs{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Mode: 0o600}

	return s.host.Write(context.WithoutCancel(ctx), filepath.Join(s.dir, t.EventID+".json"), bytes.NewReader(data), self)
}

// Transactions gives all that is stored, the oldest first.
func (s *Session) Transactions() ([]*model.Transaction, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoSession, err)
	}
	var out []*model.Transaction
	for _, e := range entries {
		id, isJSON := strings.CutSuffix(e.Name(), ".json")
		if _, err := ksuid.Parse(id); !isJSON || err != nil {
			continue
		}
		t, err := s.read(e.Name())
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	// A KSUID counts in seconds; within one the time of the event decides.
	slices.SortStableFunc(out, func(a, b *model.Transaction) int { return a.Timestamp.Compare(b.Timestamp) })

	return out, nil
}

func (s *Session) read(name string) (*model.Transaction, error) {
	path := filepath.Join(s.dir, name)
	data, err := s.host.Read(path, maxTransaction)
	if err != nil {
		return nil, err
	}
	t := &model.Transaction{}
	if err := json.Unmarshal(data, t); err != nil {
		return nil, fmt.Errorf("%s is not a transaction: %w", path, err)
	}

	return t, nil
}

// Earlier gives the look-up of a run's options: the newest transaction of a
// resource, by its name or alias.
func (s *Session) Earlier() (func(model.Ref) (*model.Transaction, bool), error) {
	all, err := s.Transactions()
	if err != nil {
		return nil, err
	}
	newest := make(map[model.Ref]*model.Transaction, len(all))
	for _, t := range all {
		newest[t.Ref()] = t
		if t.Alias != "" {
			newest[model.Ref{Type: t.Type, Name: t.Alias}] = t
		}
	}

	return func(ref model.Ref) (*model.Transaction, bool) {
		t, ok := newest[ref]
		return t, ok
	}, nil
}

// Summary counts what happened in the session.
func (s *Session) Summary() (model.SessionSummary, error) {
	all, err := s.Transactions()
	if err != nil {
		return model.SessionSummary{}, err
	}
	var out model.SessionSummary
	unique := map[model.Ref]bool{}
	for _, t := range all {
		out.Counts.Add(t)
		unique[t.Ref()] = true
		if end := t.Timestamp.Add(t.Duration); end.After(out.EndTime) {
			out.EndTime = end
		}
		out.TotalDuration += time.Duration(t.Duration)
	}
	if len(all) > 0 {
		out.StartTime = all[0].Timestamp
	}
	out.Counts.Unique = len(unique)

	return out, nil
}

// Remove deletes the store.
func (s *Session) Remove() error { return s.host.RemoveAll(s.dir) }
