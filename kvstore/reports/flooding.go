package reports

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/scan"
)

// floodWindow is the time within which a node that fills one of its subjects floods:
// the reports that are not kept any more are younger than this.
const floodWindow = 10 * time.Minute

// Flooding returns the nodes that published more reports of a kind and outcome
// within ten minutes than the stream keeps of one, each with what it published. It
// reads the headers of the last ten minutes only: what a flood of a node leaves in
// the stream is bounded. A stream without a bound of a node has no such nodes. Whoever
// is no administrator cannot read headers alone, and gets none.
func (s Stream) Flooding(ctx context.Context) (map[string]string, error) {
	if !s.store.Places().InUse().IsOwn() {
		return nil, nil
	}
	n := s.store.Names()
	found, err := s.store.Infos(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", n.Reports(), err)
	}
	info, err := found.Of(n.Reports())
	if err != nil || info.Config.MaxMsgsPer <= 0 {
		return nil, err
	}
	since := time.Now().Add(-floodWindow)
	cfg := jetstream.OrderedConsumerConfig{HeadersOnly: true, DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &since}
	counts := map[string]int64{}
	for m, err := range scan.Stream(ctx, s.store, n.Reports(), cfg, false) {
		if err != nil {
			return nil, err
		}
		counts[m.Subject]++
	}

	return flooding(n, counts, info.Config.MaxMsgsPer), nil
}

// flooding returns the nodes that fill a subject, with the first such kind and
// outcome by name.
func flooding(n kvstore.Names, counts map[string]int64, most int64) map[string]string {
	out := map[string]string{}
	for _, subject := range slices.Backward(slices.Sorted(maps.Keys(counts))) {
		if r, err := parseSubject(n, subject); err == nil && counts[subject] >= most {
			out[r.Node] = fmt.Sprintf("flooding: %d or more reports %s.%s within 10m, only the last %d are kept", most, r.Kind, r.Outcome, most)
		}
	}

	return out
}
