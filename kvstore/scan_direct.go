package kvstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore/answer"
	"github.com/musterfleet/muster/model"
)

const (
	// scanBatch is how many messages are asked for at once.
	scanBatch = 256
	// scanPause is how often a followed stream is asked for more.
	scanPause = 500 * time.Millisecond
)

// scanDirect is Scan by direct gets, for an account that is joined with the fleet's,
// where the deliveries of a consumer would begin.
func (s *Store) scanDirect(ctx context.Context, stream string, cfg jetstream.OrderedConsumerConfig, follow bool) iter.Seq2[Message, error] {
	all := s.read(ctx, stream, cfg, follow)
	if cfg.DeliverPolicy == jetstream.DeliverLastPerSubjectPolicy {
		all = newest(all)
	}

	return func(yield func(Message, error) bool) {
		for m, err := range all {
			if err != nil {
				err = fmt.Errorf("read %s: %w", stream, err)
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// read reads what is stored, and with follow asks for more again and again.
func (s *Store) read(ctx context.Context, stream string, cfg jetstream.OrderedConsumerConfig, follow bool) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		subject := covering(cfg.FilterSubjects)
		from, err := s.first(ctx, stream, subject, cfg)
		for err == nil {
			var p page
			p, err = s.directPage(ctx, answer.Asked{Stream: stream, Subject: subject, From: from}, scanBatch)
			for _, m := range p.messages {
				from = m.Sequence + 1
				if isAnyOf(m.Subject, cfg.FilterSubjects) && !yield(m, nil) {
					return
				}
			}
			if err == nil && p.next == 0 {
				if !follow {
					return
				}
				err = Pause(ctx, scanPause)
			}
		}
		yield(Message{}, err)
	}
}

// first returns the sequence at which a scan begins.
func (s *Store) first(ctx context.Context, stream, subject string, cfg jetstream.OrderedConsumerConfig) (uint64, error) {
	if cfg.OptStartTime == nil {
		return max(cfg.OptStartSeq, 1), nil
	}
	body, err := json.Marshal(map[string]any{"start_time": cfg.OptStartTime, "next_by_subj": subject})
	if err != nil {
		return 0, err
	}
	reply, err := s.Request(ctx, s.api().DirectGet(stream, ""), body)
	if err != nil {
		return 0, err
	}
	m, err := s.refused.decode(answer.Asked{Stream: stream, Subject: subject}, reply)
	if errors.Is(err, model.ErrNotFound) {
		// Nothing since then: go on behind the newest.
		if m, err = s.Last(ctx, stream, subject); errors.Is(err, model.ErrNotFound) {
			return 1, nil
		}
		return m.Sequence + 1, err
	}

	return m.Sequence, err
}

// newest yields the newest message of each subject, in the order of sequences.
func newest(all iter.Seq2[Message, error]) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		last := map[string]Message{}
		for m, err := range all {
			if err != nil {
				yield(Message{}, err)
				return
			}
			last[m.Subject] = m
		}
		for _, m := range slices.SortedFunc(maps.Values(last), func(a, b Message) int { return cmp.Compare(a.Sequence, b.Sequence) }) {
			if !yield(m, nil) {
				return
			}
		}
	}
}

// covering returns one pattern that matches all that some patterns match, by the
// tokens that they begin with.
func covering(patterns []string) string {
	if len(patterns) == 1 {
		return patterns[0]
	}
	begin := strings.Split(patterns[0], ".")
	for _, p := range patterns[1:] {
		tokens := strings.Split(p, ".")
		for i := range begin {
			if i == len(tokens) || tokens[i] != begin[i] {
				begin = begin[:i]
				break
			}
		}
	}

	return strings.Join(append(begin[:min(len(begin), len(strings.Split(patterns[0], "."))-1)], ">"), ".")
}

// isAnyOf reports whether a subject matches one of some patterns.
func isAnyOf(subject string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return answer.Matches(subject, p) })
}
