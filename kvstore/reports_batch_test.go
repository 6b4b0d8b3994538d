package kvstore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// transactions returns reports of one run. Every second one failed.
func transactions(t *testing.T, from, count int) []model.Report {
	t.Helper()
	out := make([]model.Report, count)
	for i := range out {
		tx := model.Transaction{Protocol: model.ProtocolTransaction, Type: "file", Name: fmt.Sprintf("/etc/%d", from+i), Failed: i%2 == 0, Changed: i%2 != 0}
		data, err := json.Marshal(tx)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = kvtest.Outgoing("web01", model.KindTransaction, tx.Outcome(), uint64(from+i))
		out[i].Type, out[i].RunID, out[i].Data, out[i].Batch = model.ProtocolTransaction, "r1", data, true
	}

	return out
}

func TestABatchIsReadAsItsReports(t *testing.T) {
	t.Parallel()
	_, store := kvtest.NewWith(t, provision.Options{ReportMax: 512 << 10})
	if err := kvtest.Publish(t.Context(), store, kvtest.Outgoing("web01", model.KindNode, "started", 1)); err != nil {
		t.Fatal(err)
	}
	batch := transactions(t, 2, 200)
	if err := store.PublishBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if err := kvtest.Publish(t.Context(), store, kvtest.Outgoing("web01", model.KindRun, "failed", 202)); err != nil {
		t.Fatal(err)
	}
	got := readReports(t, store, model.ReportRange{})
	if len(got) != 202 {
		t.Fatalf("%d reports", len(got))
	}
	for i, r := range got[1:201] {
		sent := batch[i]
		if r.Seq != sent.Seq || r.ID != sent.ID || r.Outcome != sent.Outcome || r.Kind != sent.Kind || r.RunID != "r1" || r.Batch || string(r.Data) != string(sent.Data) {
			t.Fatalf("report %d is %+v, sent %+v", i, r, sent)
		}
	}
}

func TestABatchIsACloudEventsBatch(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	nc := srv.Connect(t)
	sub, err := nc.SubscribeSync("muster.report.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	batch := transactions(t, 1, 3)
	if err := store.PublishBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	m, err := sub.NextMsg(kvtest.Deadline)
	if err != nil {
		t.Fatal(err)
	}
	if m.Subject != "muster.report.web01.transaction.batch" || m.Header.Get("Content-Type") != "application/cloudevents-batch+json" || m.Header.Get("Nats-Msg-Id") != batch[0].ID+"-"+batch[2].ID {
		t.Errorf("%s, %v", m.Subject, m.Header)
	}
	var events []struct{ ID, Source, SpecVersion string }
	if err := json.Unmarshal(m.Data, &events); err != nil || len(events) != 3 || events[1].ID != batch[1].ID || events[1].SpecVersion != "1.0" || events[1].Source != "muster/node/web01" {
		t.Errorf("%+v, %v", events, err)
	}
}

func TestABatchIsStoredOnce(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	for range 2 {
		if err := store.PublishBatch(t.Context(), transactionsOnce(t)); err != nil {
			t.Fatal(err)
		}
	}
	if got := readReports(t, store, model.ReportRange{}); len(got) != 2 {
		t.Errorf("%d reports", len(got))
	}
}

// transactionsOnce returns two reports, always the same.
func transactionsOnce(t *testing.T) []model.Report {
	t.Helper()
	batch := transactions(t, 1, 2)
	batch[0].ID, batch[1].ID = "3MOeJR8KxiL9lSC9VS4ODezLOnL", "3MOeJSOCbYjouR9r3SRg2N5zUF9"

	return batch
}

func TestReportsOfABatchAreFiltered(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	if err := store.PublishBatch(t.Context(), transactions(t, 1, 4)); err != nil {
		t.Fatal(err)
	}
	if err := kvtest.Publish(t.Context(), store, kvtest.Outgoing("web02", model.KindRun, "failed", 5)); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		filter model.ReportRange
		want   []uint64
	}{
		"outcome":          {model.ReportRange{Outcome: "failed"}, []uint64{1, 3, 5}},
		"outcome and kind": {model.ReportRange{Outcome: "failed", Kind: "transaction"}, []uint64{1, 3}},
		"another kind":     {model.ReportRange{Outcome: "failed", Kind: "run"}, []uint64{5}},
		"kind":             {model.ReportRange{Kind: "transaction"}, []uint64{1, 2, 3, 4}},
		"node":             {model.ReportRange{Outcome: "changed", Node: "web01"}, []uint64{2, 4}},
		"another node":     {model.ReportRange{Outcome: "failed", Node: "web02"}, []uint64{5}},
	} {
		var seqs []uint64
		for _, r := range readReports(t, store, tt.filter) {
			seqs = append(seqs, r.Seq)
		}
		if !slices.Equal(seqs, tt.want) {
			t.Errorf("%s: %v, want %v", name, seqs, tt.want)
		}
	}
}

