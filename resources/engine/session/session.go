// Package session keeps the transactions of several commands, by which their
// resources reach each other (spec/formats.md, "Sessions").
package session

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
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/state"
)

// ErrNone is a directory that is missing, or is no session store.
var ErrNone = errors.New("no session store")

// maxTransaction bounds the size of one stored transaction.
const maxTransaction = 16 << 20

// Store is a directory of transactions, one file each.
type Store struct {
	host *host.Host
	dir  string
}

// sessionMark is the file that tells a store from any other directory.
const sessionMark = ".muster-session"

// New makes a directory a store. It must be empty. The error wraps trust.ErrUntrusted for a directory that other users
// may change.
func New(ctx context.Context, h *host.Host, dir string) (*Store, error) {
	if _, err := state.Check(dir); err != nil {
		return nil, fmt.Errorf("session store: %w", err)
	}
	empty, err := h.IsEmpty(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	case !empty:
		return nil, fmt.Errorf("%w: %s is not empty", ErrNone, dir)
	}
	s := &Store{host: h, dir: dir}

	return s, s.write(ctx, sessionMark, nil)
}

// Open opens an existing store. Any other directory is refused: what a
// variable names by mistake must not be written into, still less removed. The
// error wraps ErrNone, or trust.ErrUntrusted for a directory that other users may change.
func Open(h *host.Host, dir string) (*Store, error) {
	if _, err := state.Check(dir); err != nil {
		return nil, fmt.Errorf("session store: %w", err)
	}
	mark, err := h.Look(filepath.Join(dir, sessionMark))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	case mark.Kind != files.File:
		return nil, fmt.Errorf("%w: %s was not made by muster session new", ErrNone, dir)
	}

	return &Store{host: h, dir: dir}, nil
}

// Append stores a transaction under its event id.
func (s *Store) Append(ctx context.Context, t *model.Transaction) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}

	return s.write(ctx, t.EventID+".json", data)
}

func (s *Store) write(ctx context.Context, name string, data []byte) error {
	return s.host.Write(context.WithoutCancel(ctx), filepath.Join(s.dir, name), bytes.NewReader(data), files.OwnAttrs(0o600))
}

// transactions returns all that is stored, the oldest first.
func (s *Store) transactions() ([]*model.Transaction, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	var out []*model.Transaction
	for _, name := range names {
		t, err := s.read(name)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	// A KSUID counts in seconds; within one the time of the event decides.
	slices.SortStableFunc(out, func(a, b *model.Transaction) int { return a.Timestamp.Compare(b.Timestamp) })

	return out, nil
}

// names returns the files of the store that hold transactions.
func (s *Store) names() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	var out []string
	for _, e := range entries {
		id, isJSON := strings.CutSuffix(e.Name(), ".json")
		if _, err := ksuid.Parse(id); isJSON && err == nil {
			out = append(out, e.Name())
		}
	}

	return out, nil
}

func (s *Store) read(name string) (*model.Transaction, error) {
	path := filepath.Join(s.dir, name)
	data, err := files.Read(path, maxTransaction)
	if err != nil {
		return nil, err
	}
	t := &model.Transaction{}
	if err := json.Unmarshal(data, t); err != nil {
		return nil, fmt.Errorf("%s is not a transaction: %w", path, err)
	}

	return t, nil
}

// History returns what the commands of the session did so far.
func (s *Store) History() (plan.History, error) {
	all, err := s.transactions()
	if err != nil {
		return nil, err
	}
	h := make(plan.History, len(all))
	for _, t := range all {
		h[t.Ref()] = append(h[t.Ref()], t)
		if t.Alias != "" {
			byAlias := model.Ref{Type: t.Type, Name: t.Alias}
			h[byAlias] = append(h[byAlias], t)
		}
	}

	return h, nil
}

// Summary is what muster session report prints (spec/formats.md, "Sessions").
type Summary struct {
	StartTime     time.Time     `json:"start_time"`
	EndTime       time.Time     `json:"end_time"`
	TotalDuration time.Duration `json:"total_duration"`
	model.Counts
}

// Summary counts what happened in the session, without what noop predicted.
func (s *Store) Summary() (Summary, error) {
	all, err := s.transactions()
	if err != nil {
		return Summary{}, err
	}
	all = slices.DeleteFunc(all, func(t *model.Transaction) bool { return t.Noop })
	var out Summary
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

// Remove deletes the store: what muster put there, and the directory when that
// leaves it empty. Whatever else is in it stays, and is an error.
func (s *Store) Remove() error {
	names, err := s.names()
	if err != nil {
		return err
	}
	for _, name := range append(names, sessionMark) {
		if err := s.host.Remove(filepath.Join(s.dir, name)); err != nil {
			return err
		}
	}

	return s.host.Remove(s.dir)
}
