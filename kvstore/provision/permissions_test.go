package provision_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

func TestNodeCanDoItsJobAndNoMore(t *testing.T) {
	t.Parallel()
	for name, start := range kvtest.Guards() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t)
			for node := range kvtest.GroupsOf {
				job(t, g, node)
			}
			for node, other := range map[string]string{"web01": "web02", "web02": "web01"} {
				refusedAll(t, g, node, other)
			}
		})
	}
}

// job does everything that an agent does.
func job(t *testing.T, g kvtest.Guarded, node string) {
	t.Helper()
	group := "group." + kvtest.GroupsOf[node][0]
	put := func(family, name string) {
		t.Helper()
		if _, err := g.Admin.Put(t.Context(), model.Key(family, name), []byte("secret of "+node)); err != nil {
			t.Fatal(err)
		}
	}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %s: %v", node, what, err)
		}
	}
	put("node."+node, "own")
	put(group, "team")
	_, err := kvtest.PlainKV(t, g.Admin.Conn, "MUSTER_DATA").Put(t.Context(), "site", []byte("a: 1"))
	must("data", err)
	must("command", g.Admin.PutCommand(t.Context(), "node."+node, node+"-early", nil, time.Hour))
	bundle := bytes.Repeat([]byte(node), 200_000)
	digest, err := g.Admin.PutBundle(t.Context(), bytes.NewReader(bundle))
	must("bundle", err)

	s := kvtest.BindTo(t, g.Connect(t, node))
	w := kvtest.Watch(t, s, watch.Options{Node: node, Groups: kvtest.GroupsOf[node], Audit: kvtest.Never, GroupJitter: time.Millisecond})
	w.Synced(t)
	if _, state := w.Entries(); state.Err != nil || state.Stream.IsZero() {
		t.Errorf("%s: %+v", node, state)
	}
	written(t, g.Admin, "node."+node+".pause", group+".pause", "group.all.pause")
	c := kvtest.WatchControl(t, s, watch.Options{Node: node, Groups: kvtest.GroupsOf[node], Audit: kvtest.Never, GroupJitter: time.Millisecond}, model.Memory{})
	c.Synced(t)
	written(t, g.Admin, "node."+node+".labels")
	c.Has(t, "group.all.pause=secret of group.all.pause", group+".pause=secret of "+group+".pause", "node."+node+".labels=secret of node."+node+".labels", "node."+node+".pause=secret of node."+node+".pause")
	c.Stop()
	put(group, "live")
	value := "=secret of " + node
	mine := []string{group + ".live" + value, group + ".team" + value, "node." + node + ".own" + value}
	w.Has(t, mine...)
	w.Stop()

	must("state", s.PutState(t.Context(), model.NodeState{Node: node}, time.Hour))
	_, err = s.State(t.Context(), node)
	must("get state", err)
	must("facts", s.PutFacts(t.Context(), node, model.Facts{"a": "b"}))
	o := kvtest.Outgoing(node, model.KindRun, "stable", 1)
	must("report", kvtest.Publish(t.Context(), s, o))
	o = kvtest.Outgoing(node, model.KindNode, "started", 2)
	_, err = s.PublishReports(t.Context(), []model.Report{o})
	must("reports", err)
	batch := []model.Report{kvtest.Outgoing(node, model.KindTransaction, "failed", 3), kvtest.Outgoing(node, model.KindTransaction, "failed", 4)}
	must("batch", s.PublishBatch(t.Context(), batch))
	data, err := s.KVGet(t.Context(), "MUSTER_DATA", "site")
	if must("get data", err); string(data) != "a: 1" {
		t.Errorf("data = %s", data)
	}
	r, err := s.GetBundle(t.Context(), digest)
	must("get bundle", err)
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, bundle) {
		t.Errorf("bundle: %d bytes, %v", len(got), err)
	}
	must("close", r.Close())

	var commands kvtest.Inbox
	stop := kvtest.TakeCommands(t, s, requests.CommandOptions{Node: node, Groups: kvtest.GroupsOf[node]}, commands.Take)
	commands.Has(t, node+"-early")
	must("command", g.Admin.PutCommand(t.Context(), group, node+"-live", nil, time.Hour))
	commands.Has(t, node+"-early", node+"-live")
	stop()

	stop = kvtest.Serve(t, s, requests.ServeOptions{Node: node, Groups: kvtest.GroupsOf[node], Ensure: func(_ context.Context, _ *model.Sender, _ []byte, respond func(model.EnsureResponse)) {
		for _, phase := range []model.EnsurePhase{model.EnsureAcknowledged, model.EnsureRunning, model.EnsureDone} {
			respond(model.EnsureResponse{Phase: phase})
		}
	}})
	names := s.Names
	for _, family := range []string{"node." + node, group, "group.all"} {
		kvtest.Answers(t, g.Admin, names.Request(kvstore.VerbPing, family), nil, 1)
		phases := 0
		for _, err := range kvtest.Ask(t.Context(), g.Admin, names.Request(kvstore.VerbEnsure, family), nil) {
			if must("ask", err); phases == 2 {
				break
			}
			phases++
		}
	}
	kvtest.Answers(t, g.Admin, "$SRV.PING.muster", nil, 1)
	// A plain client of NATS asks too.
	m, err := g.Admin.Conn.Request(names.Request(kvstore.VerbPing, "node."+node), nil, kvtest.Deadline)
	if must("plain request", err); string(m.Data) != `"`+node+`"` || m.Header.Get(requests.NodeHeader) != node {
		t.Errorf("%s: plain answer %s, %v", node, m.Data, m.Header)
	}
	stop()
}

