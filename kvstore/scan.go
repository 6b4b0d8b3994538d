package kvstore

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// scanStream yields the stored messages of a stream. With follow it continues with new messages until
// ctx ends. It is for operators: in the fleet's account it uses a consumer and deletes it afterwards.
// An error is the last item.
func scanStream(ctx context.Context, s *Store, stream string, cfg jetstream.OrderedConsumerConfig, follow bool) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		cfg.InactiveThreshold = time.Minute
		if err := s.Bind(ctx, stream); err != nil {
			yield(Message{}, fmt.Errorf("read %s: %w", stream, err))
			return
		}
		api := s.API.InUse()
		if !api.IsOwn() {
			all := readStream(ctx, s, stream, cfg, follow)
			if cfg.DeliverPolicy == jetstream.DeliverLastPerSubjectPolicy {
				all = newestOfSubjects(all)
			}
			all(yield)
			return
		}
		ctx, done := s.Denials.Permitted(ctx, api.About(stream))
		defer func() { _ = done(nil) }()
		if err := scanByConsumer(ctx, s, stream, cfg, follow, yield); err != nil {
			yield(Message{}, fmt.Errorf("read %s: %w", stream, done(err)))
		}
	}
}

// deleteConsumer deletes a consumer, even if ctx has ended. If that fails, the server deletes the
// unused consumer later.
func deleteConsumer(ctx context.Context, s *Store, stream, consumer string) {
	if !s.Conn.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), RequestTimeout)
	defer cancel()
	_ = s.JetStream().DeleteConsumer(ctx, stream, consumer)
}

const (
	// batchSize is the number of messages per request.
	batchSize = 256
	// followPause is the interval of reads of a followed stream.
	followPause = 500 * time.Millisecond
)

// scanDirect reads all messages of a subject, which may be a wildcard, by direct gets of batch
// messages each, without a consumer. An error is the last item. It also yields Forged messages,
// because they must not hide the messages behind them. It skips messages with unreadable headers.
func scanDirect(ctx context.Context, s *Store, stream, subject string, batch int) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for page, err := range scanPages(ctx, s, Query{Stream: stream, Subject: subject}, batch) {
			for _, m := range page.Messages {
				if !yield(m, nil) {
					return
				}
			}
			if err != nil {
				yield(Message{}, err)
			}
		}
	}
}

// scanPages yields the results of direct gets. An error comes with the last page.
func scanPages(ctx context.Context, s *Store, q Query, batch int) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		q.From = max(q.From, 1)
		for more := true; more; {
			page, err := s.Page(ctx, q, batch)
			if err != nil {
				err = fmt.Errorf("read %s of %s: %w", q.Subject, q.Stream, err)
			}
			if !yield(page, err) || err != nil {
				return
			}
			q.From, more = page.Next, page.More
		}
	}
}

// readStream is scanStream by direct gets, for a joined account, which cannot use consumers. With follow it
// polls for new messages.
func readStream(ctx context.Context, s *Store, stream string, cfg jetstream.OrderedConsumerConfig, follow bool) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		q := Query{Stream: stream, Subject: commonPattern(cfg.FilterSubjects), From: cfg.OptStartSeq}
		var err error
		if cfg.OptStartTime != nil {
			q.From, err = s.Since(ctx, stream, q.Subject, *cfg.OptStartTime)
		}
		for more := true; err == nil && more; more = follow {
			for page, failed := range scanPages(ctx, s, q, batchSize) {
				for _, m := range page.Messages {
					if matchesAny(m.Subject, cfg.FilterSubjects) && !yield(m, nil) {
						return
					}
				}
				q.From, err = page.Next, failed
			}
			if err == nil && follow {
				err = Pause(ctx, followPause)
			}
		}
		if err != nil {
			yield(Message{}, err)
		}
	}
}

// newestOfSubjects yields the newest message of each subject in the order of sequences.
func newestOfSubjects(all iter.Seq2[Message, error]) iter.Seq2[Message, error] {
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

// commonPattern returns one pattern that includes all given patterns, by their common first tokens. No
// pattern means everything.
func commonPattern(patterns []string) string {
	switch len(patterns) {
	case 0:
		return ">"
	case 1:
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

func matchesAny(subject string, patterns []string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return SubjectMatches(subject, p) })
}
