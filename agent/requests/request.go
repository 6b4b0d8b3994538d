package requests

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest"
)

// errNotRecorded rejects a request that cannot be stored. The sender may send it again.
var errNotRecorded = errors.New("the request cannot be stored, and without a record it could be executed twice")

// errPaused rejects a request because the node is paused.
var errPaused = errors.New("refused, the node changes nothing now")

// errTooManyRuns rejects a run request because maxOpenRuns run requests are open.
var errTooManyRuns = errors.New("the node has too many open run requests; try again later")

// maxOpenRuns limits the run requests that wait or are executed: a sender may send them at any rate.
const maxOpenRuns = 100

// errOtherRequest rejects a request that reuses the id of a different request.
var errOtherRequest = errors.New("its id was used for another request; use a new id")

// errNoID rejects a request without an id that could be executed twice.
var errNoID = errors.New("a request that is queued or signed needs an id, or it could be executed twice")

// errNotKept fails a sensitive request that was lost in a restart.
var errNotKept = errors.New("the agent stopped before the request began, and sensitive requests are not stored; send it again")

// request is one request from its acceptance to its final response.
type request struct {
	ID string `json:"id"`
	// At is the arrival time.
	At time.Time `json:"at"`
	// Sum identifies the content of the request, also after Request is cleared. The sum of a sensitive
	// request excludes its properties, which could be guessed from it.
	Sum string `json:"sum"`
	// Request holds the content until the execution begins. It is empty for a sensitive request.
	Request json.RawMessage `json:"request,omitempty"`
	// Run marks a run request; otherwise the request is about one resource.
	Run bool `json:"run,omitempty"`
	// Command marks a request from the stream. The stream delivers it again after a restart.
	Command bool `json:"command,omitempty"`
	// Of names the resource, as far as it is known before the execution; it outlives Request. It is
	// nil for run requests and sensitive requests.
	Of *model.Ref `json:"of,omitempty"`
	// Sender is the self-declared sender.
	Sender *model.Sender `json:"sender,omitempty"`
	// Response is the latest response.
	Response model.EnsureResponse `json:"response"`

	// body holds the content until the execution begins, also of a sensitive request.
	body json.RawMessage
	// respond receives the responses.
	respond []func(model.EnsureResponse)
	// cancelled is the reason why the request must not be executed. stop and kill end its execution;
	// they are nil while it is not executed. The mutex of the queue guards all three.
	cancelled  error
	stop, kill context.CancelCauseFunc
}

// maxWaiting limits the receivers of the responses to one request: the same request may arrive any
// number of times.
const maxWaiting = 100

// await adds a receiver of the responses. At the limit it replaces the second oldest receiver: the
// first sender of the request stays.
func (q *request) await(respond func(model.EnsureResponse)) {
	if len(q.respond) >= maxWaiting {
		q.respond = slices.Delete(q.respond, 1, 2)
	}
	q.respond = append(q.respond, respond)
}

// content is the decoded request of a message. An invalid request has err and at most an id.
type content struct {
	model.EnsureRequest
	properties document.Value
	// run is set for a run request. The embedded EnsureRequest repeats its id, expiry and noop.
	run *model.RunRequest
	err error
}

// parse decodes a request about a resource, or a run request.
func parse(data []byte, run bool) content {
	if run {
		r, err := model.DecodeRunRequest(data)
		return content{EnsureRequest: model.EnsureRequest{ID: r.ID, Expires: r.Expires, Noop: r.Noop}, run: &r, err: err}
	}
	req, properties, err := manifest.ParseRequest("request", data)

	return content{EnsureRequest: req, properties: properties, err: err}
}

// document returns the request with the given id and expiry.
func (c content) document(id string, expires time.Time) any {
	if c.run != nil {
		r := *c.run
		r.ID, r.Expires = id, expires
		return r
	}
	r := c.EnsureRequest
	r.ID, r.Expires = id, expires

	return r
}

// ref returns the resource of a request, nil for a run request.
func (c content) ref() *model.Ref {
	if c.run != nil {
		return nil
	}
	name, _ := c.properties.Get("name")
	text, _ := name.Plain().(string)

	return &model.Ref{Type: c.Type, Name: text}
}

// encode encodes a request that was decoded before.
func encode(req any) json.RawMessage {
	b, err := json.Marshal(req)
	if err != nil {
		b = json.RawMessage("null") // read back as an invalid request
	}

	return b
}

// notDone returns a failed transaction for a request that was not executed. It returns nil if the
// resource is unknown or sensitive.
func (q *request) notDone(why string) *model.Transaction {
	if q.Of == nil {
		return nil
	}

	return &model.Transaction{
		Protocol: model.ProtocolTransaction, EventID: ksuid.New().String(), Timestamp: time.Now().UTC(), Type: q.Of.Type, Name: q.Of.Name, Failed: true, Errors: []string{why},
	}
}
