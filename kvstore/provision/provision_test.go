package provision_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

var allStreams = []string{"KV_MUSTER_MANIFESTS", "KV_MUSTER_DATA", "KV_MUSTER_NODES", "OBJ_MUSTER_BUNDLES", "MUSTER_REPORTS", "MUSTER_COMMANDS", "MUSTER_REGISTRATIONS", "KV_MUSTER_CONTROL"}

func TestApplyIsIdempotent(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	store, err := kvtest.Of(srv.Connect(t), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Check(t.Context()); !errors.Is(err, model.ErrNotProvisioned) || !strings.Contains(err.Error(), "muster fleet init") {
		t.Fatalf("check before = %v", err)
	}
	planned, err := store.Plan(t.Context(), provision.Options{})
	if err != nil {
		t.Fatal(err)
	}
	applied, err := store.Apply(t.Context(), provision.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range allStreams {
		if planned[i].Stream != name || !planned[i].Create || applied[i].String() != "create "+name {
			t.Errorf("planned %v, applied %v, want create %s", planned[i], applied[i], name)
		}
	}
	if again, err := store.Apply(t.Context(), provision.Options{}); err != nil || len(again) != 0 {
		t.Errorf("second apply = %v, %v", again, err)
	}
	if err := store.Check(t.Context()); err != nil {
		t.Errorf("check after = %v", err)
	}
}

// An administrator may have an inbox prefix, as operators do who are none: JetStream is
// found all the same.
func TestApplyWithAnInboxPrefix(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	store, err := kvtest.Of(srv.Connect(t, nats.CustomInboxPrefix("_INBOX_admin")), "")
	if err != nil {
		t.Fatal(err)
	}
	if done, err := store.Apply(t.Context(), provision.Options{}); err != nil || len(done) != len(allStreams) {
		t.Errorf("%v, %v", done, err)
	}
}

func TestPrefixNamesEverything(t *testing.T) {
	t.Parallel()
	srv, _ := kvtest.New(t)
	other, err := kvtest.Of(srv.Connect(t), "lab-2")
	if err != nil {
		t.Fatal(err)
	}
	done, err := other.Apply(t.Context(), provision.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range done {
		if want := strings.Replace(allStreams[i], "MUSTER", "LAB-2", 1); d.Stream != want || !d.Create {
			t.Errorf("did %v, want create %s", d, want)
		}
	}
}

func TestApplyRestoresWhatOthersDropped(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	m := kvtest.Manager(t, srv)
	nc := srv.Connect(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	// What a well-meaning client does: it drops republish.
	if _, err := js.CreateOrUpdateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "MUSTER_MANIFESTS", History: 16}); err != nil {
		t.Fatal(err)
	}
	err = store.Check(t.Context())
	{
		const want = "KV_MUSTER_MANIFESTS: republish is off"
		if !errors.Is(err, model.ErrNotProvisioned) || !strings.Contains(err.Error(), want) {
			t.Errorf("check = %v, want %q in it", err, want)
		}
	}
	if _, err := store.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if got := kvtest.Config(t, m, "KV_MUSTER_MANIFESTS").RePublish; got == nil || got.Destination != "muster.changed.>" || !got.HeadersOnly {
		t.Errorf("republish = %+v", got)
	}
}

// Tolerable differences and fatal ones are different errors.
func TestCheckTellsWhatDiffersFromWhatIsUnusable(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	m := kvtest.Manager(t, srv)
	kvtest.Update(t, m, "MUSTER_REPORTS", func(c *api.StreamConfig) { c.Discard = api.DiscardNew })
	err := store.Check(t.Context())
	if !errors.Is(err, provision.ErrDiffers) || errors.Is(err, model.ErrNotProvisioned) || !strings.Contains(err.Error(), "MUSTER_REPORTS: discard is New, must be Old") {
		t.Errorf("check = %v", err)
	}
	kvtest.Bind(t, srv)
	kvtest.Update(t, m, "KV_MUSTER_MANIFESTS", func(c *api.StreamConfig) { c.RePublish = nil })
	if err := store.Check(t.Context()); !errors.Is(err, model.ErrNotProvisioned) || errors.Is(err, provision.ErrDiffers) || !strings.Contains(err.Error(), "discard is New") {
		t.Errorf("check = %v", err)
	}
}

// A limit that refuses or drops stored values is found and raised.
func TestApplyLiftsLimits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stream string
		change func(*api.StreamConfig)
		want   string
	}{
		"messages of a bucket":      {"KV_MUSTER_MANIFESTS", func(c *api.StreamConfig) { c.MaxMsgs = 100 }, "max_msgs is 100, must be unlimited"},
		"bytes of a bucket":         {"KV_MUSTER_DATA", func(c *api.StreamConfig) { c.MaxBytes = 1 << 20 }, "max_bytes is 1048576, must be unlimited"},
		"age of a bucket":           {"KV_MUSTER_MANIFESTS", func(c *api.StreamConfig) { c.MaxAge = time.Hour }, "max_age is 1h0m0s, must be unlimited"},
		"size in a bucket":          {"KV_MUSTER_NODES", func(c *api.StreamConfig) { c.MaxMsgSize = 1000 }, "max_msg_size is 1000, must be 524288"},
		"size of data":              {"KV_MUSTER_DATA", func(c *api.StreamConfig) { c.MaxMsgSize = 1000 }, "max_msg_size is 1000, must be unlimited"},
		"parts of bundles":          {"OBJ_MUSTER_BUNDLES", func(c *api.StreamConfig) { c.MaxMsgs = 100 }, "max_msgs is 100, must be unlimited"},
		"size of reports":           {"MUSTER_REPORTS", func(c *api.StreamConfig) { c.MaxMsgSize = 1000 }, "max_msg_size is 1000, must be 65536"},
		"no bound of reports":       {"MUSTER_REPORTS", func(c *api.StreamConfig) { c.MaxMsgSize, c.MaxMsgsPer = -1, -1 }, "max_msgs_per_subject is unlimited, must be 240; max_msg_size is unlimited, must be 65536"},
		"no bound of a state":       {"KV_MUSTER_NODES", func(c *api.StreamConfig) { c.MaxMsgSize = -1 }, "max_msg_size is unlimited, must be 524288"},
		"no compression":            {"MUSTER_REPORTS", func(c *api.StreamConfig) { c.Compression = api.NoCompression }, "compression is None, must be S2 Compression"},
		"compression of data":       {"KV_MUSTER_DATA", func(c *api.StreamConfig) { c.Compression = api.S2Compression }, ""},
		"no bound of registrations": {"MUSTER_REGISTRATIONS", func(c *api.StreamConfig) { c.MaxBytes, c.MaxMsgSize = -1, -1 }, "max_bytes is unlimited, must be 268435456; max_msg_size is unlimited, must be 32768"},
		"bytes of registrations":    {"MUSTER_REGISTRATIONS", func(c *api.StreamConfig) { c.MaxBytes = 1 << 20 }, ""},
		"another bound":             {"MUSTER_REPORTS", func(c *api.StreamConfig) { c.MaxMsgSize, c.MaxMsgsPer = 100<<10, 50 }, ""},
		"every report":              {"MUSTER_REPORTS", func(c *api.StreamConfig) { c.Subjects = []string{"muster.report.*.*.*", "mine.>"} }, "subjects is muster.report.*.*.*, mine.>, must be muster.report.*.run.stable and 33 more"},
		"bytes of bundles":          {"OBJ_MUSTER_BUNDLES", func(c *api.StreamConfig) { c.MaxBytes = 1 << 20 }, ""},
		"messages of reports":       {"MUSTER_REPORTS", func(c *api.StreamConfig) { c.MaxMsgs = 100 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, store := kvtest.New(t)
			kvtest.Update(t, kvtest.Manager(t, srv), tt.stream, tt.change)
			done, err := store.Apply(t.Context(), provision.Options{})
			var got []string
			for _, d := range done {
				got = append(got, d.String())
			}
			want := ""
			if tt.want != "" {
				want = "change " + tt.stream + ": " + tt.want
			}
			if err != nil || strings.Join(got, "; ") != want {
				t.Errorf("apply = %v, %v, want %q", got, err, want)
			}
			if again, err := store.Apply(t.Context(), provision.Options{}); err != nil || len(again) != 0 {
				t.Errorf("again = %v, %v", again, err)
			}
		})
	}
}

