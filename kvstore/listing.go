package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/jsm.go/api"
)

// subjectPages is how many pages of subjects a stream may have: the server sends up
// to 100,000 at once.
const subjectPages = 10

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
	var size listed
	for range subjectPages {
		body, err := json.Marshal(api.JSApiStreamInfoRequest{JSApiIterableRequest: api.JSApiIterableRequest{Offset: len(out.Subjects)}, SubjectsFilter: filter})
		if err != nil {
			return failed(err)
		}
		reply, err := s.Request(ctx, s.places.InUse().StreamInfo(stream), body)
		if err != nil {
			return failed(err)
		}
		if err := size.add(reply.Data, subjectsBytes); err != nil {
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
			return failed(errors.New("it was made again meanwhile"))
		}
		if n := len(info.State.Subjects); n > subjectsAPage {
			return failed(fmt.Errorf("%w: a page of %d subjects, more than %d", ErrWrongAnswer, n, subjectsAPage))
		}
		before := len(out.Subjects)
		for subject := range info.State.Subjects {
			out.Subjects[subject] = true
		}
		if len(out.Subjects) == before || len(out.Subjects) >= info.Total {
			return out, nil
		}
	}

	return failed(fmt.Errorf("the server has more than %d pages of subjects", subjectPages))
}
