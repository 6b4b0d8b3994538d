package kvstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
)

// Content types of a report and of a batch.
const (
	contentType      = event.ApplicationCloudEventsJSON
	batchContentType = event.ApplicationCloudEventsBatchJSON
)

// sourcePrefix is the source of every event before the node id.
const sourcePrefix = "muster/node/"

// ErrInvalidEvent reports an invalid CloudEvent, or one that is not from muster. It is permanent.
var ErrInvalidEvent = errors.New("invalid event")

// EncodeEvent returns a report as a CloudEvent in structured JSON, without empty attributes. The error
// wraps ErrInvalidEvent.
func EncodeEvent(r model.Report) ([]byte, error) {
	ce, err := newEvent(r)
	if err != nil {
		return nil, err
	}

	return ce.MarshalJSON()
}

// encodeBatch returns reports as a batch of CloudEvents in JSON. The error wraps
// ErrInvalidEvent.
func encodeBatch(reports []model.Report) ([]byte, error) {
	batch := make([]event.Event, len(reports))
	for i, r := range reports {
		var err error
		if batch[i], err = newEvent(r); err != nil {
			return nil, err
		}
	}

	return json.Marshal(batch)
}

// newEvent returns the CloudEvent of a report. The error wraps ErrInvalidEvent.
func newEvent(r model.Report) (event.Event, error) {
	ce := event.New()
	ce.SetID(r.ID)
	ce.SetType(r.Type)
	ce.SetSource(sourcePrefix + r.Node)
	ce.SetTime(r.Time)
	if r.Schema != "" {
		ce.SetDataSchema(r.Schema)
	}
	for name, value := range eventExtensions(r) {
		if value != "" {
			ce.SetExtension(name, value)
		}
	}
	if !json.Valid(r.Data) {
		return event.Event{}, fmt.Errorf("%w: its data is no JSON", ErrInvalidEvent)
	}
	// SetData would encode the data a second time.
	ce.SetDataContentType(event.ApplicationJSON)
	ce.DataEncoded = r.Data
	if err := validateEvent(r, ce); err != nil {
		return event.Event{}, fmt.Errorf("%w: %w", ErrInvalidEvent, err)
	}

	return ce, nil
}

// eventExtensions returns the extensions, all as strings: the library silently drops large integers.
func eventExtensions(r model.Report) map[string]string {
	return map[string]string{
		"runid":         r.RunID,
		"manifest":      r.Manifest,
		"revision":      counterText(r.Revision),
		"digest":        r.Digest,
		"cause":         string(r.Cause),
		"correlationid": r.CorrelationID,
		"seq":           counterText(r.Seq),
	}
}

// validateEvent checks the requirements of the library, which reports failed setters only here, and
// those of muster.
func validateEvent(r model.Report, ce event.Event) error {
	if err := ce.Validate(); err != nil {
		return err
	}
	if !model.IsToken(r.Node) {
		return fmt.Errorf("node %q is not one token", r.Node)
	}
	if r.Time.IsZero() {
		return errors.New("the time is missing")
	}
	if _, err := ksuid.Parse(r.ID); err != nil {
		return fmt.Errorf("id %q is not a KSUID", r.ID)
	}

	return nil
}

// counterText returns the text of a number, or "" for zero.
func counterText(n uint64) string {
	if n == 0 {
		return ""
	}

	return strconv.FormatUint(n, 10)
}
