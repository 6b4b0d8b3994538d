package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// CancelRequest cancels a request that was sent before, of a resource or for a run
// (io.muster.v1.cancel.request). It travels as ensure requests do.
type CancelRequest struct {
	Protocol string `json:"protocol"`
	// Request is the id of the request.
	Request string `json:"request" jsonschema_description:"Id of the request that is cancelled"`
	// Kill has a request of a resource broken off that is being executed, as a time-out does.
	Kill bool `json:"kill,omitempty" jsonschema_description:"Break it off where it is being executed; a run is not broken off"`
	// By is who cancels it; nobody has verified that.
	By      string    `json:"by,omitempty" jsonschema_description:"Who cancels it"`
	Expires time.Time `json:"expires" jsonschema_description:"Time after which nothing is cancelled by it"`
}

// MaxCancelRequest is the size of a cancel, in bytes, without signatures.
const MaxCancelRequest = 4 << 10

// ErrInvalidCancel is a cancel that is none, or not valid; it never becomes valid by trying
// again.
var ErrInvalidCancel = errors.New("invalid cancel")

// IsCancelRequest reports whether a document is a cancel, by its protocol; it need not be valid.
func IsCancelRequest(data []byte) bool {
	var named struct{ Protocol string }

	return len(data) <= MaxCancelRequest && json.Unmarshal(data, &named) == nil && named.Protocol == ProtocolCancelRequest
}

// DecodeCancelRequest decodes a cancel strictly. The error wraps ErrInvalidCancel; what could be
// decoded is returned with it.
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
