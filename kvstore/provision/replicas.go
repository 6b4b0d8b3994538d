package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/kvstore"
)

// ErrReplicas reports that new replicas do not hold their stream yet. The stream may be unavailable if a
// server is lost.
var ErrReplicas = errors.New("some replicas are incomplete")

const (
	// copying is how long Apply waits for replicas.
	copying = 5 * time.Minute
	// copyingPause is the pause between two looks at the replicas.
	copyingPause = 250 * time.Millisecond
)

// awaitReplicas waits until each wanted replica of the streams has all messages: until then, the servers elect
// no leader among new replicas. The error wraps ErrReplicas.
func (p Provisioner) awaitReplicas(ctx context.Context, o Options, within time.Duration) error {
	if o.Replicas <= 1 {
		return nil
	}
	for end := time.Now().Add(within); ; {
		found, err := p.store.Infos(ctx, "")
		if err != nil && !kvstore.IsOutage(err) {
			return fmt.Errorf("provision: %w", err)
		}
		var incomplete []string
		for _, s := range desired(p.store.Names, o) {
			if name := s.Config.Name; !isReplicated(found[name], o.Replicas) {
				incomplete = append(incomplete, name)
			}
		}
		if len(incomplete) == 0 {
			return nil
		}
		if !time.Now().Before(end) {
			return fmt.Errorf("stream %s: %w", strings.Join(incomplete, ", "), ErrReplicas)
		}
		if err := kvstore.Pause(ctx, copyingPause); err != nil {
			return err
		}
	}
}

// isReplicated reports whether a stream has as many replicas as wanted, each with all messages.
func isReplicated(info *api.StreamInfo, want int) bool {
	if info == nil || info.Cluster == nil || info.Cluster.Leader == "" || len(info.Cluster.Replicas) != want-1 {
		return false
	}

	return !slices.ContainsFunc(info.Cluster.Replicas, func(r *api.PeerInfo) bool { return !r.Current })
}
