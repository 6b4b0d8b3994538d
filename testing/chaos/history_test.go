package chaos

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// history counts the replacements of files as the kernel reports them: a replacement is a rename onto the
// file. It identifies files by the last part of their paths, which are unique and survive renamed
// directories.
type history struct {
	t    *testing.T
	file *os.File

	mu       sync.Mutex
	replaced map[string]int
	// noted has something in it when there is more to count.
	noted chan struct{}
}

// watchHistory watches directories until the test ends, also under other names.
func watchHistory(t *testing.T, dirs ...string) *history {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	h := &history{t: t, file: os.NewFile(uintptr(fd), "inotify"), replaced: map[string]int{}, noted: make(chan struct{}, 1)}
	for _, dir := range dirs {
		// Two equal events in a row are one. A file has a temporary name before it is renamed.
		if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_FROM|unix.IN_MOVED_TO); err != nil {
			t.Fatal(err)
		}
	}
	var reader sync.WaitGroup
	reader.Go(h.read)
	t.Cleanup(func() {
		_ = h.file.Close()
		reader.Wait()
	})

	return h
}

func (h *history) read() {
	buffer := make([]byte, 1<<16)
	for {
		n, err := h.file.Read(buffer)
		if err != nil {
			return // closed
		}
		h.note(buffer[:n])
		select {
		case h.noted <- struct{}{}:
		default:
		}
	}
}

func (h *history) note(events []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(events) > 0 {
		mask := binary.NativeEndian.Uint32(events[4:])
		length := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
		name := string(bytes.TrimRight(events[unix.SizeofInotifyEvent:length], "\x00"))
		events = events[length:]
		if mask&unix.IN_Q_OVERFLOW != 0 {
			h.t.Error("the history of the files has a gap: the test cannot judge")
		}
		if mask&unix.IN_MOVED_TO != 0 {
			h.replaced[name]++
		}
	}
}

// own takes back n replacements that the test itself makes.
func (h *history) own(path string, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.replaced[filepath.Base(path)] -= n
}

// count returns how often a file was replaced.
func (h *history) count(path string) int {
	h.mu.Lock()
	defer h.mu.Unlock()

	return h.replaced[filepath.Base(path)]
}

// awaitMore waits until a file was replaced more often than before.
func (h *history) awaitMore(path string, before int) {
	h.t.Helper()
	for end := time.After(patience); h.count(path) <= before; {
		select {
		case <-h.noted:
		case <-end:
			h.t.Fatalf("%s is not repaired after %s", path, patience)
		}
	}
}
