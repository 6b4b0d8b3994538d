package watch

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func encode(wd int32, mask uint32, name string) []byte {
	out := binary.NativeEndian.AppendUint32(nil, uint32(wd))
	out = binary.NativeEndian.AppendUint32(out, mask)
	out = binary.NativeEndian.AppendUint32(out, 0)
	padded := (len(name) + 15) / 16 * 16
	out = binary.NativeEndian.AppendUint32(out, uint32(padded))

	return append(out, name+strings.Repeat("\x00", padded-len(name))...)
}

// FuzzEvents takes any buffer apart: each event is within it, and an end is reached.
func FuzzEvents(f *testing.F) {
	f.Add(append(encode(1, unix.IN_CREATE, "name"), encode(-1, unix.IN_Q_OVERFLOW, "")...))
	f.Add([]byte{1, 2, 3})
	f.Add(encode(1, 0, strings.Repeat("x", 255))[:40])
	f.Fuzz(func(t *testing.T, buffer []byte) {
		for len(buffer) > 0 {
			e, rest, err := nextEvent(buffer)
			if err != nil {
				if !errors.Is(err, errEvents) {
					t.Fatal(err)
				}
				return
			}
			if len(rest) >= len(buffer) || len(e.name) > len(buffer) || strings.ContainsRune(string(e.name), 0) {
				t.Fatalf("%d bytes left of %d, name %q", len(rest), len(buffer), e.name)
			}
			buffer = rest
		}
	})
}

func TestEvents(t *testing.T) {
	buffer := append(encode(3, unix.IN_CREATE|unix.IN_ISDIR, "name"), encode(-1, unix.IN_Q_OVERFLOW, "")...)
	first, rest, err := nextEvent(buffer)
	if err != nil || first.wd != 3 || string(first.name) != "name" || !first.has(entries) {
		t.Errorf("%+v, %v", first, err)
	}
	second, rest, err := nextEvent(rest)
	if err != nil || second.wd != -1 || len(second.name) != 0 || !second.has(unix.IN_Q_OVERFLOW) || len(rest) != 0 {
		t.Errorf("%+v, %v, %d bytes left", second, err, len(rest))
	}
}

// TestUnwanted: events of unwatched names cost nothing.
func TestUnwanted(t *testing.T) {
	f := newFiles(nil)
	f.inotify = &inotify{dirs: map[int32]*dir{1: {wd: 1, hops: map[string][]pass{"wanted": nil}}}, noise: newNoise()}
	buffer := encode(1, unix.IN_MODIFY, "unwanted")
	if allocations := testing.AllocsPerRun(100, func() { f.handle(buffer) }); allocations != 0 {
		t.Errorf("%v allocations for an event that nobody wants", allocations)
	}
}
