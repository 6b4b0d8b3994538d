//go:build !race

package main

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server/pse"
)

// TestServerTimer has nats-server not read how busy the process is any more. Its timer knows no lock, so
// the race detector may object to the test of what is written once.
func TestServerTimer(t *testing.T) {
	var cpu float64
	var rss, vss int64
	if err := pse.ProcUsage(&cpu, &rss, &vss); err != nil || rss == 0 {
		t.Fatalf("before: %v, %d bytes", err, rss)
	}
	stopServerTimer()
	if err := pse.ProcUsage(&cpu, &rss, &vss); err == nil {
		t.Error("the file is still read")
	}
}
