package model

import (
	"errors"
	"fmt"
	"time"
)

// RunRequest asks nodes to run their assignments now (io.muster.v1.run.request).
type RunRequest struct {
	Protocol string `json:"protocol"`
	// Manifests are names of manifests, as in node.web01.<name>. If it is empty, all assignments run.
	Manifests []string  `json:"manifests,omitempty" jsonschema_description:"Names of the manifests; absent for all"`
	ID        string    `json:"id,omitempty" jsonschema_description:"Identifies the request; a repeated id has no effect"`
	Expires   time.Time `json:"expires" jsonschema_description:"Time after which the request has no effect"`
	Noop      bool      `json:"noop,omitempty" jsonschema_description:"Show what would change, and change nothing"`
}

// Limits of a run request: its size in bytes and its number of manifests.
const (
	MaxRunRequest    = 16 << 10
	maxRunsRequested = 100
)

// ErrInvalidRunRequest means that a run request is not valid. It is permanent.
var ErrInvalidRunRequest = errors.New("invalid run request")

// DecodeRunRequest decodes a run request strictly. The error wraps ErrInvalidRunRequest. It also returns the
// decoded part of an invalid request.
func DecodeRunRequest(data []byte) (RunRequest, error) {
	var r RunRequest
	if len(data) > MaxRunRequest {
		return r, fmt.Errorf("%w: %d bytes, at most %d are read", ErrInvalidRunRequest, len(data), MaxRunRequest)
	}
	if err := DecodeStrict(data, &r); err != nil {
		return RunRequest{}, fmt.Errorf("%w: %w", ErrInvalidRunRequest, err)
	}
	err := r.Check()
	if !IsRequestID(r.ID) {
		r.ID = ""
	}

	return r, err
}

// Check reports whether a run request is valid; the error wraps ErrInvalidRunRequest.
func (r RunRequest) Check() error {
	var problem string
	switch {
	case r.Protocol != ProtocolRunRequest:
		problem = "its protocol is not " + ProtocolRunRequest
	case !IsRequestID(r.ID):
		problem = fmt.Sprintf("its id must be one line of at most %d bytes", MaxRequestID)
	case r.Expires.IsZero():
		problem = "it has no time after which it expires"
	case len(r.Manifests) > maxRunsRequested:
		problem = fmt.Sprintf("it names %d manifests, at most %d are taken", len(r.Manifests), maxRunsRequested)
	}
	for _, name := range r.Manifests {
		if problem == "" && !IsToken(name) {
			problem = "a manifest's name has letters, digits, - and _ only"
		}
	}

	if problem == "" {
		return nil
	}

	return fmt.Errorf("%w: %s", ErrInvalidRunRequest, problem)
}

// RequestedRun is the result of one manifest of a run request.
type RequestedRun struct {
	// Manifest is its key.
	Manifest string  `json:"manifest" jsonschema_description:"Key of the manifest"`
	Revision uint64  `json:"revision,omitempty"`
	RunID    string  `json:"run_id,omitempty" jsonschema_description:"Id of the run; absent if there was none"`
	Outcome  Outcome `json:"outcome"`
	Noop     bool    `json:"noop,omitempty"`
	Counts   Counts  `json:"counts"`
	Error    string  `json:"error,omitempty" jsonschema_description:"First error of the run, or the reason why there was no run"`
}

// OutcomeOf returns the outcome of a run request: failed if a manifest is not OK, else changed, noop or
// stable.
func OutcomeOf(runs []RequestedRun) Outcome {
	out := OutcomeStable
	for _, r := range runs {
		switch {
		case !r.OK():
			return OutcomeFailed
		case r.Counts.Made() > 0:
			out = OutcomeChanged
		case r.Counts.Noop > 0 && out == OutcomeStable:
			out = OutcomeNoop
		}
	}

	return out
}

// OK reports whether each resource of the manifest is in its desired state, or would be.
func (r RequestedRun) OK() bool {
	return !r.Outcome.IsFailure() && r.Error == "" && r.Counts.Failed+r.Counts.Unmet+r.Counts.NotRun == 0
}
