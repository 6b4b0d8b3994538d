package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// Infos are streams by name; nil for one whose servers do not answer.
type Infos map[string]*api.StreamInfo

// Of returns the info of a stream; the error wraps model.ErrNotFound when there
// is no such stream.
func (i Infos) Of(stream string) (*api.StreamInfo, error) {
	info, listed := i[stream]
	switch {
	case !listed:
		return nil, fmt.Errorf("stream %s: %w", stream, model.ErrNotFound)
	case info == nil:
		return nil, fmt.Errorf("stream %s: its servers do not answer", stream)
	default:
		return info, nil
	}
}

// ErrNoJetStream is an account without JetStream.
var ErrNoJetStream = errors.New("JetStream is not enabled for this account")

// Infos returns the streams of the account that keep a subject, or all for none. It
// lists them, because the list cannot be made to show the keys in a stream, as the
// info of one stream can: so a node may be permitted to ask for it.
func (s *Store) Infos(ctx context.Context, subject string) (Infos, error) {
	found := Infos{}
	for offset := 0; ; {
		page, err := s.infoPage(ctx, subject, offset)
		if err != nil {
			return nil, fmt.Errorf("list streams: %w", err)
		}
		for _, info := range page.Streams {
			found[info.Config.Name] = info
		}
		for _, name := range page.Missing {
			found[name] = nil
		}
		if offset += len(page.Streams); len(page.Streams) == 0 || offset >= page.Total {
			return found, nil
		}
	}
}

// infoPage asks in each place for JetStream, until one answers: that is the place
// from then on.
func (s *Store) infoPage(ctx context.Context, subject string, offset int) (*api.JSApiStreamListResponse, error) {
	body, err := json.Marshal(api.JSApiStreamListRequest{JSApiIterableRequest: api.JSApiIterableRequest{Offset: offset}, Subject: subject})
	if err != nil {
		return nil, err
	}
	var failed error
	for _, place := range s.apis.all() {
		page, err := s.listStreams(ctx, place, body)
		if err == nil {
			s.apis.use(place)
			return page, nil
		}
		if !isElsewhere(err) {
			return nil, err
		}
		// That nothing answers tells less than any other error.
		if failed == nil || errors.Is(failed, nats.ErrNoResponders) {
			failed = err
		}
	}

	return nil, failed
}

func (s *Store) listStreams(ctx context.Context, place API, body []byte) (*api.JSApiStreamListResponse, error) {
	reply, err := s.Request(ctx, place.StreamList(), body)
	if err != nil {
		return nil, err
	}
	var resp api.JSApiStreamListResponse
	if err := json.Unmarshal(reply.Data, &resp); err != nil {
		return nil, err
	}
	if resp.Error != nil && resp.Error.ErrCode == uint16(jetstream.JSErrCodeJetStreamNotEnabledForAccount) {
		return nil, ErrNoJetStream
	}

	return &resp, resp.ToError()
}

// Listing is what the server that leads a stream knows of it: since when there is
// such a stream, its last sequence, and the subjects that match a filter.
type Listing struct {
	Created  time.Time
	Last     uint64
	Subjects map[string]bool
}

// Subjects lists the subjects of a stream that match a filter, those of which only a
// deletion is left included. No consumer is made, and no replica that lags is asked.
// The error wraps model.ErrNotFound where there is no such stream, and
// ErrWrongAnswer.
func (s *Store) Subjects(ctx context.Context, stream, filter string) (Listing, error) {
	err := s.bind(ctx, stream)
	var out Listing
	for err == nil {
		var info *api.JSApiStreamInfoResponse
		if info, err = s.subjectPage(ctx, stream, filter, len(out.Subjects)); err != nil {
			break
		}
		if out.Subjects == nil {
			out = Listing{Created: info.Created, Last: info.State.LastSeq, Subjects: map[string]bool{}}
		}
		before := len(out.Subjects)
		for subject := range info.State.Subjects {
			out.Subjects[subject] = true
		}
		switch {
		case !info.Created.Equal(out.Created):
			err = errors.New("it was made again meanwhile")
		case len(out.Subjects) >= info.Total || len(out.Subjects) == before:
			return out, nil
		}
	}

	return Listing{}, fmt.Errorf("list %s of %s: %w", filter, stream, err)
}

// subjectPage returns the info of a stream with the subjects from an offset on; the
// server sends up to 100,000 at once.
func (s *Store) subjectPage(ctx context.Context, stream, filter string, offset int) (*api.JSApiStreamInfoResponse, error) {
	body, err := json.Marshal(api.JSApiStreamInfoRequest{JSApiIterableRequest: api.JSApiIterableRequest{Offset: offset}, SubjectsFilter: filter})
	if err != nil {
		return nil, err
	}
	reply, err := s.Request(ctx, s.api().StreamInfo(stream), body)
	if err != nil {
		return nil, err
	}
	info, err := decodeSubjects(stream, filter, reply.Data)
	if _, err := s.counted(Message{}, err); err != nil {
		return nil, err
	}

	return info, nil
}

// decodeSubjects decodes the info of a stream, which must be of that one and list
// what was asked for.
func decodeSubjects(stream, filter string, data []byte) (*api.JSApiStreamInfoResponse, error) {
	var info api.JSApiStreamInfoResponse
	if err := json.Unmarshal(data, &info); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrongAnswer, err)
	}
	switch {
	case info.Error != nil && info.Error.ErrCode == uint16(jetstream.JSErrCodeStreamNotFound):
		return nil, fmt.Errorf("%w: %w", model.ErrNotFound, info.Error)
	case info.Error != nil:
		return nil, info.ToError()
	case info.Type != infoType || info.StreamInfo == nil || info.Config.Name != stream:
		return nil, fmt.Errorf("%w: it is no info of the stream", ErrWrongAnswer)
	}
	for subject := range info.State.Subjects {
		if !matches(subject, filter) {
			return nil, fmt.Errorf("%w: it lists %s", ErrWrongAnswer, subject)
		}
	}

	return &info, nil
}

const infoType = "io.nats.jetstream.api.v1.stream_info_response"
