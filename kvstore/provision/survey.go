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
	// electing is how long survey waits for the election of a leader. The server itself waits four
	// seconds for elections of streams.
	electing = 8 * time.Second
	// electingPause is the pause before each retry.
	electingPause = 250 * time.Millisecond
)

// survey returns all streams. It waits while JetStream or a needed stream elects a leader.
func (p Provisioner) survey(ctx context.Context, needed []string) (kvstore.Infos, error) {
	for end := time.Now().Add(electing); ; {
		found, err := p.store.Survey(ctx)
		if err != nil {
			err = fmt.Errorf("provision: %w", err)
		} else {
			err = checkAnswered(found, needed)
		}
		// "No responders" means that JetStream is missing, not that it elects a leader.
		mayPass := kvstore.IsOutage(err) && !errors.Is(err, nats.ErrNoResponders) && p.store.Away() == nil
		if !mayPass || !time.Now().Before(end) {
			return found, err
		}
		if kvstore.Pause(ctx, electingPause) != nil {
			return found, err
		}
	}
}

// checkAnswered returns an error if the servers of a needed stream do not answer. It ignores missing
// streams.
func checkAnswered(found kvstore.Infos, needed []string) error {
	for _, stream := range needed {
		if _, err := found.Of(stream); errors.Is(err, kvstore.ErrUnanswered) {
			return err
		}
	}

	return nil
}
