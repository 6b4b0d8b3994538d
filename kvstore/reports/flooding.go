package reports

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/scan"
)

// floodWindow is the time within which a node that fills one of its subjects floods:
// the reports that are not kept any more are younger than this.
const floodWindow = 10 * time.Minute

// runHeader names the run of a batch. A single run with thousands of changes is not a flood. A node chooses the name, so
// only the subject of batches can be full without a flood.
const runHeader = "Muster-Run"

// Flooding returns the nodes that filled a subject within ten minutes, each with a description. It reads only the
// headers of these ten minutes. A subject with the batches of a single run does not count. Flooding returns nothing for a
// stream without a limit per subject, and for users other than administrators, who cannot read headers alone.
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
	runs := map[string]string{} // by subject, the only run with reports there; empty if there are several
	for m, err := range scan.Stream(ctx, s.store, n.Reports(), cfg, false) {
		if err != nil {
			return nil, err
		}
		run := ""
		if strings.HasSuffix(m.Subject, "."+kvstore.BatchOutcome) {
			run = m.Header.Get(runHeader)
		}
		if counts[m.Subject]++; counts[m.Subject] == 1 {
			runs[m.Subject] = run
		} else if runs[m.Subject] != run {
			runs[m.Subject] = ""
		}
	}
	maps.DeleteFunc(counts, func(subject string, _ int64) bool { return runs[subject] != "" })

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
