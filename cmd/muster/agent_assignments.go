package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/resources/host"
)

// maxSeen bounds the file that remembers what the bucket held.
const maxSeen = 256 << 20

// assignments follows the bucket for an agent. What it saw last is on disk, so
// that a bucket which was made anew while the agent was down is told from one
// whose manifests were removed.
type assignments struct {
	store *kvstore.Store
	host  *host.Host
	log   *slog.Logger

	mu     sync.Mutex
	config agent.Config
	watch  *kvstore.Watch
	stop   context.CancelFunc
}

func (s *assignments) file() string { return filepath.Join(s.host.StateDir(), "seen.json") }

// Run keeps the entries current, with other groups after a Regroup.
func (s *assignments) Run(ctx context.Context, wake func()) error {
	last, err := s.recall()
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		watching, stop := context.WithCancel(ctx)
		watch, err := s.begin(last, stop)
		if err != nil {
			stop()
			return err
		}
		err = watch.Run(watching, func([]string) {
			s.remember(ctx, watch)
			wake()
		})
		regrouped := watching.Err() != nil
		stop()
		if err != nil || !regrouped {
			return err
		}
		last = watch.Memory()
	}

	return nil
}

// begin makes the watch of the groups of now; stop ends it when they change.
func (s *assignments) begin(last kvstore.Memory, stop context.CancelFunc) (*kvstore.Watch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	watch, err := kvstore.NewWatch(s.store, kvstore.WatchOptions{Node: s.config.Node, Groups: s.config.Groups, Log: s.log, Last: last})
	s.watch, s.stop = watch, stop

	return watch, err
}

// Entries gives what is assigned.
func (s *assignments) Entries() ([]agent.Entry, agent.Sync) {
	s.mu.Lock()
	watch := s.watch
	s.mu.Unlock()
	if watch == nil {
		return nil, agent.Sync{}
	}
	all, sync := watch.Entries()
	out := make([]agent.Entry, 0, len(all))
	for _, e := range all {
		out = append(out, agent.Entry{Key: e.Key, Revision: e.Revision, Value: e.Value})
	}
	slices.SortFunc(out, func(a, b agent.Entry) int { return cmp.Compare(a.Key, b.Key) })
	state := agent.Sync{Complete: !sync.At.IsZero(), Known: sync.Known, Invalid: sync.Invalid}
	if sync.Err != nil {
		state.Away = sync.Err.Error()
	}
	if len(sync.Kept) > 0 {
		state.Problem = "the bucket was made anew or lost its content, the last known manifests stay in force: " + strings.Join(sync.Kept, ", ")
	}

	return out, state
}

// Regroup makes the next entries those of other groups.
func (s *assignments) Regroup(groups []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config.Groups = groups
	if s.stop != nil {
		s.stop()
	}
}

// remember keeps what the bucket holds for after a restart.
func (s *assignments) remember(ctx context.Context, watch *kvstore.Watch) {
	text, err := json.Marshal(watch.Memory())
	if err == nil {
		self := host.Attrs{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Mode: 0o600}
		err = s.host.Write(context.WithoutCancel(ctx), s.file(), bytes.NewReader(text), self)
	}
	if err != nil {
		s.log.ErrorContext(ctx, "remembering what is assigned", "error", err)
	}
}

// recall reads what was remembered. A damaged file is as good as none: the
// bucket is read anyway.
func (s *assignments) recall() (kvstore.Memory, error) {
	var out kvstore.Memory
	text, err := s.host.Read(s.file(), maxSeen)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("what was assigned before: %w", err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		s.log.Warn("what was assigned before cannot be read and is left out", "file", s.file(), "error", err)
		return kvstore.Memory{}, nil
	}

	return out, nil
}
