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
}

// count is how many changes were made since a time.
type count struct {
	since time.Time
	made  int
}

// Take counts a change of a resource, unless most of its manifest or each of the resource
// were made within a minute; zero is no limit. Then it returns when the next one may be
// made.
func (p *Pace) Take(ref model.Ref, most, each int, now time.Time) (until time.Time) {
	if now.Sub(p.all.since) >= Within {
		p.all = count{since: now}
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
	if until = tasks.Later(p.all.until(most, now), of.until(each, now)); until.IsZero() {
		p.all.made++
		of.made++
	}

	return until
}

// until returns when another change may be made; zero is now.
func (c *count) until(most int, now time.Time) time.Time {
	if now.Sub(c.since) >= Within {
		*c = count{since: now}
	}
	if most == 0 || c.made < most {
		return time.Time{}
	}

	return c.since.Add(Within)
}
