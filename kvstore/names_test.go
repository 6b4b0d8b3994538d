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
			n.Manifests():                    tt.upper + "_MANIFESTS",
			n.Bundles():                      tt.upper + "_BUNDLES",
			n.Data():                         tt.upper + "_DATA",
			n.Nodes():                        tt.upper + "_NODES",
			n.Reports():                      tt.upper + "_REPORTS",
			n.Commands():                     tt.upper + "_COMMANDS",
			n.Changed("node.web01.>"):        tt.lower + ".changed.node.web01.>",
			n.Report("web01", "run", "*"):    tt.lower + ".report.web01.run.*",
			n.Request("ensure", "node.a"):    tt.lower + ".ensure.node.a",
			n.Request("ping", "group.b"):     tt.lower + ".ping.group.b",
			n.Request("status", "group.all"): tt.lower + ".status.all",
			n.Command("group.all"):           tt.lower + ".command.group.all",
			n.InboxPrefix("web01"):           "_INBOX_web01",
		} {
			if got != want {
				t.Errorf("prefix %q: %s, want %s", tt.prefix, got, want)
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
		if _, err := kvstore.NewNames(prefix); !errors.Is(err, kvstore.ErrInvalidName) {
			t.Errorf("prefix %q: %v", prefix, err)
		}
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key, family, name string
		ok                bool
	}{
		{"node.web01.motd", "node.web01", "motd", true},
		{"group.all._index", "group.all", "_index", true},
		{"node.web01", "", "", false},
		{"node.web.01.motd", "", "", false},
		{"team.web.motd", "", "", false},
		{"node..motd", "", "", false},
		{"node.web01.", "", "", false},
		{"", "", "", false},
	} {
		family, name, ok := kvstore.SplitKey(tt.key)
		if family != tt.family || name != tt.name || ok != tt.ok {
			t.Errorf("split %q = %q, %q, %v", tt.key, family, name, ok)
		}
		if ok && kvstore.Key(family, name) != tt.key {
			t.Errorf("join of %q = %q", tt.key, kvstore.Key(family, name))
		}
	}
	if got := strings.Join(kvstore.Families("web01", []string{"web", "db", "web", "all"}), " "); got != "node.web01 group.web group.db group.all" {
		t.Errorf("families = %s", got)
	}
}

func FuzzSplitKey(f *testing.F) {
	for _, seed := range []string{"node.web01.motd", "group.all._index", "node.a.b.c", ".", "node..", "\x00.\xff.x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		family, name, ok := kvstore.SplitKey(key)
		if ok && (kvstore.Key(family, name) != key || kvstore.CheckFamily(family) != nil || !model.IsToken(name)) {
			t.Errorf("%q gives %q and %q", key, family, name)
		}
	})
}
