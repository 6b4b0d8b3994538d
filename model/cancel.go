package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// CancelRequest cancels an earlier ensure or run request (io.muster.v1.cancel.request). It is sent like
// ensure requests.
type CancelRequest struct {
	Protocol string `json:"protocol"`
	// Request is the id of the request.
	Request string `json:"request" jsonschema_description:"Id of the request to cancel"`
	// Kill ends a running ensure request, as a timeout does.
	Kill bool `json:"kill,omitempty" jsonschema_description:"End the request if it is running; runs are not ended"`
	// By is the unverified name of the canceller.
	By      string    `json:"by,omitempty" jsonschema_description:"Name of the canceller; not verified"`
	Expires time.Time `json:"expires" jsonschema_description:"Time after which the cancel has no effect"`
}

// MaxCancelRequest is the size of a cancel, in bytes, without signatures.
const MaxCancelRequest = 4 << 10

// ErrInvalidCancel means that a cancel is not valid. It is permanent.
var ErrInvalidCancel = errors.New("invalid cancel")

// IsCancelRequest reports whether the protocol of a document is cancel. The document may be invalid.
func IsCancelRequest(data []byte) bool {
	var named struct{ Protocol string }

	return len(data) <= MaxCancelRequest && json.Unmarshal(data, &named) == nil && named.Protocol == ProtocolCancelRequest
}

// DecodeCancelRequest decodes a cancel strictly. The error wraps ErrInvalidCancel. It also returns the
// decoded part of an invalid cancel.
func DecodeCancelRequest(data []byte) (CancelRequest, error) {
	var c CancelRequest
	if len(data) > MaxCancelRequest {
		return c, fmt.Errorf("%w: %d bytes, at most %d are read", ErrInvalidCancel, len(data), MaxCancelRequest)
	}
	if err := DecodeStrict(data, &c); err != nil {
		return CancelRequest{}, fmt.Errorf("%w: %w", ErrInvalidCancel, err)
	}
	err := c.Check()
	if !IsRequestID(c.Request) {
		c.Request = ""
	}

	return c, err
}

// Check reports whether a cancel is valid; the error wraps ErrInvalidCancel.
func (c CancelRequest) Check() error {
	switch {
	case c.Protocol != ProtocolCancelRequest:
		return fmt.Errorf("%w: its protocol is not %s", ErrInvalidCancel, ProtocolCancelRequest)
	case c.Request == "" || !IsRequestID(c.Request):
		return fmt.Errorf("%w: it must name the id of a request, one line of at most %d bytes", ErrInvalidCancel, MaxRequestID)
	case !isLine(c.By, maxControlBy):
		return fmt.Errorf("%w: by must be one line of at most %d bytes", ErrInvalidCancel, maxControlBy)
	case c.Expires.IsZero():
		return fmt.Errorf("%w: it has no time after which it expires", ErrInvalidCancel)
	default:
		return nil
	}
}

// String describes it for people: cancelled by ann@desk.
func (c CancelRequest) String() string {
	if c.By == "" {
		return "cancelled"
	}

	return "cancelled by " + c.By
}
