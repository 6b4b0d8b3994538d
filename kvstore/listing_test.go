package kvstore_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/racing"
)

// The server lists 100,000 subjects at once.
func TestMoreSubjectsThanOneAnswerHas(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	js, err := jetstream.New(srv.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	many := racing.Less(100_001, 2001)
	for i := range many {
		for {
			// It fails when too many are on their way.
			if _, err := js.PublishAsync(fmt.Sprint("$KV.MUSTER_MANIFESTS.group.all.m", i), nil); err == nil {
				break
			}
		}
	}
	<-js.PublishAsyncComplete()
	// So large an answer may take a busy machine longer than answers are waited for.
	kvtest.Eventually(t, "a list", func() (bool, string) {
		listed, err := store.Subjects(t.Context(), "KV_MUSTER_MANIFESTS", "$KV.MUSTER_MANIFESTS.group.all.>")
		if err == nil && (len(listed.Subjects) != many || listed.Last != uint64(many)) {
			t.Errorf("%d of %d listed", len(listed.Subjects), listed.Last)
		}
		return err == nil, fmt.Sprint(err)
	})
	if _, err := store.Subjects(t.Context(), "KV_NONE", ">"); !errors.Is(err, model.ErrNotFound) {
		t.Errorf("no stream: %v", err)
	}
}
