// Package pace counts the changes that are made to a manifest, and says when the next one
// may be made where a limit is set.
package pace

import (
	"maps"
	"time"

	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// Within is the time whose changes are counted: it begins with the first of them.
const Within = time.Minute

// Pace counts the changes of one manifest. It is for one goroutine; the zero value has
// counted none.
type Pace struct {
	all  count
	each map[model.Ref]*count
	// waiting were put off in the minute before, and are first in this one: else what
	// changes at every run would leave nothing to what comes after it. putOff are those
	// of this minute.
	waiting, putOff map[model.Ref]bool
}

// count is how many changes were made since a time.
type count struct {
	since time.Time
	made  int
}

// Take counts a change of a resource, unless most of its manifest or each of the resource
// were made within a minute, or are left to what was put off before; zero is no limit. Then
// it returns when the next one may be made.
func (p *Pace) Take(ref model.Ref, most, each int, now time.Time) (until time.Time) {
	if now.Sub(p.all.since) >= Within {
		p.all = count{since: now}
		p.waiting, p.putOff = p.putOff, nil
		maps.DeleteFunc(p.each, func(_ model.Ref, c *count) bool { return now.Sub(c.since) >= Within })
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
	if until = tasks.Later(p.untilTurn(ref, most), of.until(each, now)); until.IsZero() {
		p.all.made++
		of.made++
		delete(p.waiting, ref)
		delete(p.putOff, ref)
	}

	return until
}

// untilTurn returns when a resource may be changed by the limit of the manifest; zero is
// now.
func (p *Pace) untilTurn(ref model.Ref, most int) time.Time {
	first := len(p.waiting)
	if p.waiting[ref] {
		first = 0
	}
	if most == 0 || p.all.made+first < most {
		return time.Time{}
	}
	if p.putOff == nil {
		p.putOff = map[model.Ref]bool{}
	}
	p.putOff[ref] = true

	return p.all.since.Add(Within)
}

// until returns when another change may be made by the limit of a resource; zero is now.
func (c *count) until(most int, now time.Time) time.Time {
	if now.Sub(c.since) >= Within {
		*c = count{since: now}
	}
	if most == 0 || c.made < most {
		return time.Time{}
	}

	return c.since.Add(Within)
}
