package host

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// copyStep is how much of a file is copied before the context is asked again.
const copyStep = 64 << 20

// MaskZip is for unzip, which gives an entry the mode that is in the zip whatever
// the umask. It gives the path of a zip whose modes are less the umask: path
// itself when there is nothing to take away, else a copy in a directory of
// TempDir. The caller calls remove when it is done with it. Of path it needs that
// Inspect has let it pass.
func (h *Host) MaskZip(ctx context.Context, path string) (masked string, remove func() error, err error) {
	remove = func() error { return nil }
	mask, err := umask()
	if err != nil {
		return "", remove, err
	}
	f, st, err := openRegular(path)
	if err != nil {
		return "", remove, err
	}
	defer f.Close()
	directory, at, err := zipDirectory(f, st.Size, -1)
	if err != nil {
		return "", remove, err
	}
	changed, err := maskModes(directory, mask)
	if err != nil || !changed {
		return path, remove, err
	}
	dir, err := h.TempDir("zip")
	if err != nil {
		return "", remove, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	masked = filepath.Join(dir, "masked.zip")
	if err := copyWith(ctx, f, masked, directory, at); err != nil {
		return "", func() error { return nil }, errors.Join(fmt.Errorf("could not copy the zip to take away what the umask denies: %w", err), remove())
	}

	return masked, remove, nil
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

// maskModes takes away what the umask denies, and special bits, from the modes in
// the directory of a zip. Every system that unzip takes modes from has them in
// the upper half of the attributes; for the others it goes by the umask itself.
func maskModes(directory []byte, mask uint32) (changed bool, err error) {
	for len(directory) > 0 {
		if len(directory) < centralLength {
			return false, ambiguous("its directory is longer than it says")
		}
		attrs := binary.LittleEndian.Uint32(directory[38:])
		if denied := (mask | specialBits) << 16; attrs&denied != 0 {
			binary.LittleEndian.PutUint32(directory[38:], attrs&^denied)
			changed = true
		}
		length := centralLength
		for _, at := range []int{28, 30, 32} {
			length += int(binary.LittleEndian.Uint16(directory[at:]))
		}
		directory = directory[min(length, len(directory)):]
	}

	return changed, nil
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
