package signing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/trust"
)

// maxSeed is more than a seed takes.
const maxSeed = 4096

// NewKey makes a signing key in a new file that only its owner may read, and returns
// the public part. The error wraps fs.ErrExist where there is a file.
func NewKey(path string) (signed.Key, error) {
	seed, err := signed.NewSeed()
	if err != nil {
		return "", err
	}
	signer, err := signed.NewSigner(seed)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(seed, '\n'))

	return signer.Key(), errors.Join(err, f.Sync(), f.Close())
}

// KeyFile is a signing key in a file; when it signed last is in a file beside it.
type KeyFile struct {
	*signed.Signer
	Path string
	last string
}

// OpenKey reads a key. The error wraps signed.ErrKey, trust.ErrUntrusted for a file
// that others may change, or is that others may read it.
func OpenKey(path string) (*KeyFile, error) {
	text, err := files.ReadTrusted(path, maxSeed, trust.Author{})
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o, so others may sign with it: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	signer, err := signed.NewSigner(bytes.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}

	return &KeyFile{signer, path, absolute + ".last"}, nil
}

// lastRecord is what is kept of a key: when it signed last.
type lastRecord struct {
	Issued time.Time `json:"issued"`
}

// readLast returns when the key signed last; the zero time is never.
func (k *KeyFile) readLast() (time.Time, error) {
	l, err := host.ReadRecord[lastRecord](k.last)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}

	return l.Issued, err
}

func (k *KeyFile) writeLast(ctx context.Context, at time.Time) error {
	return host.New(host.Options{}).WriteRecord(ctx, k.last, lastRecord{at})
}

// lock keeps other processes from signing with the key until unlock.
func (k *KeyFile) lock() (unlock func(), err error) {
	f, err := os.Open(k.Path)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return func() { _ = f.Close() }, nil // which unlocks
}
