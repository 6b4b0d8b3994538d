package kvstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"
	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// A report is as long as the stream accepts, of a stream that does not say as long
// as one would by default, and never longer than the server accepts.
func TestMaxMessageIsThatOfTheStream(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*api.StreamConfig)
		least  int64
		most   int64
	}{
		"default":             {func(*api.StreamConfig) {}, 60 << 10, 64 << 10},
		"without a bound":     {func(c *api.StreamConfig) { c.MaxMsgSize = -1 }, 60 << 10, 64 << 10},
		"chosen":              {func(c *api.StreamConfig) { c.MaxMsgSize = 256 << 10 }, 250 << 10, 256 << 10},
		"more than by server": {func(c *api.StreamConfig) { c.MaxMsgSize = 8 << 20 }, 1000 << 10, 1 << 20},
	} {
		srv, store := kvtest.New(t)
		kvtest.Update(t, kvtest.Manager(t, srv), "MUSTER_REPORTS", tt.change)
		away, err := kvtest.Of(srv.Connect(t), "")
		if err != nil {
			t.Fatal(err)
		}
		if got := kvstore.NewReports(away.Store).MaxMessage(); got > 64<<10 {
			t.Errorf("%s: %d bytes before anything is known", name, got)
		}
		for _, s := range []*kvtest.Store{store, away} {
			s.Sizes.Refresh()
			if err := s.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := kvstore.NewReports(s.Store).MaxMessage(); got < tt.least || got >= tt.most {
				t.Errorf("%s: %d bytes", name, got)
			}
		}
	}
}

// An agent also learns from refusals what the stream accepts.
func TestALowerBoundIsNoticed(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	if err := kvtest.Publish(t.Context(), store, kvtest.Outgoing("web01", model.KindRun, "stable", 1)); err != nil {
		t.Fatal(err)
	}
	kvtest.Update(t, kvtest.Manager(t, srv), "MUSTER_REPORTS", func(c *api.StreamConfig) { c.MaxMsgSize = 20 << 10 })
	large := kvtest.Outgoing("web01", model.KindRun, "stable", 2)
	large.Data = jsonText(40 << 10)
	if err := kvtest.Publish(t.Context(), store, large); !errors.Is(err, model.ErrUndeliverable) {
		t.Errorf("published 40 KiB: %v", err)
	}
	if err := kvtest.Publish(t.Context(), store, kvtest.Outgoing("web01", model.KindRun, "stable", 3)); err != nil {
		t.Fatal(err)
	}
	if got := kvstore.NewReports(store.Store).MaxMessage(); got > 20<<10 {
		t.Errorf("%d bytes", got)
	}
}

func TestReportTravelsWhole(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	run := model.Run{Protocol: model.ProtocolRun, RunID: "r1", Node: "web01", Manifest: "node.web01.motd", Cause: model.CauseDrift, Revision: 1 << 60}
	e := sampleReport(t, run)
	nc := srv.Connect(t)
	sub, err := nc.SubscribeSync("muster.report.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := kvtest.Publish(t.Context(), store, e); err != nil {
		t.Fatal(err)
	}
	m, err := sub.NextMsg(kvtest.Deadline)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Header.Get("Content-Type"); got != "application/cloudevents+json" || m.Header.Get("Nats-Msg-Id") != e.ID {
		t.Errorf("headers = %v", m.Header)
	}
	var raw map[string]any
	if err := json.Unmarshal(m.Data, &raw); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"specversion": "1.0", "id": e.ID, "type": "io.muster.v1.run", "source": "muster/node/web01", "datacontenttype": "application/json",
		"dataschema": "https://example.net/run.json",
		"runid":      "r1", "manifest": "node.web01.motd", "revision": "1152921504606846976", "digest": "sha256-ab", "cause": "drift",
		"correlationid": "c1", "seq": "18446744073709551615",
	} {
		if raw[name] != want {
			t.Errorf("%s = %v, want %v", name, raw[name], want)
		}
	}
	if doc, ok := raw["data"].(map[string]any); !ok || doc["run_id"] != "r1" || raw["data_base64"] != nil {
		t.Errorf("data is no object: %s", m.Data)
	}
	got := readReports(t, store, model.ReportRange{})
	if len(got) != 1 {
		t.Fatalf("%d reports", len(got))
	}
	r := got[0]
	if r.Node != "web01" || r.Kind != "run" || r.Outcome != model.OutcomeChanged || r.ID != e.ID || r.Type != e.Type || r.Seq != e.Seq ||
		r.Revision != e.Revision || r.RunID != "r1" || r.Cause != model.CauseDrift || !r.Time.Equal(e.Time) {
		t.Errorf("report = %+v", r)
	}
	var back model.Run
	if err := json.Unmarshal(r.Data, &back); err != nil || back.Revision != run.Revision || back.Manifest != run.Manifest {
		t.Errorf("run = %+v, %v", back, err)
	}
}

