package outbox

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// cursor is the file that says how far the reports are handed over. It is not
// synced: after a power failure some reports are delivered again, which the
// stream finds out by their ids or their readers by seq.
type cursor struct{ f *os.File }

const cursorSize = 12

func openCursor(dir string) (cursor, uint64, error) {
	f, err := os.OpenFile(filepath.Join(dir, "cursor"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return cursor{}, 0, err
	}
	var b [cursorSize]byte
	if _, err := f.ReadAt(b[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return cursor{}, 0, errors.Join(err, f.Close())
	}
	seq := binary.BigEndian.Uint64(b[:])
	if binary.BigEndian.Uint32(b[8:]) != cursorSum(b[:8]) {
		seq = 0
	}

	return cursor{f}, seq, nil
}

func cursorSum(b []byte) uint32 { return checksum(append(append([]byte{}, b...), magic...)) }

func (c cursor) write(seq uint64) error {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, cursorSize), seq)
	b = binary.BigEndian.AppendUint32(b, cursorSum(b))
	_, err := c.f.WriteAt(b, 0)

	return err
}

func (c cursor) close() error { return c.f.Close() }
