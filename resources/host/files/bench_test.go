package files_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/hosttest"
)

// writeMany writes n files of 200 bytes into one directory of a run.
func writeMany(b *testing.B, h *files.Disk, dir string, n int) {
	b.Helper()
	if err := h.BeginRun(b.Context(), files.RunOptions{}); err != nil {
		b.Fatal(err)
	}
	content, attrs := strings.Repeat("x", 200), hosttest.Attrs(b, 0o644)
	for i := range n {
		if err := h.Write(b.Context(), filepath.Join(dir, fmt.Sprintf("file-%d", i)), strings.NewReader(content), attrs); err != nil {
			b.Fatal(err)
		}
	}
	if err := h.EndRun(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkWrite1000 and BenchmarkWrite5000 are a first run of small files: all
// written and synced.
func BenchmarkWrite1000(b *testing.B) { benchmarkWrite(b, 1000) }

func BenchmarkWrite5000(b *testing.B) { benchmarkWrite(b, 5000) }

func benchmarkWrite(b *testing.B, n int) {
	b.Helper()
	for b.Loop() {
		writeMany(b, hosttest.New(b).Disk, b.TempDir(), n)
	}
}

// BenchmarkLookDigest5000 is a stable run of 5,000 files with cached digests.
func BenchmarkLookDigest5000(b *testing.B) {
	h, dir := hosttest.New(b).Disk, b.TempDir()
	writeMany(b, h, dir, 5000)
	paths := make([]string, 5000)
	for i := range paths {
		paths[i] = filepath.Join(dir, fmt.Sprintf("file-%d", i))
	}
	look := func() {
		for _, path := range paths {
			entry, err := h.Look(path)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := h.DigestEntry(b.Context(), entry); err != nil {
				b.Fatal(err)
			}
		}
	}
	// Only files that were unchanged for a moment are cached.
	<-time.After(50 * time.Millisecond)
	look()
	b.ReportAllocs()
	for b.Loop() {
		look()
	}
}
