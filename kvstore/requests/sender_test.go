package requests_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestSendersAreNamed: nodes get the sender of live and queued requests, or no name if the sender gave none.
func TestSendersAreNamed(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	got := make(chan *model.Sender, 10)
	note := func(_ context.Context, from *model.Sender, _ []byte, respond func(model.EnsureResponse)) {
		got <- from
		respond(model.EnsureResponse{Phase: model.EnsureDone})
	}
	kvtest.Serve(t, kvtest.Bind(t, srv), requests.ServeOptions{Node: "web01", Ensure: note, Run: note})
	kvtest.TakeCommands(t, kvtest.Bind(t, srv), requests.CommandOptions{Node: "web01"}, func(c requests.Command) { got <- c.Sender })
	kvtest.Answers(t, store, "muster.ping.all", nil, 1)
	anna := model.Sender{By: "änna / root@desk", Nodes: 500, To: "node.web01 group.db", On: `labels["ort"] == "Köln" && group("a%b")`}
	for name, from := range map[string]*model.Sender{"somebody": &anna, "nobody": nil} {
		client := requests.New(store.Store)
		if from != nil {
			client = client.From(*from)
		}
		for _, verb := range []string{kvstore.VerbEnsure, kvstore.VerbRun} {
			kvtest.Eventually(t, verb+" is answered", func() (bool, string) {
				ctx, cancel := context.WithTimeout(t.Context(), kvtest.Deadline)
				defer cancel()
				for _, err := range kvtest.Ask(ctx, client, store.Names.Request(verb, "node.web01"), []byte("{}")) {
					return err == nil, ""
				}
				return false, "no answer"
			})
			if is := <-got; !isSame(is, from) {
				t.Errorf("%s of %s is from %+v", verb, name, is)
			}
		}
		if err := client.PutCommand(t.Context(), "node.web01", "of "+name, []byte("{}"), time.Hour); err != nil {
			t.Fatal(err)
		}
		if is := <-got; !isSame(is, from) {
			t.Errorf("the command of %s is from %+v", name, is)
		}
	}
}

func isSame(a, b *model.Sender) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }

// TestSendersAreBounded: a name is one short line, a number one of nodes, else there is none.
func TestSendersAreBounded(t *testing.T) {
	t.Parallel()
	for name, nodes := range map[string]string{
		strings.Repeat("x", 201): "", "two\nlines": "0", "\x1b[2J": "-1", "\u202egnp": "1000001", "": "many", "a\xff": "1e3",
	} {
		for _, target := range []string{strings.Repeat("x", 1001), "two\nlines", "\x1b[2J", "a\xff"} {
			if got := kvstore.SenderOf(nats.Header{"Muster-To": {url.PathEscape(target)}, "Muster-On": {url.PathEscape(target)}}); got != nil {
				t.Errorf("%q is %+v", target, got)
			}
		}
		long := nats.NewMsg("x")
		kvstore.SetSender(long, model.Sender{Nodes: 3, To: strings.Repeat("node.x ", 143), On: strings.Repeat("x", 1001)})
		if got := kvstore.SenderOf(long.Header); got == nil || *got != (model.Sender{Nodes: 3}) {
			t.Errorf("a long target is sent as %+v", got)
		}
		if got := kvstore.SenderOf(nats.Header{"Muster-By": {url.PathEscape(name)}, "Muster-Nodes": {nodes}}); got != nil {
			t.Errorf("%q, %q is %+v", name, nodes, got)
		}
	}
	if got := kvstore.SenderOf(nats.Header{"Muster-By": {"%zz"}, "Muster-Nodes": {"7"}}); got == nil || *got != (model.Sender{Nodes: 7}) {
		t.Errorf("an invalid name beside a number is %+v", got)
	}
}