// written has an administrator write control keys.
func written(t *testing.T, s *kvtest.Store, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, err := kvstore.NewControl(s.Store).Put(t.Context(), key, []byte("secret of "+key)); err != nil {
			t.Fatal(err)
		}
	}
}

// refusedAll tries subjects of another node, and subjects of all others.
func refusedAll(t *testing.T, g kvtest.Guarded, node, other string) {
	t.Helper()
	api := string(g.API)
	own, others := g.Permissions(t, node), g.Permissions(t, other)
	group := kvtest.GroupsOf[other][0]
	publish := []string{
		"$KV.MUSTER_MANIFESTS.node." + other + ".evil", "$KV.MUSTER_MANIFESTS.node." + node + ".evil", "$KV.MUSTER_MANIFESTS.group.all.evil",
		"$KV.MUSTER_CONTROL.node." + other + ".pause", "$KV.MUSTER_CONTROL.node." + node + ".pause", "$KV.MUSTER_CONTROL.node." + node + ".labels", "$KV.MUSTER_CONTROL.group.all.pause",
		"muster.changed.node." + other + "._control.pause", "muster.changed.node." + node + "._control.pause",
		api + ".DIRECT.GET.KV_MUSTER_CONTROL", api + ".DIRECT.GET.KV_MUSTER_CONTROL.>", api + ".DIRECT.GET.KV_MUSTER_CONTROL.$KV.MUSTER_CONTROL.>",
		api + ".DIRECT.GET.KV_MUSTER_CONTROL.$KV.MUSTER_CONTROL.node." + other + ".pause", api + ".DIRECT.GET.KV_MUSTER_CONTROL.$KV.MUSTER_CONTROL.group." + group + ".pause",
		api + ".STREAM.PURGE.KV_MUSTER_CONTROL", api + ".STREAM.MSG.GET.KV_MUSTER_CONTROL",
		"$KV.MUSTER_NODES." + other + ".state", "$KV.MUSTER_DATA.site", "$O.MUSTER_BUNDLES.M.evil", "$O.MUSTER_BUNDLES.C.evil",
		"muster.registration.prod.http.shop." + other + ".10_0_0_1.80", "muster.registration." + node + ".http.shop." + other + ".a.80", "muster.registration." + node,
		api + ".DIRECT.GET.MUSTER_REGISTRATIONS.>", api + ".STREAM.PURGE.MUSTER_REGISTRATIONS",
		"muster.report." + other + ".run.stable", "muster.changed.node." + other + ".own", "muster.changed.node." + node + ".own",
		"muster.ensure.node." + other, "muster.ensure.node." + node, "muster.ensure.all", "muster.command.node." + node + ".x", "muster.command.group.all.x", "muster.changed.command.node." + other + ".x",
		"muster.reply.x." + other, "muster.reply.x.=", "_INBOX." + other, "_INBOX_" + other + ".x", "_INBOX_" + node + ".x",
		api + ".DIRECT.GET.KV_MUSTER_MANIFESTS", api + ".DIRECT.GET.KV_MUSTER_MANIFESTS.>", api + ".DIRECT.GET.KV_MUSTER_MANIFESTS.$KV.>",
		api + ".DIRECT.GET.KV_MUSTER_MANIFESTS.$KV.MUSTER_MANIFESTS.>", api + ".DIRECT.GET.KV_MUSTER_MANIFESTS.$KV.MUSTER_MANIFESTS.node.>",
		api + ".DIRECT.GET.KV_MUSTER_MANIFESTS.$KV.MUSTER_MANIFESTS.*." + other + ".own",
		api + ".DIRECT.GET.KV_MUSTER_MANIFESTS.$KV.MUSTER_MANIFESTS.node." + other + ".own",
		api + ".DIRECT.GET.KV_MUSTER_MANIFESTS.$KV.MUSTER_MANIFESTS.group." + group + ".team",
		api + ".DIRECT.GET.KV_MUSTER_NODES.$KV.MUSTER_NODES." + other + ".state",
		api + ".DIRECT.GET.KV_MUSTER_NODES.$KV.MUSTER_NODES.>", api + ".DIRECT.GET.KV_MUSTER_NODES",
		api + ".DIRECT.GET.MUSTER_REPORTS", api + ".DIRECT.GET.MUSTER_COMMANDS",
		api + ".DIRECT.GET.MUSTER_COMMANDS.muster.command.node." + other + ".x", api + ".DIRECT.GET.MUSTER_COMMANDS.muster.command.node." + other + ".>",
		api + ".STREAM.MSG.GET.KV_MUSTER_MANIFESTS", api + ".STREAM.INFO.KV_MUSTER_NODES", api + ".STREAM.INFO.KV_MUSTER_DATA", api + ".STREAM.NAMES",
		api + ".STREAM.PURGE.KV_MUSTER_MANIFESTS", api + ".STREAM.DELETE.KV_MUSTER_MANIFESTS", api + ".STREAM.UPDATE.KV_MUSTER_MANIFESTS",
		api + ".STREAM.CREATE.evil", api + ".STREAM.SNAPSHOT.KV_MUSTER_MANIFESTS", api + ".STREAM.MSG.DELETE.MUSTER_REPORTS",
		api + ".CONSUMER.CREATE.KV_MUSTER_MANIFESTS", api + ".CONSUMER.CREATE.KV_MUSTER_MANIFESTS.muster-list-" + node,
		api + ".CONSUMER.DURABLE.CREATE.KV_MUSTER_MANIFESTS.muster-list-" + node,
		api + ".CONSUMER.CREATE.KV_MUSTER_MANIFESTS.muster-list-" + node + ".$KV.MUSTER_MANIFESTS.node." + other + ".>",
		api + ".CONSUMER.CREATE.KV_MUSTER_MANIFESTS.muster-list-" + node + ".$KV.MUSTER_MANIFESTS.>",
		api + ".CONSUMER.CREATE.KV_MUSTER_MANIFESTS.muster-list-" + node + ".$KV.MUSTER_MANIFESTS.node." + node + ".>",
		api + ".CONSUMER.MSG.NEXT.KV_MUSTER_MANIFESTS.muster-list-" + node, api + ".CONSUMER.DELETE.KV_MUSTER_MANIFESTS.muster-list-" + node,
		api + ".CONSUMER.CREATE.MUSTER_COMMANDS.muster-commands-" + node + ".muster.command.node." + other + ".>",
		api + ".CONSUMER.CREATE.MUSTER_COMMANDS.muster-commands-" + node + ".muster.command.node." + node + ".>",
		api + ".CONSUMER.MSG.NEXT.MUSTER_COMMANDS.muster-commands-" + node,
		api + ".CONSUMER.MSG.NEXT.KV_MUSTER_MANIFESTS.muster-list-" + other, api + ".CONSUMER.DELETE.KV_MUSTER_MANIFESTS.muster-list-" + other,
		api + ".CONSUMER.LIST.MUSTER_REPORTS", api + ".CONSUMER.CREATE.MUSTER_REPORTS.x.muster.report.>",
	}
	subscribe := []string{
		">", "muster.>", "_INBOX.>", "_INBOX_" + other + ".>", "_INBOX*.>", "*.x", "muster.changed.>", "muster.changed.node.>", "muster.changed.node.*.own",
		"muster.changed.group." + group + ".>", "muster.changed.node." + other + "._control.*", "muster.changed.*.*._control.*", "$KV.MUSTER_CONTROL.>", "muster.report.>", "muster.report." + other + ".>", "muster.report." + node + ".>",
		"muster.ensure.>", "muster.ensure.node." + other, "muster.ensure.group." + group, "muster.command.>", "muster.command.node." + other + ".>", "muster.command.node." + node + ".>", "muster.changed.command.>", "muster.changed.command.node." + other + ".>",
		"$KV.>", "$KV.MUSTER_MANIFESTS.node." + other + ".>", "$KV.MUSTER_NODES.>", "$JS.>", "$JS.EVENT.>", "$SRV.>", "$O.>",
	}
	for _, s := range others.Publish {
		if !slices.Contains(own.Publish, s) {
			publish = append(publish, strings.ReplaceAll(strings.TrimSuffix(s, ">")+"own", "*", "x"))
		}
	}
	for _, s := range others.Subscribe {
		if !slices.Contains(own.Subscribe, s) {
			subscribe = append(subscribe, s)
		}
	}
	nc, violations := trespasser(t, g, node)
	for _, subject := range publish {
		expectRefusal(t, node, violations, "Publish", subject, func() error { return nc.PublishRequest(subject, "_INBOX_"+node+".x", []byte("{}")) })
	}
	for _, subject := range subscribe {
		expectRefusal(t, node, violations, "Subscription", subject, func() error { _, err := nc.SubscribeSync(subject); return err })
	}
	refusedByServer(t, g, node, other)
}

