package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// contentSize is how much inline content a file resource has.
const contentSize = 200

// build makes the binary as it is released.
func build(b *testing.B) string {
	b.Helper()
	out := filepath.Join(b.TempDir(), "muster")
	cmd := exec.Command("go", "build", "-tags", "nodemo", "-trimpath", "-ldflags", "-s -w", "-o", out, "github.com/musterfleet/muster/cmd/muster")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	return out
}

// files writes a manifest of n file resources and gives its path and the directory they are in.
func files(b *testing.B, n int) (manifest, dir string) {
	b.Helper()
	root := b.TempDir()
	dir = filepath.Join(root, "out")
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	var m strings.Builder
	fmt.Fprintf(&m, "muster:\n  resources:\n    - file:\n")
	for i := range n {
		fmt.Fprintf(&m, "        - %s/file%05d:\n            ensure: present\n            owner: \"%d\"\n            group: \"%d\"\n            mode: \"0644\"\n            content: |\n              file %05d\n              %s\n",
			dir, i, os.Geteuid(), os.Getegid(), i, strings.Repeat("x", contentSize-12))
	}
	manifest = filepath.Join(root, "manifest.yaml")
	if err := os.WriteFile(manifest, []byte(m.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	return manifest, dir
}

// usage is what processes took, added up.
type usage struct {
	cpu  time.Duration
	peak int64
	runs int
}

// run runs a command and adds its cost; a failure ends the benchmark.
func (u *usage) run(b *testing.B, name string, args ...string) {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "MUSTER_STATE_DIR="+filepath.Join(b.TempDir(), "state"))
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Run(); err != nil {
		b.Fatalf("%v\n%s", err, tail(text.String()))
	}
	r := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	u.cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	u.peak = max(u.peak, r.Maxrss)
	u.runs++
}

// report gives CPU per run and the highest peak of memory beside the wall time.
func (u *usage) report(b *testing.B) {
	b.ReportMetric(float64(u.cpu.Milliseconds())/float64(u.runs), "cpu-ms/op")
	b.ReportMetric(float64(u.peak)/1024, "peak-MB")
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(u.runs), "wall-ms/op")
}

func tail(s string) string { return s[max(0, len(s)-2000):] }

func BenchmarkApplyFiles(b *testing.B) {
	muster := build(b)
	for _, n := range []int{1, 100, 1000, 5000, 20000} {
		manifest, dir := files(b, n)
		b.Run(fmt.Sprintf("first/%d", n), func(b *testing.B) {
			var u usage
			for b.Loop() {
				b.StopTimer()
				// Put aside, not removed: ext4 makes files slowly for seconds after many were removed.
				if err := os.Rename(dir, filepath.Join(b.TempDir(), "written")); err != nil {
					b.Fatal(err)
				}
				if err := os.Mkdir(dir, 0o755); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				u.run(b, muster, "--log-level", "error", "apply", manifest)
			}
			u.report(b)
		})
		b.Run(fmt.Sprintf("stable/%d", n), func(b *testing.B) {
			var u usage
			for b.Loop() {
				u.run(b, muster, "--log-level", "error", "apply", manifest)
			}
			u.report(b)
		})
	}
}

func BenchmarkApplyExecs(b *testing.B) {
	muster := build(b)
	for _, n := range []int{100, 1000} {
		dir := b.TempDir()
		var m strings.Builder
		m.WriteString("muster:\n  resources:\n    - exec:\n")
		for i := range n {
			fmt.Fprintf(&m, "        - run%d:\n            command: touch %s/made%d\n            creates: %s/made%d\n", i, dir, i, dir, i)
		}
		manifest := filepath.Join(b.TempDir(), "manifest.yaml")
		if err := os.WriteFile(manifest, []byte(m.String()), 0o644); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("stable/%d", n), func(b *testing.B) {
			var first, u usage
			first.run(b, muster, "--log-level", "error", "apply", manifest)
			b.ResetTimer()
			for b.Loop() {
				u.run(b, muster, "--log-level", "error", "apply", manifest)
			}
			u.report(b)
		})
	}
}

func BenchmarkVersion(b *testing.B) {
	muster := build(b)
	var u usage
	for b.Loop() {
		u.run(b, muster, "--version")
	}
	u.report(b)
}

// baseline is what a plain C program takes to write, sync and rename as many
// files, and with a third argument to sync the directory after each, as muster
// does: what the first run is compared with.
const baseline = `
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
	char data[200], temp[4096], name[4096];
	memset(data, 'x', sizeof data);
	int dir = open(argv[1], O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < atoi(argv[2]); i++) {
		snprintf(temp, sizeof temp, "%s/.tmp%d", argv[1], i);
		snprintf(name, sizeof name, "%s/file%05d", argv[1], i);
		int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL, 0644);
		if (fd < 0 || write(fd, data, sizeof data) != sizeof data || fsync(fd) || close(fd) || rename(temp, name) || (argc > 3 && fsync(dir))) return 1;
	}
	return 0;
}`

func BenchmarkBaselineC(b *testing.B) {
	root := b.TempDir()
	source, program := filepath.Join(root, "baseline.c"), filepath.Join(root, "baseline")
	if err := os.WriteFile(source, []byte(baseline), 0o644); err != nil {
		b.Fatal(err)
	}
	if text, err := exec.Command("gcc", "-O2", "-o", program, source).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	for _, n := range []int{1000, 5000} {
		for what, also := range map[string][]string{"files": nil, "files and directory": {"directory"}} {
			b.Run(fmt.Sprintf("%s/%d", what, n), func(b *testing.B) {
				var u usage
				for b.Loop() {
					b.StopTimer()
					dir := b.TempDir()
					b.StartTimer()
					u.run(b, program, append([]string{dir, fmt.Sprint(n)}, also...)...)
				}
				u.report(b)
			})
		}
	}
}
