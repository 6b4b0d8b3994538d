package writers

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// group is a fanotify group. It marks directories and reports changes in them.
type group struct {
	fd   int
	file *os.File
	// files are the paths by their names in events.
	files map[place]string
}

const (
	// changes are the events of changed and replaced files.
	changes = unix.FAN_MODIFY | unix.FAN_CLOSE_WRITE | unix.FAN_ATTRIB | unix.FAN_CREATE | unix.FAN_DELETE |
		unix.FAN_MOVED_FROM | unix.FAN_MOVED_TO | unix.FAN_ONDIR | unix.FAN_EVENT_ON_CHILD
	// handleFid requests a handle that identifies a file without opening it (Linux 6.5).
	handleFid = 0x200
)

// newGroup returns nil if fanotify is not permitted or does not report names.
func newGroup() *group {
	const flags = unix.FAN_CLASS_NOTIF | unix.FAN_CLOEXEC | unix.FAN_NONBLOCK | unix.FAN_REPORT_DFID_NAME
	fd, err := unix.FanotifyInit(flags|unix.FAN_REPORT_PIDFD, unix.O_RDONLY|unix.O_CLOEXEC)
	if err == unix.EINVAL { // before Linux 5.15
		fd, err = unix.FanotifyInit(flags, unix.O_RDONLY|unix.O_CLOEXEC)
	}
	if err != nil {
		return nil
	}

	return &group{fd: fd, file: os.NewFile(uintptr(fd), "fanotify"), files: map[place]string{}}
}

func (g *group) close() { _ = g.file.Close() }

// mark starts events for a path in a directory. It fails on file systems that cannot identify directories;
// holders finds writers there.
func (g *group) mark(dir *paths.Dir, path string) {
	identity, err := identityOf(dir.Fd())
	if err == nil {
		err = unix.FanotifyMark(g.fd, unix.FAN_MARK_ADD|unix.FAN_MARK_ONLYDIR, changes, dir.Fd(), ".")
	}
	if err == nil {
		g.files[place{dir: identity, name: filepath.Base(path)}] = path
	}
}

// identityOf returns the identity of a directory in events: its file system and its handle.
func identityOf(fd int) (string, error) {
	var system unix.Statfs_t
	if err := paths.Retry(func() error { return unix.Fstatfs(fd, &system) }); err != nil {
		return "", err
	}
	handle, _, err := unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH|handleFid)
	if errors.Is(err, unix.EINVAL) {
		handle, _, err = unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH)
	}
	if err != nil {
		return "", err
	}
	out := binary.NativeEndian.AppendUint32(nil, uint32(system.Fsid.Val[0]))
	out = binary.NativeEndian.AppendUint32(out, uint32(system.Fsid.Val[1]))
	out = binary.NativeEndian.AppendUint32(out, uint32(handle.Size()))
	out = binary.NativeEndian.AppendUint32(out, uint32(handle.Type()))

	return string(append(out, handle.Bytes()...)), nil
}

// place is a name in a directory, identified by its file system and handle.
type place struct{ dir, name string }

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
