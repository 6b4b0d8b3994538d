package kvstore

import (
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// Sizes holds the size limits of messages: of each stream of the fleet, as last seen, and of the
// server.
type Sizes struct {
	nc *nats.Conn
	// streams maps streams to their limits.
	streams atomic.Pointer[map[string]int64]
	// stale reports that a stream has another limit than recorded.
	stale atomic.Bool
}

// Sizes returns the size limits of messages.
func (s *Store) Sizes() *Sizes { return &s.sizes }

// note records the limits of the found streams.
func (z *Sizes) note(found Infos) {
	streams := map[string]int64{}
	for name, info := range found {
		if info != nil {
			streams[name] = int64(info.Config.MaxMsgSize)
		}
	}
	z.streams.Store(&streams)
}

// of returns the limit of a stream. Zero or less means that none is known.
func (z *Sizes) of(stream string) int64 {
	if streams := z.streams.Load(); streams != nil {
		return (*streams)[stream]
	}

	return 0
}

// Max returns the maximum size of a value in a stream in bytes, without the room for headers. It is
// the lower limit of the server and the stream. fallback replaces an unknown limit of the stream.
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

// Check returns an error that wraps model.ErrTooLarge if a value exceeds the known limit of a stream.
// The limit is then read again before the next write.
func (z *Sizes) Check(stream, what string, value []byte) error {
	if most := z.of(stream) - headerRoom; most > 0 && int64(len(value)) > most {
		z.Refresh()
		return fmt.Errorf("%w: %s has %d bytes, the stream %s accepts %d", model.ErrTooLarge, what, len(value), stream, most)
	}

	return nil
}

// CheckMessage returns an error that wraps model.ErrTooLarge if a value exceeds the limit of the
// server.
func (z *Sizes) CheckMessage(what string, value []byte) error {
	if most := z.nc.MaxPayload() - headerRoom; most > 0 && int64(len(value)) > most {
		return fmt.Errorf("%w: %s has %d bytes, the server takes %d", model.ErrTooLarge, what, len(value), most)
	}

	return nil
}

// Refresh makes the next write read the limits again.
func (z *Sizes) Refresh() { z.stale.Store(true) }
