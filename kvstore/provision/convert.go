package provision

import (
	"fmt"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/jsm.go/api"

	"github.com/musterfleet/muster/kvstore"
)

// convert changes what a stream of the first format holds, before it is marked as of
// the second one: so an interrupted conversion is done again.
func (p Provisioner) convert(stream *jsm.Stream) error {
	n := p.store.Names()
	if stream.Name() != kvstore.KVStream(n.Manifests()) {
		return nil
	}
	index := kvstore.KVSubject(n.Manifests(), "*.*._index")
	if err := stream.Purge(&api.JSApiStreamPurgeRequest{Subject: index}); err != nil {
		return fmt.Errorf("remove the indexes: %w", err)
	}

	return nil
}
