package reporting

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// replaceFile writes a file durably, except for its directory entry. It does not use Host.Write, which
// records temporary files: on a full disk that record would fail and keep the outbox from freeing
// space.
func replaceFile(path string, content []byte) error {
	temp := path + ".tmp"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}

	return nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}

	return errors.Join(f.Sync(), f.Close())
}

// lockDir locks a directory for this process until unlockDir or its end. It
// returns ErrInUse when another process has it.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
	case nil:
		return f, nil
	case unix.EWOULDBLOCK:
		return nil, errors.Join(ErrInUse, f.Close())
	default:
		return nil, errors.Join(err, f.Close())
	}
}

// unlockDir unlocks a directory also where a process that is just being started has a copy
// of the descriptor.
func unlockDir(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }
