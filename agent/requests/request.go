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

// errNotRecorded is a request that was not accepted, but may be when it comes again.
var errNotRecorded = errors.New("the request cannot be recorded, without which it could be executed twice")

// errPaused is a request to a node that changes nothing for the time being.
var errPaused = errors.New("refused, the node changes nothing now")

// errTooManyRuns is a run request where many wait already.
var errTooManyRuns = errors.New("the node has too many requests to run what is assigned, try again later")

// maxOpenRuns is how many run requests wait or are executed: whoever may send them may do so as fast as they like.
const maxOpenRuns = 100

// errOtherRequest is an id that comes again with something else.
var errOtherRequest = errors.New("its id was used for another request, give it one of its own")

// errNoID is a request that could be executed twice.
var errNoID = errors.New("a request that is queued or signed needs an id, or it could be executed twice")

// errNotKept is a request that a restart lost.
var errNotKept = errors.New("the agent was ended before it began, and what is sensitive is not kept: send it again")

// request is one request from its acceptance to its final response.
type request struct {
	ID string `json:"id"`
	// At is when it came.
	At time.Time `json:"at"`
	// Sum tells the request from others, also when it is not kept any more. That of
	// a sensitive one leaves its properties out, which could be guessed by it.
	Sum string `json:"sum"`
	// Request is kept until its execution begins, and not at all when it is sensitive.
	Request json.RawMessage `json:"request,omitempty"`
	// Run is a run request, else it is one of a resource.
	Run bool `json:"run,omitempty"`
	// Command is a request that waits in the stream, and comes again after a restart.
	Command bool `json:"command,omitempty"`
	// Of is the resource that it is about, as far as it is known without executing it: it is kept when Request is not
	// any more. Nothing for a run request and for what is sensitive.
	Of *model.Ref `json:"of,omitempty"`
	// Sender is who sent it, as they said.
	Sender *model.Sender `json:"sender,omitempty"`
	// Response is the last one.
	Response model.EnsureResponse `json:"response"`

	// body is Request, until the execution begins.
	body json.RawMessage
	// respond are those who wait for the responses.
	respond []func(model.EnsureResponse)
	// cancelled is why it is not executed any more, stop and kill end its execution, nil where
	// it is not executed. The lock of the service is held.
	cancelled  error
	stop, kill context.CancelCauseFunc
}

// maxWaiting is how many wait for the responses to a request: it may come any number of times.
const maxWaiting = 100

// await has one more wait for the responses, in the place of another where there are many; who asked
// first stays.
func (q *request) await(respond func(model.EnsureResponse)) {
	if len(q.respond) >= maxWaiting {
		q.respond = slices.Delete(q.respond, 1, 2)
	}
	q.respond = append(q.respond, respond)
}

// content is what the request of a message says. One that is not valid has at most an
// id, and the error.
type content struct {
	model.EnsureRequest
	properties document.Value
	// run is the request where it is a run request; the id, the time and noop are above too.
	run *model.RunRequest
	err error
}

// parse reads a request of a resource, or a run request.
func parse(data []byte, run bool) content {
	if run {
		r, err := model.DecodeRunRequest(data)
		return content{EnsureRequest: model.EnsureRequest{ID: r.ID, Expires: r.Expires, Noop: r.Noop}, run: &r, err: err}
	}
	req, properties, err := manifest.ParseRequest("request", data)

	return content{EnsureRequest: req, properties: properties, err: err}
}

// document returns the request under an id that expires at a time.
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

// ref returns the resource that a request is about, nil for a run request.
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

// notDone returns the state of the resource of a request that failed without being executed, which names it; nil
// where it is not known, or is not to be kept.
func (q *request) notDone(why string) *model.Transaction {
	if q.Of == nil {
		return nil
	}

	return &model.Transaction{
		Protocol: model.ProtocolTransaction, EventID: ksuid.New().String(), Timestamp: time.Now().UTC(), Type: q.Of.Type, Name: q.Of.Name, Failed: true, Errors: []string{why},
	}
}
