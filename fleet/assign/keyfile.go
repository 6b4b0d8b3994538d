package assign

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
)

// maxSeed limits the bytes of a seed file.
const maxSeed = 4096

// NewKey creates a signing key in a new file that only its owner may read, and returns the public key. The
// error wraps fs.ErrExist if the file exists.
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

// KeyFile is a signing key in a file. The time of its last signature is in another file beside it.
type KeyFile struct {
	*signed.Signer
	Path string
	last string
}

// OpenKey reads a key. The error wraps signed.ErrKey, or paths.ErrUntrusted if other users may change the
// file. A file that other users may read is also an error.
func OpenKey(path string) (*KeyFile, error) {
	text, err := files.ReadTrusted(path, maxSeed, paths.Author{})
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o, so other users may sign with it: chmod 600 %s", path, info.Mode().Perm(), path)
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

// lastRecord is the stored time of a key's last signature.
type lastRecord struct {
	Issued time.Time `json:"issued"`
	// Targets contains the times for the last signed assignments, as fleet/key.
	Targets map[string]time.Time `json:"targets,omitempty"`
}

// maxTargets limits the stored assignments.
const maxTargets = 1000

// readLast returns the time of the key's last signature; zero means never.
func (k *KeyFile) readLast() (lastRecord, error) {
	l, err := host.ReadRecord[lastRecord](k.last)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}

	return l, err
}

// writeLast stores the time of a signature, and its target unless that is empty. The time never decreases.
// The caller holds the lock of the key.
func (k *KeyFile) writeLast(ctx context.Context, at time.Time, target string) error {
	l, err := k.readLast()
	if err != nil {
		return err
	}
	if at.After(l.Issued) {
		l.Issued = at
	}
	if l.Targets == nil {
		l.Targets = map[string]time.Time{}
	}
	if target != "" && at.After(l.Targets[target]) {
		l.Targets[target] = at
	}
	if len(l.Targets) > maxTargets {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(l.Targets)), func(a, b string) int { return l.Targets[a].Compare(l.Targets[b]) })
		delete(l.Targets, oldest)
	}

	return host.New(host.Options{}).WriteRecord(ctx, k.last, l)
}

// lock prevents other processes from signing with the key until unlock.
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
