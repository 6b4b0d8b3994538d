package requests

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/signtest"
)

// harmless is a loader that resolves nothing.
type harmless struct{}

func (harmless) ResolveOne(context.Context, string, document.Value, manifest.Inputs) (*manifest.Resolved, error) {
	return nil, nil
}

func (harmless) Sensitive(string, document.Value) bool { return false }

// accepting returns a service that accepts requests without executing them, and its reports.
func accepting(t testing.TB, open func(context.Context, []byte, signed.Action) (desired.Opened, error)) (*Service, *[]model.EnsureResponse) {
	t.Helper()
	var mu sync.Mutex
	reported := &[]model.EnsureResponse{}
	s, err := Open(t.Context(), Options{
		Node: "web01", Host: hosttest.New(t), Dir: t.TempDir(), Loader: harmless{}, Open: open, Log: slog.New(slog.DiscardHandler),
		Report: func(r model.EnsureResponse) {
			mu.Lock()
			defer mu.Unlock()
			*reported = append(*reported, r)
		},
		Untrusted: func(string) {}, Wake: func() {},
		Expired: func(time.Time) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}

	return s, reported
}

// TestAPanicEndsOneRequest: a panic rejects the request (a queued one once); the node accepts later
// requests.
func TestAPanicEndsOneRequest(t *testing.T) {
	t.Parallel()
	opened := 0
	s, reported := accepting(t, func(_ context.Context, data []byte, _ signed.Action) (desired.Opened, error) {
		if opened++; strings.HasPrefix(string(data), "evil") {
			panic("unforeseen")
		}
		return desired.Opened{Request: data}, nil
	})
	for range 2 {
		if err := s.Command(t.Context(), nil, "c1", []byte("evil")); err != nil {
			t.Error(err)
		}
	}
	if len(*reported) != 1 || (*reported)[0].ID != "c1" || !strings.Contains((*reported)[0].Error, "unforeseen") || opened != 1 {
		t.Errorf("reported %+v, opened %d times", *reported, opened)
	}
	var got []model.EnsureResponse
	for _, data := range []string{"evil", `{"protocol": "` + model.ProtocolEnsureRequest + `", "type": "file", "properties": {}}`} {
		s.Ensure(t.Context(), nil, []byte(data), func(r model.EnsureResponse) { got = append(got, r) })
	}
	if len(got) != 2 || got[0].Phase != model.EnsureFailed || got[1].Phase != model.EnsureAcknowledged {
		t.Errorf("answered %+v", got)
	}
	if got := s.Ended(); !maps.Equal(got, map[string]uint64{"rejected": 2}) {
		t.Errorf("ended %+v", got)
	}
}

// FuzzRequest accepts any message, signed or not: each gets one response, an acknowledgement or a
// rejection.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{<<, {0}}`))
	f.Add([]byte("{<<: [{0}], id: x}"))
	f.Add([]byte("? {a: b}\n: c\nid: \"\u2028\"\n"))
	f.Add([]byte(`{"id": "r1", "ID": "r2", "protocol": "` + model.ProtocolEnsureRequest + `", "type": "file", "properties": {"name": "/x"}}`))
	f.Add([]byte("id: r1\nid: r2\n"))
	f.Add([]byte("protocol: " + model.ProtocolEnsureRequest + "\ntype: file\nexpires: 2030-01-01T00:00:00Z\nnoop: true\nproperties: {<<: {a: b}}\n"))
	f.Add([]byte(`{"payloadType": "` + signed.PayloadType + `", "payload": "e30=", "signatures": []}`))
	f.Add([]byte(`{"payload": {}}`))
	f.Add([]byte("\x00\xff"))
	f.Add([]byte("id: &a [*a]"))
	f.Add([]byte(`{"protocol": "` + model.ProtocolCancelRequest + `", "request": "r1", "by": "ann", "expires": "2030-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"protocol": "` + model.ProtocolCancelRequest + `", "request": "r1", "Request": "r2", "kill": true}`))
	f.Add(signtest.Sign(f, signed.Statement{Action: signed.Cancel, Target: "group.web", Content: string(cancelOf("r1"))}, signtest.Signer(f)))
	s, _ := accepting(f, func(_ context.Context, data []byte, _ signed.Action) (desired.Opened, error) {
		if !signed.IsEnvelope(data) {
			return desired.Opened{Request: data}, nil
		}
		e, err := signed.Open(data)
		if err != nil {
			return desired.Opened{Request: data}, err
		}
		return desired.Opened{Request: []byte(e.Statement.Content), Signed: true}, nil
	})
	f.Fuzz(func(t *testing.T, data []byte) {
		var got []model.EnsureResponse
		s.Ensure(t.Context(), nil, data, func(r model.EnsureResponse) { got = append(got, r) })
		if len(got) == 0 {
			t.Fatal("no response")
		}
		for _, r := range got {
			// A rejected cancel has no phase.
			isError := r.Phase == model.EnsureFailed || r.Phase == model.EnsureCancelled || r.Phase == ""
			if strings.Contains(r.Error, "panic") || isError != (r.Error != "") || r.ID != "" && !model.IsRequestID(r.ID) {
				t.Fatalf("responses %+v", got)
			}
		}
	})
}

