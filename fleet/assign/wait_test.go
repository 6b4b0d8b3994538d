package assign_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
)

// lister gives one state of the nodes after the other, and stays at the last.
type lister struct {
	states [][]model.Node
	looks  int
	err    error
	// onList, if set, is called with the number of each list.
	onList func(int)
}

func (l *lister) Nodes(ctx context.Context) ([]model.Node, error) {
	if l.err != nil {
		return nil, l.err
	}
	at := min(l.looks, len(l.states)-1)
	l.looks++
	if l.onList != nil {
		l.onList(l.looks)
	}

	return l.states[at], ctx.Err()
}

func sourceMotd(revision uint64, outcome model.Outcome) map[string]model.ManifestState {
	return map[string]model.ManifestState{"group.all.motd": runs(revision, outcome)}
}

var rolloutOfAll = fleet.Rollout{Entries: []model.Entry{{Key: "group.all.motd", Revision: 7}}}

func TestWaitUntilAllAreUpToDate(t *testing.T) {
	l := &lister{states: [][]model.Node{
		{node("a", nil, sourceMotd(6, model.OutcomeStable)), node("b", nil, sourceMotd(6, model.OutcomeStable))},
		{node("a", nil, sourceMotd(6, model.OutcomeStable)), node("b", nil, sourceMotd(7, model.OutcomeChanged))},
		{node("a", nil, sourceMotd(7, model.OutcomeFailed)), node("b", nil, sourceMotd(7, model.OutcomeChanged))},
	}}
	var statuses []string
	w := assign.Waiter{Nodes: l, Pause: time.Millisecond, OnPoll: func(all []fleet.RolloutStatus) {
		for _, s := range all {
			statuses = append(statuses, s.Node+" "+string(s.Status))
		}
	}}
	got, err := w.Wait(t.Context(), rolloutOfAll)
	if err != nil || len(got) != 2 || got[0].Status != fleet.StatusFailed || got[1].Status != fleet.StatusUpToDate || l.looks != 3 {
		t.Errorf("%+v %v after %d looks", got, err, l.looks)
	}
	if want := []string{"a pending", "b pending", "a pending", "b up-to-date", "a failed", "b up-to-date"}; !reflect.DeepEqual(statuses, want) {
		t.Errorf("the polls had %v", statuses)
	}
}

// A push during the wait is a later revision and counts.
func TestWaitLearnsOfLaterRevisions(t *testing.T) {
	l := &lister{states: [][]model.Node{
		{node("a", nil, sourceMotd(20, model.OutcomeStable))},
		{node("a", nil, sourceMotd(20, model.OutcomeStable))},
		{node("a", nil, sourceMotd(8, model.OutcomeStable))},
	}}
	asked := 0
	w := assign.Waiter{Nodes: l, Pause: time.Millisecond, Later: func(_ context.Context, key string) (map[uint64]string, error) {
		asked++
		if asked == 1 {
			return map[uint64]string{7: ""}, nil
		}
		return map[uint64]string{7: "", 8: ""}, nil
	}}
	got, err := w.Wait(t.Context(), rolloutOfAll)
	if err != nil || len(got) != 1 || got[0].Status != fleet.StatusUpToDate || got[0].Current != 8 || l.looks != 3 || asked != 2 {
		t.Errorf("%+v %v after %d looks, asked %d times", got, err, l.looks, asked)
	}
	broken := errors.New("broken")
	w.Later = func(context.Context, string) (map[uint64]string, error) { return nil, broken }
	_, err = w.Wait(t.Context(), rolloutOfAll)
	if !errors.Is(err, broken) {
		t.Fatalf("error is %v, not %v", err, broken)
	}
}

// TestWaitLooksSoonAfterAnOutage: after a failed poll or an outage the next poll follows soon, and repeats
// the unanswered question about later revisions.
func TestWaitLooksSoonAfterAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		outage := errors.New("outage")
		later := []model.Node{node("a", nil, sourceMotd(8, model.OutcomeStable))}
		before := []model.Node{node("a", nil, sourceMotd(6, model.OutcomeStable))}
		l := &lister{states: [][]model.Node{before, later, later, later}, onList: func(looks int) {
			if looks == 1 {
				<-time.After(20 * time.Second)
			}
		}}
		asked := 0
		w := assign.Waiter{Nodes: l, IsTransient: func(err error) bool { return errors.Is(err, outage) }, Later: func(context.Context, string) (map[uint64]string, error) {
			if asked++; asked == 1 {
				<-time.After(5 * time.Second) // as long as an answer is awaited
				return nil, outage
			}
			return map[uint64]string{7: "", 8: ""}, nil
		}}
		began := time.Now()
		got, err := w.Wait(t.Context(), rolloutOfAll)
		if err != nil || len(got) != 1 || got[0].Status != fleet.StatusUpToDate || asked != 2 || time.Since(began) > 31*time.Second {
			t.Errorf("%+v %v after %s, asked %d times", got, err, time.Since(began), asked)
		}
	})
}

