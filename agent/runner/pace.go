package runner

import (
	"maps"
	"slices"
	"time"

	"github.com/musterfleet/muster/model"
)

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

// count is the number of changes since a time.
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

// put adds a resource to the end of the queue.
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
