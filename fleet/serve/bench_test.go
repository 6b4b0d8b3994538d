package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// BenchmarkFeed reads what the stream has of many nodes, the server in the same process.
func BenchmarkFeed(b *testing.B) {
	const stored = 20_000
	_, store := kvtest.New(b)
	transaction, err := json.Marshal(model.Transaction{
		Type: "file", Name: "/etc/motd", Provider: "posix", Changed: true, RequestedEnsure: "present", FinalEnsure: "present",
		Properties: []byte(`{"ensure":"present","content":"` + strings.Repeat("x", 300) + `","owner":"root","group":"root","mode":"0644"}`),
		Changes:    []model.Change{{Action: "store", Message: "changed the content", Property: "content", Diff: strings.Repeat("+a line\n", 40)}},
	})
	if err != nil {
		b.Fatal(err)
	}
	run, err := json.Marshal(model.Run{Counts: model.Counts{Total: 3, Changed: 1}})
	if err != nil {
		b.Fatal(err)
	}
	var batch []model.Report
	for i := range stored / 2 {
		node, id := fmt.Sprintf("web%05d", i), ksuid.New().String()
		for _, r := range []model.Report{{Kind: model.KindTransaction, Type: model.ProtocolTransaction, Data: transaction}, {Kind: model.KindRun, Type: model.ProtocolRun, Data: run}} {
			r.Node, r.ID, r.RunID, r.Manifest, r.Time, r.Seq, r.Outcome, r.Cause = node, ksuid.New().String(), id, "group.web.motd", time.Now(), uint64(i+1), model.OutcomeChanged, model.CauseManifest
			batch = append(batch, r)
		}
		if len(batch) == 1000 {
			if n, err := store.PublishReports(b.Context(), batch); err != nil {
				b.Fatal(n, err)
			}
			batch = nil
		}
	}
	before := cpu(b)
	for b.Loop() {
		f := view.New(view.Options{})
		feed := newFeed(storeOf(store), f, 24*time.Hour, slog.New(slog.DiscardHandler))
		feed.isBegun = true
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error)
		go func() { done <- feed.followReports(ctx) }()
		kvtest.Eventually(b, "all are read", func() (bool, string) {
			got := f.Events(view.EventQuery{Limit: 1}).Events
			return len(got) == 1 && got[0].Seq == stored, fmt.Sprint(got)
		})
		cancel()
		<-done
	}
	b.ReportMetric(float64(stored)*float64(b.N)/b.Elapsed().Seconds(), "reports/s")
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N)/stored, "cpu-us/report")
}

// cpu returns the processor time that was used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}

	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