// Data may be in the event as it is, or as base64, which other senders choose.
func TestBothFormsOfDataAreRead(t *testing.T) {
	t.Parallel()
	names, err := kvstore.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	const head = `{"specversion":"1.0","id":"1","source":"muster/node/web01","type":"t","datacontenttype":"application/json",`
	for _, data := range []string{`"data":{"node":"web01"}}`, `"data_base64":"eyJub2RlIjoid2ViMDEifQ=="}`} {
		r, err := kvstore.DecodeReport(names, "muster.report.web01.run.stable", []byte(head+data))
		if err != nil {
			t.Errorf("%s: %v", data, err)
			continue
		}
		var run model.Run
		if err := json.Unmarshal(r.Data, &run); err != nil || run.Node != "web01" {
			t.Errorf("%s: %+v, %v", data, run, err)
		}
	}
}

// The library panics on data in base64 that are no string.
func TestDataInBase64ThatAreNoStringAreInvalid(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	nc := srv.Connect(t)
	for _, data := range []string{"5", " 5", "[]", "null", "{}", "true"} {
		event := `{"specversion":"1.0","id":"1","source":"muster/node/web01","type":"t","data_base64":` + data + `}`
		if _, err := nc.Request("muster.report.web01.run.stable", []byte(event), kvtest.Deadline); err != nil {
			t.Fatal(err)
		}
	}
	if err := kvtest.Publish(t.Context(), store, kvtest.Outgoing("web01", model.KindRun, "stable", 1)); err != nil {
		t.Fatal(err)
	}
	invalid, valid := 0, 0
	for _, err := range store.Reports(t.Context(), model.ReportRange{}) {
		switch {
		case errors.Is(err, kvstore.ErrInvalidEvent):
			invalid++
		case err != nil:
			t.Fatal(err)
		default:
			valid++
		}
	}
	if invalid != 6 || valid != 1 {
		t.Errorf("%d invalid, %d valid", invalid, valid)
	}
}

// What JSON can be, an event can carry.
func TestAnyDocumentIsData(t *testing.T) {
	t.Parallel()
	names, err := kvstore.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range []any{"text", 1.5, true, nil, []string{"a"}, map[string]any{"<": "&"}, json.RawMessage(`{"raw": [1,  2]}`)} {
		e := sampleReport(t, model.Run{})
		want, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		e.Data = want
		data, err := kvstore.EncodeReport(e)
		if err != nil {
			t.Errorf("%v: %v", doc, err)
			continue
		}
		r, err := kvstore.DecodeReport(names, "muster.report.web01.run.stable", data)
		if err != nil || string(r.Data) != string(want) {
			t.Errorf("%s became %s, %v", want, r.Data, err)
		}
	}
}

func TestEmptyPartsOfAnEventAreLeftOut(t *testing.T) {
	t.Parallel()
	e := model.Report{ID: ksuid.New().String(), Type: "io.muster.v1.node", Node: "web01", Time: time.Now(), Data: json.RawMessage("{}")}
	data, err := kvstore.EncodeReport(e)
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]any
	if err := json.Unmarshal(data, &raw); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"runid", "manifest", "revision", "digest", "cause", "correlationid", "seq"} {
		if value, ok := raw[name]; ok {
			t.Errorf("%s = %v", name, value)
		}
	}
}

func TestInvalidEventsAreRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*model.Report){
		"no id":           func(e *model.Report) { e.ID = "" },
		"id is no ksuid":  func(e *model.Report) { e.ID = "one" },
		"no type":         func(e *model.Report) { e.Type = "" },
		"no node":         func(e *model.Report) { e.Node = "" },
		"node with a dot": func(e *model.Report) { e.Node = "web.01" },
		"no time":         func(e *model.Report) { e.Time = time.Time{} },
		"data not JSON":   func(e *model.Report) { e.Data = json.RawMessage("{") },
	} {
		e := sampleReport(t, model.Run{})
		spoil(&e)
		if _, err := kvstore.EncodeReport(e); !errors.Is(err, kvstore.ErrInvalidEvent) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReportsAreStoredOnce(t *testing.T) {
	t.Parallel()
	_, store := kvtest.NewWith(t, provision.Options{ReportCount: 1000})
	var out []model.Report
	for i := range 300 {
		out = append(out, kvtest.Outgoing("web01", model.KindTransaction, "changed", uint64(i+1)))
	}
	if n, err := store.PublishReports(t.Context(), out); err != nil || n != 300 {
		t.Fatalf("published %d, %v", n, err)
	}
	if n, err := store.PublishReports(t.Context(), out[200:]); err != nil || n != 100 {
		t.Fatalf("published again %d, %v", n, err)
	}
	if err := kvtest.Publish(t.Context(), store, out[0]); err != nil {
		t.Fatal(err)
	}
	got := readReports(t, store, model.ReportRange{})
	if len(got) != 300 {
		t.Fatalf("%d reports", len(got))
	}
	for i, r := range got {
		if r.Seq != uint64(i+1) {
			t.Fatalf("report %d has seq %d", i, r.Seq)
		}
	}
}

func TestPublishingStopsAtTheFirstFailure(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	good := kvtest.Outgoing("web01", model.KindRun, "stable", 1)
	large := kvtest.Outgoing("web01", model.KindRun, "stable", 2)
	large.Data = jsonText(2 << 20)
	n, err := store.PublishReports(t.Context(), []model.Report{good, large, good})
	if n != 1 || !errors.Is(err, model.ErrTooLarge) || !errors.Is(err, model.ErrUndeliverable) {
		t.Errorf("published %d, %v, want 1 and too large", n, err)
	}
	// No stream stores this subject, so no server acknowledges it.
	stray := good
	stray.Kind = "run.of.many"
	if n, err := store.PublishReports(t.Context(), []model.Report{good, stray}); n != 1 || err == nil {
		t.Errorf("published %d, %v, want 1 and an error", n, err)
	}
	invalid := good
	invalid.ID = "one"
	if n, err := store.PublishReports(t.Context(), []model.Report{good, invalid}); n != 1 || !errors.Is(err, model.ErrUndeliverable) {
		t.Errorf("published %d, %v, want 1 and undeliverable", n, err)
	}
	srv.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := store.PublishReports(ctx, []model.Report{good}); n != 0 || err == nil {
		t.Errorf("published %d, %v without a server", n, err)
	}
}

// Reports are stored in their order also where the stream is made while they
// are handed over.
func TestReportsKeepTheirOrderWhileTheStreamIsMade(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.NewWith(t, provision.Options{ReportCount: 4000})
	maker := kvtest.Bind(t, srv)
	var out []model.Report
	for i := range 2000 {
		out = append(out, kvtest.Outgoing("web01", model.KindTransaction, "changed", uint64(i+1)))
	}
	for range 3 {
		if err := kvtest.Manager(t, srv).DeleteStream("MUSTER_REPORTS"); err != nil {
			t.Fatal(err)
		}
		made := make(chan error, 1)
		go func() {
			_, err := maker.Apply(t.Context(), provision.Options{ReportCount: 4000})
			made <- err
		}()
		rest := out
		kvtest.Eventually(t, "all are stored", func() (bool, string) {
			n, err := store.PublishReports(t.Context(), rest)
			rest = rest[n:]
			return len(rest) == 0, fmt.Sprint(n, err)
		})
		if err := <-made; err != nil {
			t.Fatal(err)
		}
		got := readReports(t, store, model.ReportRange{})
		if len(got) != len(out) {
			t.Fatalf("%d reports", len(got))
		}
		for i, r := range got {
			if r.Seq != uint64(i+1) {
				t.Fatalf("report %d has seq %d", i, r.Seq)
			}
		}
	}
}

// The client does not queue messages during an outage.
func TestPublishingWithoutAServerIsAnError(t *testing.T) {
	t.Parallel()
	srv, _ := kvtest.New(t)
	away := kvtest.Bind(t, srv)
	good := kvtest.Outgoing("web01", model.KindRun, "stable", 1)
	srv.Stop()
	kvtest.Eventually(t, "the client knows", func() (bool, string) { return !away.Conn.IsConnected(), "connected" })
	if n, err := away.PublishReports(t.Context(), []model.Report{good, good}); n != 0 || !errors.Is(err, nats.ErrDisconnected) {
		t.Errorf("published %d, %v while the server is away", n, err)
	}
	away.Conn.Close()
	if n, err := away.PublishReports(t.Context(), []model.Report{good, good}); n != 0 || !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("published %d, %v on a closed connection", n, err)
	}
}

