package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
)

// How many requests are remembered, and for how long: an id that comes again
// within that is not executed again.
const (
	askMost = 10_000
	askAge  = 24 * time.Hour
)

// ask is one ensure request on its way.
type ask struct {
	ID string `json:"id"`
	// At is when it came.
	At time.Time `json:"at"`
	// Sum tells the request from others, also when it is not kept any more. That of
	// a sensitive one says nothing of its properties, which could be guessed by it.
	Sum string `json:"sum,omitempty"`
	// Request is kept until its execution begins, and not at all when it is sensitive.
	Request json.RawMessage `json:"request,omitempty"`
	// Command says that it waits in the stream, and comes again after a restart.
	Command bool `json:"command,omitempty"`
	// Response is the last that was given.
	Response model.EnsureResponse `json:"response"`

	// request is Request, until the execution begins.
	request json.RawMessage
	respond []func(model.EnsureResponse)
}

// errOtherRequest is an id that comes again with something else.
var errOtherRequest = errors.New("its id was used for another request, give it one of its own")

// isOf says that two requests of one id are the same; what was recorded before
// sums were is.
func (q *ask) isOf(other *ask) bool { return q.Sum == "" || q.Sum == other.Sum }

// asks are the ensure requests of the last day, on disk.
type asks struct {
	host *host.Host
	dir  string
	log  *slog.Logger

	mu sync.Mutex
	// open are those without a final response, known the times of all.
	open  map[string]*ask
	known map[string]time.Time
}

func openAsks(h *host.Host, dir string, log *slog.Logger) (*asks, error) {
	s := &asks{host: h, dir: dir, log: log, open: map[string]*ask{}, known: map[string]time.Time{}}
	if err := makeOwnDir(h, dir); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		info, err := e.Info()
		if ok && err == nil {
			s.known[name] = info.ModTime()
		}
	}
	s.prune(time.Now())

	return s, nil
}

// askName gives the file name of an id, which may hold anything.
func askName(id string) string {
	sum := sha256.Sum256([]byte(id))

	return hex.EncodeToString(sum[:16])
}

func (s *asks) path(name string) string { return filepath.Join(s.dir, name+".json") }

func (s *asks) read(name string) (*ask, error) {
	data, err := s.host.Read(s.path(name), maxStored)
	if err != nil {
		return nil, err
	}
	q := &ask{}
	if err := json.Unmarshal(data, q); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", s.path(name), err)
	}

	return q, nil
}

// begin takes a request in; false means that its id came before. Then respond
// gets what was answered last, and what is still to come.
func (s *asks) begin(ctx context.Context, q *ask, respond func(model.EnsureResponse)) (isNew bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := askName(q.ID)
	if earlier, ok := s.open[name]; ok {
		if !earlier.isOf(q) {
			return false, errOtherRequest
		}
		// While the lock is held, or a later response could overtake this one.
		respond(earlier.Response)
		earlier.respond = append(earlier.respond, respond)
		return false, nil
	}
	if _, ok := s.known[name]; ok {
		earlier, err := s.read(name)
		if err == nil && !earlier.isOf(q) {
			return false, errOtherRequest
		}
		if err == nil {
			respond(earlier.Response)
			return false, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	if err := s.host.WriteRecord(ctx, s.path(name), q); err != nil {
		return false, err
	}
	respond(q.Response)
	q.respond = append(q.respond, respond)
	s.open[name], s.known[name] = q, q.At
	if len(s.known) > askMost {
		s.prune(q.At)
	}

	return true, nil
}

// record keeps a response, and gives those who are to have it. That it cannot
// be written is an error, but they are to have it nevertheless.
func (s *asks) record(ctx context.Context, q *ask, response model.EnsureResponse) ([]func(model.EnsureResponse), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := askName(q.ID)
	q.Response, q.Request, q.request = response, nil, nil
	if response.Phase.Final() {
		delete(s.open, name)
	}

	return slices.Clone(q.respond), s.host.WriteRecord(ctx, s.path(name), q)
}

// unfinished gives the requests of an earlier process that have no final
// response, the oldest first.
func (s *asks) unfinished() []*ask {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*ask
	for name := range s.known {
		q, err := s.read(name)
		if err != nil {
			s.log.Error("a stored request cannot be read", "error", err)
			continue
		}
		if !q.Response.Phase.Final() {
			q.request = q.Request
			s.open[name] = q
			out = append(out, q)
		}
	}
	slices.SortFunc(out, func(a, b *ask) int { return a.At.Compare(b.At) })

	return out
}

// forget makes the id of a request one that never came.
func (s *asks) forget(q *ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := askName(q.ID)
	delete(s.open, name)
	s.drop(name)
}

// drop removes the file of a request.
func (s *asks) drop(name string) {
	if err := s.host.Remove(s.path(name)); err != nil {
		s.log.Warn("a request cannot be forgotten", "error", err)
	}
	delete(s.known, name)
}

// prune forgets what is too old or too much, but nothing that is still open.
func (s *asks) prune(now time.Time) {
	names := make([]string, 0, len(s.known))
	for name := range s.known {
		if _, open := s.open[name]; !open {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return s.known[a].Compare(s.known[b]) })
	// A tenth more than needed, so that it is not done for every request.
	surplus := len(names) - askMost
	if surplus > 0 {
		surplus += askMost / 10
	}
	for i, name := range names {
		if i >= surplus && now.Sub(s.known[name]) <= askAge {
			return
		}
		s.drop(name)
	}
}
