package requests

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
	"github.com/musterfleet/muster/resources/host/files"
)

// Limits of the remembered requests. A request is not executed again while its id is remembered.
const (
	maxKnown = 10_000
	// maxKnownRuns limits run requests separately: a sender of run requests must not displace the
	// records of commands, which the stream delivers again at each start.
	maxKnownRuns = 1000
	keepFor      = 24*time.Hour + 30*time.Minute // longer than the validity of a request plus clock differences
)

type store struct {
	host *host.Host
	dir  string
	log  *slog.Logger

	mu sync.Mutex
	// open holds the requests without a final response, known the times of all requests, both by file
	// name. runs counts the run requests in known.
	open  map[string]*request
	known map[string]time.Time
	runs  int
}

func openStore(h *host.Host, dir string, log *slog.Logger) (*store, error) {
	s := &store{host: h, dir: dir, log: log, open: map[string]*request{}, known: map[string]time.Time{}}
	if err := h.MakeDirectory(dir, files.OwnAttrs(0o700)); err != nil {
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
			s.know(name, info.ModTime())
		}
	}
	for name, at := range s.known {
		if time.Since(at) > keepFor {
			s.drop(name)
		}
	}

	return s, nil
}

// fileName returns the file name for an id, which may contain any character.
func fileName(id string) string {
	sum := sha256.Sum256([]byte(id))

	return hex.EncodeToString(sum[:16])
}

// runPrefix begins the file names of run requests.
const runPrefix = "run-"

// name returns the file name of a request. Run requests have a separate id space: otherwise a sender
// of run requests could use the id of an ensure request and cause its refusal.
func (q *request) name() string {
	if q.Run {
		return runPrefix + fileName(q.ID)
	}

	return fileName(q.ID)
}

func isRun(name string) bool { return strings.HasPrefix(name, runPrefix) }

func (s *store) know(name string, at time.Time) {
	if _, known := s.known[name]; !known && isRun(name) {
		s.runs++
	}
	s.known[name] = at
}

func (s *store) path(name string) string { return filepath.Join(s.dir, name+".json") }

func (s *store) read(name string) (*request, error) {
	q, err := host.ReadRecord[request](s.path(name))

	return &q, err
}

// CheckRecord returns an error if the stored request at a path cannot be read.
func CheckRecord(path string) error {
	_, err := host.ReadRecord[request](path)

	return err
}

