package kvstore

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
)

// Content types of a report and of a batch.
const (
	contentType      = event.ApplicationCloudEventsJSON
	batchContentType = event.ApplicationCloudEventsBatchJSON
)

const sourcePrefix = "muster/node/"

// ErrInvalidEvent reports an invalid CloudEvent, or one that is not from muster. It is permanent.
var ErrInvalidEvent = errors.New("invalid event")

// Event returns a report as a CloudEvent in structured JSON, without empty attributes. The error
// wraps ErrInvalidEvent.
func (Reports) Event(r model.Report) ([]byte, error) {
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

func counterText(n uint64) string {
	if n == 0 {
		return ""
	}

	return strconv.FormatUint(n, 10)
}

// maxInvalid limits the invalid reports of a batch, because a node may put tens of thousands into one.
const maxInvalid = 100

// decodeReports returns the readable reports of a message in order, and the first error, which wraps ErrInvalidEvent. After
// too many invalid reports it skips the rest of a batch.
func decodeReports(n Names, m Message) (all []model.Report, failed error) {
	envelope, err := parseReportSubject(n, m.Subject)
	batch := []json.RawMessage{m.Data}
	if err == nil && isReportBatch(envelope) {
		if err = json.Unmarshal(m.Data, &batch); err != nil {
			err = fmt.Errorf("%w on %s: %w", ErrInvalidEvent, m.Subject, err)
		}
	}
	if err != nil {
		return nil, err
	}
	for invalid := 0; len(batch) > 0 && invalid < maxInvalid; batch = batch[1:] {
		r, err := decodeEvent(envelope, m.Subject, batch[0])
		if err != nil {
			failed = cmp.Or(failed, err)
			invalid++
			continue
		}
		all = append(all, r)
	}

	return all, failed
}

func isReportBatch(envelope model.Report) bool {
	return envelope.Kind == model.KindTransaction && envelope.Outcome == BatchOutcome
}

// decodeEvent decodes an event. envelope has the values of the subject. The error wraps
// ErrInvalidEvent, also if the report is from another node than its subject.
func decodeEvent(envelope model.Report, subject string, data []byte) (model.Report, error) {
	r := envelope
	if err := fillReport(&r, data); err != nil {
		return model.Report{}, fmt.Errorf("%w on %s: %w", ErrInvalidEvent, subject, err)
	}
	if isReportBatch(r) {
		t, err := model.DecodeJSON[model.Transaction](r.Data)
		if err != nil {
			return model.Report{}, fmt.Errorf("%w on %s: %w", ErrInvalidEvent, subject, err)
		}
		r.Outcome = t.Outcome()
	}

	return r, nil
}

// fillReport sets the fields of r that an event contains. The event must be valid and come from the node of r.
func fillReport(r *model.Report, data []byte) error {
	ce, err := decodeCloudEvent(data)
	if err != nil {
		return err
	}
	if err := ce.Validate(); err != nil {
		return err
	}
	if want := sourcePrefix + r.Node; ce.Source() != want {
		return fmt.Errorf("source is %q, must be %q", ce.Source(), want)
	}
	// JSON data is a part of the event, which is valid JSON.
	isPart := len(ce.Data()) > 0 && !ce.DataBase64 && ce.DataMediaType() == event.ApplicationJSON
	if !isPart && !json.Valid(ce.Data()) {
		return errors.New("the data are not JSON")
	}

	return fillAttributes(r, ce)
}

// decodeCloudEvent decodes an event. The library panics at some invalid events.
func decodeCloudEvent(data []byte) (ce event.Event, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("cannot decode the event: %v", problem)
		}
	}()
	// UnmarshalJSON of the library accepts some invalid JSON. json.Unmarshal would validate it twice.
	if !json.Valid(data) {
		return ce, json.Unmarshal(data, &ce)
	}

	return ce, ce.UnmarshalJSON(data)
}

func parseReportSubject(n Names, subject string) (model.Report, error) {
	tokens := strings.Split(strings.TrimPrefix(subject, n.Prefix+".report."), ".")
	if len(tokens) != 3 || !strings.HasPrefix(subject, n.Prefix) {
		return model.Report{}, fmt.Errorf("%w: %q is not the subject of a report", ErrInvalidEvent, subject)
	}
	for _, t := range tokens {
		if !model.IsToken(t) {
			return model.Report{}, fmt.Errorf("%w: %q is not the subject of a report", ErrInvalidEvent, subject)
		}
	}

	return model.Report{Node: tokens[0], Kind: tokens[1], Outcome: model.Outcome(tokens[2])}, nil
}

func fillAttributes(r *model.Report, ce event.Event) error {
	r.ID, r.Type, r.Schema, r.Time, r.Data = ce.ID(), ce.Type(), ce.DataSchema(), ce.Time(), ce.Data()
	extensions := ce.Extensions() // a copy
	text := func(name string) string {
		value, _ := extensions[name].(string)
		return value
	}
	r.RunID, r.Manifest, r.Digest = text("runid"), text("manifest"), text("digest")
	r.Cause, r.CorrelationID = model.Cause(text("cause")), text("correlationid")
	var errs [2]error
	r.Revision, errs[0] = parseCounter("revision", text("revision"))
	r.Seq, errs[1] = parseCounter("seq", text("seq"))

	return errors.Join(errs[:]...)
}

func parseCounter(name, text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s %q is not a number", name, text)
	}

	return n, nil
}
