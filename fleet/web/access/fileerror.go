package access

import (
	"errors"
	"fmt"
	"io/fs"
)

// fileError is that a file cannot be used, with the flag that names it and, where the file is
// missing, what to do.
func fileError(flag, path, missing string, err error) error {
	failed := (*fs.PathError)(nil)
	if !errors.As(err, &failed) || failed.Path != path {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	if missing != "" && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--%s %s: %w (%s)", flag, path, failed.Err, missing)
	}

	return fmt.Errorf("--%s %s: %w", flag, path, failed.Err)
}

// certificateError is fileError of a certificate, or of its key where that is what is wrong.
func certificateError(certificate, key string, err error) error {
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) && failed.Path == key {
		return fileError("tls-key", key, "", err)
	}

	return fileError("tls-cert", certificate, "", err)
}
