package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// ErrNoSession is the error of a directory that is missing or is not a session store.
var ErrNoSession = errors.New("no session store")

// maxTransaction limits the size of a stored transaction.
const maxTransaction = 16 << 20

// SessionStore is a directory with the transactions of several commands, one file each. They let
// the resources of one command refer to the resources of earlier commands.
type SessionStore struct {
	host *host.Host
	dir  string
}

// sessionMark is the file that identifies a session store.
const sessionMark = ".muster-session"

// NewSession makes an empty directory a session store. The error wraps paths.ErrUntrusted if other
// users may change the directory.
func NewSession(ctx context.Context, h *host.Host, dir string) (*SessionStore, error) {
	if _, err := state.Check(dir); err != nil {
		return nil, fmt.Errorf("session store: %w", err)
	}
	empty, err := files.IsEmpty(dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNoSession, err)
	case !empty:
		return nil, fmt.Errorf("%w: %s is not empty", ErrNoSession, dir)
	}
	s := &SessionStore{host: h, dir: dir}

	return s, s.write(ctx, sessionMark, nil)
}

// OpenSession opens a session store. It refuses any other directory, so that a mistake in a
// variable does not write to it or remove it. The error wraps ErrNoSession, or paths.ErrUntrusted
// if other users may change the directory.
func OpenSession(h *host.Host, dir string) (*SessionStore, error) {
	if _, err := state.Check(dir); err != nil {
		return nil, fmt.Errorf("session store: %w", err)
	}
	mark, err := h.Look(filepath.Join(dir, sessionMark))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNoSession, err)
	case mark.Kind != files.File:
		return nil, fmt.Errorf("%w: %s was not made by muster session new", ErrNoSession, dir)
	}

	return &SessionStore{host: h, dir: dir}, nil
}

// Append stores a transaction under its event id.
func (s *SessionStore) Append(ctx context.Context, t *model.Transaction) error {
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}

	return s.write(ctx, t.EventID+".json", data)
}

func (s *SessionStore) write(ctx context.Context, name string, data []byte) error {
	return s.host.Write(context.WithoutCancel(ctx), filepath.Join(s.dir, name), bytes.NewReader(data), files.OwnAttrs(0o600))
}

func (s *SessionStore) transactions() ([]*model.Transaction, error) {
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
	// A KSUID has a resolution of one second. Within a second the time of the event decides.
	slices.SortStableFunc(out, func(a, b *model.Transaction) int { return a.Timestamp.Compare(b.Timestamp) })

	return out, nil
}

func (s *SessionStore) names() ([]string, error) {
	names, err := files.Names(s.dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoSession, err)
	}

	return slices.DeleteFunc(names, func(name string) bool {
		id, isJSON := strings.CutSuffix(name, ".json")
		_, err := ksuid.Parse(id)

		return !isJSON || err != nil
	}), nil
}

func (s *SessionStore) read(name string) (*model.Transaction, error) {
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

// History returns the transactions of the session by resource.
func (s *SessionStore) History() (plan.History, error) {
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

// SessionSummary is the output of muster session report (spec/formats.md, "Sessions").
type SessionSummary struct {
	StartTime     time.Time     `json:"start_time"`
	EndTime       time.Time     `json:"end_time"`
	TotalDuration time.Duration `json:"total_duration"`
	model.Counts
}

// Summary counts the transactions of the session, without noop.
func (s *SessionStore) Summary() (SessionSummary, error) {
	all, err := s.transactions()
	if err != nil {
		return SessionSummary{}, err
	}
	all = slices.DeleteFunc(all, func(t *model.Transaction) bool { return t.Noop })
	var out SessionSummary
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

// Remove deletes the session store and its files. It keeps foreign files, which makes it return an
// error.
func (s *SessionStore) Remove() error {
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
