package agentcmd_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/cmd/muster/agentcmd"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/testing/kvtest"
)

// A node that does all it can, over a restart of the server, never asks for a
// consumer: where one delivers to, the server does not check.
func TestAgentMakesNoConsumer(t *testing.T) {
	t.Parallel()
	srv, admin := kvtest.New(t)
	nc := srv.Connect(t)
	asked, err := nc.SubscribeSync("$JS.API.CONSUMER.>")
	if err != nil {
		t.Fatal(err)
	}
	// What another connection asks for is heard only once the server knows of this one.
	if err := nc.FlushTimeout(kvtest.Deadline); err != nil {
		t.Fatal(err)
	}
	heard := func() string {
		t.Helper()
		if err := nc.FlushTimeout(kvtest.Deadline); err != nil {
			t.Fatal(err)
		}
		m, err := asked.NextMsg(time.Millisecond)
		if err != nil {
			return ""
		}
		return m.Subject
	}
	js, err := jetstream.New(srv.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateConsumer(t.Context(), "MUSTER_REPORTS", jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy}); err != nil {
		t.Fatal(err)
	}
	if _, err := asked.NextMsg(kvtest.Deadline); err != nil {
		t.Fatalf("a consumer that is made is not heard of: %v", err)
	}

	dir := t.TempDir()
	file := func(name, content string) string {
		return fmt.Sprintf("    - file: [%s: {content: %q, owner: '%d', group: '%d', mode: '0644'}]\n", filepath.Join(dir, name), content, os.Geteuid(), os.Getegid())
	}
	put := func(key, value string) {
		t.Helper()
		if _, err := admin.Put(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(name, want string) {
		t.Helper()
		kvtest.Eventually(t, name, func() (bool, string) {
			got, err := os.ReadFile(filepath.Join(dir, name))
			return strings.Contains(string(got), want), fmt.Sprintf("%s, %v", got, err)
		})
	}
	if _, err := kvtest.PlainKV(t, nc, "MUSTER_DATA").PutString(t.Context(), "site", "berlin"); err != nil {
		t.Fatal(err)
	}
	if err := admin.Register(t.Context(), registration.Registration{Cluster: "prod", ProtocolName: "http", Service: "shop", Node: "db01", Address: "192.0.2.7", Port: 80, Priority: 1, TTL: model.TTL(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	digest, err := admin.PutBundle(t.Context(), bytes.NewReader(bundle(t, "muster:\n  resources:\n"+file("bundled", "of a bundle"))))
	if err != nil {
		t.Fatal(err)
	}
	command := func(id, name string) {
		t.Helper()
		data, err := json.Marshal(model.EnsureRequest{
			Protocol: model.ProtocolEnsureRequest, ID: id, Type: "file",
			Properties: json.RawMessage(fmt.Sprintf(`{"name":%q,"content":"by command","owner":"%d","group":"%d","mode":"0644"}`, filepath.Join(dir, name), os.Geteuid(), os.Getegid())),
		})
		if err == nil {
			err = admin.PutCommand(t.Context(), "node.web01", id, data, time.Hour)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	command("early", "early")
	put("node.web01.early", "muster:\n  resources:\n"+file("motd", "early"))

	c := config.Default("web01")
	c.StateDir, c.FactsDir, c.NATS.Servers = filepath.Join(dir, "state"), filepath.Join(dir, "facts"), []string{srv.URL()}
	n, err := agentcmd.NewNode(t.Context(), c, agentcmd.NodeOptions{Types: resources.All(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx, ctx) }()
	holds("motd", "early")
	holds("early", "by command")
	put("group.all.data", "muster:\n  resources:\n"+file("data", "${ kvGet('MUSTER_DATA', 'site') } ${ registrations('prod', 'http', '*', '*')[0].address }"))
	holds("data", "berlin 192.0.2.7")
	assignment, err := json.Marshal(map[string]any{"protocol": model.ProtocolAssignment, "bundle": digest})
	if err != nil {
		t.Fatal(err)
	}
	put("node.web01.bundle", string(assignment))
	holds("bundled", "of a bundle")
	command("live", "live")
	holds("live", "by command")
	kvtest.Answers(t, admin, admin.Names.Request(kvstore.VerbPing, "node.web01"), nil, 1)
	if subject := heard(); subject != "" {
		t.Errorf("asked for %s", subject)
	}
	srv.Restart(t)
	kvtest.Eventually(t, "an operator is back", func() (bool, string) {
		_, err := admin.Put(t.Context(), "node.web01.early", []byte("muster:\n  resources:\n"+file("motd", "after the restart")))
		return err == nil, fmt.Sprint(err)
	})
	holds("motd", "after the restart")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if subject := heard(); subject != "" {
		t.Errorf("asked for %s", subject)
	}
}

// bundle returns a manifest as a bundle.
func bundle(t *testing.T, manifest string) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	archive := tar.NewWriter(zipped)
	err := archive.WriteHeader(&tar.Header{Name: "manifest.yaml", Mode: 0o644, Size: int64(len(manifest))})
	if err == nil {
		_, err = archive.Write([]byte(manifest))
	}
	for _, closed := range []func() error{archive.Close, zipped.Close} {
		if err == nil {
			err = closed()
		}
	}
	if err != nil {
		t.Fatal(err)
	}

	return b.Bytes()
}
