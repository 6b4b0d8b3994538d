package kvstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
)

// ContentType is that of a report.
const ContentType = event.ApplicationCloudEventsJSON

// sourcePrefix begins the source of every event; the node's id follows.
const sourcePrefix = "muster/node/"

// The kinds of report, the token of its subject after the node.
const (
	KindRun         = "run"
	KindTransaction = "transaction"
	KindHealth      = "health"
	KindEnsure      = "ensure"
	KindNode        = "node"
)

// ErrInvalidEvent is an event that is not a CloudEvent or not one of muster; it
// never becomes valid by trying again.
var ErrInvalidEvent = errors.New("invalid event")

// Event is a report before it is encoded. What is empty is left out, but for ID,
// Type, Node, Time and Data, which every event has.
type Event struct {
	// ID is a KSUID, which sorts by its second; it is the message id too.
	ID string
	// Type is the protocol id of Data, Schema the URL of its JSON Schema.
	Type   string
	Schema string
	Node   string
	Time   time.Time
	// RunID, Manifest, Revision, Digest, Cause and CorrelationID say what it is about.
	RunID         string
	Manifest      string
	Revision      uint64
	Digest        string
	Cause         model.Cause
	CorrelationID string
	// Seq counts the reports of a node.
	Seq uint64
	// Data is the document, encoded as JSON.
	Data any
}

// Encode gives the event as a CloudEvent in structured JSON. The error wraps
// ErrInvalidEvent.
func (e Event) Encode() ([]byte, error) {
	data, err := json.Marshal(e.Data)
	if err != nil {
		return nil, fmt.Errorf("%w: data of type %s: %w", ErrInvalidEvent, e.Type, err)
	}
	ce := event.New()
	ce.SetID(e.ID)
	ce.SetType(e.Type)
	ce.SetSource(sourcePrefix + e.Node)
	ce.SetTime(e.Time)
	if e.Schema != "" {
		ce.SetDataSchema(e.Schema)
	}
	for name, value := range e.extensions() {
		if value != "" {
			ce.SetExtension(name, value)
		}
	}
	if err := ce.SetData(event.ApplicationJSON, json.RawMessage(data)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidEvent, err)
	}
	if err := e.validate(ce); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidEvent, err)
	}

	return ce.MarshalJSON()
}

// extensions are strings, all of them: the library refuses larger integers and
// drops what it refuses.
func (e Event) extensions() map[string]string {
	return map[string]string{
		"runid":         e.RunID,
		"manifest":      e.Manifest,
		"revision":      counter(e.Revision),
		"digest":        e.Digest,
		"cause":         string(e.Cause),
		"correlationid": e.CorrelationID,
		"seq":           counter(e.Seq),
	}
}

// validate checks what the library checks, which is also where it tells of what
// it could not set, and what is muster's own.
func (e Event) validate(ce event.Event) error {
	if err := ce.Validate(); err != nil {
		return err
	}
	if !model.IsToken(e.Node) {
		return fmt.Errorf("node %q is not one token", e.Node)
	}
	if e.Time.IsZero() {
		return errors.New("it has no time")
	}
	if _, err := ksuid.Parse(e.ID); err != nil {
		return fmt.Errorf("id %q is not a KSUID", e.ID)
	}

	return nil
}

// counter gives the text of a number, empty for zero, which none has.
func counter(n uint64) string {
	if n == 0 {
		return ""
	}

	return strconv.FormatUint(n, 10)
}
