package kvstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
)

// floodWindow is the period of a flood: a flooding node fills one of its subjects within it.
const floodWindow = 10 * time.Minute

// runHeader names the run of a batch. A node chooses the name, so only the subject of batches can be full of one run
// without a flood.
const runHeader = "Muster-Run"

// Flooding returns the nodes that filled a subject within ten minutes, each with a description. It reads the headers of
// these ten minutes, and the reports of full subjects. A subject with about one report per manifest does not count, such as
// after a first push of many manifests. All batches of a run count as one report, and a single run never counts. Nodes choose the names of manifests, so
// assigned returns the number of manifests that are assigned to a node. Flooding returns nothing for a stream without a limit
// per subject, and for users other than administrators, who cannot read headers alone.
func (s Reports) Flooding(ctx context.Context, assigned func(node string) int) (map[string]string, error) {
	if !s.store.API.InUse().IsOwn() {
		return nil, nil
	}
	n := s.store.Names
	found, err := s.store.Infos(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", n.Reports, err)
	}
	info, err := found.Of(n.Reports)
	if err != nil || info.Config.MaxMsgsPer <= 0 {
		return nil, err
	}
	since, most := time.Now().Add(-floodWindow), info.Config.MaxMsgsPer
	counts, runs, err := s.countSubjects(ctx, since)
	if err != nil {
		return nil, err
	}
	for subject, count := range counts {
		r, err := parseReportSubject(n, subject)
		if err != nil || count < most {
			continue
		}
		isFlood, err := s.isFlood(ctx, r, since, count, runs[subject], assigned(r.Node))
		if err != nil {
			return nil, err
		}
		if !isFlood {
			delete(counts, subject)
		}
	}

	return floodingNodes(n, counts, most), nil
}

// countSubjects counts the messages of each subject since a time, and returns the runs of each subject
// of batches.
func (s Reports) countSubjects(ctx context.Context, since time.Time) (counts map[string]int64, runs map[string]map[string]bool, err error) {
	cfg := jetstream.OrderedConsumerConfig{HeadersOnly: true, DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &since}
	counts, runs = map[string]int64{}, map[string]map[string]bool{}
	for m, err := range scanStream(ctx, s.store, s.stream, cfg, false) {
		if err != nil {
			return nil, nil, err
		}
		counts[m.Subject]++
		if !strings.HasSuffix(m.Subject, "."+BatchOutcome) {
			continue
		}
		if runs[m.Subject] == nil {
			runs[m.Subject] = map[string]bool{}
		}
		runs[m.Subject][m.Header.Get(runHeader)] = true
	}

	return counts, runs, nil
}

// isFlood reports whether a full subject has the messages of several runs, and at least two runs or reports per assigned
// manifest.
func (s Reports) isFlood(ctx context.Context, subject model.Report, since time.Time, count int64, runs map[string]bool, assigned int) (bool, error) {
	if isReportBatch(subject) && !runs[""] {
		return len(runs) >= max(2, 2*assigned), nil
	}
	if 2*int64(assigned) <= count || isReportBatch(subject) {
		return true, nil
	}
	manifests := map[string]bool{}
	for r, err := range s.Reports(ctx, model.ReportRange{Node: subject.Node, Kind: subject.Kind, Outcome: string(subject.Outcome), Since: since}) {
		if errors.Is(err, ErrInvalidEvent) {
			continue
		}
		if err != nil {
			return false, err
		}
		if manifests[r.Manifest] = true; 2*int64(len(manifests)) > count {
			return false, nil
		}
	}

	return true, nil
}

// floodingNodes returns the nodes that fill a subject, with the first such kind and outcome by name.
func floodingNodes(n Names, counts map[string]int64, most int64) map[string]string {
	out := map[string]string{}
	for _, subject := range slices.Backward(slices.Sorted(maps.Keys(counts))) {
		if r, err := parseReportSubject(n, subject); err == nil && counts[subject] >= most {
			out[r.Node] = fmt.Sprintf("flooding: %d or more reports %s.%s within 10m, only the last %d are stored", most, r.Kind, r.Outcome, most)
		}
	}

	return out
}