// TestWhatOperatorsWriteAboutNodesIsBounded on new fleets and on fleets with a lower limit; a higher limit
// stays. At the limit no data is lost, and the error names the flag.
func TestWhatOperatorsWriteAboutNodesIsBounded(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	m := kvtest.Manager(t, srv)
	bytes := func() int64 {
		t.Helper()
		info, err := store.JetStream().Stream(t.Context(), "KV_MUSTER_CONTROL")
		if err != nil {
			t.Fatal(err)
		}
		return info.CachedInfo().Config.MaxBytes
	}
	if got := bytes(); got != 128<<20 {
		t.Errorf("a new one has %d bytes", got)
	}
	unbounded := func(c *api.StreamConfig) { c.MaxBytes = -1 }
	kvtest.Update(t, m, "KV_MUSTER_CONTROL", unbounded)
	done, err := store.Apply(t.Context(), provision.Options{})
	if err != nil || len(done) != 1 || bytes() != 128<<20 {
		t.Errorf("one without a bound: %v, %v, %d bytes", done, err, bytes())
	}
	kvtest.Update(t, m, "KV_MUSTER_CONTROL", unbounded)
	b := kvstore.NewControl(store.Store)
	full := func(err error) bool {
		return errors.Is(err, kvstore.ErrFull) && strings.Contains(err.Error(), "muster fleet init --control-size")
	}
	for i := range 4 {
		if _, err := b.Put(t.Context(), fmt.Sprintf("node.web0%d.labels", i), make([]byte, 32<<10)); err != nil {
			t.Fatal(err)
		}
	}
	small := provision.Options{ControlBytes: 160 << 10}
	if done, err := store.Apply(t.Context(), small); err != nil || len(done) != 1 || bytes() != 160<<10 {
		t.Errorf("a choice: %v, %v, %d bytes", done, err, bytes())
	}
	if left, err := store.Plan(t.Context(), provision.Options{}); err != nil || len(left) != 0 {
		t.Errorf("init without a choice changes it: %v, %v", left, err)
	}
	for i := range 3 {
		_, err = b.Put(t.Context(), fmt.Sprintf("node.db0%d.labels", i), make([]byte, 32<<10))
	}
	if !full(err) {
		t.Errorf("at the bound: %v", err)
	}
	if e, err := b.Get(t.Context(), "node.web00.labels"); err != nil || len(e.Value) != 32<<10 {
		t.Errorf("the first is lost: %v", err)
	}
	kvtest.Update(t, m, "KV_MUSTER_CONTROL", unbounded)
	if _, err := store.Apply(t.Context(), small); err != nil {
		t.Errorf("one that holds as much: %v", err)
	}
	kvtest.Update(t, m, "KV_MUSTER_CONTROL", unbounded)
	if _, err := store.Apply(t.Context(), provision.Options{ControlBytes: 32 << 10}); !errors.Is(err, provision.ErrShrink) {
		t.Errorf("one that holds more: %v", err)
	}
}

