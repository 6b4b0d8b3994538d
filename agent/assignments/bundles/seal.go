package bundles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// sealName is the file in an unpacked bundle that has the number of its files.
const sealName = ".muster-bundle"

// sealedAt is the time of every file of a bundle; a write to one changes it.
func sealedAt() time.Time { return time.Unix(1, 0) }

// seal marks the files of a bundle, so that IsIntact sees when one is missing or
// was written to.
func seal(dir string) error {
	count, err := countFiles(dir, func(path string, _ fs.FileInfo) (bool, error) {
		return true, os.Chtimes(path, sealedAt(), sealedAt())
	})

	return errors.Join(err, os.WriteFile(filepath.Join(dir, sealName), []byte(strconv.Itoa(count)), 0o600))
}

// IsIntact reports whether a bundle has all its files, as they were unpacked. What
// a command adds to them is no damage.
func IsIntact(dir string) bool {
	sealed, err := os.ReadFile(filepath.Join(dir, sealName))
	if err != nil {
		return false
	}
	count, err := countFiles(dir, func(_ string, info fs.FileInfo) (bool, error) { return info.ModTime().Equal(sealedAt()), nil })

	return err == nil && strconv.Itoa(count) == string(sealed)
}

// countFiles returns how many regular files below a directory count.
func countFiles(dir string, counts func(path string, info fs.FileInfo) (bool, error)) (n int, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		is, err := counts(path, info)
		if is {
			n++
		}
		return err
	})

	return n, err
}
