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
			footprint.Keep(ctx, busy, nil, func() { at = append(at, time.Since(began)) }, func() { t.Error("trimmed") })
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

// TestKeepOfOneThatIsStirred gives memory back a tenth of a second later, and ten after a run. The
// longer that takes, the more seldom: it trims meanwhile.
func TestKeepOfOneThatIsStirred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		busy, stirred, began := tasks.NewSignal(), tasks.NewSignal(), time.Now()
		takes, at, trimmed := time.Duration(0), []time.Duration(nil), []time.Duration(nil)
		var all sync.WaitGroup
		all.Go(func() {
			footprint.Keep(ctx, busy, stirred, func() {
				at = append(at, time.Since(began))
				<-time.After(takes)
			}, func() { trimmed = append(trimmed, time.Since(began)) })
		})
		happens := func(after time.Duration, s tasks.Signal) {
			<-time.After(after - time.Since(began))
			s.Notify()
		}
		happens(20*time.Second, stirred)
		happens(20*time.Second+500*time.Millisecond, stirred)
		happens(60*time.Second, stirred)
		happens(60*time.Second+500*time.Millisecond, busy)
		happens(65*time.Second, stirred)
		<-time.After(100*time.Second - time.Since(began))
		takes = 100 * time.Millisecond
		for n := range 10 {
			happens(time.Duration(n+2)*time.Minute, stirred)
		}
		end()
		all.Wait()
		if got := fmt.Sprint(at); got != "[10s 20.1s 20.6s 1m0.1s 1m10.5s 1m10.6s 2m0.1s 4m0.1s 6m0.1s 8m0.1s 10m0.1s]" {
			t.Errorf("at %s", got)
		}
		if got := fmt.Sprint(trimmed); got != "[3m0.1s 5m0.1s 7m0.1s 9m0.1s]" {
			t.Errorf("trimmed at %s", got)
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