// TestACommandOfTheFutureIsJudgedAgain: a command from the future is checked again, because the clock
// may be wrong; other rejected commands are not.
func TestACommandOfTheFutureIsJudgedAgain(t *testing.T) {
	t.Parallel()
	why := signed.ErrFuture
	s, reported := accepting(t, func(_ context.Context, data []byte, _ signed.Action) (desired.Opened, error) {
		return desired.Opened{Request: data, Stale: why}, nil
	})
	for want, reason := range []error{signed.ErrFuture, signed.ErrExpired, nil, nil} {
		why = reason
		if err := s.Command(t.Context(), nil, "c1", []byte("{}")); err != nil {
			t.Error(err)
		}
		if got := len(*reported); got != min(want+1, 2) {
			t.Errorf("%d reports after %v", got, reason)
		}
	}
}

// TestManyRejectedCommandsAreBounded: above the limit the oldest ones are forgotten and checked again.
func TestManyRejectedCommandsAreBounded(t *testing.T) {
	t.Parallel()
	h, dir := hosttest.New(t), t.TempDir()
	r := openRefusals(h, dir, slog.New(slog.DiscardHandler))
	for i := range maxRefusals {
		r.sums = append(r.sums, refusalOf("old", []byte{byte(i), byte(i >> 8)}))
	}
	r.add(t.Context(), "c1", nil)
	again := openRefusals(h, dir, slog.New(slog.DiscardHandler))
	if len(again.sums) != maxRefusals || !again.has("c1", nil) || again.has("c1", []byte("x")) || again.has("old", []byte{0, 0}) || !again.has("old", []byte{1, 0}) {
		t.Errorf("%d are known", len(again.sums))
	}
}

// TestManyEarlyCancelsAreBounded: surplus and old cancels are forgotten; executed requests are not.
func TestManyEarlyCancelsAreBounded(t *testing.T) {
	t.Parallel()
	h, dir := hosttest.New(t), t.TempDir()
	c := openEarlyCancels(h, dir, slog.New(slog.DiscardHandler))
	now := time.Now().UTC()
	c.all = append(c.all, earlyCancel{fileName("yesterday"), "x", now.Add(-keepFor - time.Minute)})
	for i := range maxCancels {
		c.all = append(c.all, earlyCancel{fileName(fmt.Sprint(i)), "x", now})
	}
	for _, want := range []bool{true, false} {
		if isNew, err := c.add(t.Context(), "new", "cancelled by ann"); isNew != want || err != nil {
			t.Errorf("it is new: %v, %v", isNew, err)
		}
	}
	again := openEarlyCancels(h, dir, slog.New(slog.DiscardHandler))
	for id, want := range map[string]string{"yesterday": "", "0": "", "1": "x", fmt.Sprint(maxCancels - 1): "x", "new": "cancelled by ann", "other": ""} {
		if got, _ := again.of(id); got != want {
			t.Errorf("%s is %q, want %q", id, got, want)
		}
	}
	if len(again.all) != maxCancels {
		t.Errorf("%d are remembered", len(again.all))
	}
}
