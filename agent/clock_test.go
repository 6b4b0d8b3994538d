package agent_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/testing/signtest"
)

// timeOfDay sets the time of day of a node; timers are unaffected.
type timeOfDay struct{ step atomic.Int64 }

func (d *timeOfDay) set(step time.Duration) { d.step.Store(int64(step)) }

// setsClock gives the node a time of day that differs from the server's.
func (n *node) setsClock(ahead time.Duration) *timeOfDay {
	d, began := &timeOfDay{}, time.Now()
	d.set(ahead)
	n.clock = status.NewClock(func() time.Time { return time.Now().Add(time.Duration(d.step.Load())) }, func() time.Duration { return time.Since(began) })

	return d
}

// An assignment expires by the server's clock, independent of the node's clock; a signed one expires by the
// faster clock.
func TestAssignmentsEndByTheServersClock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ahead  time.Duration
		signed bool
		ends   time.Duration
	}{
		"ahead":          {time.Hour, false, 30 * time.Minute},
		"behind":         {-time.Hour, false, 30 * time.Minute},
		"signed, ahead":  {20 * time.Minute, true, 10 * time.Minute},
		"signed, behind": {-time.Minute, true, 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alice := signtest.Signer(t)
			bubble(t, func(t *testing.T, n *node) {
				n.setsClock(c.ahead)
				if c.signed {
					n.trusts(1, alice)
				}
				n.start()
				value := n.assignment("expires: 2000-01-01T00:30:00Z", n.manifest("motd", "for a while"))
				if c.signed {
					value = string(signtest.Sign(t, signed.Statement{Target: motd, Content: value, Issued: time.Now().Add(-time.Hour), Expires: time.Now().Add(24 * time.Hour)}, alice))
				}
				n.bucket.put(motd, value)
				n.settle()
				n.after(c.ends - time.Second)
				if got := n.agent.State().Manifests[motd]; got.Outcome == "" {
					t.Errorf("before it ends its state is %+v", got)
				}
				n.after(2 * time.Second)
				if got := n.agent.State().Manifests[motd]; got.Revision != 0 {
					t.Errorf("when it has ended its state is %+v", got)
				}
			})
		})
	}
}

// What the clock of a node says until the server's time is known is judged again then.
func TestAssignmentsAreJudgedAgainOnceTheTimeIsKnown(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, n *node) {
		n.setsClock(2 * time.Hour)
		n.stream.setAway(true)
		n.bucket.put(motd, n.assignment("expires: 2000-01-01T01:00:00Z", n.manifest("motd", "for an hour")))
		n.start()
		n.settle()
		n.lacks("motd")
		n.stream.setAway(false)
		n.agent.Connected()
		n.after(time.Second)
		n.has("motd", "for an hour")
	})
}

// A clock that is set by an hour while the agent runs disturbs neither timers nor what
// expires, and operators see it.
func TestClockIsSet(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{"ahead": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, n *node) {
				day := n.setsClock(0)
				n.start()
				n.bucket.put(motd, n.assignment("expires: 2000-01-01T01:00:00Z", n.manifest("motd", "for an hour")))
				n.after(20 * time.Minute)
				n.take()
				day.set(step)
				n.after(20 * time.Minute)
				runs := 0
				for _, word := range n.told() {
					if strings.HasPrefix(word, "run ") {
						runs++
					}
				}
				if runs < 3 || runs > 5 {
					t.Errorf("%d runs in twenty minutes", runs)
				}
				states, _, _ := n.stream.stored()
				if got := states[len(states)-1].Clock; got.Offset.Std() != step {
					t.Errorf("the state has the offset %s", got.Offset)
				}
				n.after(19 * time.Minute)
				n.has("motd", "for an hour")
				if got := n.agent.State().Manifests[motd]; got.Revision == 0 {
					t.Errorf("before the hour is over its state is %+v", got)
				}
				n.after(2 * time.Minute)
				if got := n.agent.State().Manifests[motd]; got.Revision != 0 {
					t.Errorf("when the hour is over its state is %+v", got)
				}
			})
		})
	}
}

