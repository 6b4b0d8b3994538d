package requests

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
)

// responder sends responses to the waiting senders and reports the final ones.
type responder struct {
	node   string
	store  *store
	report func(model.EnsureResponse)
	log    *slog.Logger

	mu    sync.Mutex
	ended map[string]uint64
}

func (r *responder) response(q *request) model.EnsureResponse {
	out := model.EnsureResponse{Protocol: model.ProtocolEnsureResponse, Node: r.node, ID: q.ID, Sender: q.Sender}
	if q.Run {
		out.Protocol = model.ProtocolRunResponse
	}

	return out
}

func (r *responder) cancelled(q *request, why string) model.EnsureResponse {
	out := r.response(q)
	out.Phase, out.Error = model.EnsureCancelled, why

	return out
}

// reject counts a rejected request and returns the response to it. It reports the response if it has
// an id.
func (r *responder) reject(response model.EnsureResponse, err error) model.EnsureResponse {
	response = r.refused(response, err)
	if response.ID != "" {
		r.report(response)
	}

	return response
}

func (r *responder) refused(response model.EnsureResponse, err error) model.EnsureResponse {
	r.count("rejected")
	response.Phase, response.Error = model.EnsureFailed, err.Error()

	return response
}

// respond records a response and sends it to the waiting senders. It also reports a final response. It
// returns false if the request already has a final response.
func (r *responder) respond(ctx context.Context, q *request, response model.EnsureResponse) bool {
	waiting, ok, err := r.store.record(ctx, q, response)
	if err != nil {
		r.log.ErrorContext(ctx, "cannot record response", "id", q.ID, "error", err)
	}
	switch {
	case !ok:
	case response.Phase.Final():
		r.concluded(response, waiting)
	default:
		send(response, waiting)
	}

	return ok
}

// concluded counts and reports a final response, and sends it to the waiting senders.
func (r *responder) concluded(response model.EnsureResponse, waiting []func(model.EnsureResponse)) {
	r.count(string(response.Phase))
	r.report(response)
	send(response, waiting)
}

// maxWaiting limits the receivers of the responses to one request: the same request may arrive any number of
// times.
const maxWaiting = 100

// withReceiver adds a receiver of responses. At the limit it replaces the second oldest one: the first sender
// of the request stays.
func withReceiver(all []func(model.EnsureResponse), respond func(model.EnsureResponse)) []func(model.EnsureResponse) {
	if len(all) >= maxWaiting {
		all = slices.Delete(all, 1, 2)
	}

	return append(all, respond)
}

func send(response model.EnsureResponse, waiting []func(model.EnsureResponse)) {
	for _, respond := range waiting {
		respond(response)
	}
}

// Ended returns the numbers of requests that ended since Open, by the final phase. A rejected request was
// not accepted, or a restart lost it before it began.
func (s *Service) Ended() map[string]uint64 {
	s.responder.mu.Lock()
	defer s.responder.mu.Unlock()

	return maps.Clone(s.responder.ended)
}

func (r *responder) count(outcome string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[outcome]++
}

const (
	// refusedFor is how long a repeated message gets the same refusal: clients repeat a message for a
	// few seconds.
	refusedFor = 15 * time.Second
	maxRefused = 256
)

// recentRefusals remembers the messages that were refused recently. A client repeats a message to a
// group until all nodes answer. A node that has answered must not check the repeat again: a pause may
// have ended in the interval.
type recentRefusals struct {
	mu  sync.Mutex
	all []refusal
}

type refusal struct {
	sum      [sha256.Size]byte
	at       time.Time
	response model.EnsureResponse
}

// add remembers the response to a message. It ignores messages without an id: two of them with equal
// content may be different requests.
func (r *recentRefusals) add(now time.Time, data []byte, response model.EnsureResponse) {
	if response.ID == "" || !bytes.Contains(data, []byte(response.ID)) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, refusal{sha256.Sum256(data), now, response})
	for len(r.all) > maxRefused || now.Sub(r.all[0].at) >= refusedFor {
		r.all = r.all[1:]
	}
}

func (r *recentRefusals) get(now time.Time, data []byte) (response model.EnsureResponse, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 0 {
		return response, false
	}
	sum := sha256.Sum256(data)
	for _, m := range r.all {
		if m.sum == sum && now.Sub(m.at) < refusedFor {
			return m.response, true
		}
	}

	return response, false
}

// maxRefusals limits the remembered rejected commands. They are stored apart from the requests: a
// flood of them must not displace executed requests, which could be delivered again.
const maxRefusals = 1000

// refusals stores which commands were rejected and reported. The stream delivers them again at each
// start.
type refusals struct {
	host *host.Host
	path string
	log  *slog.Logger

	mu sync.Mutex
	// sums holds the checksums of ids and contents, oldest first.
	sums []string
}

func openRefusals(h *host.Host, dir string, log *slog.Logger) *refusals {
	r := &refusals{host: h, path: filepath.Join(dir, "refusals"), log: log}
	var err error
	if r.sums, err = host.ReadRecord[[]string](r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("cannot read rejected commands; they are reported again", "error", err)
	}

	return r
}

// refusalOf returns the checksum of a command. It covers the content: otherwise a sender who knows an
// id could cause another command with this id to be ignored.
func refusalOf(id string, data []byte) string { return fileName(id + "\x00" + string(data)) }

func (r *refusals) has(id string, data []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return slices.Contains(r.sums, refusalOf(id, data))
}

func (r *refusals) add(ctx context.Context, id string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sums = append(r.sums, refusalOf(id, data))
	r.sums = r.sums[max(len(r.sums)-maxRefusals, 0):]
	if err := r.host.WriteRecord(ctx, r.path, r.sums); err != nil {
		r.log.ErrorContext(ctx, "cannot record rejected command", "id", id, "error", err)
	}
}
