package kvstore_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestInventory stores inventories within 64 KiB, and removes them with their node.
func TestInventory(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	b := kvstore.NewNodes(store.Store)
	random := rand.New(rand.NewPCG(1, 2))
	var large []model.Package
	for i := range 20_000 {
		large = append(large, model.Package{Name: fmt.Sprintf("p%d-%x", i, random.Uint64()), Version: fmt.Sprint(random.Uint64()), Arch: "amd64", Manager: "deb"})
	}
	small := []model.Package{{Name: "openssl", Version: "3.0.15-1~deb12u1", Arch: "amd64", Manager: "deb"}, {Name: "bash", Version: "5.1-9", Manager: "rpm"}}
	for node, packages := range map[string][]model.Package{"small": small, "medium": large[:4000], "large": large, "tabs": {{Name: "a\tb", Manager: "deb"}, small[0]}} {
		if err := b.PutInventory(t.Context(), model.Inventory{Node: node, Packages: packages}); err != nil {
			t.Fatal(err)
		}
	}
	srv.Raw(t, store.Names.NodeInventory("garbage"), "", "text")
	names := []string{"small", "medium", "large", "tabs", "garbage"}
	all := map[string]model.Inventory{}
	for i, err := range b.Inventories(t.Context(), names) {
		if err != nil {
			t.Fatal(err)
		}
		all[i.Node] = i
	}
	if got := all["small"]; len(got.Packages) != 2 || got.Packages[0] != small[0] || got.Packages[1] != small[1] || got.Incomplete != "" {
		t.Errorf("small: %+v", got)
	}
	if got := all["medium"]; len(got.Packages) != 4000 || got.Packages[0].Version != "" || got.Packages[0].Name != large[0].Name || got.Incomplete != "it exceeds 64 KiB: versions are missing" {
		t.Errorf("medium: %d packages, %q", len(got.Packages), got.Incomplete)
	}
	if got := all["large"]; len(got.Packages) < 3000 || len(got.Packages) == len(large) || got.Incomplete == "" {
		t.Errorf("large: %d packages, %q", len(got.Packages), got.Incomplete)
	}
	if got := all["tabs"]; len(got.Packages) != 1 {
		t.Errorf("tabs: %+v", got)
	}
	if all["garbage"].Unreadable == "" {
		t.Errorf("garbage: %+v", all["garbage"])
	}
	if err := b.Remove(t.Context(), "small"); err != nil {
		t.Fatal(err)
	}
	for i, err := range b.Inventories(t.Context(), names) {
		if err != nil || i.Node == "small" {
			t.Errorf("%s, %v", i.Node, err)
		}
	}
}

// TestHostileInventory reads inventories that a node made to exhaust memory, or to print lines in the name of other nodes.
func TestHostileInventory(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	b := kvstore.NewNodes(store.Store)
	many := strings.Repeat("{},", 2_000_000)
	for node, text := range map[string]string{
		"many":    `{"node":"many","packages":[` + many + "{}]}\n",
		"few":     `{"node":"few","packages":[{"name":"a"}]}` + "\n",
		"forger":  `{"node":"forger","incomplete":"a\nweb01: b\u001b[2J` + strings.Repeat("x", 2000) + `"}` + "\n",
		"other":   `{"node":"` + strings.Repeat("x", 3000) + `"}` + "\n",
		"time":    `{"node":"time","at":"` + strings.Repeat("x", 3000) + `"}` + "\n",
		"package": `{"node":"package"}` + "\ndeb\t" + strings.Repeat("x", 2000) + "\t1\tamd64\n",
	} {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		srv.Raw(t, store.Names.NodeInventory(node), "", packed.String())
	}
	all := map[string]model.Inventory{}
	for i, err := range b.Inventories(t.Context(), []string{"many", "few", "forger", "other", "time", "package"}) {
		if err != nil {
			t.Fatal(err)
		}
		all[i.Node] = i
		for _, text := range []string{i.Incomplete, i.Unreadable} {
			if len(text) > 210 || !model.IsLine(text) {
				t.Errorf("%s: %d bytes: %.300q", i.Node, len(text), text)
			}
		}
	}
	if got := all["few"]; got.Unreadable != "" || len(got.Packages) != 0 {
		t.Errorf("few: %+v", got)
	}
	if got := all["forger"].Incomplete; !strings.HasPrefix(got, "a web01: b [2Jxxx") {
		t.Errorf("forger: %q", got)
	}
	for node, want := range map[string]string{"many": "its first line exceeds 4 KiB", "other": `it names node "xxx`, "time": "parsing time", "package": "invalid package line"} {
		if got := all[node].Unreadable; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", node, got, want)
		}
	}
}

// TestHostileState reads a state with a long name of a node.
func TestHostileState(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	srv.Raw(t, store.Names.NodeState("web01"), "", `{"node":"`+strings.Repeat("x\\n", 3000)+`"}`)
	all, err := store.Nodes(t.Context())
	if err != nil || len(all) != 1 || len(all[0].Unreadable) > 210 || !model.IsLine(all[0].Unreadable) {
		t.Errorf("nodes = %+v, %v", all, err)
	}
}
