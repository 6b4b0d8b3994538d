package kvstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

func TestNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ prefix, upper, lower string }{{"", "MUSTER", "muster"}, {"muster", "MUSTER", "muster"}, {"lab_2", "LAB_2", "lab_2"}} {
		n, err := kvstore.NewNames(tt.prefix)
		if err != nil {
			t.Fatal(err)
		}
		for got, want := range map[string]string{
			n.Manifests:                       tt.upper + "_MANIFESTS",
			n.Bundles:                         tt.upper + "_BUNDLES",
			n.Data:                            tt.upper + "_DATA",
			n.Nodes:                           tt.upper + "_NODES",
			n.Reports:                         tt.upper + "_REPORTS",
			n.Commands:                        tt.upper + "_COMMANDS",
			n.Changed("node.web01.>"):         tt.lower + ".changed.node.web01.>",
			n.Report("web01", "run", "*"):     tt.lower + ".report.web01.run.*",
			n.Request("ensure", "node.a"):     tt.lower + ".ensure.node.a",
			n.Request("ping", "group.b"):      tt.lower + ".ping.group.b",
			n.Request("status", "group.all"):  tt.lower + ".status.all",
			n.Command("group.all", "x"):       tt.lower + ".command.group.all.x",
			n.CommandQueued("group.all", ">"): tt.lower + ".changed.command.group.all.>",
			kvstore.InboxPrefix("web01"):      "_INBOX_web01",
		} {
			if got != want {
				t.Errorf("prefix %q: %s, want %s", tt.prefix, got, want)
			}
		}
		for subject, want := range map[string]string{
			n.Changed("group.web.>"): "web", n.ControlChanged("group.web", "*"): "web", n.CommandQueued("group.web", ">"): "web", n.Request("ping", "group.web"): "web",
			n.Changed("node.group.>"): "", n.CommandQueued("node.group", ">"): "", n.Request("ping", "node.group"): "", n.Request("ping", "group.all"): "", "_INBOX_web01.>": "",
		} {
			if got := n.GroupOf(subject); got != want {
				t.Errorf("group of %s: %q, want %q", subject, got, want)
			}
		}
		if key, ok := n.ChangedKey(tt.lower + ".changed.node.web01.motd"); !ok || key != "node.web01.motd" {
			t.Errorf("changed key = %s, %v", key, ok)
		}
		if _, ok := n.ChangedKey("other.changed.x"); ok {
			t.Error("a subject of others is none of ours")
		}
	}
	for _, prefix := range []string{"Muster", "a.b", "a b", "a>", "*"} {
		if _, err := kvstore.NewNames(prefix); !errors.Is(err, model.ErrInvalidName) {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
}

func FuzzToken(f *testing.F) {
	for _, seed := range []string{"", "a", "a.b", "=", "=YQ", "*", ">", "a b", "\x00\xff", "web01-2fGh"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		token := kvstore.Token(id)
		if back, ok := kvstore.TokenID(token); !ok || back != id || strings.ContainsAny(token, ".*> \t\r\n\x00") {
			t.Errorf("%q is %q, which is %q, %v", id, token, back, ok)
		}
		if back, ok := kvstore.TokenID(id); ok && kvstore.Token(back) != id {
			t.Errorf("%q is the token of %q and of %q", back, id, kvstore.Token(back))
		}
	})
}

// TestMayAnswer: nodes answer on their own subject, on an inbox, or on a subject that the server forwards.
func TestMayAnswer(t *testing.T) {
	t.Parallel()
	n, err := kvstore.NewNames("")
	if err != nil {
		t.Fatal(err)
	}
	for _, reply := range []string{"", "muster.reply.board0123456789.=", "_INBOX.x.y", "_INBOX_anna.x", "_R_.x.y"} {
		if !n.MayAnswer(reply) {
			t.Errorf("%q is refused", reply)
		}
	}
	for _, reply := range []string{
		"x", "muster.reply.x.web01", "muster.reply.=", "muster.reply..=", "muster.reply.*.=", "muster.reply.>.=", "muster.reply.x.y.=", "other.reply.x.=", "muster.run.node.web01", "muster.report.web01.run.failed",
		"$KV.MUSTER_NODES.web01.state", "$SRV.PING", "fleet.API.STREAM.LIST", "_SYS.x", "_R_",
	} {
		if n.MayAnswer(reply) {
			t.Errorf("%q is not refused", reply)
		}
	}
}
