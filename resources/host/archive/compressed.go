package archive

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// maxWindow is the most that a decompressor keeps in memory: xz -9 needs 64 MiB, and
// zstd --long 128 MiB.
const maxWindow = 128 << 20

// Detect returns the format of a content by its first bytes, zero for none. It needs 512
// bytes of a tar without compression.
func Detect(start []byte) Format {
	for _, known := range []struct {
		magic  string
		format Format
	}{
		{"\x1f\x8b", TarGz}, {"BZh", TarBz2}, {"\xfd7zXZ\x00", TarXz}, {"\x28\xb5\x2f\xfd", TarZst}, {"PK\x03\x04", Zip}, {"PK\x05\x06", Zip},
	} {
		if bytes.HasPrefix(start, []byte(known.magic)) {
			return known.format
		}
	}
	if isTarHeader(start) {
		return Tar
	}

	return 0
}

// isTarHeader reports whether a block has the checksum of a tar header, or is empty as the
// first block of a tar without entries.
func isTarHeader(block []byte) bool {
	const size, at, length = 512, 148, 8
	if len(block) < size {
		return false
	}
	sum := int64(length * ' ')
	for i, b := range block[:size] {
		if i < at || i >= at+length {
			sum += int64(b)
		}
	}
	text := bytes.Trim(block[at:at+length], " \x00")
	want, err := strconv.ParseInt(string(text), 8, 64)

	return err == nil && want == sum || sum == length*' ' && len(text) == 0
}

// detect returns the format of the archive.
func (a *Archive) detect() Format {
	var start [512]byte
	n, _ := a.file.ReadAt(start[:], 0)

	return Detect(start[:n])
}

// decompress returns the content of a compressed tar. The caller calls closed when it is done.
func decompress(source io.Reader, format Format) (content io.Reader, closed func(), err error) {
	in := buffered(source)
	closed = func() {}
	switch format {
	case TarGz:
		content, err = gzip.NewReader(in)
	case TarBz2:
		content = bzip2.NewReader(in)
	case TarXz:
		if err = checkWindow(in); err == nil {
			content, err = xz.NewReader(in)
		}
	default:
		var d *zstd.Decoder
		d, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			content, closed = d, d.Close
		}
	}
	if err != nil {
		return nil, nil, archiveError(err)
	}

	return content, closed, nil
}

// checkWindow refuses an xz that needs too much memory, by the header of its first block: a
// size, flags, sizes that may be absent, and the filter with its dictionary.
func checkWindow(in *bufio.Reader) error {
	const streamHeader, longest, lzma2 = 12, 1024, 0x21
	start, err := in.Peek(streamHeader + longest)
	if len(start) < streamHeader+2 {
		return err
	}
	flags, rest := start[streamHeader+1], start[streamHeader+2:]
	for _, present := range []byte{0x40, 0x80} {
		if flags&present == 0 {
			continue
		}
		_, n := binary.Uvarint(rest)
		if n <= 0 {
			return errors.New("the header of its first block is damaged")
		}
		rest = rest[n:]
	}
	if len(rest) < 3 || rest[0] != lzma2 {
		return nil // xz reads no other filter
	}
	// The last bit selects two or three times a power of two.
	if bits := rest[2]; bits > 40 || int64(2|bits&1)<<(bits/2+11) > maxWindow {
		return fmt.Errorf("its dictionary is larger than %d MiB", maxWindow>>20)
	}

	return nil
}

// eachCompressed visits the entries of a compressed tar. drain reads on to the checksum at
// its end.
func eachCompressed(source io.Reader, format Format, visit visitor, drain func(io.Reader) error) error {
	content, closed, err := decompress(source, format)
	if err != nil {
		return err
	}
	defer closed()
	whole := &endReader{r: content}
	if err := eachEntry(whole, visit); err != nil {
		return err
	}
	// The end mark shows that the archive was not cut between two entries. A gzip shows it itself.
	if whole.ended && format != TarGz {
		return fmt.Errorf("%w: the end mark is missing: the archive was cut short", ErrNotArchive)
	}

	return drain(content)
}
