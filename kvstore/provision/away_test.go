package provision_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/jsm.go/api"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
	"github.com/musterfleet/muster/testing/natstest"
)

// electing serves the API of JetStream under a prefix; the first lists of streams are as while something elects a leader.
func electing(t *testing.T, lists int32, first func(*api.JSApiStreamListResponse)) (store *kvstore.Store, listed *atomic.Int32) {
	t.Helper()
	srv, _ := kvtest.New(t)
	const prefix = kvstore.APIPrefix("electing.API")
	server := srv.Connect(t)
	listed = &atomic.Int32{}
	natstest.Answer(t, server, prefix.StreamList(), func(m *nats.Msg) error {
		reply, err := srv.Connect(t).Request("$JS.API.STREAM.LIST", m.Data, kvtest.Deadline)
		if err != nil || listed.Add(1) > lists {
			return errors.Join(err, m.Respond(reply.Data))
		}
		var page api.JSApiStreamListResponse
		if err := json.Unmarshal(reply.Data, &page); err != nil {
			return err
		}
		first(&page)
		data, err := json.Marshal(page)

		return errors.Join(err, m.Respond(data))
	})
	store = kvtest.Must(t, func() (*kvstore.Store, error) {
		return kvstore.Open(t.Context(), connect.Options{Servers: []string{srv.URL()}, APIPrefix: string(prefix)}, "")
	})
	t.Cleanup(store.Conn.Close)

	return store, listed
}

// without removes a stream from a list, as if its servers did not answer.
func without(stream string) func(*api.JSApiStreamListResponse) {
	return func(page *api.JSApiStreamListResponse) {
		var answered []*api.StreamInfo
		for _, info := range page.Streams {
			if info.Config.Name != stream {
				answered = append(answered, info)
			}
		}
		page.Streams, page.Missing = answered, []string{stream}
	}
}

// TestElectionsAreWaitedFor: of streams that are needed, and of JetStream.
func TestElectionsAreWaitedFor(t *testing.T) {
	t.Parallel()
	const nodes, data = "KV_MUSTER_NODES", "KV_MUSTER_DATA"
	for name, c := range map[string]struct {
		first  func(*api.JSApiStreamListResponse)
		needed []string
		lists  int32
		want   error
	}{
		"a stream that is needed": {without(nodes), []string{data, nodes}, 3, nil},
		"one that is not":         {without(data), []string{nodes}, 1, provision.ErrUnchecked},
		"JetStream": {func(page *api.JSApiStreamListResponse) {
			*page = api.JSApiStreamListResponse{JSApiResponse: api.JSApiResponse{Error: &api.ApiError{Code: 503, ErrCode: 10008, Description: "JetStream system temporarily unavailable"}}}
		}, nil, 3, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, listed := electing(t, 2, c.first)
			if err := provision.New(store).Check(t.Context(), c.needed...); !errors.Is(err, c.want) || listed.Load() != c.lists {
				t.Errorf("%v after %d lists", err, listed.Load())
			}
			// The list is not requested again before the next read.
			if err := store.Ready(t.Context()); err != nil || listed.Load() != c.lists {
				t.Errorf("ready: %v after %d lists", err, listed.Load())
			}
		})
	}
}

// TestWhatDoesNotAnswerDoesNotHideTheRest: a missing stream is an error, a different one a warning; neither
// hides the other.
func TestWhatDoesNotAnswerDoesNotHideTheRest(t *testing.T) {
	t.Parallel()
	const silent = "stream MUSTER_REGISTRATIONS: its servers do not answer: it is not checked"
	for name, c := range map[string]struct {
		change func(*api.JSApiStreamListResponse)
		is     error
		text   string
	}{
		"one is missing": {func(page *api.JSApiStreamListResponse) {
			without("KV_MUSTER_DATA")(page)
			without("MUSTER_REGISTRATIONS")(page)
		}, model.ErrNotProvisioned, "KV_MUSTER_DATA is missing; " + silent},
		"one differs": {func(page *api.JSApiStreamListResponse) {
			without("MUSTER_REGISTRATIONS")(page)
			for _, info := range page.Streams {
				if info.Config.Name == "MUSTER_REPORTS" {
					info.Config.Discard = api.DiscardNew
				}
			}
		}, provision.ErrDiffers, "must be Old; " + silent},
		"one is of another format": {func(page *api.JSApiStreamListResponse) {
			without("MUSTER_REGISTRATIONS")(page)
			page.Streams[0].Config.Metadata[kvstore.FormatKey] = "9"
		}, kvstore.ErrFormat, "has format 9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, _ := electing(t, 100, c.change)
			if err := provision.New(store).Check(t.Context()); !errors.Is(err, c.is) || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestApplyNeedsAllThatItChanges: also of those that do not answer.
func TestApplyNeedsAllThatItChanges(t *testing.T) {
	t.Parallel()
	store, _ := electing(t, 100, without("MUSTER_REGISTRATIONS"))
	if _, err := provision.New(store).Plan(t.Context(), provision.Options{}); !errors.Is(err, kvstore.ErrUnanswered) || !kvstore.IsOutage(err) || err.Error() != "stream MUSTER_REGISTRATIONS: its servers do not answer" {
		t.Errorf("%v", err)
	}
}
