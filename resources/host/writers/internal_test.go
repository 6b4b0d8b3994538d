package writers

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/testing/actor"
)

func TestUnitOf(t *testing.T) {
	for _, c := range []struct{ cgroup, want string }{
		{"0::/system.slice/nginx.service\n", "nginx.service"},
		{"0::/system.slice/system-getty.slice/getty@tty1.service\n", "getty@tty1.service"},
		{"0::/init.scope\n", "init.scope"},
		{"0::/user.slice/user-1000.slice/session-3.scope\n", "session-3.scope"},
		{"0::/system.slice/nginx.service (deleted)\n", ""},
		// A user's processes are named below their manager.
		{"0::/user.slice/user-1000.slice/user@1000.service/app.slice/nginx.service\n", "user@1000.service"},
		{"0::/user.slice/user-1000.slice/user@1000.service/a\n:name=systemd:/system.slice/nginx.service\n", "user@1000.service"},
		{"12:cpu:/a.service\n1:name=systemd:/system.slice/_cpu.service\n", "cpu.service"},
		{"12:pids:/\n0::/\n", ""},
		{"0::/../b.service\n", ""},
		{"0::/docker/0123\n", ""},
		{"", ""},
	} {
		if got := unitOf(c.cgroup); got != c.want {
			t.Errorf("%q is of %q, want %q", c.cgroup, got, c.want)
		}
	}
}

func TestPrintable(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"nginx", "nginx"},
		{"a b", "a b"},
		{"\x1b]0;x\a", "?]0;x?"},
		{"a\nb\tc\x7f", "a?b?c?"},
		{"größe", "gr????e"},
		{strings.Repeat("x", 40), strings.Repeat("x", maxName)},
		{"\n", "?"},
		{"", ""},
	} {
		if got := printable(c.text, maxName); got != c.want {
			t.Errorf("%q is shown as %q, want %q", c.text, got, c.want)
		}
	}
}

func TestEffectiveUser(t *testing.T) {
	for _, c := range []struct {
		status string
		want   int
	}{
		{"Name:\tUid:\\n0\nUid:\t1000\t33\t33\t33\n", 33},
		{"Name:\tx\n", -1},
		{"Uid:\tx\ty\n", -1},
		{"", -1},
	} {
		if got := effectiveUser(c.status); got != c.want {
			t.Errorf("%q is of %d, want %d", c.status, got, c.want)
		}
	}
}

// TestIdentifyByADescriptor does not name a new process with the number of an ended one.
func TestIdentifyByADescriptor(t *testing.T) {
	a := actor.Play(t, "writer", "hold", os.DevNull)
	pid := a.PID()
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	if w := identifyBy(pid, pidfd); w.PID != pid || w.Name == "" || w.How != byFanotify {
		t.Errorf("while it runs: %+v", w)
	}
	if w := identifyBy(pid, gonePidfd); w.Name != "" || w.String() != fmt.Sprintf("pid %d, already gone", pid) {
		t.Errorf("another with its number: %+v", w)
	}
	a.Kill()
	gone := writer{PID: os.Getpid(), UID: -1, How: byFanotify}
	if w := identifyBy(os.Getpid(), pidfd); w != gone {
		t.Errorf("its number is that of another: %+v", w)
	}
}

