package archive

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/musterfleet/muster/resources/host/files"
	"golang.org/x/sys/unix"
)

// copyStep is how much of a file is copied before the context is asked again.
const copyStep = 64 << 20

// PrepareZip is for unzip, which goes by no umask, and writes the names of some
// systems in another alphabet than was judged. It gives the path of a zip from
// which unzip makes the names that are in it, with modes less the umask and
// special bits unless they are to be preserved: path itself when it is such a
// zip, else a copy in a directory of TempDir. The caller calls remove when it is
// done with it. Of path it needs that Inspect has let it pass.
func PrepareZip(ctx context.Context, disk *files.Disk, path string, preserve bool) (prepared string, remove func() error, err error) {
	remove = func() error { return nil }
	mask, err := umask()
	if err != nil {
		return "", remove, err
	}
	f, err := files.Open(path)
	if err != nil {
		return "", remove, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", remove, err
	}
	directory, at, err := zipDirectory(f, info.Size(), -1)
	if err != nil {
		return "", remove, err
	}
	changed, err := prepareDirectory(directory, mask, preserve)
	if err != nil || !changed {
		return path, remove, err
	}
	dir, err := disk.TempDir("zip")
	if err != nil {
		return "", remove, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	prepared = filepath.Join(dir, "prepared.zip")
	if err := copyWith(ctx, f, prepared, directory, at); err != nil {
		return "", func() error { return nil }, errors.Join(fmt.Errorf("could not copy the zip for unzip: %w", err), remove())
	}

	return prepared, remove, nil
}

// umask gives the one of this process, which the system only tells this way
// without changing it.
func umask() (uint32, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("could not find out the umask: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if text, found := strings.CutPrefix(line, "Umask:"); found {
			mask, err := strconv.ParseUint(strings.TrimSpace(text), 8, 32)
			return uint32(mask), err
		}
	}

	return 0, errors.New("could not find out the umask: /proc/self/status does not have it")
}

// specialBits are setuid, setgid and sticky.
const specialBits = unix.S_ISUID | unix.S_ISGID | unix.S_ISVTX

// unixSystem is the system of a zip entry whose name and mode unzip takes as they are.
const unixSystem = 3

// prepareDirectory changes the directory of a zip as PrepareZip says. Every
// system that unzip takes modes from has them in the upper half of the
// attributes; for the others it goes by the umask itself.
func prepareDirectory(directory []byte, mask uint32, preserve bool) (changed bool, err error) {
	denied := mask | specialBits
	if preserve {
		denied = 0
	}
	for len(directory) > 0 {
		if len(directory) < centralLength {
			return false, ambiguous("its directory is longer than it says")
		}
		length := centralLength
		for _, at := range []int{28, 30, 32} {
			length += int(binary.LittleEndian.Uint16(directory[at:]))
		}
		entry := directory[:min(length, len(directory))]
		directory = directory[len(entry):]
		name := entry[centralLength:min(centralLength+int(binary.LittleEndian.Uint16(entry[28:])), len(entry))]
		attrs := binary.LittleEndian.Uint32(entry[38:])
		wanted := attrs
		if entry[5] != unixSystem && bytes.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) {
			entry[5], changed = unixSystem, true
			if attrs>>16 == 0 {
				wanted |= dosMode(name, attrs) &^ mask << 16
			}
		}
		if wanted &^= denied << 16; wanted != attrs {
			binary.LittleEndian.PutUint32(entry[38:], wanted)
			changed = true
		}
	}

	return changed, nil
}

// dosMode gives the mode of an entry that only has attributes of DOS.
func dosMode(name []byte, attrs uint32) uint32 {
	const readOnly, directory = 0x01, 0x10
	switch {
	case attrs&directory != 0 || bytes.HasSuffix(name, []byte("/")):
		return unix.S_IFDIR | 0o777
	case attrs&readOnly != 0:
		return unix.S_IFREG | 0o444
	default:
		return unix.S_IFREG | 0o666
	}
}

// copyWith copies a file, with other bytes at a place of it.
func copyWith(ctx context.Context, source *os.File, path string, with []byte, at int64) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	for err == nil {
		if err = context.Cause(ctx); err == nil {
			_, err = io.CopyN(out, source, copyStep)
		}
	}
	if errors.Is(err, io.EOF) {
		_, err = out.WriteAt(with, at)
	}

	return errors.Join(err, out.Close())
}
