package archive

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"strings"
)

const (
	// maxDirectory is the largest directory of a zip, which is kept in memory.
	maxDirectory = 64 << 20
	// The lengths of the fixed parts of a zip.
	localLength, centralLength, endLength, end64Length, locatorLength = 30, 46, 22, 56, 20
	// maxTail is the end record of a zip with the longest comment.
	maxTail = endLength + 1<<16
	// encrypted flags an entry that needs a password, streamed one whose sizes are
	// only in the directory.
	encrypted, streamed = 1, 8
	// unicodePath is the extra field with another name, which unzip prefers; zip64
	// holds 64 bit numbers.
	unicodePath, zip64 = 0x7075, 1
	// full marks a number that needs 64 bits.
	full16, full32 = 1<<16 - 1, 1<<32 - 1
)

// ambiguous returns the error of a zip that unzip may read in another way.
func ambiguous(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotArchive, fmt.Sprintf(format, args...))
}

// checkZip refuses a zip that can be read in more than one way: unzip must find
// the very directory, entries and content that were checked here.
func checkZip(r io.ReaderAt, size int64, files []*zip.File) error {
	directory, _, err := zipDirectory(r, size, len(files))
	if err != nil {
		return err
	}
	for _, entry := range files {
		if len(directory) < centralLength+len(entry.Name)+len(entry.Extra)+len(entry.Comment) {
			return ambiguous("its directory is longer than it says")
		}
		if err := checkLocal(r, entry, directory); err != nil {
			return fmt.Errorf("%q: %w", entry.Name, err)
		}
		directory = directory[centralLength+len(entry.Name)+len(entry.Extra)+len(entry.Comment):]
	}
	if len(directory) > 0 {
		return ambiguous("its directory is shorter than it says")
	}

	return nil
}

// zipDirectory returns the directory and its offset. It must end right before
// the end record and have as many entries as were read; files -1 allows any
// number.
func zipDirectory(r io.ReaderAt, size int64, files int) (directory []byte, start int64, err error) {
	tail := make([]byte, min(size, maxTail))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil {
		return nil, 0, archiveError(err)
	}
	at := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if at < 0 || len(tail)-at < endLength {
		return nil, 0, ambiguous("it has no end")
	}
	end, stands := tail[at:], size-int64(len(tail))+int64(at)
	if int(binary.LittleEndian.Uint16(end[20:])) != len(end)-endLength {
		return nil, 0, ambiguous("something follows its end")
	}
	disks, here := binary.LittleEndian.Uint32(end[4:]), uint64(binary.LittleEndian.Uint16(end[8:]))
	total := uint64(binary.LittleEndian.Uint16(end[10:]))
	bytesLong, offset := uint64(binary.LittleEndian.Uint32(end[12:])), uint64(binary.LittleEndian.Uint32(end[16:]))
	switch {
	case at >= locatorLength && bytes.HasPrefix(tail[at-locatorLength:], []byte("PK\x06\x07")):
		// A 32 bit number that is not full is a second one, so both must be equal.
		big, err := zip64End(r, tail[at-locatorLength:at], stands-locatorLength)
		if err != nil {
			return nil, 0, err
		}
		if here != big.entries && here != full16 || bytesLong != big.length && bytesLong != full32 || offset != big.offset && offset != full32 {
			return nil, 0, ambiguous("it has two ends")
		}
		here, total, bytesLong, offset = big.entries, big.entries, big.length, big.offset
		stands -= locatorLength + end64Length
	case here == full16 || bytesLong == full32 || offset == full32:
		return nil, 0, ambiguous("it has no end of 64 bits")
	}
	if disks != 0 || here != total || files >= 0 && total != uint64(files) || bytesLong > maxDirectory || offset > uint64(size) || offset+bytesLong != uint64(stands) {
		return nil, 0, ambiguous("its directory is not where it says")
	}
	directory = make([]byte, bytesLong)
	if _, err := r.ReadAt(directory, int64(offset)); err != nil {
		return nil, 0, archiveError(err)
	}

	return directory, int64(offset), nil
}

// bigEnd is the content of the 64 bit end record.
type bigEnd struct{ entries, length, offset uint64 }

