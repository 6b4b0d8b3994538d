package requests

import (
	"bytes"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
)

const (
	// refusedFor is for how long a message that comes again gets the refusal that it got: clients send one again for a few
	// seconds.
	refusedFor = 15 * time.Second
	// maxRefused is how many of them are kept.
	maxRefused = 256
)

// recentRefusals has the messages that were refused lately. One to a group comes again while a node of the group does not answer:
// who has answered must not judge it anew, for a pause may have ended meanwhile.
type recentRefusals struct {
	mu  sync.Mutex
	all []refusal
}

type refusal struct {
	sum      [sha256.Size]byte
	at       time.Time
	response model.EnsureResponse
}

// add notes the response to a message. One without an id cannot be told from another one that asks for the same.
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

// get returns the response that a message got lately.
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
