package writers

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// place is a name in a directory, identified by its file system and handle.
type place struct{ dir, name string }

// event is one change in a directory.
type event struct {
	place
	pid int
	// pidfd is the process of the event, gonePidfd or noPidfd.
	pidfd int
}

const (
	// gonePidfd means that the process has ended.
	gonePidfd = unix.FAN_NOPIDFD
	// noPidfd means that the kernel could not open the process or does not support it.
	noPidfd = unix.FAN_EPIDFD
)

// The layout of events: struct fanotify_event_metadata, then records of type, padding,
// length, and for a name struct __kernel_fsid_t and struct file_handle.
const (
	offsetVersion  = 4
	offsetHeader   = 6
	offsetPID      = 20
	recordHeader   = 4
	handleHeader   = 16
	offsetHandleOf = 8
)

// parse returns the events of a buffer that it understands. An event without a name, such as an overflow of
// the queue, has an empty place.
func parse(buf []byte) []event {
	var out []event
	for len(buf) >= unix.FAN_EVENT_METADATA_LEN {
		length, header := int(u32(buf)), int(binary.NativeEndian.Uint16(buf[offsetHeader:]))
		if buf[offsetVersion] != unix.FANOTIFY_METADATA_VERSION || length > len(buf) || header < unix.FAN_EVENT_METADATA_LEN || header > length {
			break
		}
		e := event{pid: i32(buf[offsetPID:]), pidfd: noPidfd}
		e.records(buf[header:length])
		out = append(out, e)
		buf = buf[length:]
	}

	return out
}

// records parses the name and the process of an event.
func (e *event) records(buf []byte) {
	for len(buf) >= recordHeader {
		kind, length := buf[0], int(binary.NativeEndian.Uint16(buf[2:]))
		if length < recordHeader || length > len(buf) {
			return
		}
		body := buf[recordHeader:length]
		switch kind {
		case unix.FAN_EVENT_INFO_TYPE_DFID_NAME:
			e.place = placeOf(body)
		case unix.FAN_EVENT_INFO_TYPE_PIDFD:
			if len(body) >= 4 {
				e.pidfd = i32(body)
			}
		}
		buf = buf[length:]
	}
}

// placeOf parses a directory and the name in it.
func placeOf(body []byte) place {
	if len(body) < handleHeader {
		return place{}
	}
	end := uint64(handleHeader) + uint64(u32(body[offsetHandleOf:]))
	if end > uint64(len(body)) {
		return place{}
	}
	name, _, _ := bytes.Cut(body[end:], []byte{0})

	return place{dir: string(body[:end]), name: string(name)}
}

func u32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }

func i32(b []byte) int { return int(int32(u32(b))) }
