package runner

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

type turn struct {
	next time.Time
	runs int
	// again delays retries of runs that reach no resource.
	again tasks.Backoff
	// postponed is the reason of a postponed run.
	postponed Wake
}

// Schedule decides which manifest runs next. Its methods are not safe for concurrent use.
type Schedule struct {
	due   due
	turns map[string]*turn
	// pace is the jitter of this process. All intervals share it, so the manifests of a node keep their
	// order.
	pace    float64
	pending func(key string) (pending, failed bool)
}

// due holds the requested full and partial runs of manifests. Both are separate, because a partial run may
// be possible when a full run is not.
type due struct{ whole, part map[string]Wake }

// May reports whether a manifest may run now. A nil part is a full run. now lists the resources of a
// partial run that may run; the others stay due.
type May func(key string, part []model.Ref) (now []model.Ref, ok bool)

// of returns the wake of a manifest that is due and may run. asked is false if there is none.
func (d due) of(key string, may May) (w Wake, asked bool) {
	whole, byWhole := d.whole[key]
	part, byPart := d.part[key]
	if byWhole {
		if _, ok := may(key, nil); ok {
			return whole.over(part), true
		}
	}
	if byPart && !(byWhole && isRequested(whole.Cause)) {
		part.Part, asked = may(key, part.Part)
	}
	if !asked {
		return Wake{}, false
	}

	return part, true
}

// remove deletes the wake that of returned.
func (d due) remove(key string, w Wake) {
	if w.Part == nil {
		delete(d.part, key)
		delete(d.whole, key)
		return
	}
	rest := d.part[key]
	rest.Part = slices.DeleteFunc(slices.Clone(rest.Part), func(ref model.Ref) bool { return slices.Contains(w.Part, ref) })
	if d.part[key] = rest; len(rest.Part) == 0 {
		delete(d.part, key)
	}
}

func (d due) retain(active []string) {
	inactive := func(key string, _ Wake) bool { return !slices.Contains(active, key) }
	maps.DeleteFunc(d.whole, inactive)
	maps.DeleteFunc(d.part, inactive)
}

// NewSchedule returns a schedule without manifests.
func NewSchedule(pending func(key string) (pending, failed bool)) *Schedule {
	return &Schedule{pending: pending, due: due{map[string]Wake{}, map[string]Wake{}}, turns: map[string]*turn{}, pace: 1 + tasks.Jitter*(2*rand.Float64()-1)}
}

// Ask requests a run of a manifest.
func (s *Schedule) Ask(key string, w Wake) {
	of := s.due.whole
	if w.Part != nil {
		of = s.due.part
	}
	of[key] = w.over(of[key])
}

// Cause returns the cause of the next run of a manifest.
func (s *Schedule) Cause(key string) model.Cause {
	w := Wake{Cause: model.CauseSchedule}
	t := s.turns[key]
	if pending, _ := s.pending(key); pending {
		w.Cause = model.CauseManifest
	}
	if asked, is := s.due.of(key, func(_ string, part []model.Ref) ([]model.Ref, bool) { return part, true }); is {
		w = asked
	}
	if t != nil {
		w = w.over(t.postponed)
	}

	return w.Cause
}

// Next returns the time of the next scheduled run of a manifest.
func (s *Schedule) Next(key string) time.Time { return s.of(key).next }

// Within schedules a run within an interval from now, so that a shorter interval applies at once.
func (s *Schedule) Within(key string, interval time.Duration) {
	t := s.of(key)
	t.next = model.EarlierTime(t.next, s.after(interval))
}

// Resume schedules a run at a time or before; zero does nothing.
func (s *Schedule) Resume(key string, at time.Time) {
	t := s.of(key)
	t.next = model.EarlierNonZero(at, t.next)
}

// Forget removes a manifest.
func (s *Schedule) Forget(key string) {
	delete(s.turns, key)
	s.due.remove(key, Wake{})
}

// Begin counts a full run of a manifest and returns its number.
func (s *Schedule) Begin(key string) int {
	t := s.of(key)
	t.runs++

	return t.runs
}

