package hosttest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"testing"
)

// TarGz packs files of a mode, name and content in turn.
func TarGz(t testing.TB, mode os.FileMode, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	packed := tar.NewWriter(zipped)
	var errs []error
	for i := 0; i < len(files); i += 2 {
		errs = append(errs, packed.WriteHeader(&tar.Header{Name: files[i], Typeflag: tar.TypeReg, Mode: int64(mode), Size: int64(len(files[i+1]))}))
		_, err := packed.Write([]byte(files[i+1]))
		errs = append(errs, err)
	}
	if err := errors.Join(append(errs, packed.Close(), zipped.Close())...); err != nil {
		t.Fatal(err)
	}

	return b.Bytes()
}
