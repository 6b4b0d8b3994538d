package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// Listing describes a stream according to its leader: the creation time, the last sequence, and the
// subjects that match a filter.
type Listing struct {
	Created  time.Time
	Last     uint64
	Subjects map[string]bool
}

// Subjects lists the subjects of a stream that match a filter, including those with only a removal.
// The leader answers, and no consumer is created. The error wraps model.ErrNotFound or ErrWrongAnswer.
func (s *Store) Subjects(ctx context.Context, stream, filter string) (Listing, error) {
	failed := func(err error) (Listing, error) {
		return Listing{}, fmt.Errorf("list %s of %s: %w", filter, stream, s.refused.count(err))
	}
	if err := s.Bind(ctx, stream); err != nil {
		return failed(err)
	}
	out := Listing{Subjects: map[string]bool{}}
	for {
		body, err := json.Marshal(api.JSApiStreamInfoRequest{JSApiIterableRequest: api.JSApiIterableRequest{Offset: len(out.Subjects)}, SubjectsFilter: filter})
		if err != nil {
			return failed(err)
		}
		reply, err := s.Request(ctx, s.places.InUse().StreamInfo(stream), body)
		if err != nil {
			return failed(err)
		}
		info, err := decodeSubjects(stream, filter, reply.Data)
		if err != nil {
			return failed(err)
		}
		if out.Created.IsZero() {
			out.Created, out.Last = info.Created, info.State.LastSeq
		}
		if !info.Created.Equal(out.Created) {
			return failed(errors.New("the stream was recreated during the list, try again"))
		}
		before := len(out.Subjects)
		for subject := range info.State.Subjects {
			out.Subjects[subject] = true
		}
		if len(out.Subjects) == before || len(out.Subjects) >= info.Total {
			return out, nil
		}
	}
}

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
