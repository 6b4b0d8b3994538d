package kvstore

import (
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// Sizes are the bounds of messages: of each stream of the fleet as it was seen last,
// and of the server.
type Sizes struct {
	nc *nats.Conn
	// streams are the bounds by stream.
	streams atomic.Pointer[map[string]int64]
	// stale is set when a stream turned out to be configured differently.
	stale atomic.Bool
}

// Sizes returns the bounds of messages.
func (s *Store) Sizes() *Sizes { return &s.sizes }

// note takes over the bounds of streams that were found.
func (z *Sizes) note(found Infos) {
	streams := map[string]int64{}
	for name, info := range found {
		if info != nil {
			streams[name] = int64(info.Config.MaxMsgSize)
		}
	}
	z.streams.Store(&streams)
}

// of returns the bound of a stream, zero or less for none that is known.
func (z *Sizes) of(stream string) int64 {
	if streams := z.streams.Load(); streams != nil {
		return (*streams)[stream]
	}

	return 0
}

// Max returns how many bytes a value in a stream can have, without the room for
// headers: what the server accepts, and the stream, or fallback for one without a
// known bound.
func (z *Sizes) Max(stream string, fallback int64) int64 {
	most := z.of(stream)
	if most <= 0 {
		most = fallback
	}
	if server := z.nc.MaxPayload(); server > 0 {
		most = min(most, server)
	}

	return max(most-headerRoom, 0)
}

// Check reports whether a stream accepts a value, as far as its bound is known; the
// error wraps model.ErrTooLarge. The bound of a stream that does not is looked up
// again.
func (z *Sizes) Check(stream, what string, value []byte) error {
	if most := z.of(stream) - headerRoom; most > 0 && int64(len(value)) > most {
		z.Refresh()
		return fmt.Errorf("%w: %s has %d bytes, the stream %s accepts %d", model.ErrTooLarge, what, len(value), stream, most)
	}

	return nil
}

// CheckMessage reports whether the server accepts a value; the error wraps
// model.ErrTooLarge.
func (z *Sizes) CheckMessage(what string, value []byte) error {
	if most := z.nc.MaxPayload() - headerRoom; most > 0 && int64(len(value)) > most {
		return fmt.Errorf("%w: %s has %d bytes, the server takes %d", model.ErrTooLarge, what, len(value), most)
	}

	return nil
}

// Refresh has the bounds looked up again before the next message is stored.
func (z *Sizes) Refresh() { z.stale.Store(true) }
