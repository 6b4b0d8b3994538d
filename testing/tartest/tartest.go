// Package tartest makes archives that tar does not make: with entries of kinds that
// archive/tar reads and does not write.
package tartest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// Entry is an entry with its content. A directory, a link or a special file has none.
type Entry struct {
	tar.Header
	Content string
}

// File returns a regular file.
func File(name, content string, mode int64) Entry {
	return Entry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}, content}
}

// Directory returns a directory.
func Directory(name string, mode int64) Entry {
	return Entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode}}
}

// Link returns a symbolic link.
func Link(name, target string) Entry {
	return Entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}}
}

// HardLink returns a hard link.
func HardLink(name, target string) Entry {
	return Entry{Header: tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target, Mode: 0o644}}
}

// OldSparse returns a file as GNU tar wrote sparse ones once: its content, and zeros up
// to a size.
func OldSparse(name, content string, mode, size int64) Entry {
	e := File(name, content, mode)
	e.Typeflag, e.Size = tar.TypeGNUSparse, size

	return e
}

// Where the fields of a header are.
const (
	blockSize = 512
	flagAt    = 156
	sumAt     = 148
	sparseAt  = 386
	realSize  = 483
)

// Tar returns the archive of entries.
func Tar(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, e := range entries {
		out.Write(encode(t, e))
	}
	out.Write(make([]byte, 2*blockSize))

	return out.Bytes()
}

// encode returns the blocks of one entry.
func encode(t testing.TB, e Entry) []byte {
	t.Helper()
	if name, is := strings.CutSuffix(e.Name, "/"); is && e.Typeflag == tar.TypeReg {
		header := e.Header
		header.Name, header.Format = name+"_", tar.FormatUSTAR
		blocks := write(t, header, e.Content)
		blocks[len(name)] = '/'
		retype(blocks[:blockSize], tar.TypeReg)
		return blocks
	}
	if e.Typeflag != tar.TypeGNUSparse {
		return write(t, e.Header, e.Content)
	}
	header, size := e.Header, e.Size
	header.Typeflag, header.Format, header.Size = tar.TypeReg, tar.FormatGNU, int64(len(e.Content))
	blocks := write(t, header, e.Content)
	head := blocks[len(blocks)-blockSize-(len(e.Content)+blockSize-1)/blockSize*blockSize:][:blockSize]
	copy(head[sparseAt:], fmt.Sprintf("%011o\x00%011o\x00", 0, len(e.Content)))
	copy(head[realSize:], fmt.Sprintf("%011o\x00", size))
	retype(head, tar.TypeGNUSparse)

	return blocks
}

// write returns the blocks of an entry that archive/tar writes.
func write(t testing.TB, header tar.Header, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err := w.WriteHeader(&header)
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	if err := errors.Join(err, w.Flush()); err != nil {
		t.Fatal(err)
	}

	return out.Bytes()
}

// retype sets the kind of an entry, and the checksum of its header.
func retype(head []byte, flag byte) {
	head[flagAt] = flag
	copy(head[sumAt:], "        ")
	sum := 0
	for _, c := range head {
		sum += int(c)
	}
	copy(head[sumAt:], fmt.Sprintf("%06o\x00 ", sum))
}

// Sparse returns the archive of one file of zeros of any size, as GNU tar writes it in
// PAX.
func Sparse(t testing.TB, name string, size int64) []byte {
	t.Helper()
	var records string
	for _, r := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=" + name, fmt.Sprint("GNU.sparse.realsize=", size)} {
		length := len(r) + len(" \n") + len("00")
		records += fmt.Sprintf("%02d %s\n", length, r)
	}
	head := write(t, tar.Header{Typeflag: tar.TypeReg, Name: "PaxHeaders/" + name, Mode: 0o644, Size: int64(len(records)), Format: tar.FormatUSTAR}, records)
	retype(head[:blockSize], 'x')
	out := append(head, write(t, tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: blockSize, Format: tar.FormatUSTAR}, "0\n"+string(make([]byte, blockSize-2)))...)

	return append(out, make([]byte, 2*blockSize)...)
}

// Zip returns a tar as a tar.gz.
func Zip(t testing.TB, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(content)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}

	return out.Bytes()
}
