package manifest

import (
	"errors"
	"fmt"
	"io"

	"github.com/musterfleet/muster/resources/host/files"
)

// readRegular reads a regular file.
func readRegular(path string, limit int64) (string, error) {
	f, err := files.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := readAll(f, limit)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}

	return string(data), nil
}

// ErrTooLarge is a source with more bytes than are allowed.
var ErrTooLarge = errors.New("too large")

func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%w: more than the %d bytes that are allowed", ErrTooLarge, limit)
	}

	return data, nil
}

// gzipMagic is how a bundle begins.
var gzipMagic = []byte{0x1f, 0x8b}

var errNoNATS = errors.New("needs a NATS connection")

const noNATSHint = "give --server or --context, or let an agent run it"
