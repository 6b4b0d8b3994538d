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

// copyStep is copied between two checks of the context.
const copyStep = 64 << 20

// PrepareZip returns the path of a zip that unzip, which ignores the umask and
// decodes the names of some systems in its own way, unpacks with the checked
// names and with modes less the umask and special bits, unless preserve is set.
// That is path itself where it will do, else a copy in a TempDir. The caller
// calls remove when done. The zip must have passed Inspect.
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

// umask returns the umask of this process; only here it can be read without
// setting it.
func umask() (uint32, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("could not read the umask: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if text, found := strings.CutPrefix(line, "Umask:"); found {
			mask, err := strconv.ParseUint(strings.TrimSpace(text), 8, 32)
			return uint32(mask), err
		}
	}

	return 0, errors.New("could not read the umask: it is not in /proc/self/status")
}

// specialBits are setuid, setgid and sticky.
const specialBits = unix.S_ISUID | unix.S_ISGID | unix.S_ISVTX

// unixSystem marks an entry whose name and mode unzip takes unchanged.
const unixSystem = 3

// prepareDirectory changes the directory of a zip for PrepareZip. Systems whose
// modes unzip takes have them in the upper half of the attributes; for the
// others unzip uses the umask.
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

// dosMode returns the mode of an entry with attributes of DOS only.
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

// copyWith copies a file and replaces the bytes at an offset.
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
