package requests

import (
	"context"
	"fmt"
	"maps"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/testing/signtest"
)

// cancelOf returns the cancel of a request.
func cancelOf(id string) []byte {
	return encode(model.CancelRequest{Protocol: model.ProtocolCancelRequest, Request: id, By: "ann", Expires: time.Now().Add(time.Hour)})
}

// TestACancelBesideItsRequest: whether the cancel or the request arrives first, the request is not
// executed and its final response is cancelled.
func TestACancelBesideItsRequest(t *testing.T) {
	t.Parallel()
	s, _ := accepting(t, func(_ context.Context, data []byte, _ signed.Action) (desired.Opened, error) {
		return desired.Opened{Request: data}, nil
	})
	var mu sync.Mutex
	last := map[string]model.EnsureResponse{}
	note := func(r model.EnsureResponse) {
		mu.Lock()
		defer mu.Unlock()
		if r.Phase != model.EnsureAcknowledged {
			last[r.ID] = r
		}
	}
	const count = 100
	var all sync.WaitGroup
	for i := range count {
		id := fmt.Sprint("r", i)
		request := encode(model.EnsureRequest{Protocol: model.ProtocolEnsureRequest, Type: "file", Properties: []byte(`{"name":"/x"}`), ID: id})
		all.Go(func() { s.Ensure(t.Context(), nil, request, note) })
		all.Go(func() { s.Ensure(t.Context(), nil, cancelOf(id), note) })
	}
	all.Wait()
	for execute := s.Next(); execute != nil; execute = s.Next() {
		execute(t.Context(), t.Context(), func(context.Context, context.Context, Run) (*model.Run, error) {
			t.Error("a request was executed")
			return nil, nil
		})
	}
	for id, r := range last {
		if r.Phase != model.EnsureCancelled {
			t.Errorf("%s came to %+v", id, r)
		}
	}
	if got := s.Ended(); len(last) != count || !maps.Equal(got, map[string]uint64{"cancelled": count}) {
		t.Errorf("%d have a response, ended %+v", len(last), got)
	}
}

// TestACancelBeforeExecution: a cancelled request that waits to run does not begin, and MayBegin
// returns the reason.
func TestACancelBeforeExecution(t *testing.T) {
	t.Parallel()
	s, _ := accepting(t, func(_ context.Context, data []byte, _ signed.Action) (desired.Opened, error) {
		return desired.Opened{Request: data}, nil
	})
	var got []model.EnsureResponse
	s.Run(t.Context(), nil, encode(model.RunRequest{Protocol: model.ProtocolRunRequest, ID: "r1", Expires: time.Now().Add(time.Hour)}), func(r model.EnsureResponse) { got = append(got, r) })
	r := s.NextRun(t.Context())
	if err := r.MayBegin(); err != nil {
		t.Fatal(err)
	}
	s.Ensure(t.Context(), nil, cancelOf("r1"), func(model.EnsureResponse) {})
	if err := r.MayBegin(); err == nil || err.Error() != "cancelled by ann" {
		t.Errorf("it may begin: %v", err)
	}
	// The run may have begun concurrently: the final response stays.
	r.Begin(t.Context())
	r.End(t.Context(), []model.RequestedRun{{Manifest: "group.all.x", Outcome: model.OutcomeStable}}, nil)
	if len(got) != 2 || got[1].Phase != model.EnsureCancelled || got[1].Protocol != model.ProtocolRunResponse {
		t.Errorf("answered %+v", got)
	}
}

// TestWhatIsACancel: the signed action decides whether an envelope is a cancel.
func TestWhatIsACancel(t *testing.T) {
	t.Parallel()
	alice := signtest.Signer(t)
	sign := func(action signed.Action, content []byte) []byte {
		return signtest.Sign(t, signed.Statement{Action: action, Target: "group.web", Content: string(content)}, alice)
	}
	request := encode(model.EnsureRequest{Protocol: model.ProtocolEnsureRequest, Type: "file", Properties: []byte("{}")})
	for name, c := range map[string]struct {
		data []byte
		want bool
	}{
		"unsigned": {cancelOf("r1"), true}, "a request": {request, false}, "signed": {sign(signed.Cancel, cancelOf("r1")), true},
		"a request, signed as one": {sign(signed.Cancel, request), true}, "signed as a request": {sign(signed.Ensure, cancelOf("r1")), false},
		"an envelope that is none": {[]byte(`{"payloadType": "` + signed.PayloadType + `", "payload": "e30=", "signatures": []}`), false},
	} {
		if got := isCancel(c.data); got != c.want {
			t.Errorf("%s is a cancel: %v", name, got)
		}
	}
}

// TestTheSameMessagesAreBounded: repeated messages, also signed ones, fill neither memory nor disk,
// and the first sender still gets the final response.
func TestTheSameMessagesAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := accepting(t, func(_ context.Context, data []byte, _ signed.Action) (desired.Opened, error) {
		return desired.Opened{Request: data}, nil
	})
	request := encode(model.RunRequest{Protocol: model.ProtocolRunRequest, ID: "r1", Expires: time.Now().Add(time.Hour)})
	var first model.EnsureResponse
	s.Run(t.Context(), nil, request, func(r model.EnsureResponse) { first = r })
	r := s.NextRun(t.Context())
	r.Begin(t.Context())
	cancel := cancelOf("r1")
	heard := 0
	for range 2000 {
		s.Run(t.Context(), nil, request, func(model.EnsureResponse) {})
		s.Ensure(t.Context(), nil, cancel, func(model.EnsureResponse) { heard++ })
	}
	if waiting := len(s.store.open[runPrefix+fileName("r1")].respond); waiting > maxWaiting || heard != 2000 {
		t.Errorf("%d wait, %d were answered", waiting, heard)
	}
	r.End(t.Context(), nil, nil)
	if first.Phase != model.EnsureDone || heard <= 2000 {
		t.Errorf("who asked first heard %+v, the others %d", first, heard)
	}
	s.Ensure(t.Context(), nil, cancelOf("unknown"), func(model.EnsureResponse) {})
	before, err := os.Stat(s.early.path)
	if err != nil {
		t.Fatal(err)
	}
	s.Ensure(t.Context(), nil, cancelOf("unknown"), func(r model.EnsureResponse) {
		if r.Phase != model.EnsureCancelled {
			t.Errorf("answered %+v", r)
		}
	})
	if after, err := os.Stat(s.early.path); err != nil || !os.SameFile(before, after) {
		t.Errorf("what is known was written again: %v", err)
	}
}
