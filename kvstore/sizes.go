package kvstore

import (
	"fmt"
	"sync/atomic"

	"github.com/musterfleet/muster/model"
)

// sizes are the bounds of messages of the streams of the fleet, by name, as they
// were seen last.
type sizes struct {
	most atomic.Pointer[map[string]int64]
}

// note takes over the bounds of streams that were found.
func (z *sizes) note(found Infos) {
	most := map[string]int64{}
	for name, info := range found {
		if info != nil {
			most[name] = int64(info.Config.MaxMsgSize)
		}
	}
	z.most.Store(&most)
}

// of returns the bound of a stream, zero or less for none that is known.
func (z *sizes) of(stream string) int64 {
	if most := z.most.Load(); most != nil {
		return (*most)[stream]
	}

	return 0
}

// MaxMessageIn returns how many bytes a value in a stream can have: what the stream
// and the server accept, without the room for headers. Of a stream without a known
// bound it is that of fallback, and of the server where that is known.
func (s *Store) MaxMessageIn(stream string, fallback int64) int64 {
	most := s.sizes.of(stream)
	if most <= 0 {
		most = fallback
	}
	if server := s.nc.MaxPayload(); server > 0 {
		most = min(most, server)
	}

	return max(most-headerRoom, 0)
}

// CheckSizeIn reports whether a stream accepts a value, as far as its bound is
// known; the error wraps model.ErrTooLarge. The bound of a stream that does not is
// looked up again before the next message.
func (s *Store) CheckSizeIn(stream, what string, value []byte) error {
	if most := s.sizes.of(stream) - headerRoom; most > 0 && int64(len(value)) > most {
		s.Rebind()
		return fmt.Errorf("%w: %s has %d bytes, the stream %s accepts %d", model.ErrTooLarge, what, len(value), stream, most)
	}

	return nil
}
