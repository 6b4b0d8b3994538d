package reporting

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
)

func TestFirst(t *testing.T) {
	start := time.Unix(1000, 0)
	single := func() model.Report { return model.Report{RunID: "a", Time: start} }
	batched := func(run string, after time.Duration) model.Report {
		return model.Report{RunID: run, Time: start.Add(after), Batch: true, Data: json.RawMessage(strings.Repeat("x", 1000))}
	}
	many := func(n int) (out []model.Report) {
		for range n {
			out = append(out, batched("a", 0))
		}
		return out
	}
	for name, c := range map[string]struct {
		reports     []model.Report
		n           int
		batch, open bool
	}{
		"none":                            {nil, 0, false, false},
		"single ones":                     {[]model.Report{single(), single()}, 2, false, false},
		"single ones before a batch":      {append([]model.Report{single()}, many(3)...), 1, false, false},
		"as many as there may be":         {many(maxReports), maxReports, true, false},
		"the run may go on":               {many(3), 3, true, true},
		"a summary behind it":             {append(many(3), single()), 3, true, false},
		"another run behind it":           {append(many(3), batched("b", 0)), 3, true, false},
		"within a second":                 {append(many(3), batched("a", time.Second), single()), 4, true, false},
		"later than a second":             {append(many(3), batched("a", time.Second+1)), 3, true, false},
		"one alone is no batch":           {append(many(1), single()), 1, false, false},
		"one alone that may become one":   {many(1), 1, false, true},
		"a clock that was set back":       {append(many(1), batched("a", -time.Hour), single()), 2, true, false},
		"one that is larger than a batch": {append([]model.Report{{RunID: "a", Time: start, Batch: true, Data: make([]byte, 1<<20)}}, many(3)...), 1, false, false},
		"a larger one behind":             {append(many(2), model.Report{RunID: "a", Time: start, Batch: true, Data: make([]byte, 1<<20)}), 2, true, false},
	} {
		n, batch, open := first(c.reports, 512<<10)
		if n != c.n || batch != c.batch || open != c.open {
			t.Errorf("%s: %d, batch %v, open %v", name, n, batch, open)
		}
	}
	const room = 50*(1000+maxEnvelope) + 1
	if n, batch, open := first(many(100), room); n != 50 || !batch || open {
		t.Errorf("in a message with room for 50: %d, batch %v, open %v", n, batch, open)
	}
}
