package fleetsim_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jsm.go"

	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/testing/fleetsim"
	"github.com/musterfleet/muster/testing/kvtest"
)

// admin connects the administrator, and provisions.
func admin(b *testing.B, u fleetsim.Users) *kvtest.Store {
	b.Helper()
	nc, err := connect.Dial(b.Context(), u.Options(""))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	s, err := kvtest.Of(nc, "")
	if err == nil {
		_, err = s.Apply(b.Context(), provision.Options{})
	}
	if err != nil {
		b.Fatal(err)
	}

	return s
}

// consumers counts the consumers of all streams.
func consumers(b *testing.B, s *kvtest.Store) int {
	b.Helper()
	m, err := jsm.New(s.Conn)
	if err != nil {
		b.Fatal(err)
	}
	count := 0
	_, _, err = m.EachStream(nil, func(stream *jsm.Stream) {
		state, err := stream.State()
		if err != nil {
			b.Error(err)
		}
		count += state.Consumers
	})
	if err != nil {
		b.Fatal(err)
	}

	return count
}

// Nodes of two accounts with credentials connect and read their assignments; then one
// put for all of them.
func BenchmarkJWT(b *testing.B) {
	for _, count := range []int{1000, 10000} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			for b.Loop() {
				fleet(b, count, fleetsim.ByJWT)
			}
		})
	}
}

// The same with users in the server's configuration.
func BenchmarkConfiguration(b *testing.B) {
	b.Run("1000", func(b *testing.B) {
		for b.Loop() {
			fleet(b, 1000, fleetsim.ByConfig)
		}
	})
}

// fleet is one round of the two benchmarks above, which reports its parts.
func fleet(b *testing.B, count int, users func(testing.TB, []string, ...string) fleetsim.Users) {
	names := fleetsim.Names(count)
	u := users(b, names)
	s := admin(b, u)
	put := func(value int) time.Time {
		began := time.Now()
		if _, err := s.Put(b.Context(), "group.all.motd", fmt.Append(nil, value)); err != nil {
			b.Fatal(err)
		}

		return began
	}
	put(0)
	heard, taken := newTally(), newTally()
	began := time.Now()
	fleetsim.Join(b, names, u.Options, fleetsim.Options{
		// A server of two cores answers about 20,000 reads a second.
		GroupJitter: max(500*time.Millisecond, time.Duration(count)*time.Millisecond/2),
		Heard:       heard.count,
		Taken:       func(string, []string) { taken.count() },
	})
	b.ReportMetric(time.Since(began).Seconds(), "s-connect")
	b.ReportMetric(u.Server.CPU(b).Seconds(), "s-server")
	if got := consumers(b, s); got != 0 {
		b.Errorf("%d consumers", got)
	}
	const rounds = 5
	var hearing, taking []time.Duration
	for i := range rounds {
		heard.expect(count)
		taken.expect(count)
		at := put(i + 1)
		hearing = append(hearing, heard.wait().Sub(at))
		taking = append(taking, taken.wait().Sub(at))
	}
	b.ReportMetric(median(hearing).Seconds()*1000, "ms-heard")
	b.ReportMetric(median(taking).Seconds()*1000, "ms-taken")
	b.ReportMetric(float64(u.Server.Memory(b))/1e6, "MB-server")
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)

	return all[len(all)/2]
}

// tally waits until something happened a number of times.
type tally struct {
	mu   sync.Mutex
	left int
	done chan time.Time
}

func newTally() *tally { return &tally{done: make(chan time.Time, 1)} }

func (t *tally) expect(count int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = count
}

func (t *tally) count() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left--; t.left == 0 {
		t.done <- time.Now()
	}
}

func (t *tally) wait() time.Time { return <-t.done }

// A user is added to a thousand in the server's configuration; it connects as soon as the
// server has read it again.
func BenchmarkReload(b *testing.B) {
	names := fleetsim.Names(1000 + b.N)
	u := fleetsim.ByConfig(b, names[:1000])
	admin(b, u)
	fleetsim.Join(b, names[:1000], u.Options, fleetsim.Options{GroupJitter: 500 * time.Millisecond})
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		config := fleetsim.Config(b, names[:1001+i])
		b.StartTimer()
		u.Server.Reload(b, config)
		for {
			ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
			nc, err := connect.Dial(ctx, u.Options(names[1000+i]))
			cancel()
			if err == nil {
				nc.Close()
				break
			}
			if b.Context().Err() != nil {
				b.Fatal(err)
			}
		}
	}
}
