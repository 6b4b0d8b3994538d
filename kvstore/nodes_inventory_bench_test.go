package kvstore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// BenchmarkInventories reads the inventories of 1,000 nodes with 1,500 packages each.
func BenchmarkInventories(b *testing.B) {
	_, store := kvtest.New(b)
	bucket, random := kvstore.NewNodes(store.Store), rand.New(rand.NewPCG(1, 2))
	var packages []model.Package
	for i := range 1500 {
		packages = append(packages, model.Package{Name: fmt.Sprintf("package-%d", i), Version: fmt.Sprintf("1:%d.%d-%d", random.IntN(9), random.IntN(99), random.IntN(9)), Arch: "amd64", Manager: "deb"})
	}
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("node%d", i))
		if err := bucket.PutInventory(b.Context(), model.Inventory{Node: fmt.Sprintf("node%d", i), Packages: packages}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		count := 0
		for i, err := range bucket.Inventories(b.Context(), names) {
			if err != nil || len(i.Packages) != len(packages) {
				b.Fatal(err, len(i.Packages))
			}
			count++
		}
		if count != 1000 {
			b.Fatal(count)
		}
	}
}