// accept stores a request and reports whether it is new. For a known id, respond receives the latest
// response and the later ones.
func (s *store) accept(ctx context.Context, q *request, respond func(model.EnsureResponse)) (isNew bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := q.name()
	if earlier, ok := s.open[name]; ok {
		if earlier.Sum != q.Sum {
			return false, errOtherRequest
		}
		// Respond while holding mu: a later response must not overtake this one.
		respond(earlier.Response)
		earlier.respond = withReceiver(earlier.respond, respond)
		return false, nil
	}
	if _, ok := s.known[name]; ok {
		earlier, err := s.read(name)
		if err == nil && earlier.Sum != q.Sum {
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
	if q.Run && s.openRuns() >= maxOpenRuns {
		return false, errTooManyRuns
	}
	if err := s.host.WriteRecord(ctx, s.path(name), q); err != nil {
		return false, err
	}
	respond(q.Response)
	q.respond = append(q.respond, respond)
	if s.know(name, q.At); !q.Response.Phase.Final() {
		s.open[name] = q
	}
	if s.runs > maxKnownRuns || len(s.known)-s.runs > maxKnown {
		s.prune(q.At)
	}

	return true, nil
}

// openRuns returns the number of run requests without a final response. The caller holds mu.
func (s *store) openRuns() int {
	count := 0
	for _, q := range s.open {
		if q.Run {
			count++
		}
	}

	return count
}

func (s *store) knows(q *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.known[q.name()]

	return known
}

// has reports whether a request with the same id and content was accepted.
func (s *store) has(q *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := q.name()
	if earlier, ok := s.open[name]; ok {
		return earlier.Sum == q.Sum
	}
	if _, ok := s.known[name]; !ok {
		return false
	}
	earlier, err := s.read(name)

	return err == nil && earlier.Sum == q.Sum
}

// cancel records that the request with the id of wanted was cancelled, unless it has begun. It returns
// the request, nil if it is unknown, and the receivers of its responses if the cancel is its final
// response. Otherwise respond receives the latest response and, while the request is open, the later
// ones.
func (s *store) cancel(ctx context.Context, wanted *request, why string, respond func(model.EnsureResponse)) (*request, []func(model.EnsureResponse), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := wanted.name()
	q, isOpen := s.open[name]
	if !isOpen {
		if _, known := s.known[name]; !known {
			return nil, nil, nil
		}
		q, err := s.read(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, nil
		case err != nil:
			return nil, nil, err
		}
		respond(q.Response)
		return q, nil, nil
	}
	if q.Response.Phase != model.EnsureAcknowledged {
		respond(q.Response)
		q.respond = withReceiver(q.respond, respond)
		return q, nil, nil
	}
	response := q.Response
	response.Phase, response.Error = model.EnsureCancelled, why
	// Write a new record: another goroutine may be reading the body in order to execute it.
	if err := s.host.WriteRecord(ctx, s.path(name), &request{ID: q.ID, At: q.At, Sum: q.Sum, Run: q.Run, Command: q.Command, Sender: q.Sender, Response: response}); err != nil {
		return nil, nil, err
	}
	q.Response = response
	delete(s.open, name)

	return q, append(slices.Clone(q.respond), respond), nil
}

// record stores a response and returns its receivers, also if writing fails. It returns false and
// stores nothing if the request already has a final response.
func (s *store) record(ctx context.Context, q *request, response model.EnsureResponse) ([]func(model.EnsureResponse), bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Response.Phase.Final() {
		return nil, false, nil
	}
	name := q.name()
	q.Response, q.Request, q.body = response, nil, nil
	if response.Phase.Final() {
		delete(s.open, name)
	}

	return slices.Clone(q.respond), true, s.host.WriteRecord(ctx, s.path(name), q)
}

// unfinished returns the requests of an earlier process without a final response, oldest first.
func (s *store) unfinished() []*request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*request
	for name := range s.known {
		q, err := s.read(name)
		if err != nil {
			s.log.Error("cannot read stored request", "error", err)
			continue
		}
		if !q.Response.Phase.Final() {
			q.body = q.Request
			s.open[name] = q
			out = append(out, q)
		}
	}
	slices.SortFunc(out, func(a, b *request) int { return a.At.Compare(b.At) })
	s.prune(time.Now())

	return out
}

// forget removes a request; its id can be used again.
func (s *store) forget(q *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := q.name()
	delete(s.open, name)
	s.drop(name)
}

func (s *store) drop(name string) {
	if err := s.host.Remove(s.path(name)); err != nil {
		s.log.Warn("cannot remove stored request", "error", err)
	}
	if _, known := s.known[name]; known && isRun(name) {
		s.runs--
	}
	delete(s.known, name)
}

// prune removes old and surplus requests, except open ones.
func (s *store) prune(now time.Time) {
	var runs, others []string
	for name := range s.known {
		switch _, open := s.open[name]; {
		case open:
		case isRun(name):
			runs = append(runs, name)
		default:
			others = append(others, name)
		}
	}
	s.pruneOf(runs, maxKnownRuns, now)
	s.pruneOf(others, maxKnown, now)
}

// pruneOf removes requests older than keepFor, and the oldest ones above the limit most.
func (s *store) pruneOf(names []string, most int, now time.Time) {
	slices.SortFunc(names, func(a, b string) int { return s.known[a].Compare(s.known[b]) })
	// Remove a tenth more than needed, to avoid pruning for every request.
	surplus := len(names) - most
	if surplus > 0 {
		surplus += most / 10
	}
	for i, name := range names {
		if i >= surplus && now.Sub(s.known[name]) <= keepFor {
			return
		}
		s.drop(name)
	}
}
