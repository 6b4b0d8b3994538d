package kvstore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/model"
)

// TestExpectedDenials: requests that probe for the JetStream prefix, or use the prefix of another connection,
// may be denied; requests with the right prefix may not.
func TestExpectedDenials(t *testing.T) {
	t.Parallel()
	connection := uint64(0)
	a := &APIFinder{candidates: []APIPrefix{OwnAPI, JoinedAPI}, located: make(chan struct{}), epoch: func() uint64 { return connection }}
	check := func(when string, want map[string]bool) {
		t.Helper()
		for subject, quiet := range want {
			if a.IsExpected(subject) != quiet {
				t.Errorf("%s: %s is expected to be denied: %v", when, subject, !quiet)
			}
		}
	}
	const own, joined = "$JS.API.DIRECT.GET.KV_MUSTER_NODES.x", "fleet.API.DIRECT.GET.KV_MUSTER_NODES.x"
	check("nothing is found", map[string]bool{OwnAPI.StreamList(): true, JoinedAPI.StreamList(): true, own: false, "muster.report.x": false})
	a.use(OwnAPI)
	check("it is found", map[string]bool{OwnAPI.StreamList(): false, JoinedAPI.StreamList(): true, own: false, "muster.report.x": false})
	connection++
	check("connected again, perhaps to another account", map[string]bool{OwnAPI.StreamList(): true, JoinedAPI.StreamList(): true, own: true, "muster.report.x": false})
	a.use(JoinedAPI)
	check("it is found elsewhere", map[string]bool{OwnAPI.StreamList(): true, JoinedAPI.StreamList(): false, own: true, joined: false})
	a = &APIFinder{candidates: []APIPrefix{"x.API"}, chosen: "x.API", epoch: func() uint64 { return 3 }}
	check("a place is chosen", map[string]bool{"x.API.STREAM.LIST": false, own: false})
}

// TestWhyNothingIsFound: if no prefix answers, the most specific error is shown. A user with permissions for
// one unanswered prefix is not joined, unless that prefix has answered before. A timeout is no answer.
func TestWhyNothingIsFound(t *testing.T) {
	t.Parallel()
	lost, swallowed := errors.New("disconnected"), context.DeadlineExceeded
	for name, c := range map[string]struct {
		own, joined, want error
		answered          bool
	}{
		"own":                            {own: nil, joined: lost, want: nil},
		"joined":                         {own: model.ErrNotPermitted, joined: nil, want: nil},
		"no permissions at all":          {own: model.ErrNotPermitted, joined: model.ErrNotPermitted, want: model.ErrNotPermitted},
		"no JetStream":                   {own: ErrNoJetStream, joined: nats.ErrNoResponders, want: ErrNoJetStream},
		"no server has JetStream":        {own: nats.ErrNoResponders, joined: nats.ErrNoResponders, want: nats.ErrNoResponders},
		"not joined":                     {own: model.ErrNotPermitted, joined: nats.ErrNoResponders, want: ErrNotJoined},
		"joined, and away just now":      {own: model.ErrNotPermitted, joined: nats.ErrNoResponders, want: model.ErrNotPermitted, answered: true},
		"a lost connection ends it":      {own: lost, joined: nil, want: lost},
		"swallowed":                      {own: swallowed, joined: nil, want: nil},
		"swallowed, by the client":       {own: nats.ErrTimeout, joined: nil, want: nil},
		"answered by something else":     {own: errNotJetStream, joined: nil, want: nil},
		"swallowed in both":              {own: swallowed, joined: swallowed, want: swallowed},
		"swallowed, denied in the other": {own: model.ErrNotPermitted, joined: swallowed, want: swallowed},
	} {
		p := &APIFinder{candidates: []APIPrefix{OwnAPI, JoinedAPI}, located: make(chan struct{}), epoch: func() uint64 { return 0 }}
		if c.answered {
			p.use(JoinedAPI)
		}
		_, err := findAPI(t.Context(), p, func(_ context.Context, place APIPrefix) (int, error) {
			return 0, map[APIPrefix]error{OwnAPI: c.own, JoinedAPI: c.joined}[place]
		})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, not %v", name, err, c.want)
		}
		if reason := (Unusable{}); errors.As(err, &reason) != (c.want == ErrNotJoined) {
			t.Errorf("%s: %#v", name, err)
		}
		if c.want == swallowed && (!strings.Contains(err.Error(), string(OwnAPI)) || !strings.Contains(err.Error(), string(JoinedAPI))) {
			t.Errorf("%s: the error does not say what was tried: %v", name, err)
		}
	}
}
