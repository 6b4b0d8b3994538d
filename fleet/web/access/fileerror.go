package access

import (
	"errors"
	"fmt"
	"io/fs"
)

// fileError returns an error for an unusable file, with its flag and, if the file is missing, the remedy.
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

// certificateError is fileError for a certificate or its key.
func certificateError(certificate, key string, err error) error {
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) && failed.Path == key {
		return fileError("tls-key", key, "", err)
	}

	return fileError("tls-cert", certificate, "", err)
}
