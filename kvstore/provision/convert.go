package provision

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/jsm.go"
	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/kvstore"
)

// convert converts the content of a stream from the first format and adapts want. The caller marks the
// stream as converted afterwards, so an interrupted conversion is repeated.
func (p Provisioner) convert(ctx context.Context, stream *jsm.Stream, want *api.StreamConfig) error {
	n := p.store.Names()
	switch stream.Name() {
	case kvstore.KVStream(n.Manifests()):
		if err := stream.Purge(&api.JSApiStreamPurgeRequest{Subject: kvstore.KVSubject(n.Manifests(), "*.*._index")}); err != nil {
			return fmt.Errorf("remove the indexes: %w", err)
		}
	case n.Commands():
		former := strings.TrimSuffix(n.Command("*.*", "*"), ".*")
		if !slices.Contains(stream.Configuration().Subjects, former) {
			return nil
		}
		if err := p.moveCommands(ctx, stream, former, want.Subjects); err != nil {
			return fmt.Errorf("move what is queued: %w", err)
		}
		want.Subjects = slices.DeleteFunc(slices.Clone(want.Subjects), func(s string) bool { return s == former })
	}

	return nil
}

// moveCommands moves each command that shares a subject with others to a subject for itself.
func (p Provisioner) moveCommands(ctx context.Context, stream *jsm.Stream, former string, subjects []string) error {
	both := stream.Configuration()
	both.Subjects = subjects
	if err := stream.UpdateConfiguration(both); err != nil {
		return err
	}
	js := p.store.JetStream()
	consumer, err := js.OrderedConsumer(ctx, stream.Name(), jetstream.OrderedConsumerConfig{FilterSubjects: []string{former}, InactiveThreshold: time.Minute})
	if err != nil {
		return err
	}
	defer func() { _ = js.DeleteConsumer(context.WithoutCancel(ctx), stream.Name(), consumer.CachedInfo().Name) }()
	for left := consumer.CachedInfo().NumPending; left > 0; left-- {
		m, err := consumer.Next(jetstream.FetchMaxWait(kvstore.RequestTimeout))
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		moved := kvstore.NewMsg(m.Subject()+"."+kvstore.Token(cmp.Or(m.Headers().Get(nats.MsgIdHdr), fmt.Sprint("moved-", meta.Sequence.Stream))), m.Data())
		var opts []jetstream.PublishOpt
		if ttl, err := time.ParseDuration(m.Headers().Get("Nats-TTL")); err == nil {
			opts = append(opts, jetstream.WithMsgTTL(kvstore.WholeSeconds(time.Until(meta.Timestamp.Add(ttl)))))
		}
		if _, err := js.PublishMsg(ctx, moved, opts...); err != nil {
			return err
		}
	}

	return stream.Purge(&api.JSApiStreamPurgeRequest{Subject: former})
}