// trespasser connects as a node that tries more than it may.
func trespasser(t *testing.T, g kvtest.Guarded, node string) (*nats.Conn, <-chan error) {
	t.Helper()
	violations := make(chan error, 1000)
	nc := g.Connect(t, node)
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { violations <- err })

	return nc, violations
}

func expectRefusal(t *testing.T, node string, violations <-chan error, what, subject string, try func() error) {
	t.Helper()
	if err := try(); err != nil {
		t.Errorf("%s: %s %s: %v", node, what, subject, err)
		return
	}
	select {
	case err := <-violations:
		if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(strings.Replace(err.Error(), `"void.`, `"`, 1), fmt.Sprintf("%s to %q", what, subject)) {
			t.Errorf("%s: %s %s: refused with %v", node, what, subject, err)
		}
	case <-time.After(kvtest.Deadline):
		t.Fatalf("%s may do %s %s", node, what, subject)
	}
}

// refusedByServer tries what the subject alone does not show: other filters in
// the body of a request that is allowed.
func refusedByServer(t *testing.T, g kvtest.Guarded, node, other string) {
	t.Helper()
	nc, api := g.Connect(t, node), string(g.API)
	reply, err := nc.Request(api+".DIRECT.GET.KV_MUSTER_MANIFESTS.$KV.MUSTER_MANIFESTS.node."+node+".>",
		[]byte(`{"multi_last":["$KV.MUSTER_MANIFESTS.node.`+other+`.>"]}`), kvtest.Deadline)
	if err != nil || reply.Header.Get("Status") != "408" {
		t.Errorf("%s: direct get of others = %v, %v", node, reply, err)
	}
	reply, err = nc.Request(api+".DIRECT.GET.KV_MUSTER_NODES.$KV.MUSTER_NODES."+node+".state",
		[]byte(`{"multi_last":["$KV.MUSTER_NODES.`+other+`.>"]}`), kvtest.Deadline)
	if err != nil || reply.Header.Get("Status") != "408" {
		t.Errorf("%s: direct get of the states of others = %v, %v", node, reply, err)
	}
	// Names of keys are shown to all, and no value.
	reply, err = nc.Request(api+".STREAM.INFO.KV_MUSTER_MANIFESTS", []byte(`{"subjects_filter":">","deleted_details":true}`), kvtest.Deadline)
	if err != nil || !bytes.Contains(reply.Data, []byte("node."+other+".own")) || bytes.Contains(reply.Data, []byte("secret of "+other)) {
		t.Errorf("%s: info of the manifests = %s, %v", node, reply.Data, err)
	}
	reply, err = nc.Request(api+".STREAM.LIST", []byte(`{"subjects_filter":">","subject":"$KV.>"}`), kvtest.Deadline)
	if err != nil || bytes.Contains(reply.Data, []byte(other)) {
		t.Errorf("%s: list of streams = %s, %v", node, reply.Data, err)
	}
}