// TestSearchesEnd has more descriptors to look at than there is time for.
func TestSearchesEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "motd")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	actor.Play(t, "writer", "hold", path)
	l, err := Listen(t.Context(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	l.time = time.Nanosecond
	for range 2 {
		if seen := l.Seen(); len(seen) != 0 {
			t.Errorf("found in no time: %v", seen)
		}
		awaitSearch(l)
	}
	if l.time > 0 || l.searching {
		t.Errorf("it may search for another %v, and searches: %v", l.time, l.searching)
	}
	l.Close()
	if l.time = searchTime; l.Seen() != nil || l.searching {
		t.Error("it searches after it was closed")
	}
}

// awaitSearch waits until no search is under way.
func awaitSearch(l *Listener) {
	for searching := true; searching; {
		runtime.Gosched()
		l.mu.Lock()
		searching = l.searching
		l.mu.Unlock()
	}
}

// TestSearchCutShort has no time to come to the process that an earlier search has found.
func TestSearchCutShort(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "motd")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	actor.Play(t, "writer", "hold", path)
	l, err := Listen(t.Context(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.time = time.Hour
	l.Seen()
	awaitSearch(l)
	l.time = time.Nanosecond
	l.Seen()
	awaitSearch(l)
	if seen := l.Seen(); len(seen) != 1 {
		t.Errorf("seen %q", seen)
	}
}

func TestRemember(t *testing.T) {
	loop := writer{Path: "/a", Name: "sh", Exe: "/bin/sh", UID: 33, How: byFanotify}
	with := func(w writer, pid int) writer { w.PID = pid; return w }
	var seen []writer
	for _, w := range []writer{
		with(loop, 1), with(writer{Path: "/a", UID: -1, How: byFanotify}, 9), with(loop, 2),
		with(writer{Path: "/a", UID: -1, How: byFanotify}, 2), // the same, at its end
		with(writer{Path: "/b", UID: -1, How: byFanotify}, 2), with(writer{Path: "/b", UID: -1, How: byFanotify}, 3),
	} {
		seen = remember(seen, w)
	}
	want := []writer{{Path: "/b", PID: 3, UID: -1, How: byFanotify}, with(loop, 2), {Path: "/a", PID: 9, UID: -1, How: byFanotify}}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("remembered %v, want %v", seen, want)
	}
	for i := range 2 * maxWriters {
		seen = remember(seen, writer{Name: fmt.Sprint(i), Exe: "x"})
	}
	if len(seen) != maxWriters || seen[0].Name != fmt.Sprint(2*maxWriters-1) {
		t.Errorf("remembered %v", seen)
	}
	if got := with(loop, 7).String(); got != "sh (pid 7, /bin/sh, user 33)" {
		t.Error(got)
	}
}

// sample is an event of a file in a directory, as the kernel lays it out.
func sample(name string, pid, pidfd int32) []byte {
	order := binary.NativeEndian
	body := order.AppendUint64(nil, 7)    // file system
	body = order.AppendUint32(body, 4)    // length of the handle
	body = order.AppendUint32(body, 1)    // its type
	body = append(body, 0xa, 0xb, 0xc, 0) // the handle
	body = append(body, name...)
	body = append(body, make([]byte, 4-len(name)%4)...)
	records := order.AppendUint16([]byte{unix.FAN_EVENT_INFO_TYPE_DFID_NAME, 0}, uint16(recordHeader+len(body)))
	records = append(records, body...)
	records = order.AppendUint16(append(records, unix.FAN_EVENT_INFO_TYPE_PIDFD, 0), recordHeader+4)
	records = order.AppendUint32(records, uint32(pidfd))
	out := order.AppendUint32(nil, uint32(unix.FAN_EVENT_METADATA_LEN+len(records)))
	out = append(out, unix.FANOTIFY_METADATA_VERSION, 0)
	out = order.AppendUint16(out, unix.FAN_EVENT_METADATA_LEN)
	out = order.AppendUint64(out, unix.FAN_MODIFY)
	out = order.AppendUint32(out, ^uint32(0)) // no descriptor of the file
	out = order.AppendUint32(out, uint32(pid))

	return append(out, records...)
}

func TestParse(t *testing.T) {
	dir := string(sample("", 0, 0)[unix.FAN_EVENT_METADATA_LEN+recordHeader:][:handleHeader+4])
	want := []event{{place{dir, "motd"}, 12, 5}, {place{dir, "hosts"}, 13, gonePidfd}}
	buf := append(sample("motd", 12, 5), sample("hosts", 13, -1)...)
	if got := parse(buf); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("parsed %+v", got)
	}
	for n := range len(buf) {
		if got := parse(buf[:n]); len(got) > 1 || len(got) == 1 && got[0] != want[0] {
			t.Errorf("of %d bytes %+v", n, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample("motd", 12, 5))
	f.Add(append(sample("a", 1, -1), sample("b", 2, -2)...))
	f.Add(bytes.Repeat([]byte{255}, 64))
	f.Fuzz(func(t *testing.T, buf []byte) {
		events := parse(buf)
		if len(events) > len(buf)/unix.FAN_EVENT_METADATA_LEN {
			t.Errorf("%d events in %d bytes", len(events), len(buf))
		}
		for _, e := range events {
			if strings.ContainsRune(e.name, 0) {
				t.Errorf("a name with a zero: %q", e.name)
			}
		}
	})
}

// TestSeenNamesWhoIsLeft first, and among ended processes the one in the file's directory.
func TestSeenNamesWhoIsLeft(t *testing.T) {
	t.Parallel()
	l := &Listener{
		targets: []target{{path: "/home/u/a", owner: 1000}},
		seen:    []writer{{Path: "/home/u/a", PID: 7, UID: -1}, {Path: "/home/u/a", PID: 8, Name: "vi", UID: 1000}},
	}
	if got, want := l.Seen(), []string{"vi (pid 8, user 1000)", "pid 7, already gone, in a directory of user 1000"}; !slices.Equal(got, want) {
		t.Errorf("%q was seen, not %q", got, want)
	}
}