// zip64End reads the 64 bit end record, which must be right before its locator.
func zip64End(r io.ReaderAt, locator []byte, at int64) (bigEnd, error) {
	end := make([]byte, end64Length)
	at -= end64Length
	if at < 0 || binary.LittleEndian.Uint64(locator[8:]) != uint64(at) || binary.LittleEndian.Uint32(locator[4:]) != 0 || binary.LittleEndian.Uint32(locator[16:]) != 1 {
		return bigEnd{}, ambiguous("its end of 64 bits is not where it says")
	}
	if _, err := r.ReadAt(end, at); err != nil {
		return bigEnd{}, archiveError(err)
	}
	b := bigEnd{entries: binary.LittleEndian.Uint64(end[24:]), length: binary.LittleEndian.Uint64(end[40:]), offset: binary.LittleEndian.Uint64(end[48:])}
	if !bytes.HasPrefix(end, []byte("PK\x06\x06")) || binary.LittleEndian.Uint64(end[4:]) != end64Length-12 ||
		binary.LittleEndian.Uint64(end[16:]) != 0 || b.entries != binary.LittleEndian.Uint64(end[32:]) {
		return bigEnd{}, ambiguous("its end of 64 bits is not one")
	}

	return b, nil
}

// checkLocal compares the header before an entry's content, which unzip uses,
// with the directory.
func checkLocal(r io.ReaderAt, entry *zip.File, central []byte) error {
	if err := checkZipName(entry.Name, entry.Extra); err != nil {
		return err
	}
	at, err := localOffset(entry, central)
	if err != nil {
		return err
	}
	content, err := entry.DataOffset()
	if err != nil {
		return archiveError(err)
	}
	if at > uint64(content) || content-int64(at) < localLength || content-int64(at) > localLength+2*full16 {
		return ambiguous("it is not where it says")
	}
	local := make([]byte, content-int64(at))
	if _, err := r.ReadAt(local, int64(at)); err != nil {
		return archiveError(err)
	}
	name := int(binary.LittleEndian.Uint16(local[26:]))
	if localLength+name+int(binary.LittleEndian.Uint16(local[28:])) != len(local) || string(local[localLength:localLength+name]) != entry.Name {
		return ambiguous("it has two names")
	}
	flags, method := binary.LittleEndian.Uint16(local[6:]), binary.LittleEndian.Uint16(local[8:])
	if (flags|entry.Flags)&encrypted != 0 {
		return fmt.Errorf("%w: it is encrypted", ErrEntryType)
	}
	if method != entry.Method || flags&streamed == 0 && !sameSizes(local, local[localLength+name:], entry) {
		return ambiguous("it has two kinds of content")
	}

	return checkZipName(entry.Name, local[localLength+name:])
}

// localOffset returns the offset of an entry. In the extra field it follows the
// sizes that need 64 bits.
func localOffset(entry *zip.File, central []byte) (uint64, error) {
	at := uint64(binary.LittleEndian.Uint32(central[42:]))
	if at != full32 {
		return at, nil
	}
	skip := 0
	for _, size := range [][]byte{central[20:], central[24:]} {
		if binary.LittleEndian.Uint32(size) == full32 {
			skip += 8
		}
	}
	for numbers := range extraFields(entry.Extra, zip64) {
		if len(numbers) >= skip+8 {
			return binary.LittleEndian.Uint64(numbers[skip:]), nil
		}
	}

	return 0, ambiguous("it is nowhere")
}

// sameSizes compares checksum and sizes; 64 bit sizes are in an extra field.
func sameSizes(local, extra []byte, entry *zip.File) bool {
	packed, unpacked := uint64(binary.LittleEndian.Uint32(local[18:])), uint64(binary.LittleEndian.Uint32(local[22:]))
	if packed == full32 || unpacked == full32 {
		for numbers := range extraFields(extra, zip64) {
			if len(numbers) >= 16 {
				unpacked, packed = binary.LittleEndian.Uint64(numbers), binary.LittleEndian.Uint64(numbers[8:])
				break
			}
		}
	}

	return binary.LittleEndian.Uint32(local[14:]) == entry.CRC32 && packed == entry.CompressedSize64 && unpacked == entry.UncompressedSize64
}

// extraFields returns the fields of a tag.
func extraFields(extra []byte, tag uint16) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(extra) >= 4 {
			size := int(binary.LittleEndian.Uint16(extra[2:]))
			if size > len(extra)-4 {
				return
			}
			if binary.LittleEndian.Uint16(extra) == tag && !yield(extra[4:4+size]) {
				return
			}
			extra = extra[4+size:]
		}
	}
}

// checkZipName refuses names that unzip changes.
func checkZipName(name string, extra []byte) error {
	for _, c := range []byte(name) {
		if c < ' ' || c == 0x7f || c == 0xff {
			return fmt.Errorf("%w: its name has a control character", ErrUnsafeEntry)
		}
	}
	if strings.HasSuffix(strings.TrimRight(name, "0123456789"), ";") {
		return fmt.Errorf("%w: unzip would cut its name off at the last semicolon", ErrUnsafeEntry)
	}
	// A version byte and the checksum of the name come first.
	for other := range extraFields(extra, unicodePath) {
		if len(other) < 5 || string(other[5:]) != name {
			return fmt.Errorf("%w: it has two names", ErrUnsafeEntry)
		}
	}

	return nil
}