// A rollup removes all else that a stream holds, whatever key it is put to.
func TestNodeCannotRemoveWhatOthersSaid(t *testing.T) {
	t.Parallel()
	for name, start := range kvtest.Guards() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodeCannotRemoveWhatOthersSaid(t, start(t))
		})
	}
}

func nodeCannotRemoveWhatOthersSaid(t *testing.T, g kvtest.Guarded) {
	t.Helper()
	pA, pB := g.Connect(t, "web01"), kvtest.BindTo(t, g.Connect(t, "web02"))
	if err := pB.PutState(t.Context(), model.NodeState{Node: "web02"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := pB.PutFacts(t.Context(), "web02", model.Facts{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	o := kvtest.Outgoing("web02", model.KindRun, "stable", 1)
	if err := kvtest.Publish(t.Context(), pB, o); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"$KV.MUSTER_NODES.web01.state", "$KV.MUSTER_NODES.web01.facts", "$KV.MUSTER_NODES.web01.inventory", "muster.report.web01.run.stable"} {
		for _, rollup := range []string{"all", "sub"} {
			reply, err := pA.RequestMsg(&nats.Msg{Subject: subject, Header: nats.Header{"Nats-Rollup": {rollup}}, Data: []byte(`{"node":"web01"}`)}, kvtest.Deadline)
			if err != nil || !bytes.Contains(reply.Data, []byte("rollup not permitted")) {
				t.Errorf("rollup %s of %s = %v, %v", rollup, subject, reply, err)
			}
		}
	}
	nodes, err := g.Admin.Nodes(t.Context())
	if err != nil || len(nodes) != 1 || nodes[0].Node != "web02" {
		t.Errorf("nodes = %+v, %v", nodes, err)
	}
	if facts := kvtest.FactsOf(t, g.Admin.Conn, "web02"); facts != `{"a":"b"}` {
		t.Errorf("facts = %s", facts)
	}
	if s, err := g.Admin.JetStream().Stream(t.Context(), "MUSTER_REPORTS"); err != nil {
		t.Error(err)
	} else if state := s.CachedInfo().State; state.Msgs != 1 {
		t.Errorf("reports = %+v", state)
	}
}

// A node that is asked cannot answer for another, neither itself nor through
// the server.
func TestNodeAnswersForItselfOnly(t *testing.T) {
	t.Parallel()
	for name, start := range kvtest.Guards() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodeAnswersForItselfOnly(t, start(t))
		})
	}
}