// An invalid report of a batch affects only itself.
func TestABadReportOfABatchDoesNotEndReading(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	batch := transactions(t, 1, 3)
	events := make([]string, len(batch))
	for i, r := range batch {
		data, err := kvstore.EncodeReport(r)
		if err != nil {
			t.Fatal(err)
		}
		events[i] = string(data)
	}
	events[1] = strings.Replace(events[1], "muster/node/web01", "muster/node/web02", 1)
	nc := srv.Connect(t)
	for _, data := range []string{"[" + strings.Join(events, ",") + "]", "garbage"} {
		if _, err := nc.Request("muster.report.web01.transaction.batch", []byte(data), kvtest.Deadline); err != nil {
			t.Fatal(err)
		}
	}
	var seqs []uint64
	bad := 0
	for r, err := range store.Reports(t.Context(), model.ReportRange{}) {
		switch {
		case errors.Is(err, kvstore.ErrInvalidEvent):
			bad++
		case err != nil:
			t.Fatal(err)
		default:
			seqs = append(seqs, r.Seq)
		}
	}
	if bad != 2 || !slices.Equal(seqs, []uint64{1, 3}) {
		t.Errorf("%d bad, good %v", bad, seqs)
	}
}

// Readers get at most one error per batch, whatever a node writes into it.
func TestInvalidReportsOfABatchAreOneError(t *testing.T) {
	t.Parallel()
	names, err := kvstore.NewNames("muster")
	if err != nil {
		t.Fatal(err)
	}
	good, err := kvstore.EncodeReport(transactions(t, 1, 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	data := []byte("[1," + string(good) + strings.Repeat(",1", 20_000) + "]")
	valid, err := kvstore.Decode(names, kvstore.Message{Subject: "muster.report.web01.transaction.batch", Data: data})
	if len(valid) != 1 || !errors.Is(err, kvstore.ErrInvalidEvent) {
		t.Errorf("%d reports, %v", len(valid), err)
	}
}

func TestABatchThatNobodyTakesIsUndeliverable(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	invalid := transactions(t, 1, 2)
	invalid[1].ID = "one"
	large := transactions(t, 3, 2)
	large[1].Data = jsonText(2 << 20)
	for name, batch := range map[string][]model.Report{"invalid": invalid, "larger than the server takes": large} {
		if err := store.PublishBatch(t.Context(), batch); !errors.Is(err, model.ErrUndeliverable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	kvtest.Update(t, kvtest.Manager(t, srv), "MUSTER_REPORTS", func(c *api.StreamConfig) { c.MaxMsgSize = 1000 })
	if err := store.PublishBatch(t.Context(), transactions(t, 5, 10)); !errors.Is(err, model.ErrUndeliverable) || !errors.Is(err, model.ErrTooLarge) {
		t.Errorf("larger than the stream takes: %v", err)
	}
	srv.Stop()
	if err := store.PublishBatch(t.Context(), transactions(t, 20, 2)); err == nil || errors.Is(err, model.ErrUndeliverable) {
		t.Errorf("without a server: %v", err)
	}
}
