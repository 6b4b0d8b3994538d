package kvstore

import (
	"fmt"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// decodeSubjects decodes the info of a stream. The error wraps ErrWrongAnswer if the info is of
// another stream or lists a subject outside filter, and model.ErrNotFound if the stream does not
// exist.
func decodeSubjects(stream, filter string, data []byte) (*api.JSApiStreamInfoResponse, error) {
	info, err := model.DecodeJSON[api.JSApiStreamInfoResponse](data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrongAnswer, err)
	}
	switch {
	case info.Error != nil && info.Error.ErrCode == uint16(jetstream.JSErrCodeStreamNotFound):
		return nil, fmt.Errorf("%w: %w", model.ErrNotFound, info.Error)
	case info.Error != nil:
		return nil, info.ToError()
	case info.Type != streamInfoType || info.StreamInfo == nil || info.Config.Name != stream:
		return nil, fmt.Errorf("%w: it is no info of the stream", ErrWrongAnswer)
	}
	for subject := range info.State.Subjects {
		if !SubjectMatches(subject, filter) {
			return nil, fmt.Errorf("%w: it lists %s", ErrWrongAnswer, subject)
		}
	}

	return info, nil
}

const streamInfoType = "io.nats.jetstream.api.v1.stream_info_response"