func nodeAnswersForItselfOnly(t *testing.T, g kvtest.Guarded) {
	t.Helper()
	if _, err := g.Admin.Put(t.Context(), "node.web01.own", []byte(`{"node":"web02"}`)); err != nil {
		t.Fatal(err)
	}
	nc, violations := trespasser(t, g, "web01")
	sub, err := nc.Subscribe("muster.status.all", func(m *nats.Msg) {
		question, _ := strings.CutSuffix(m.Reply, ".=")
		say := func(subject, node string) {
			_ = nc.PublishMsg(&nats.Msg{Subject: subject, Header: nats.Header{requests.NodeHeader: {node}}, Data: []byte(`{"node":"web02"}`)})
		}
		say(question+".web02", "web02")
		say(question+".web01", "web02")
		say(m.Reply, "web02")
		_ = nc.PublishRequest(string(g.API)+".STREAM.LIST", question+".web02", nil)
		_ = nc.PublishRequest(string(g.API)+".DIRECT.GET.KV_MUSTER_MANIFESTS.$KV.MUSTER_MANIFESTS.node.web01.own", question+".web02", nil)
		say(question+".web01", "web01")
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	for r, err := range kvtest.Ask(t.Context(), g.Admin, "muster.status.all", nil) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Node == "web01" {
			break
		}
		if r.Node != "" {
			t.Errorf("answer of %q: %s", r.Node, r.Data)
		}
	}
	if err := <-violations; !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), ".web02") {
		t.Errorf("refused with %v", err)
	}
}

// A plain request does not identify its responder: every requested node may publish to its inbox.
// docs/security.md says so.
func TestPlainRequestsDoNotTellWhoAnswers(t *testing.T) {
	t.Parallel()
	for name, start := range kvtest.Guards() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t)
			nc := g.Connect(t, "web01")
			_, err := nc.Subscribe("muster.ping.all", func(m *nats.Msg) {
				_ = m.RespondMsg(&nats.Msg{Header: nats.Header{requests.NodeHeader: {"web02"}}})
			})
			if err == nil {
				err = nc.FlushTimeout(kvtest.Deadline)
			}
			if err != nil {
				t.Fatal(err)
			}
			m, err := g.Admin.Conn.Request("muster.ping.all", nil, kvtest.Deadline)
			if err != nil || m.Header.Get(requests.NodeHeader) != "web02" {
				t.Errorf("answer %+v, %v", m, err)
			}
		})
	}
}