// The offset is in the state as soon as it is known, and in the log, once.
func TestClockThatDiffers(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, n *node) {
		n.setsClock(-time.Minute)
		n.start()
		n.settle()
		states, _, _ := n.stream.stored()
		if got := states[len(states)-1].Clock; got.Offset.Std() != -time.Minute || !got.Apparent() {
			t.Errorf("the state has the offset %s", got.Offset)
		}
		before := len(states)
		n.after(10 * time.Minute)
		states, _, _ = n.stream.stored()
		if more := len(states) - before; more > 12 {
			t.Errorf("%d states in ten minutes", more)
		}
		if lines := strings.Count(n.log.String(), "clock differs from the NATS server"); lines != 1 {
			t.Errorf("%d lines in the log", lines)
		}
	})
}

// Without a connection the server's time is known by what passed since.
func TestClockWithoutAServer(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, n *node) {
		day := n.setsClock(0)
		n.start()
		n.bucket.put(motd, n.assignment("expires: 2000-01-01T01:00:00Z", n.manifest("motd", "for an hour")))
		n.after(time.Minute)
		n.stream.setAway(true)
		day.set(time.Hour)
		n.after(50 * time.Minute)
		if got := n.agent.State().Manifests[motd]; got.Revision == 0 {
			t.Errorf("before the hour is over its state is %+v", got)
		}
		n.after(10 * time.Minute)
		if got := n.agent.State().Manifests[motd]; got.Revision != 0 {
			t.Errorf("when the hour is over its state is %+v", got)
		}
	})
}

// A signed assignment expires as soon as the node's clock is set beyond its expiry, without another event.
func TestSignedEndsWhenTheClockIsSet(t *testing.T) {
	t.Parallel()
	alice := signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		day := n.setsClock(0)
		n.config.Interval = model.Duration(24 * time.Hour)
		n.trusts(1, alice)
		n.start()
		value := n.assignment("expires: 2000-01-01T01:00:00Z", n.manifest("motd", "for an hour"))
		n.bucket.put(motd, string(signtest.Sign(t, signed.Statement{Target: motd, Content: value}, alice)))
		n.after(time.Minute)
		n.has("motd", "for an hour")
		day.set(time.Hour)
		n.after(70 * time.Second)
		if got := n.agent.State().Manifests[motd]; got.Revision != 0 {
			t.Errorf("its state is %+v", got)
		}
	})
}

// A server with another time cannot revive an assignment that expired by the node's clock.
func TestServerThatLiesAboutTheTime(t *testing.T) {
	t.Parallel()
	alice := signtest.Signer(t)
	bubble(t, func(t *testing.T, n *node) {
		n.stream.ahead = -24 * time.Hour
		n.trusts(1, alice)
		n.start()
		n.settle()
		n.bucket.put(motd, n.signedFile(motd, "motd", "expired", func(s *signed.Statement) {
			s.Issued, s.Expires = time.Now().Add(-48*time.Hour), time.Now().Add(-time.Hour)
		}, alice))
		n.refuses(motd, "the signature expired")
		n.lacks("motd")
		request := n.request("r1", "asked", "x", `"expires": "1999-12-31T23:00:00Z",`)
		sign := func(request []byte) []byte {
			return signtest.Sign(t, signed.Statement{Action: signed.Ensure, Target: "node.web01_example_net", Content: string(request), Issued: time.Now().Add(-25 * time.Hour), Expires: time.Now().Add(-time.Hour)}, alice)
		}
		if got := n.ask(sign(request)).last(); got.Phase != model.EnsureFailed {
			t.Errorf("an expired request: %+v", got)
		}
		n.lacks("asked")
	})
}

// A request expires by the server's clock.
func TestRequestsExpireByTheServersClock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ahead   time.Duration
		expires string
		want    model.EnsurePhase
	}{
		"node ahead, valid":    {time.Hour, "2000-01-01T00:30:00Z", model.EnsureDone},
		"node behind, expired": {-2 * time.Hour, "1999-12-31T23:30:00Z", model.EnsureExpired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, n *node) {
				n.setsClock(c.ahead)
				n.start()
				n.settle()
				got := n.ask(n.request("r1", "motd", "x", `"expires": "`+c.expires+`",`)).last()
				named := strings.Contains(got.Error, "expired at "+c.expires+": the node's clock is at 1999-12-31T22:") && strings.Contains(got.Error, "the server's clock at 2000-01-01T00:")
				if got.Phase != c.want || named != (c.want == model.EnsureExpired) {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}
