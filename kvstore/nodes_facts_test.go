package kvstore_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestFactsOfNodes: of few nodes one by one, of many in one scan, they are the same.
func TestFactsOfNodes(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	for _, node := range []string{"web01", "web02", "web03"} {
		if err := store.PutFacts(t.Context(), node, model.Facts{"name": node}); err != nil {
			t.Fatal(err)
		}
	}
	// A state is no fact.
	if err := store.PutState(t.Context(), model.NodeState{Node: "web06"}, time.Hour); err != nil {
		t.Fatal(err)
	}
	kv := kvtest.PlainKV(t, srv.Connect(t), "MUSTER_NODES")
	if _, err := kv.PutString(t.Context(), "web04.facts", "garbage"); err != nil {
		t.Fatal(err)
	}
	if err := kv.Delete(t.Context(), "web03.facts"); err != nil {
		t.Fatal(err)
	}
	asked := []string{"web01", "web03", "web04", "web05", "web06"}
	want := map[string]string{"web01": "map[name:web01] ", "web04": "map[] invalid character 'g' looking for beginning of value"}
	for _, more := range []int{0, 100} {
		for i := range more {
			asked = append(asked, fmt.Sprintf("none%d", i))
		}
		got := map[string]string{}
		for f, err := range store.Facts(t.Context(), asked) {
			if err != nil {
				t.Fatal(err)
			}
			got[f.Node] = fmt.Sprint(f.Facts, " ", f.Unreadable)
		}
		if !maps.Equal(got, want) {
			t.Errorf("with %d more: %v", more, got)
		}
	}
}