func TestWaitEnds(t *testing.T) {
	late := [][]model.Node{{node("a", nil, sourceMotd(6, model.OutcomeStable)), node("b", nil, sourceMotd(7, model.OutcomeStable))}}
	t.Run("in time", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := &lister{states: late, onList: func(looks int) {
			if looks == 3 {
				cancel()
			}
		}}
		got, err := (&assign.Waiter{Nodes: l, Pause: time.Millisecond}).Wait(ctx, rolloutOfAll)
		if err != nil || len(got) != 2 || got[0].Status != fleet.StatusPending {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("after one look", func(t *testing.T) {
		l := &lister{states: late}
		got, err := (&assign.Waiter{Nodes: l, Once: true}).Wait(t.Context(), rolloutOfAll)
		if tally := fleet.TallyOf(got); err != nil || l.looks != 1 || tally != (fleet.Tally{All: 2, Targets: 2, UpToDate: 1, Pending: 1}) || tally.Open() != 1 {
			t.Errorf("%d looks, %+v, %v", l.looks, tally, err)
		}
	})
	t.Run("when only unreachable nodes remain", func(t *testing.T) {
		runs, away := node("a", nil, sourceMotd(7, model.OutcomeStable)), node("b", nil, sourceMotd(6, model.OutcomeStable))
		away.Silent = true
		restarting := runs
		restarting.Silent = true
		l := &lister{states: [][]model.Node{
			{node("a", nil, sourceMotd(6, model.OutcomeStable)), away},
			{restarting, away},
			{runs, away},
		}}
		got, err := (&assign.Waiter{Nodes: l, Pause: time.Millisecond, LeaveUnreachable: true}).Wait(t.Context(), rolloutOfAll)
		if err != nil || l.looks != 3 || got[0].Status != fleet.StatusUpToDate || got[1].Status != fleet.StatusUnreachable {
			t.Errorf("%d looks, %+v, %v", l.looks, got, err)
		}
	})
	t.Run("for unreachable nodes that may not be left", func(t *testing.T) {
		away := node("b", nil, sourceMotd(6, model.OutcomeStable))
		away.Silent = true
		updated := node("a", nil, sourceMotd(7, model.OutcomeStable))
		l := &lister{states: [][]model.Node{{updated, away}, {updated, away}, {updated, node("b", nil, sourceMotd(7, model.OutcomeStable))}}}
		asked := 0
		w := &assign.Waiter{Nodes: l, Pause: time.Millisecond, LeaveUnreachable: true, MayLeave: func(context.Context) bool { asked++; return false }}
		got, err := w.Wait(t.Context(), rolloutOfAll)
		if err != nil || l.looks != 3 || asked != 1 || got[1].Status != fleet.StatusUpToDate {
			t.Errorf("%d polls, asked %d times, %+v, %v", l.looks, asked, got, err)
		}
	})
	t.Run("when only paused nodes remain", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		paused := func(until time.Time) []model.Node {
			n := node("b", nil, map[string]model.ManifestState{"group.all.motd": {Revision: 7, Ran: &model.RanRevision{Revision: 6}}})
			n.Paused = &model.Paused{By: "ann", Until: until}
			return []model.Node{node("a", nil, sourceMotd(7, model.OutcomeStable)), n}
		}
		runs := []model.Node{node("a", nil, sourceMotd(7, model.OutcomeStable)), node("b", nil, sourceMotd(7, model.OutcomeStable))}
		for name, c := range map[string]struct {
			until  time.Time
			leaves bool
			polls  int
		}{
			"no end":               {time.Time{}, true, 1},
			"ends after the wait":  {time.Now().Add(2 * time.Hour), true, 1},
			"ends before the wait": {time.Now().Add(time.Minute), true, 2},
			"waits for all":        {time.Time{}, false, 2},
		} {
			l := &lister{states: [][]model.Node{paused(c.until), runs}}
			_, err := (&assign.Waiter{Nodes: l, Pause: time.Millisecond, LeaveUnreachable: c.leaves}).Wait(ctx, rolloutOfAll)
			if err != nil || l.looks != c.polls {
				t.Errorf("%s: %d polls, want %d, %v", name, l.looks, c.polls, err)
			}
		}
	})
	t.Run("when all that are left refuse", func(t *testing.T) {
		refused := map[string]model.ManifestState{"group.all.motd": {Seen: 7, Outcome: model.OutcomeRefused, Late: "bad"}}
		l := &lister{states: [][]model.Node{
			{node("a", nil, refused), node("b", nil, sourceMotd(6, model.OutcomeStable))},
			{node("a", nil, refused), node("b", nil, sourceMotd(7, model.OutcomeStable))},
		}}
		got, err := (&assign.Waiter{Nodes: l, Pause: time.Millisecond}).Wait(t.Context(), rolloutOfAll)
		if err != nil || l.looks != 2 || got[0].Status != fleet.StatusRejected {
			t.Errorf("%d looks, %+v, %v", l.looks, got, err)
		}
	})
	t.Run("without nodes", func(t *testing.T) {
		got, err := (&assign.Waiter{Nodes: &lister{states: [][]model.Node{nil}}}).Wait(t.Context(), rolloutOfAll)
		if err != nil || len(got) != 0 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
	t.Run("not by an outage", func(t *testing.T) {
		outage := errors.New("outage")
		l := &lister{states: [][]model.Node{late[0], {node("a", nil, sourceMotd(7, model.OutcomeStable)), node("b", nil, sourceMotd(7, model.OutcomeStable))}}}
		l.onList = func(looks int) {
			if looks == 1 {
				l.err = outage
			}
		}
		asked := 0
		transient := func(err error) bool {
			asked, l.err = asked+1, nil
			return errors.Is(err, outage)
		}
		got, err := (&assign.Waiter{Nodes: l, Pause: time.Millisecond, IsTransient: transient}).Wait(t.Context(), rolloutOfAll)
		if tally := fleet.TallyOf(got); err != nil || asked != 1 || tally.UpToDate != 2 {
			t.Errorf("%d outages, %+v, %v", asked, tally, err)
		}
	})
	t.Run("when the nodes cannot be asked", func(t *testing.T) {
		broken := errors.New("broken")
		_, err := (&assign.Waiter{Nodes: &lister{err: broken}}).Wait(t.Context(), rolloutOfAll)
		if !errors.Is(err, broken) {
			t.Fatalf("error is %v, not %v", err, broken)
		}
	})
}

// replacedBucket returns revision 7 of an assignment once, then revision 8.
type replacedBucket struct{ gets int }

func (b *replacedBucket) List(context.Context, ...string) ([]model.Entry, error) {
	return []model.Entry{{Key: "group.all.motd", Name: "motd", Revision: 7, Value: []byte("a")}}, nil
}

func (b *replacedBucket) Get(context.Context, string) (model.Entry, error) {
	b.gets++
	return model.Entry{Key: "group.all.motd", Revision: uint64(6 + min(b.gets, 2))}, nil
}

func (b *replacedBucket) History(context.Context, string) ([]model.Entry, error) {
	return []model.Entry{{Key: "group.all.motd", Revision: 7, Value: []byte("a")}, {Key: "group.all.motd", Revision: 8, Value: []byte("b")}}, nil
}

// TestReachReportsLateReplacement checks that Reach finds a revision that was replaced after the last poll.
func TestReachReportsLateReplacement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		web := model.Node{NodeState: model.NodeState{Node: "web01", Groups: []string{"all"}}}
		w := assign.Waiter{Nodes: &lister{states: [][]model.Node{{web}}}, Pause: time.Hour}
		goal := assign.Goal{Name: "motd", Keys: []string{"group.all.motd"}, Revisions: map[string]uint64{"group.all.motd": 7}, InForce: true}
		got, err := w.Reach(t.Context(), &replacedBucket{}, goal, time.Minute)
		if err != nil || !got.TimedOut || got.Replaced == nil || got.Replaced.By.Revision != 8 {
			t.Errorf("%+v %v", got, err)
		}
	})
}

// TestWaitReportsReplacementAtTimeout checks that Wait returns a replacement that it finds as the time ends.
func TestWaitReportsReplacementAtTimeout(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	web := model.Node{NodeState: model.NodeState{Node: "web01", Groups: []string{"all"}}}
	w := assign.Waiter{Nodes: &lister{states: [][]model.Node{{web}}}, Check: func(context.Context) error {
		cancel()
		return &assign.ReplacedError{Revision: 7}
	}}
	if _, err := w.Wait(ctx, rolloutOfAll); !errors.As(err, new(*assign.ReplacedError)) {
		t.Error(err)
	}
}
