package watch

import (
	"bytes"
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"
)

// event is an inotify event. The name points into the read buffer. It is empty for an event of the directory
// itself.
type event struct {
	wd   int32
	mask uint32
	name []byte
}

var errEvents = errors.New("events of inotify that cannot be read")

// nextEvent returns the first event of a buffer.
func nextEvent(buffer []byte) (e event, rest []byte, err error) {
	if len(buffer) < unix.SizeofInotifyEvent {
		return e, nil, errEvents
	}
	e.wd = int32(binary.NativeEndian.Uint32(buffer))
	e.mask = binary.NativeEndian.Uint32(buffer[4:])
	length := uint64(binary.NativeEndian.Uint32(buffer[12:]))
	buffer = buffer[unix.SizeofInotifyEvent:]
	if length > uint64(len(buffer)) {
		return e, nil, errEvents
	}
	e.name = buffer[:length]
	if end := bytes.IndexByte(e.name, 0); end >= 0 {
		e.name = e.name[:end]
	}

	return e, buffer[length:], nil
}

// has reports whether the event is one of kinds.
func (e event) has(kinds uint32) bool { return e.mask&kinds != 0 }

// entries are the events after which a name may refer to another file.
const entries = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
