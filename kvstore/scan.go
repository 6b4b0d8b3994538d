package kvstore

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
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
		api := s.Places().InUse()
		if !api.IsOwn() {
			scanByGets(ctx, s, stream, cfg, follow)(yield)
			return
		}
		ctx, done := s.Denials().Permitted(ctx, api.About(stream))
		defer func() { _ = done(nil) }()
		if err := scanByConsumer(ctx, s, stream, cfg, follow, yield); err != nil {
			yield(Message{}, fmt.Errorf("read %s: %w", stream, done(err)))
		}
	}
}

// deleteConsumer deletes a consumer, even if ctx has ended. If that fails, the server deletes the
// unused consumer later.
func deleteConsumer(ctx context.Context, s *Store, stream, consumer string) {
	if !s.Conn().IsConnected() {
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
	return pageMessages(scanPages(ctx, s, stream, subject, batch))
}

// scanAhead is scanDirect that sends the next request while the caller handles the last messages. It
// holds the messages of two requests in memory.
func scanAhead(ctx context.Context, s *Store, stream, subject string, batch int) iter.Seq2[Message, error] {
	return pageMessages(func(yield func(Page, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		type result struct {
			Page
			err error
		}
		got := make(chan result)
		var getting sync.WaitGroup
		getting.Go(func() {
			defer close(got)
			for p, err := range scanPages(ctx, s, stream, subject, batch) {
				got <- result{p, err}
			}
		})
		defer func() {
			cancel()
			for range got { // the caller needs no more
			}
			getting.Wait()
		}()
		for r := range got {
			if !yield(r.Page, r.err) {
				return
			}
		}
	})
}

// scanPages yields the results of direct gets. An error comes with the last page.
func scanPages(ctx context.Context, s *Store, stream, subject string, batch int) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		for from, more := uint64(1), true; more; {
			page, err := s.Page(ctx, Query{Stream: stream, Subject: subject, From: from}, batch)
			if err != nil {
				err = fmt.Errorf("read %s of %s: %w", subject, stream, err)
			}
			if !yield(page, err) || err != nil {
				return
			}
			from, more = page.Next, page.More
		}
	}
}

// pageMessages yields the messages of pages, and then the error.
func pageMessages(pages iter.Seq2[Page, error]) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for page, err := range pages {
			for _, m := range page.Messages {
				if !yield(m, nil) {
					return
				}
			}
			if err != nil {
				yield(Message{}, err)
				return
			}
		}
	}
}

// scanByGets is scanStream by direct gets, for a joined account, which cannot use consumers.
func scanByGets(ctx context.Context, s *Store, stream string, cfg jetstream.OrderedConsumerConfig, follow bool) iter.Seq2[Message, error] {
	all := readStream(ctx, s, stream, cfg, follow)
	if cfg.DeliverPolicy == jetstream.DeliverLastPerSubjectPolicy {
		all = newestOfSubjects(all)
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

// readStream reads the stored messages. With follow it then polls for new ones.
func readStream(ctx context.Context, s *Store, stream string, cfg jetstream.OrderedConsumerConfig, follow bool) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		subject := commonPattern(cfg.FilterSubjects)
		from, err := firstSequence(ctx, s, stream, subject, cfg)
		for err == nil {
			var p Page
			p, err = s.Page(ctx, Query{Stream: stream, Subject: subject, From: from}, batchSize)
			for _, m := range p.Messages {
				if matchesAny(m.Subject, cfg.FilterSubjects) && !yield(m, nil) {
					return
				}
			}
			from = p.Next
			if err == nil && !p.More {
				if !follow {
					return
				}
				err = Pause(ctx, followPause)
			}
		}
		yield(Message{}, err)
	}
}

// firstSequence returns the first sequence of a scan.
func firstSequence(ctx context.Context, s *Store, stream, subject string, cfg jetstream.OrderedConsumerConfig) (uint64, error) {
	if cfg.OptStartTime == nil {
		return max(cfg.OptStartSeq, 1), nil
	}

	return s.Since(ctx, stream, subject, *cfg.OptStartTime)
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

// matchesAny reports whether a subject matches one of the patterns, or there are none.
func matchesAny(subject string, patterns []string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return SubjectMatches(subject, p) })
}
