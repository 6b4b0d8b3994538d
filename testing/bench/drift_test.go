package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
)

const (
	drifts = 1000 // of each size
	// turns is how often the agent and the C program take turns, so that both meet
	// the same load of the machine.
	turns = 10
	// driftWait bounds the wait for one repair.
	driftWait = time.Minute
)

// driftContent is what each file has.
var driftContent = strings.Repeat("x", contentSize)

// BenchmarkDrift writes to one file after another that an agent holds, and waits until
// that is repaired and reported. Beside it a C program repairs as many files of another
// directory. Times are from before the write until another file is there (seen), until
// that is synced as well (durable; both programs tell when), and until the stream has
// stored the reports of the resource and of the run.
func BenchmarkDrift(b *testing.B) {
	muster, floor := build(b), buildFloor(b)
	for _, c := range []struct {
		files    int
		flapping string
	}{{1, "off"}, {1000, "off"}, {1000, ""}, {20000, "off"}, {20000, ""}} {
		name := fmt.Sprintf("%d", c.files)
		if c.flapping != "" {
			name += "/flapping=" + c.flapping
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				measureDrift(b, muster, floor, c.files, c.flapping)
			}
		})
	}
}

func measureDrift(b *testing.B, muster, floor string, files int, flapping string) {
	b.Helper()
	held, other := newDrifting(b, files), newDrifting(b, files)
	a := holding(b, muster, held.dir, files, flapping, driftContent)
	other.fill(b)
	c := runFloor(b, floor, other.dir)
	held.watch(b)
	other.watch(b)
	var took, floorTook times
	var spent time.Duration
	for turn := range turns {
		before := cpu(b, a.pid)
		for i := range drifts / turns {
			began := held.drift(b, turn*drifts/turns+i)
			took.seen = append(took.seen, held.repaired(b).Sub(began))
			durable, stored := a.repaired(b, held.name())
			took.durable, took.reported = append(took.durable, durable.Sub(began)), append(took.reported, stored.Sub(began))
		}
		spent += cpu(b, a.pid) - before
		for i := range drifts / turns {
			began := other.drift(b, turn*drifts/turns+i)
			floorTook.seen = append(floorTook.seen, other.repaired(b).Sub(began))
			floorTook.durable = append(floorTook.durable, c.repaired(b).Sub(began))
		}
	}
	percentiles(b, took.seen, "seen")
	percentiles(b, took.durable, "durable")
	percentiles(b, took.reported, "reported")
	percentiles(b, floorTook.seen, "C-seen")
	percentiles(b, floorTook.durable, "C-durable")
	b.ReportMetric(float64(spent.Microseconds())/drifts, "cpu-µs/drift")
}

// BenchmarkDriftBesideExec measures drift of 1,000 files while a command of another manifest runs, and
// while one of the same manifest does.
func BenchmarkDriftBesideExec(b *testing.B) {
	muster := build(b)
	for _, name := range []string{"other", "site"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				measureDriftBesideExec(b, muster, name)
			}
		})
	}
}

func measureDriftBesideExec(b *testing.B, muster, name string) {
	b.Helper()
	const files = 1000
	d := newDrifting(b, files)
	a := holding(b, muster, d.dir, files, "off", driftContent)
	end := a.runExec(b, name, held(d.dir, files, "off", driftContent))
	d.watch(b)
	var took times
	for i := range drifts {
		began := d.drift(b, i)
		took.seen = append(took.seen, d.repaired(b).Sub(began))
		durable, stored := a.repaired(b, d.name())
		took.durable, took.reported = append(took.durable, durable.Sub(began)), append(took.reported, stored.Sub(began))
	}
	end()
	percentiles(b, took.seen, "seen")
	percentiles(b, took.durable, "durable")
	percentiles(b, took.reported, "reported")
}

// runExec has the agent run a command, of the manifest that it has or of another, until end is called.
func (a *agent) runExec(b *testing.B, name, site string) (end func()) {
	b.Helper()
	dir := b.TempDir()
	began, until := filepath.Join(dir, "began"), filepath.Join(dir, "until")
	for _, fifo := range []string{began, until} {
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	command := fmt.Sprintf("  - exec:\n    - long: {command: %q}\n", fmt.Sprintf("sh -c 'echo >%s; read x <%s'", began, until))
	if name == "site" {
		a.put(b, name, site+command)
	} else {
		a.put(b, name, "muster:\n  resources:\n"+command)
	}
	if _, err := os.ReadFile(began); err != nil { // until the command opens it
		b.Fatal(err)
	}

	return func() {
		if err := os.WriteFile(until, []byte("now\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		for {
			if r := a.report(b); r.kind == model.KindRun {
				if r.run.Cause == model.CauseDrift || r.run.Counts.Made() != 1 {
					b.Fatalf("instead of the run of the command: %+v", r.run)
				}
				return
			}
		}
	}
}

// BenchmarkPut measures from before a manifest of one file is put, to the key of the node, until the file
// is replaced.
func BenchmarkPut(b *testing.B) {
	const puts = 300
	muster := build(b)
	for b.Loop() {
		d := newDrifting(b, 1)
		a := holding(b, muster, d.dir, 1, "", d.content)
		d.watch(b)
		var took []time.Duration
		for i := range puts {
			d.content = fmt.Sprintf("version %d", i)
			manifest := held(d.dir, 1, "", d.content)
			began := time.Now()
			a.put(b, "site", manifest)
			took = append(took, d.repaired(b).Sub(began))
		}
		percentiles(b, took, "applied")
	}
}

// times are how long repairs took.
type times struct{ seen, durable, reported []time.Duration }

// percentiles reports p50 and p99 in milliseconds.
func percentiles(b *testing.B, all []time.Duration, what string) {
	slices.Sort(all)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(all[(len(all)-1)*p/100].Microseconds())/1000, fmt.Sprintf("%s-p%d-ms", what, p))
	}
}

