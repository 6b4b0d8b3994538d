package requests

import (
	"bytes"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
)

const (
	// refusedFor is how long a repeated message gets the same refusal: clients repeat a message for a
	// few seconds.
	refusedFor = 15 * time.Second
	// maxRefused limits the remembered refusals.
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

// get returns the recent response to the same message.
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