// A node may direct readable messages to the subjects of another node, which must ignore them.
func TestWhatAnotherNodeHasDeliveredIsNotExecuted(t *testing.T) {
	t.Parallel()
	g := kvtest.OneAccount(t)
	other, err := kvtest.Of(g.Connect(t, "web02"), "")
	if err != nil {
		t.Fatal(err)
	}
	executed := make(chan string, 100)
	kvtest.Serve(t, other, requests.ServeOptions{Node: "web02", Groups: kvtest.GroupsOf["web02"], Ensure: func(_ context.Context, _ *model.Sender, request []byte, _ func(model.EnsureResponse)) {
		executed <- string(request)
	}})
	kvtest.TakeCommands(t, other, requests.CommandOptions{Node: "web02", Groups: kvtest.GroupsOf["web02"], Audit: kvtest.Never}, func(c requests.Command) { executed <- string(c.Data) })
	kvtest.Answers(t, g.Admin, "muster.ping.node.web02", nil, 1)
	// That it takes live commands shows that it has drained and listens.
	if err := g.Admin.PutCommand(t.Context(), "node.web02", "first", []byte("for web02"), time.Hour); err != nil {
		t.Fatal(err)
	}
	if got := <-executed; got != "for web02" {
		t.Fatalf("executed %q", got)
	}
	subjects := []string{"muster.ensure.node.web02", "muster.ensure.group.db", "muster.ensure.all", "muster.changed.command.node.web02.x", "muster.changed.command.group.db.x", "muster.changed.command.group.all.x"}
	for _, id := range subjects {
		if err := g.Admin.PutCommand(t.Context(), "node.web01", id, []byte("meant for web01"), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Admin.Put(t.Context(), "node.web01.own", []byte("manifest of web01")); err != nil {
		t.Fatal(err)
	}
	evil := g.Connect(t, "web01")
	reads := []string{
		"$JS.API.DIRECT.GET.MUSTER_COMMANDS.muster.command.node.web01.>",
		"$JS.API.DIRECT.GET.KV_MUSTER_MANIFESTS.$KV.MUSTER_MANIFESTS.node.web01.own",
		"$JS.API.DIRECT.GET.MUSTER_COMMANDS.muster.command.group.web.>",
	}
	for _, subject := range subjects {
		seen, err := g.Admin.Conn.SubscribeSync(subject)
		if err == nil {
			err = g.Admin.Conn.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, read := range reads {
			if err := evil.PublishRequest(read, subject, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := seen.NextMsg(kvtest.Deadline); err != nil {
				t.Fatalf("%s on %s: not even delivered: %v", read, subject, err)
			}
		}
	}
	for _, subject := range []string{"muster.ensure.node.web02", "muster.command.node.web02.end"} {
		if err := g.Admin.Conn.PublishRequest(subject, g.Admin.Conn.NewInbox(), []byte("the end")); err != nil {
			t.Fatal(err)
		}
	}
	// The one command for it may come twice.
	for ends := 0; ends < 2; {
		switch got := <-executed; got {
		case "the end":
			ends++
		case "for web02":
		default:
			t.Errorf("executed %q", got)
		}
	}
}

func TestPermissionsAreRendered(t *testing.T) {
	t.Parallel()
	p, err := provision.NodePermissions(kvstore.JoinedAPI, "lab", "web01", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(p.Publish, p.Subscribe...) {
		if strings.Contains(strings.ToLower(s), "muster") {
			t.Errorf("%s has not the prefix of the fleet", s)
		}
	}
	var claims jwt.Permissions
	data, err := p.ClaimsJSON()
	if err != nil || json.Unmarshal(data, &claims) != nil || !slices.Equal(claims.Pub.Allow, jwt.StringList(p.Publish)) ||
		!slices.Equal(claims.Sub.Allow, jwt.StringList(p.Subscribe)) || claims.Resp.MaxMsgs != p.AllowResponses.Max || p.AllowResponses.Max == 0 {
		t.Errorf("claims = %s, %v", data, err)
	}
	for _, bad := range [][2]string{{"Big", "web01"}, {"lab", "web.01"}, {"lab", "*"}, {"lab", "_x"}, {"lab", ""}} {
		if _, err := provision.NodePermissions(kvstore.JoinedAPI, bad[0], bad[1], nil); !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("permissions of %q = %v", bad, err)
		}
	}
	if _, err := provision.NodePermissions(kvstore.JoinedAPI, "", "web01", []string{">"}); !errors.Is(err, model.ErrInvalidName) {
		t.Errorf("permissions of group > = %v", err)
	}
}
