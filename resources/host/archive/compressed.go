package archive

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"fmt"
	"io"
	"strconv"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// maxWindow limits the memory of a decompressor: xz -9 needs 64 MiB, zstd --long 128 MiB.
const maxWindow = 128 << 20

// detect returns the format by the content, zero if it is unknown.
func (a *Archive) detect() Format {
	var block [512]byte
	n, _ := a.file.ReadAt(block[:], 0)
	start := block[:n]
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

// isTarHeader reports whether a block has the checksum of a tar header. An empty block counts:
// it begins a tar without entries.
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

// decompress returns the content of a compressed tar. The caller must call release.
func decompress(source io.Reader, format Format) (content io.Reader, release func(), err error) {
	in := buffered(source)
	release = func() {}
	switch format {
	case TarGz:
		content, err = gzip.NewReader(in)
	case TarBz2:
		content = bzip2.NewReader(in)
	case TarXz:
		content, err = xz.NewReader(in)
	default:
		var d *zstd.Decoder
		d, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			content, release = d, d.Close
		}
	}
	if err != nil {
		return nil, nil, archiveError(err)
	}

	return content, release, nil
}

// eachCompressed visits the entries of a compressed tar. drain then reads the rest, with the
// checksum.
func eachCompressed(source io.Reader, format Format, visit visitor, drain func(io.Reader) error) error {
	content, release, err := decompress(source, format)
	if err != nil {
		return err
	}
	defer release()
	end := &endReader{r: content}
	if err := eachEntry(end, visit); err != nil {
		return err
	}
	// Without the end mark, the tar may have been cut between two entries. gzip detects this itself.
	if end.ended && format != TarGz {
		return fmt.Errorf("%w: the end mark is missing: the archive was cut short", ErrNotArchive)
	}

	return drain(content)
}