// What the stream refuses for its size, it refuses for good.
func TestWhatTheStreamRefusesIsTooLarge(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	kvtest.Update(t, kvtest.Manager(t, srv), "MUSTER_REPORTS", func(c *api.StreamConfig) { c.MaxMsgSize = 1000 })
	good := kvtest.Outgoing("web01", model.KindRun, "stable", 1)
	large := kvtest.Outgoing("web01", model.KindRun, "stable", 2)
	large.Data = jsonText(1000)
	if n, err := store.PublishReports(t.Context(), []model.Report{good, large}); n != 1 || !errors.Is(err, model.ErrTooLarge) || !errors.Is(err, model.ErrUndeliverable) {
		t.Errorf("published %d, %v, want 1 and too large", n, err)
	}
}

func TestReportsAreFiltered(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	put := func(node, kind string, outcome model.Outcome, seq uint64) {
		t.Helper()
		o := kvtest.Outgoing(node, kind, outcome, seq)
		if err := kvtest.Publish(t.Context(), store, o); err != nil {
			t.Fatal(err)
		}
	}
	put("web01", model.KindRun, "stable", 1)
	put("web01", model.KindTransaction, "failed", 2)
	put("web02", model.KindRun, "failed", 3)
	stream, err := kvtest.Manager(t, srv).LoadStream("MUSTER_REPORTS")
	if err != nil {
		t.Fatal(err)
	}
	third, err := stream.ReadMessage(3)
	if err != nil {
		t.Fatal(err)
	}
	put("web02", model.KindEnsure, "changed", 4)
	for name, tt := range map[string]struct {
		filter model.ReportRange
		want   string
	}{
		"all":     {want: "1 2 3 4"},
		"node":    {filter: model.ReportRange{Node: "web01"}, want: "1 2"},
		"nodes":   {filter: model.ReportRange{Nodes: []string{"web02", "web03"}}, want: "3 4"},
		"kind":    {filter: model.ReportRange{Kind: "run"}, want: "1 3"},
		"outcome": {filter: model.ReportRange{Outcome: "failed"}, want: "2 3"},
		"every":   {filter: model.ReportRange{Node: "web02", Kind: "run", Outcome: "failed"}, want: "3"},
		"since":   {filter: model.ReportRange{Since: third.Time}, want: "3 4"},
		"none":    {filter: model.ReportRange{Node: "web03"}, want: ""},
		"future":  {filter: model.ReportRange{Since: time.Now().Add(time.Hour)}, want: ""},
	} {
		var seqs []string
		for _, r := range readReports(t, store, tt.filter) {
			seqs = append(seqs, fmt.Sprint(r.Seq))
		}
		if got := strings.Join(seqs, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	for _, err := range store.Reports(t.Context(), model.ReportRange{Node: "web.>"}) {
		if !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("invalid filter: %v", err)
		}
	}
}

func TestReportsAreFollowedOverARestart(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	writer := kvtest.Bind(t, srv)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make(chan uint64)
	ended := make(chan error, 1)
	go func() {
		defer close(got)
		for r, err := range store.Reports(ctx, model.ReportRange{Follow: true}) {
			if err != nil {
				ended <- err
				return
			}
			select {
			case got <- r.Seq:
			case <-ctx.Done():
			}
		}
	}()
	expect := func(want uint64) {
		t.Helper()
		o := kvtest.Outgoing("web01", model.KindRun, "stable", want)
		kvtest.Eventually(t, "publish", func() (bool, string) {
			err := kvtest.Publish(t.Context(), writer, o)
			return err == nil, fmt.Sprint(err)
		})
		select {
		case seq := <-got:
			if seq != want {
				t.Fatalf("got %d, want %d", seq, want)
			}
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(kvtest.Deadline):
			t.Fatalf("report %d did not come", want)
		}
	}
	expect(1)
	expect(2)
	srv.Restart(t)
	expect(3)
	cancel()
	for range got {
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	m := kvtest.Manager(t, srv)
	kvtest.Eventually(t, "the consumer is gone", func() (bool, string) { return kvtest.NoConsumers(m, "MUSTER_REPORTS") })
}

func TestBadReportDoesNotEndReading(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	o := kvtest.Outgoing("web01", model.KindRun, "stable", 7)
	event, err := kvstore.EncodeReport(o)
	if err != nil {
		t.Fatal(err)
	}
	nc := srv.Connect(t)
	for subject, data := range map[string][]byte{
		"muster.report.web01.run.stable":   []byte("garbage"),
		"muster.report.web02.run.stable":   event,
		"muster.report.web01.run.changed":  []byte(`{"specversion":"1.0"}`),
		"muster.report.web01.node.stopped": []byte(strings.Replace(string(event), `"seq":"7"`, `"seq":"x"`, 1)),
	} {
		if _, err := nc.Request(subject, data, kvtest.Deadline); err != nil {
			t.Fatal(err)
		}
	}
	if err := kvtest.Publish(t.Context(), store, o); err != nil {
		t.Fatal(err)
	}
	bad, good := 0, 0
	for r, err := range store.Reports(t.Context(), model.ReportRange{}) {
		switch {
		case errors.Is(err, kvstore.ErrInvalidEvent):
			bad++
		case err == nil && r.Seq == 7:
			good++
		default:
			t.Errorf("%+v, %v", r, err)
		}
	}
	if bad != 4 || good != 1 {
		t.Errorf("%d bad, %d good", bad, good)
	}
}

func FuzzDecodeReport(f *testing.F) {
	valid, err := kvstore.EncodeReport(sampleReport(f, model.Run{RunID: "r1"}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("muster.report.web01.run.stable", valid)
	f.Add("muster.report.web01.run.stable", []byte(`{"specversion":"1.0","id":"1","source":"muster/node/web01","type":"t","data_base64":"e30="}`))
	f.Add("muster.report.web01.run.stable", []byte(`{"specversion":"0.3","id":"1","source":"muster/node/web01","type":"t","data":"x"}`))
	f.Add("muster.report.web01.transaction.batch", valid)
	f.Add("muster.report.web01.run", []byte(`{"data":`))
	f.Add("muster.report.*.>.x", []byte(strings.Repeat("[", 1000)))
	names, err := kvstore.NewNames("")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, subject string, data []byte) {
		r, err := kvstore.DecodeReport(names, subject, data)
		switch {
		case err != nil && !errors.Is(err, kvstore.ErrInvalidEvent):
			t.Errorf("an error of another kind: %v", err)
		case err == nil && (names.Report(r.Node, r.Kind, string(r.Outcome)) != subject && names.Report(r.Node, "transaction", "batch") != subject || r.ID == "" || !json.Valid(r.Data)):
			t.Errorf("%q gives %+v", subject, r)
		}
	})
}

func sampleReport(tb testing.TB, run model.Run) model.Report {
	tb.Helper()
	data, err := json.Marshal(run)
	if err != nil {
		tb.Fatal(err)
	}

	return model.Report{
		ID: ksuid.New().String(), Type: model.ProtocolRun, Schema: "https://example.net/run.json", Node: "web01", Kind: model.KindRun, Outcome: model.OutcomeChanged,
		Time: time.Now(), RunID: "r1", Manifest: "node.web01.motd", Revision: 1 << 60, Digest: "sha256-ab", Cause: model.CauseDrift, CorrelationID: "c1",
		Seq: 1<<64 - 1, Data: data,
	}
}

// jsonText is a document of more than a number of bytes.
func jsonText(n int) []byte { return []byte(`"` + strings.Repeat("x", n) + `"`) }

func readReports(t *testing.T, s *kvtest.Store, f model.ReportRange) []model.Report {
	t.Helper()
	var all []model.Report
	for r, err := range s.Reports(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}

	return all
}
