package kvstore_test

import (
	"fmt"
	"testing"

	"github.com/musterfleet/muster/kvstore"
)

// From a put by an operator until the node's listener is woken with it.
func BenchmarkPutUntilWoken(b *testing.B) {
	srv, store := newStore(b)
	woken := make(chan []string, 1)
	w, err := kvstore.NewWatch(bind(b, srv), kvstore.WatchOptions{Node: "web01"})
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		if err := w.Run(b.Context(), func(keys []string) { woken <- keys }); err != nil {
			b.Error(err)
		}
	}()
	<-woken
	for i := 0; b.Loop(); i++ {
		if _, err := store.PutManifest(b.Context(), "node.web01", "motd", fmt.Append(nil, i)); err != nil {
			b.Fatal(err)
		}
		<-woken
	}
}

// A thousand reports, as an outbox hands them over.
func BenchmarkPublishReports(b *testing.B) {
	_, store := newStore(b)
	for b.Loop() {
		b.StopTimer()
		batch := make([]kvstore.Outgoing, 1000)
		for i := range batch {
			batch[i] = outgoing(b, store, "web01", kvstore.KindRun, "stable", uint64(i+1))
		}
		b.StartTimer()
		if n, err := store.PublishReports(b.Context(), batch); err != nil {
			b.Fatal(n, err)
		}
	}
}
