package requests

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// TestARefusedRequestThatComesAgain: a repeated request gets the same response and is not reported
// again, although the node would accept it now: the client has used the first response. Later requests
// and requests without an id are checked again.
func TestARefusedRequestThatComesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		s, reported := accepting(t, func(_ context.Context, data []byte, _ signed.Action) (desired.Opened, error) {
			return desired.Opened{Request: data}, broken
		})
		send := func(data string) (last model.EnsureResponse) {
			s.Ensure(t.Context(), nil, []byte(data), func(r model.EnsureResponse) { last = r })
			return last
		}
		const request, anonymous = `{"protocol":"io.choria.ccm.v1.resource.ensure.request","id":"r1","type":"exec","properties":{"name":"true"}}`, `{"protocol":"io.choria.ccm.v1.resource.ensure.request","type":"exec","properties":{"name":"true"}}`
		first := send(request)
		if first.Phase != model.EnsureFailed || first.Error != "broken" || len(*reported) != 1 {
			t.Fatalf("%+v, reported %d", first, len(*reported))
		}
		if r := send(anonymous); r.Phase != model.EnsureFailed {
			t.Errorf("%+v", r)
		}
		before := len(*reported)
		broken = nil
		if again := send(request); again.Phase != first.Phase || again.Error != first.Error || again.ID != "r1" || len(*reported) != before {
			t.Errorf("again: %+v, reported %d", again, len(*reported))
		}
		if r := send(anonymous); r.Phase != model.EnsureAcknowledged {
			t.Errorf("without an id: %+v", r)
		}
		<-time.After(refusedFor)
		if r := send(request); r.Phase != model.EnsureAcknowledged {
			t.Errorf("later: %+v", r)
		}
	})
}

// TestRefusalsAreBounded: a flood of refusals leaves the newest ones.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	var r recentRefusals
	now := time.Now()
	for i := range 2 * maxRefused {
		id := fmt.Sprint("id", i)
		r.add(now, []byte(id), model.EnsureResponse{ID: id})
	}
	_, oldest := r.get(now, []byte("id0"))
	last, newest := r.get(now, fmt.Append(nil, "id", 2*maxRefused-1))
	if oldest || !newest || last.ID == "" || len(r.all) != maxRefused {
		t.Errorf("%v, %v, %d", oldest, newest, len(r.all))
	}
}
