package nodes_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterfleet/muster/kvstore/nodes"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestInventory stores inventories within 64 KiB, and removes them with their node.
func TestInventory(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	b := nodes.New(store.Store)
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
	srv.Raw(t, store.Names().NodeInventory("garbage"), "", "text")
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
