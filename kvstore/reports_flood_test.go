package kvstore_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// bounded returns a fleet with a small stream of reports. A node has a share of 34 subjects with 8 reports of
// 16 KiB: 4.3 MiB of 16 MiB.
func bounded(t *testing.T) (*natstest.Server, *kvtest.Store) {
	t.Helper()

	return kvtest.NewWith(t, provision.Options{ReportBytes: 16 << 20, ReportCount: 8, ReportMax: 16 << 10})
}

// flood publishes messages as large as the stream takes on every subject of a
// node, and some that no report has, several times over.
func reportsFlood(t *testing.T, nc *nats.Conn, store *kvtest.Store, node string, times int) {
	t.Helper()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(256), jetstream.WithPublishAsyncTimeout(kvtest.Deadline))
	if err != nil {
		t.Fatal(err)
	}
	subjects := append(store.Names.ReportSubjects(node), "muster.report."+node+".run.evil", "muster.report."+node+".evil.stable")
	data := bytes.Repeat([]byte("x"), 16<<10)
	for range times {
		for _, subject := range subjects {
			if _, err := js.PublishMsgAsync(&nats.Msg{Subject: subject, Data: data}, jetstream.WithRetryAttempts(0), jetstream.WithStallWait(kvtest.Deadline)); err != nil {
				t.Fatal(err)
			}
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(kvtest.Deadline):
		t.Fatal("the flood was not taken")
	}
}

// A flooding node loses only its own oldest reports.
func TestAFloodCostsOnlyTheNodeThatMakesIt(t *testing.T) {
	t.Parallel()
	srv, store := bounded(t)
	for i := range 40 {
		for node := range 20 {
			if err := kvtest.Publish(t.Context(), store, kvtest.Outgoing(fmt.Sprintf("db%02d", node), model.KindRun, []model.Outcome{"stable", "changed", "failed", "noop", "refused", "notrun"}[i%6], uint64(i+1))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if named, err := store.Flooding(t.Context()); err != nil || len(named) != 0 {
		t.Errorf("before the flood: %v, %v", named, err)
	}
	reportsFlood(t, srv.Connect(t), store, "evil", 80)
	if named, err := store.Flooding(t.Context()); err != nil || len(named) != 1 || named["evil"] != "flooding: 8 or more reports ensure.changed within 10m, only the last 8 are stored" {
		t.Errorf("in the flood: %v, %v", named, err)
	}
	kept := map[string]int{}
	for r, err := range store.Reports(t.Context(), model.ReportRange{}) {
		if err == nil {
			kept[r.Node]++
		}
	}
	for node := range 20 {
		if name := fmt.Sprintf("db%02d", node); kept[name] != 40 {
			t.Errorf("%d of 40 reports of %s are left", kept[name], name)
		}
	}
	stream, err := store.JetStream().Stream(t.Context(), "MUSTER_REPORTS")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("muster.report.evil.>"))
	if err != nil {
		t.Fatal(err)
	}
	if len(info.State.Subjects) > 34 {
		t.Errorf("%d subjects of evil are kept", len(info.State.Subjects))
	}
	for subject, n := range info.State.Subjects {
		if n > 8 {
			t.Errorf("%d reports are kept of %s", n, subject)
		}
	}
}

// A subject is full if its recent reports reach the limit.
func TestWhoFloodsIsNamed(t *testing.T) {
	t.Parallel()
	n, err := kvstore.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{
		"muster.report.web01.run.stable": 239, "muster.report.web01.run.failed": 239,
		"muster.report.web02.transaction.batch": 240, "muster.report.web02.run.failed": 900, "muster.report.web03.node.started": 1, "garbage": 900,
	}
	if got := kvstore.FloodingOf(n, counts, 240); len(got) != 1 || got["web02"] != "flooding: 240 or more reports run.failed within 10m, only the last 240 are stored" {
		t.Errorf("%v", got)
	}
}

// TestOneReportPerManifestIsNoFlood: a first push of many manifests fills subjects with one report of each manifest. A node
// that invents manifests, or reports the same ones repeatedly, floods.
func TestOneReportPerManifestIsNoFlood(t *testing.T) {
	t.Parallel()
	_, store := bounded(t)
	publish := func(node string, reports, manifests int) {
		t.Helper()
		for i := range reports {
			r := kvtest.Outgoing(node, model.KindRun, model.OutcomeChanged, uint64(i+1))
			r.Manifest = fmt.Sprint("m", i%manifests)
			if err := kvtest.Publish(t.Context(), store, r); err != nil {
				t.Fatal(err)
			}
			batch := transactions(t, 1, 2)
			for j := range batch {
				batch[j].Node, batch[j].Manifest, batch[j].RunID = node, r.Manifest, fmt.Sprint(node, i)
			}
			if err := store.PublishBatch(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
	}
	publish("first-push", 20, 20)
	publish("repeats", 20, 2)
	publish("invents", 20, 20)
	assigned := map[string]int{"first-push": 20, "repeats": 20, "invents": 4}
	named, err := store.FloodingAmong(t.Context(), func(node string) int { return assigned[node] })
	if err != nil || len(named) != 2 || named["repeats"] == "" || named["invents"] == "" {
		t.Errorf("%v, %v", named, err)
	}
}

// TestOneRunPerManifestIsNoFlood: a first push of several large manifests fills the subject of batches. A node that runs one
// of them again and again floods.
func TestOneRunPerManifestIsNoFlood(t *testing.T) {
	t.Parallel()
	_, store := bounded(t)
	for node, batches := range map[string]int{"first-push": 3, "again": 1} {
		for run := range 12 / batches {
			for range batches {
				batch := transactions(t, 1, 2)
				for j := range batch {
					batch[j].Node, batch[j].RunID = node, fmt.Sprint(node, run)
				}
				if err := store.PublishBatch(t.Context(), batch); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	named, err := store.FloodingAmong(t.Context(), func(string) int { return 4 })
	if err != nil || len(named) != 1 || named["again"] == "" {
		t.Errorf("%v, %v", named, err)
	}
}

// TestOneRunIsNoFlood: a first run with thousands of files fills the subject of batches.
func TestOneRunIsNoFlood(t *testing.T) {
	t.Parallel()
	_, store := bounded(t)
	publish := func(run string, batches int) {
		t.Helper()
		for range batches {
			batch := transactions(t, 1, 2)
			batch[0].RunID, batch[1].RunID = run, run
			if err := store.PublishBatch(t.Context(), batch); err != nil {
				t.Fatal(err)
			}
		}
	}
	publish("first", 20)
	if named, err := store.Flooding(t.Context()); err != nil || len(named) != 0 {
		t.Errorf("after one run: %v, %v", named, err)
	}
	// Only batches name their run.
	changed := store.Names.Report("web02", model.KindRun, string(model.OutcomeChanged))
	for range 20 {
		m := kvstore.NewMsg(changed, []byte("{}"))
		m.Header.Set("Muster-Run", "first")
		if _, err := store.Publish(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if named, err := store.Flooding(t.Context()); err != nil || len(named) != 1 || named["web02"] != "flooding: 8 or more reports run.changed within 10m, only the last 8 are stored" {
		t.Errorf("after reports of a subject that no run fills: %v, %v", named, err)
	}
	publish("second", 1)
	if named, err := store.Flooding(t.Context()); err != nil || named["web01"] != "flooding: 8 or more reports transaction.batch within 10m, only the last 8 are stored" {
		t.Errorf("after two runs: %v, %v", named, err)
	}
}