func (s *Schedule) of(key string) *turn {
	t, ok := s.turns[key]
	if !ok {
		t = &turn{}
		s.turns[key] = t
	}

	return t
}

func (s *Schedule) after(interval time.Duration) time.Time {
	return time.Now().Add(s.Paced(interval))
}

// Paced returns an interval with the jitter of this process.
func (s *Schedule) Paced(interval time.Duration) time.Duration {
	return time.Duration(s.pace * float64(interval))
}

// Take removes and returns the next run. The key is empty if no run is due. order lists the active
// manifests by priority.
func (s *Schedule) Take(order []string, now time.Time, may May) (string, Wake) {
	key, w := s.nextDue(order, now, may)
	if key == "" {
		s.due.retain(order)
	}
	s.due.remove(key, w)
	if t := s.turns[key]; t != nil && w.Part == nil {
		w, t.postponed = w.over(t.postponed), Wake{}
	}

	return key, w
}

// Postpone delays a run that Take returned. It runs for the same reason after a growing wait.
func (s *Schedule) Postpone(key string, w Wake) {
	t := s.of(key)
	t.postponed, t.next = w.over(t.postponed), time.Now().Add(t.again.Next())
}

// Ran schedules the next run after a full run. began reports whether the run reached a resource.
func (s *Schedule) Ran(key string, interval time.Duration, began bool) {
	t := s.of(key)
	t.next = s.after(interval)
	if began {
		t.again.Reset()
	} else {
		s.Retry(key)
	}
}

// Retry schedules a full run after a growing wait, or before.
func (s *Schedule) Retry(key string) {
	t := s.of(key)
	t.next = model.EarlierTime(t.next, time.Now().Add(t.again.Next()))
}

// nextDue returns the first requested run, or otherwise the scheduled run that is due for longest. So a
// manifest that takes longer than its interval does not delay all others.
func (s *Schedule) nextDue(order []string, now time.Time, may May) (string, Wake) {
	oldest := ""
	for _, key := range order {
		if w, asked := s.due.of(key, may); asked {
			return key, w
		}
		if t := s.turns[key]; !now.Before(t.next) && (oldest == "" || t.next.Before(s.turns[oldest].next)) {
			if _, ok := may(key, nil); ok {
				oldest = key
			}
		}
	}
	w := Wake{Cause: model.CauseSchedule, At: now}
	if pending, failed := s.pending(oldest); pending {
		w.Cause, w.Retry = model.CauseManifest, failed
	}

	return oldest, w
}

// isRequested reports whether a user requested the change. Then the desired state may never have been
// reached, and a partial run must not precede the full run.
func isRequested(cause model.Cause) bool { return weight(cause) >= weight(model.CauseRequest) }

// Wake is the reason for the next run of a manifest, and its time.
type Wake struct {
	Cause model.Cause
	At    time.Time
	// Part lists the resources to run; nil is the whole manifest.
	Part []model.Ref
	// Retry reports whether the run repeats a failed one.
	Retry bool
}

// over joins two wakes of a manifest: the most important cause, the earliest time and all resources of
// both. The result is a retry if both are.
func (w Wake) over(other Wake) Wake {
	if other.At.IsZero() {
		return w
	}
	if w.Part != nil && other.Part != nil {
		w.Part = slices.Concat(other.Part, w.Part)
	} else {
		w.Part = nil
	}
	if weight(other.Cause) > weight(w.Cause) {
		w.Cause = other.Cause
	}
	w.Retry = w.Retry && other.Retry
	if other.At.Before(w.At) {
		w.At = other.At
	}

	return w
}

// weight orders causes by importance. A requested change precedes other events.
func weight(c model.Cause) int {
	return slices.Index([]model.Cause{model.CauseSchedule, model.CauseDrift, model.CauseHealth, model.CauseRequest, model.CauseCommand, model.CauseManifest}, c)
}

// Within is the length of a counting period. A period begins with the first change.
const Within = time.Minute

