package model

import (
	"errors"
	"fmt"
	"time"
)

// RunRequest asks nodes to run what is assigned to them, now (io.muster.v1.run.request).
type RunRequest struct {
	Protocol string `json:"protocol"`
	// Manifests are names, as in node.web01.<name>; none are all that is assigned.
	Manifests []string  `json:"manifests,omitempty" jsonschema_description:"Names of the manifests; missing for all that is assigned"`
	ID        string    `json:"id,omitempty" jsonschema_description:"Identifies the request; a repeated id runs nothing again"`
	Expires   time.Time `json:"expires" jsonschema_description:"Time after which nothing is run"`
	Noop      bool      `json:"noop,omitempty" jsonschema_description:"Show what would change, and change nothing"`
}

// The bounds of a run request: its size in bytes, and how many manifests it names.
const (
	MaxRunRequest    = 16 << 10
	maxRunsRequested = 100
)

// ErrInvalidRunRequest is a run request that is none, or not valid; it never becomes valid by
// trying again.
var ErrInvalidRunRequest = errors.New("invalid run request")

// DecodeRunRequest decodes a run request strictly. The error wraps ErrInvalidRunRequest; what
// could be decoded is returned with it.
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

// RequestedRun is what came of one manifest that a run request is about.
type RequestedRun struct {
	// Manifest is its key.
	Manifest string  `json:"manifest" jsonschema_description:"Key of the manifest"`
	Revision uint64  `json:"revision,omitempty"`
	RunID    string  `json:"run_id,omitempty" jsonschema_description:"The run; missing where there was none"`
	Outcome  Outcome `json:"outcome"`
	Noop     bool    `json:"noop,omitempty"`
	Counts   Counts  `json:"counts"`
	Error    string  `json:"error,omitempty" jsonschema_description:"First error of the run, or why there was none"`
}

// OutcomeOf returns what came of a run request: failed where one of its manifests is not OK, else
// changed, noop or stable.
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

// OK reports whether all of the manifest is in its desired state, or would be.
func (r RequestedRun) OK() bool {
	return !r.Outcome.IsFailure() && r.Error == "" && r.Counts.Failed+r.Counts.Unmet+r.Counts.NotRun == 0
}
