package footprint_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/agent/footprint"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/testing/alone"
)

// TestKeep gives memory back ten seconds after the last run, once.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		busy, began := tasks.NewSignal(), time.Now()
		var at []time.Duration
		var all sync.WaitGroup
		all.Go(func() {
			footprint.Keep(ctx, busy, func() { at = append(at, time.Since(began)) })
		})
		for _, wait := range []time.Duration{5, 9, 9, 300, 2, 100} {
			<-time.After(wait * time.Second)
			busy.Notify()
		}
		<-time.After(time.Hour)
		end()
		all.Wait()
		if got := fmt.Sprint(at); got != "[33s 5m35s 7m15s]" {
			t.Errorf("at %s", got)
		}
	})
}

// TestReduce takes the program out of the memory of a process that goes on
// working, on all of its threads.
func TestReduce(t *testing.T) {
	if !alone.Run(t) {
		return
	}
	ctx, end := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				text := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Repeat("a", i%100))))
				if len(text) != 64 {
					t.Errorf("computed %q", text)
				}
			}
		})
	}
	for range 3 {
		if err := footprint.Reduce(); err != nil {
			t.Fatal(err)
		}
	}
	end()
	all.Wait()
	program := footprint.Touch(t)
	before := resident(t)
	if err := footprint.Reduce(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t); after >= before {
		t.Errorf("%d kB of files are in memory, as much as before: %d kB", after, before)
	}
	if footprint.Touch(t) != program {
		t.Error("the program is another one")
	}
}

// resident returns the kilobytes of files in the memory of this process. The program is
// shared memory where it lies in a file system in memory.
func resident(t *testing.T) (kilobytes int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"RssFile:", "RssShmem:"} {
		_, rest, _ := strings.Cut(string(status), field)
		var n int
		if _, err := fmt.Sscan(rest, &n); err != nil {
			t.Fatal(err)
		}
		kilobytes += n
	}

	return kilobytes
}
