package archive

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

var errDamagedXZ = errors.New("its blocks are damaged")

// The sizes in the xz format, in bytes.
const (
	xzAlign  = 4
	xzHeader = 12 // of a stream
	xzFooter = 12
)

// checkXZ reads the structure of an xz file without decompressing it. It refuses a block with a
// dictionary larger than maxWindow, because the decompressor would allocate it.
func checkXZ(source io.Reader) error {
	x := xzWalk{in: buffered(source)}
	for {
		err := x.stream()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return archiveError(err)
		}
		// Zeroes may follow a stream.
		for {
			padding, err := x.in.Peek(xzAlign)
			if len(padding) == 0 {
				return nil
			}
			if err != nil || binary.LittleEndian.Uint32(padding) != 0 {
				break
			}
			if err := x.skip(xzAlign); err != nil {
				return err
			}
		}
	}
}

// xzWalk is a position in an xz file.
type xzWalk struct {
	in *bufio.Reader
	// read counts the bytes since the last alignment.
	read int64
}

// ReadByte reads one byte.
func (x *xzWalk) ReadByte() (byte, error) {
	b, err := x.in.ReadByte()
	x.read++

	return b, err
}

func (x *xzWalk) skip(n int) error {
	skipped, err := x.in.Discard(n)
	x.read += int64(skipped)

	return err
}

// align skips the padding.
func (x *xzWalk) align() error {
	n := int(-x.read & (xzAlign - 1))
	err := x.skip(n)
	x.read = 0

	return err
}

// stream reads a stream: a header, blocks, an index and a footer.
func (x *xzWalk) stream() error {
	header := make([]byte, xzHeader)
	if _, err := io.ReadFull(x.in, header); err != nil {
		return err
	}
	check := 0
	if kind := int(header[7] & 0xf); kind > 0 {
		check = 4 << ((kind - 1) / 3)
	}
	for {
		x.read = 0
		size, err := x.ReadByte()
		switch {
		case err != nil:
			return err
		case size == 0:
			return x.index()
		}
		if err := x.block(int(size), check); err != nil {
			return err
		}
	}
}

// block reads a block after the size of its header: the header, chunks of LZMA2, and a check.
func (x *xzWalk) block(size, check int) error {
	header := make([]byte, (size+1)*xzAlign-1)
	if _, err := io.ReadFull(x.in, header); err != nil {
		return err
	}
	if err := checkWindow(header); err != nil {
		return err
	}
	x.read = 0
	for {
		control, err := x.ReadByte()
		if err != nil {
			return err
		}
		var chunk [4]byte
		length, extra := chunk[:2], 1
		switch {
		case control == 0:
			return errors.Join(x.align(), x.skip(check))
		case control >= 0xc0:
			length, extra = chunk[:], 2 // with the properties
		case control >= 0x80:
			length = chunk[:]
		case control > 2:
			return errDamagedXZ
		}
		if _, err := io.ReadFull(x.in, length); err != nil {
			return err
		}
		x.read += int64(len(length))
		if err := x.skip(int(binary.BigEndian.Uint16(length[len(length)-2:])) + extra); err != nil {
			return err
		}
	}
}

// index reads the index after its first byte, and the footer.
func (x *xzWalk) index() error {
	records, err := binary.ReadUvarint(x)
	for range 2 * records {
		if err == nil {
			_, err = binary.ReadUvarint(x)
		}
		if err != nil {
			return err
		}
	}

	return errors.Join(err, x.align(), x.skip(xzAlign+xzFooter))
}

// checkWindow checks the header of a block: flags, two optional sizes, and the filter with its
// dictionary.
func checkWindow(header []byte) error {
	const lzma2 = 0x21
	flags, rest := header[0], header[1:]
	for _, present := range []byte{0x40, 0x80} {
		if flags&present == 0 {
			continue
		}
		_, n := binary.Uvarint(rest)
		if n <= 0 {
			return errDamagedXZ
		}
		rest = rest[n:]
	}
	if len(rest) < 3 || flags&3 != 0 || rest[0] != lzma2 {
		return errors.New("its filters are not supported")
	}
	// The size is 2 or 3 (by the lowest bit) times a power of two.
	if bits := rest[2]; bits > 40 || int64(2|bits&1)<<(bits/2+11) > maxWindow {
		return fmt.Errorf("its dictionary is larger than %d MiB", maxWindow>>20)
	}

	return nil
}
