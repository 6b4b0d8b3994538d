package manifest

import (
	"errors"
	"fmt"
	"io"
)

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

// GzipMagic is how a bundle begins.
var gzipMagic = []byte{0x1f, 0x8b}

// ErrNoNATS is a source on NATS where there is no connection.
var errNoNATS = errors.New("needs a NATS connection")

// NoNATSHint is the remedy of ErrNoNATS.
const noNATSHint = "give --server or --context, or let an agent run it"