// repaired waits for the reports of a repair of a file, and returns when it was
// repaired, and when both of them were stored.
func (a *agent) repaired(b *testing.B, path string) (durable, stored time.Time) {
	b.Helper()
	for {
		switch r := a.report(b); r.kind {
		case model.KindTransaction:
			if r.transaction.Name != path || r.transaction.Drift == nil || r.transaction.Failed {
				b.Fatalf("instead of the repair of %s: %+v", path, r.transaction)
			}
			durable = r.transaction.Drift.RepairedAt
		case model.KindRun:
			if r.run.Cause != model.CauseDrift || r.run.Drift.Repaired != 1 {
				b.Fatalf("instead of the repair of %s: %+v", path, r.run)
			}
			return durable, r.at
		}
	}
}

// drifting is a directory of files with a watch that reports when a file is replaced.
type drifting struct {
	dir string
	// content is what replaces it.
	content      string
	files, which int
	inotify      int
}

// newDrifting makes the directory. Its name is short: a manifest has it 20,000 times.
func newDrifting(b *testing.B, files int) *drifting {
	b.Helper()
	dir, err := os.MkdirTemp("", "d")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })

	return &drifting{dir: dir, content: driftContent, files: files}
}

// fill makes the files.
func (d *drifting) fill(b *testing.B) {
	b.Helper()
	for i := range d.files {
		if err := os.WriteFile(filepath.Join(d.dir, heldName(i)), []byte(driftContent), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

func (d *drifting) watch(b *testing.B) {
	b.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, d.dir, unix.IN_MOVED_TO); err != nil {
		b.Fatal(err)
	}
	d.inotify = fd
}

func (d *drifting) name() string { return filepath.Join(d.dir, heldName(d.which)) }

// drift writes into the next of the files, and returns when that began.
func (d *drifting) drift(b *testing.B, i int) time.Time {
	b.Helper()
	d.which = i % min(d.files, drifts)
	if d.files > drifts {
		d.which *= d.files / drifts
	}
	f, err := os.OpenFile(d.name(), os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if _, err = f.WriteAt([]byte("drift"), 0); err == nil {
		err = f.Close()
	}
	if err != nil {
		b.Fatal(err)
	}

	return began
}

// repaired waits until the file is replaced, and returns when.
func (d *drifting) repaired(b *testing.B) time.Time {
	b.Helper()
	buffer := make([]byte, 1<<16)
	for {
		ready := []unix.PollFd{{Fd: int32(d.inotify), Events: unix.POLLIN}}
		n, err := unix.Poll(ready, int(driftWait.Milliseconds()))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || n == 0:
			b.Fatalf("%s is not repaired: %v", d.name(), err)
		}
		at := time.Now()
		n, err = unix.Read(d.inotify, buffer)
		if err != nil {
			b.Fatal(err)
		}
		for events := buffer[:n]; len(events) > 0; {
			e := (*unix.InotifyEvent)(unsafe.Pointer(&events[0]))
			name := events[unix.SizeofInotifyEvent : unix.SizeofInotifyEvent+e.Len]
			events = events[unix.SizeofInotifyEvent+e.Len:]
			if string(bytes.TrimRight(name, "\x00")) != heldName(d.which) {
				continue
			}
			if content, err := os.ReadFile(d.name()); err != nil || string(content) != d.content {
				b.Fatalf("%s has %q, %v", d.name(), content, err)
			}
			return at
		}
	}
}

// buildFloor compiles the C program.
func buildFloor(b *testing.B) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "drift")
	if text, err := exec.Command("gcc", "-O2", "-o", program, "testdata/drift.c").CombinedOutput(); err != nil {
		b.Fatalf("%v: the benchmark needs gcc and the headers of libc (apt-get install gcc libc6-dev)\n%s", err, text)
	}

	return program
}

// cFloor is the C program at work.
type cFloor struct{ lines *bufio.Scanner }

func runFloor(b *testing.B, program, dir string) cFloor {
	b.Helper()
	cmd := exec.Command(program, dir, driftContent)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	f := cFloor{bufio.NewScanner(out)}
	f.line(b)

	return f
}

func (f cFloor) line(b *testing.B) string {
	b.Helper()
	if !f.lines.Scan() {
		b.Fatalf("the C program ended: %v", f.lines.Err())
	}

	return f.lines.Text()
}

// repaired waits for a repair, and returns when it was made.
func (f cFloor) repaired(b *testing.B) time.Time {
	b.Helper()
	nanoseconds, err := strconv.ParseInt(f.line(b), 10, 64)
	if err != nil {
		b.Fatal(err)
	}

	return time.Unix(0, nanoseconds)
}
