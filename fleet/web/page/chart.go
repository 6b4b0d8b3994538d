package page

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/view"
)

// The size of charts in their own units; the browser stretches them.
const (
	chartWidth, chartHeight = 960.0, 100.0
	maxBars                 = 96
)

// rect is a rectangle of a chart.
type rect struct{ x, y, width, height, tone string }

// column is what a chart has for one interval of time.
type column struct {
	at    time.Time
	title string
	parts []rect
}

// chart is the history of a fleet as columns.
type chart struct {
	columns []column
	// top is what the upper end stands for.
	top                             int
	runs, changed, failed, repaired int
	// first is when it begins, until when its last interval ends.
	first, until time.Time
	points       []view.Point
}

// Last is the time range of a chart: a duration up to now, empty for the whole history.
type Last string

// lasts returns the choices.
func lasts() []Last { return []Last{"1h", "6h", "24h", ""} }

// word returns the text of a choice.
func (l Last) word() string {
	if l == "" {
		return "All"
	}

	return string(l)
}

// of returns the points in the range. An invalid range selects all points.
func (l Last) of(all []view.Point, now time.Time) []view.Point {
	d, err := time.ParseDuration(string(l))
	if err != nil || d <= 0 {
		return all
	}
	for i, p := range all {
		if p.At.After(now.Add(-d)) {
			return all[i:]
		}
	}

	return nil
}

// newChart makes the chart of a history: as many columns as can be told apart.
func newChart(history []view.Point) chart {
	c := chart{points: merged(history, maxBars), top: 1}
	for _, p := range c.points {
		c.runs, c.changed, c.failed, c.repaired = c.runs+p.Runs, c.changed+p.Changed, c.failed+p.Failed, c.repaired+p.Repaired
		c.top = max(c.top, p.Changed+p.Failed+p.Repaired)
	}
	c.top = roundUp(c.top)
	for i, p := range c.points {
		c.columns = append(c.columns, c.column(i, p))
	}
	if len(c.points) > 0 {
		c.first, c.until = c.points[0].At, history[len(history)-1].At
		if n := len(history); n > 1 {
			c.until = c.until.Add(history[n-1].At.Sub(history[n-2].At))
		}
	}

	return c
}

// end returns where the last interval ends, at most now.
func (c chart) end(now time.Time) time.Time {
	if c.until.After(now) {
		return now
	}

	return c.until
}

// isLong reports whether the times of the chart need a day. A chart of 24 hours ends now, before the end of its last
// interval, so it is shorter than 24 hours.
func (c chart) isLong(now time.Time) bool { return c.end(now).Sub(c.first) > 12*time.Hour }

func (c chart) column(i int, p view.Point) column {
	width := chartWidth / float64(len(c.points))
	out := column{at: p.At, title: fmt.Sprintf("%s: %s, %d changed, %d repaired, %d failed", UTC(p.At), Count(p.Runs, "run"), p.Changed, p.Repaired, p.Failed)}
	y := chartHeight
	for _, part := range []struct {
		count int
		tone  string
	}{{p.Failed, "bad"}, {p.Repaired, "repaired"}, {p.Changed, "changed"}} {
		if part.count == 0 {
			continue
		}
		height := max(chartHeight*float64(part.count)/float64(c.top), 1.5)
		y -= height
		out.parts = append(out.parts, rect{units(float64(i)*width + width*0.12), units(y), units(width * 0.76), units(height), part.tone})
	}

	return out
}

// merged returns points of which there are at most some, each the sum of those that follow one another.
func merged(points []view.Point, most int) []view.Point {
	each := (len(points) + most - 1) / most
	if each <= 1 {
		return points
	}
	var out []view.Point
	for i, p := range points {
		if i%each == 0 {
			out = append(out, p)
			continue
		}
		last := &out[len(out)-1]
		last.Runs, last.Changed, last.Failed, last.Repaired = last.Runs+p.Runs, last.Changed+p.Changed, last.Failed+p.Failed, last.Repaired+p.Repaired
	}

	return out
}

// roundUp returns the next number that reads well on a scale: 1, 2, 4, 6, 8, 10, 20, 40 …
func roundUp(n int) int {
	unit := 1
	for unit*10 < n {
		unit *= 10
	}
	for _, step := range []int{1, 2, 4, 6, 8, 10} {
		if step*unit >= n {
			return step * unit
		}
	}

	return n
}

// bar returns the parts of a bar of one line, each in proportion; the smallest can be seen.
func bar(parts []share) []rect {
	total := 0
	for _, p := range parts {
		total += p.count
	}
	var out []rect
	x, last := 0.0, 0.0
	for _, p := range parts {
		if p.count == 0 {
			continue
		}
		width := max(chartWidth*float64(p.count)/float64(total), 8)
		width = min(width, chartWidth-x)
		out = append(out, rect{units(x), "0", units(max(width-3, 3)), "10", p.tone})
		last = x
		x += width
	}
	if len(out) > 0 { // behind the last part there is no gap
		out[len(out)-1].width = units(chartWidth - last)
	}

	return out
}

// barText describes a bar in words.
func barText(parts []share) string {
	var words []string
	for _, p := range parts {
		if p.count > 0 {
			words = append(words, Number(p.count)+" "+strings.ToLower(p.word))
		}
	}
	if words == nil {
		return "no nodes"
	}

	return strings.Join(words, ", ")
}

func units(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
