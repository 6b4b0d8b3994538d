package watch_test

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore/watch"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// From a put by an operator until the node's listener is woken with it.
func BenchmarkPutUntilWoken(b *testing.B) {
	srv, store := kvtest.New(b)
	woken := make(chan []string, 1)
	w := watch.New(kvtest.Bind(b, srv).Store, watch.Options{Node: "web01", Log: slog.New(slog.DiscardHandler)})
	go func() {
		if err := w.Run(b.Context(), model.Memory{}, func(keys []string) { woken <- keys }); err != nil {
			b.Error(err)
		}
	}()
	<-woken
	for i := 0; b.Loop(); i++ {
		if _, err := store.Put(b.Context(), "node.web01.motd", fmt.Append(nil, i)); err != nil {
			b.Fatal(err)
		}
		<-woken
	}
}

// From one put for a group until each of a thousand connected nodes is woken with it. Their reads spread over
// 100 ms.
func BenchmarkFanOut1000(b *testing.B) {
	srv, store := kvtest.New(b)
	var woken sync.WaitGroup
	ready := make(chan struct{}, 1000)
	for i := range cap(ready) {
		own, err := kvtest.Of(srv.Connect(b, nats.Timeout(kvtest.Deadline)), "")
		if err != nil {
			b.Fatal(err)
		}
		w := watch.New(own.Store, watch.Options{Node: fmt.Sprint("n", i), GroupJitter: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
		go func() {
			err := w.Run(b.Context(), model.Memory{}, func(keys []string) {
				if len(keys) == 0 {
					ready <- struct{}{}
					return
				}
				woken.Done()
			})
			if err != nil {
				b.Error(err)
			}
		}()
	}
	for range cap(ready) {
		<-ready
	}
	for i := 0; b.Loop(); i++ {
		woken.Add(cap(ready))
		if _, err := store.Put(b.Context(), "group.all.motd", fmt.Append(nil, i)); err != nil {
			b.Fatal(err)
		}
		woken.Wait()
	}
}
