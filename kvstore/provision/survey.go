package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
)

const (
	// electing is for how long what may be an election of a leader is asked again; the server itself waits four
	// seconds for those of streams.
	electing = 8 * time.Second
	// electingPause is the pause before.
	electingPause = 250 * time.Millisecond
)

// survey returns all streams, and waits while those that are needed, or JetStream, elect a leader.
func (p Provisioner) survey(ctx context.Context, needed []string) (kvstore.Infos, error) {
	for end := time.Now().Add(electing); ; {
		found, err := p.store.Survey(ctx)
		if err != nil {
			err = fmt.Errorf("provision: %w", err)
		} else {
			err = checkAnswered(found, needed)
		}
		// Where nobody listens it is not JetStream's leader that is away.
		mayPass := kvstore.IsOutage(err) && !errors.Is(err, nats.ErrNoResponders) && p.store.Away() == nil
		if !mayPass || !time.Now().Before(end) {
			return found, err
		}
		if kvstore.Pause(ctx, electingPause) != nil {
			return found, err
		}
	}
}

// checkAnswered returns the error of a stream that is needed and whose servers do not answer. One that is missing is not
// its concern.
func checkAnswered(found kvstore.Infos, needed []string) error {
	for _, stream := range needed {
		if _, err := found.Of(stream); errors.Is(err, kvstore.ErrUnanswered) {
			return err
		}
	}

	return nil
}