// Pace counts the changes of one manifest. Its methods are not safe for concurrent use. The zero value is
// ready to use.
type Pace struct {
	all  count
	each map[model.Ref]*count
	// queue holds the delayed resources, oldest first. The first `waiting` of them were delayed in the
	// period before and precede all others. Otherwise a resource that changes again and again would use the
	// whole limit. asked holds all of queue, and whether they asked in this period.
	queue   []model.Ref
	waiting int
	asked   map[model.Ref]bool
}

type count struct {
	since time.Time
	made  int
}

// Take counts a change of a resource. It returns the time of the next allowed change if a limit is reached:
// most changes of the manifest or each changes of the resource within a period, zero for no limit. Changes
// that delayed resources may need count as made.
func (p *Pace) Take(ref model.Ref, most, each int, now time.Time) (until time.Time) {
	if now.Sub(p.all.since) >= Within {
		p.begin(now)
	}
	of := &count{}
	if each > 0 {
		if p.each == nil {
			p.each = map[model.Ref]*count{}
		}
		if p.each[ref] == nil {
			p.each[ref] = of
		}
		of = p.each[ref]
	}
	until = of.until(each, now)
	if !p.hasTurn(ref, most) {
		p.put(ref)
		return model.LaterTime(until, p.all.since.Add(Within))
	}
	// A resource that may change but must wait for its own limit leaves the change to others.
	p.remove(ref)
	if until.IsZero() {
		p.all.made++
		of.made++
	}

	return until
}

// GiveBack returns the change of a resource that needs no change after all. taken is the time of the Take
// that counted it, zero if none did. GiveBack reports whether other resources wait for a change.
func (p *Pace) GiveBack(ref model.Ref, taken time.Time) (wanted bool) {
	reserved := p.remove(ref)
	counted := !taken.IsZero() && !taken.Before(p.all.since) && p.all.made > 0
	if counted {
		p.all.made--
	}
	if of := p.each[ref]; of != nil && !taken.IsZero() && !taken.Before(of.since) && of.made > 0 {
		of.made--
	}

	return (reserved || counted) && len(p.queue) > 0
}

// begin starts a period. It removes resources that did not ask in the last period.
func (p *Pace) begin(now time.Time) {
	p.all = count{since: now}
	p.queue = slices.DeleteFunc(p.queue, func(ref model.Ref) bool { return !p.asked[ref] })
	asked := make(map[model.Ref]bool, len(p.queue))
	for _, ref := range p.queue {
		asked[ref] = false
	}
	p.asked, p.waiting = asked, len(p.queue)
	maps.DeleteFunc(p.each, func(_ model.Ref, c *count) bool { return now.Sub(c.since) >= Within })
}

// hasTurn reports whether the limit of the manifest allows a change of a resource.
func (p *Pace) hasTurn(ref model.Ref, most int) bool {
	left := most - p.all.made
	switch {
	case most == 0:
		return true
	case left <= 0:
		return false
	default:
		return p.waiting < left || slices.Contains(p.queue[:left], ref)
	}
}

func (p *Pace) put(ref model.Ref) {
	if _, waits := p.asked[ref]; !waits {
		p.queue = append(p.queue, ref)
	}
	p.asked[ref] = true
}

// remove removes a resource from the queue. It reports whether the resource preceded others.
func (p *Pace) remove(ref model.Ref) (reserved bool) {
	if _, waits := p.asked[ref]; !waits {
		return false
	}
	delete(p.asked, ref)
	at := slices.Index(p.queue, ref)
	p.queue = slices.Delete(p.queue, at, at+1)
	if reserved = at < p.waiting; reserved {
		p.waiting--
	}

	return reserved
}

// until returns when the limit of a resource allows another change; zero means now.
func (c *count) until(most int, now time.Time) time.Time {
	if now.Sub(c.since) >= Within {
		*c = count{since: now}
	}
	if most == 0 || c.made < most {
		return time.Time{}
	}

	return c.since.Add(Within)
}