func TestApplyKeepsWhatAnAdministratorChose(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	m := kvtest.Manager(t, srv)
	kvtest.Update(t, m, "MUSTER_REPORTS", func(c *api.StreamConfig) { c.MaxBytes, c.MaxAge = 5<<30, 24*time.Hour })
	kvtest.Update(t, m, "KV_MUSTER_MANIFESTS", func(c *api.StreamConfig) { c.MaxMsgsPer, c.Description = 32, "mine" })
	if done, err := store.Apply(t.Context(), provision.Options{}); err != nil || len(done) != 0 {
		t.Errorf("apply = %v, %v, want nothing done", done, err)
	}
	if _, err := store.Apply(t.Context(), provision.Options{ReportBytes: 6 << 30, ReportAge: 48 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	if c := kvtest.Config(t, m, "MUSTER_REPORTS"); c.MaxBytes != 6<<30 || c.MaxAge != 48*time.Hour {
		t.Errorf("reports: %d bytes, %s", c.MaxBytes, c.MaxAge)
	}
	if c := kvtest.Config(t, m, "KV_MUSTER_MANIFESTS"); c.MaxMsgsPer != 32 || c.Description != "mine" {
		t.Errorf("manifests: history %d, description %q", c.MaxMsgsPer, c.Description)
	}
}

// A bucket of nodes of an earlier version, with delete markers and rollup, is usable and updated without data
// loss.
func TestApplyForbidsRollup(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	m := kvtest.Manager(t, srv)
	kvtest.Update(t, m, "KV_MUSTER_NODES", func(c *api.StreamConfig) { c.SubjectDeleteMarkerTTL = 24 * time.Hour })
	if !kvtest.Config(t, m, "KV_MUSTER_NODES").RollupAllowed {
		t.Fatal("the server did not switch rollup on")
	}
	if err := store.PutState(t.Context(), model.NodeState{Node: "web01"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	kvtest.Bind(t, srv)
	if err := store.Check(t.Context()); !errors.Is(err, provision.ErrDiffers) {
		t.Errorf("check = %v", err)
	}
	done, err := store.Apply(t.Context(), provision.Options{})
	const want = "change KV_MUSTER_NODES: allow_rollup_hdrs is on, must be off; subject_delete_marker_ttl is 24h0m0s, must be off"
	if err != nil || len(done) != 1 || done[0].String() != want {
		t.Errorf("apply = %v, %v", done, err)
	}
	if c := kvtest.Config(t, m, "KV_MUSTER_NODES"); c.RollupAllowed || c.SubjectDeleteMarkerTTL != 0 || !c.AllowMsgTTL || !c.DenyDelete || c.MaxMsgsPer != 1 {
		t.Errorf("nodes: %+v", c)
	}
	if again, err := store.Apply(t.Context(), provision.Options{}); err != nil || len(again) != 0 {
		t.Errorf("again = %v, %v", again, err)
	}
	if nodes, err := store.Nodes(t.Context()); err != nil || len(nodes) != 1 {
		t.Errorf("nodes = %v, %v", nodes, err)
	}
}

func TestApplyRefusesToShrink(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change  func(*testing.T, *jsm.Manager)
		options provision.Options
		want    string
	}{
		"bytes":                {options: provision.Options{ReportBytes: 1 << 20}, want: "MUSTER_REPORTS: max_bytes is 1073741824, must be 1048576"},
		"age":                  {options: provision.Options{ReportAge: time.Hour}, want: "MUSTER_REPORTS: max_age is 168h0m0s, must be 1h0m0s"},
		"bytes from unlimited": {options: provision.Options{BundleBytes: 1 << 20}, want: "OBJ_MUSTER_BUNDLES: max_bytes is unlimited, must be 1048576"},
		"reports of a node":    {options: provision.Options{ReportCount: 100}, want: "MUSTER_REPORTS: max_msgs_per_subject is 240, must be 100"},
		"history of nodes": {
			change: func(t *testing.T, m *jsm.Manager) {
				kvtest.Update(t, m, "KV_MUSTER_NODES", func(c *api.StreamConfig) { c.MaxMsgsPer = 5 })
			},
			want: "KV_MUSTER_NODES: max_msgs_per_subject is 5, must be 1",
		},
		"storage": {
			change: func(t *testing.T, m *jsm.Manager) {
				kvtest.Recreate(t, m, "MUSTER_COMMANDS", func(c *api.StreamConfig) { c.Storage = api.MemoryStorage })
			},
			want: "MUSTER_COMMANDS: storage is memory, must be file",
		},
		"retention": {
			change: func(t *testing.T, m *jsm.Manager) {
				kvtest.Recreate(t, m, "MUSTER_COMMANDS", func(c *api.StreamConfig) { c.Retention = api.WorkQueuePolicy })
			},
			want: "MUSTER_COMMANDS: retention is workqueue, must be limits",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, store := kvtest.New(t)
			m := kvtest.Manager(t, srv)
			if tt.change != nil {
				tt.change(t, m)
			}
			// Something harmless to do beside it must not be done either.
			kvtest.Update(t, m, "KV_MUSTER_DATA", func(c *api.StreamConfig) { c.Duplicates = time.Second })
			_, err := store.Apply(t.Context(), tt.options)
			if !errors.Is(err, provision.ErrShrink) || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(tt.want)) {
				t.Errorf("apply = %v, want %q", err, tt.want)
			}
			if got := kvtest.Config(t, m, "KV_MUSTER_DATA").Duplicates; got != time.Second {
				t.Errorf("a refused apply changed KV_MUSTER_DATA: %s", got)
			}
		})
	}
}

func TestPlainClientsUseTheBuckets(t *testing.T) {
	t.Parallel()
	srv, _ := kvtest.New(t)
	for _, bucket := range []string{"MUSTER_MANIFESTS", "MUSTER_DATA", "MUSTER_NODES"} {
		kv := kvtest.PlainKV(t, srv.Connect(t), bucket)
		if _, err := kv.PutString(t.Context(), "node.web01.motd", "hello"); err != nil {
			t.Errorf("%s: put: %v", bucket, err)
		}
		if err := kv.Delete(t.Context(), "node.web01.motd"); err != nil {
			t.Errorf("%s: delete: %v", bucket, err)
		}
		// Only the stream can purge data of users who are no administrators; a rollup cannot.
		if err := kv.Purge(t.Context(), "node.web01.motd"); (err != nil) != (bucket != "MUSTER_DATA") {
			t.Errorf("%s: purge: %v", bucket, err)
		}
	}
}

// A stream of reports without limits is usable, and gets limits without losing reports within them.
func TestApplyBoundsTheReportsOfAnExistingFleet(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	m := kvtest.Manager(t, srv)
	kvtest.Update(t, m, "MUSTER_REPORTS", func(c *api.StreamConfig) {
		c.MaxMsgsPer, c.MaxMsgSize, c.Subjects, c.Compression = -1, -1, []string{"muster.report.*.*.*"}, api.NoCompression
	})
	for i := range 300 {
		if err := kvtest.Publish(t.Context(), store, kvtest.Outgoing("web01", model.KindRun, "stable", uint64(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if err := kvtest.Publish(t.Context(), store, kvtest.Outgoing("web02", model.KindRun, "stable", 1)); err != nil {
		t.Fatal(err)
	}
	kvtest.Bind(t, srv)
	if err := store.Check(t.Context()); !errors.Is(err, provision.ErrDiffers) {
		t.Errorf("check = %v", err)
	}
	if _, err := store.Apply(t.Context(), provision.Options{}); err != nil {
		t.Fatal(err)
	}
	if again, err := store.Apply(t.Context(), provision.Options{}); err != nil || len(again) != 0 {
		t.Errorf("again = %v, %v", again, err)
	}
	if c := kvtest.Config(t, m, "MUSTER_REPORTS"); c.MaxMsgsPer != 240 || c.MaxMsgSize != 64<<10 || len(c.Subjects) != 34 || c.Compression != api.S2Compression {
		t.Errorf("reports: %+v", c)
	}
	s, err := m.LoadStream("MUSTER_REPORTS")
	if err != nil {
		t.Fatal(err)
	}
	if state, err := s.State(); err != nil || state.Msgs != 241 {
		t.Errorf("state = %+v, %v", state, err)
	}
}

// TestApplyContinuesWithSmallerSizes: what an earlier call created before the server had no more room is empty, so its sizes
// may be lowered. After all streams exist, or where a stream has messages, they may not.
func TestApplyContinuesWithSmallerSizes(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.WithMaxStore(64<<20))
	store := kvtest.Must(t, func() (*kvtest.Store, error) { return kvtest.Of(srv.Connect(t), "") })
	m := kvtest.Manager(t, srv)
	if _, err := store.Apply(t.Context(), provision.Options{BundleBytes: 16 << 20, ReportBytes: 40 << 20}); !errors.Is(err, kvstore.ErrNoRoom) {
		t.Fatalf("with too large sizes: %v", err)
	}
	if size := kvtest.Config(t, m, "MUSTER_REPORTS").MaxBytes; size != 40<<20 {
		t.Fatalf("the reports have %d bytes", size)
	}
	small := provision.Options{BundleBytes: 8 << 20, ReportBytes: 16 << 20, ReportAge: time.Hour, ReportCount: 10}
	if _, err := store.Put(t.Context(), "group.web.motd", []byte("x")); err != nil {
		t.Fatal(err)
	}
	larger := small
	larger.ManifestBytes = 1
	if _, err := store.Apply(t.Context(), larger); !errors.Is(err, provision.ErrShrink) || !strings.Contains(err.Error(), "KV_MUSTER_MANIFESTS") || strings.Contains(err.Error(), "MUSTER_REPORTS") {
		t.Errorf("with a manifest that would be lost: %v", err)
	}
	if _, err := store.Apply(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	for stream, want := range map[string]int64{"MUSTER_REPORTS": 16 << 20, "OBJ_MUSTER_BUNDLES": 8 << 20, "MUSTER_REGISTRATIONS": 4 << 20} {
		if got := kvtest.Config(t, m, stream).MaxBytes; got != want {
			t.Errorf("%s has %d bytes, want %d", stream, got, want)
		}
	}
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
	small.ReportBytes = 12 << 20
	if _, err := store.Apply(t.Context(), small); !errors.Is(err, provision.ErrShrink) {
		t.Errorf("of a complete fleet: %v", err)
	}
}
