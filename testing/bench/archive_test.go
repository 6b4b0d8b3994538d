package bench

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// archiveSize is the size of the fetched archive.
const archiveSize = 1 << 30

// served makes a file that cannot be compressed and gives its URL.
func served(b *testing.B) string {
	b.Helper()
	root := b.TempDir()
	f, err := os.Create(filepath.Join(root, "large.tar.gz"))
	if err != nil {
		b.Fatal(err)
	}
	random, block := rand.NewChaCha8([32]byte{}), make([]byte, 1<<20)
	for range archiveSize / len(block) {
		random.Read(block)
		if _, err := f.Write(block); err != nil {
			b.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(root)))
	b.Cleanup(server.Close)

	return server.URL + "/large.tar.gz"
}

// BenchmarkArchive fetches 1 GiB with muster, and with curl and sha256sum.
func BenchmarkArchive(b *testing.B) {
	muster, url := build(b), served(b)
	target := filepath.Join(b.TempDir(), "large.tar.gz")
	again := func(b *testing.B) {
		b.Helper()
		b.StopTimer()
		if err := os.RemoveAll(target); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	ensure := []string{"--log-level", "error", "ensure", "archive", target, "--url", url, "--owner", fmt.Sprint(os.Geteuid()), "--group", fmt.Sprint(os.Getegid())}
	b.Run("muster", func(b *testing.B) {
		var u usage
		for b.Loop() {
			again(b)
			u.run(b, muster, ensure...)
		}
		u.report(b)
	})
	b.Run("stable", func(b *testing.B) {
		var u usage
		for b.Loop() {
			u.run(b, muster, ensure...)
		}
		u.report(b)
	})
	b.Run("curl and sha256sum", func(b *testing.B) {
		var u usage
		for b.Loop() {
			again(b)
			u.run(b, "sh", "-c", `curl -sS -o "$1" "$2" && sha256sum "$1"`, "sh", target, url)
		}
		u.report(b)
	})
}
