package fleetcmd

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/targets"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// TestWhatIsIncompleteSaysSo: history that is cut off, and what cannot be read or judged.
func TestWhatIsIncompleteSaysSo(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var many view.CurrentResults
	for i := range view.MaxResources + 1 {
		many.AddResult(targets.Result{Node: "web01", Resource: strconv.Itoa(i)})
	}
	var full view.Shares
	full.Add(model.StoredReports{Reports: []model.Report{{Node: "web01", Kind: model.KindRun, Outcome: model.OutcomeStable}}})
	for name, c := range map[string]struct {
		results view.ResultMatches
		bounds  model.ReportBounds
		want    []string
	}{
		"all is there":            {view.ResultMatches{}, model.ReportBounds{Oldest: since.Add(-time.Hour), Dropped: true, PerSubject: 240}, nil},
		"the stream is young":     {view.ResultMatches{}, model.ReportBounds{Oldest: since.Add(time.Hour)}, nil},
		"older ones were dropped": {view.ResultMatches{}, model.ReportBounds{Oldest: since.Add(time.Hour), Dropped: true}, []string{"reports from before 2026-01-02 "}},
		"a node filled its share": {view.ResultMatches{Shares: full}, model.ReportBounds{PerSubject: 1}, []string{"only the newest 1 reports of each are retained: web01 (run stable)"}},
		"invalid":                 {view.ResultMatches{Invalid: 2, Undecided: map[string]bool{"web02": true}}, model.ReportBounds{}, []string{"2 messages with reports that cannot be read", "cannot tell whether results of 1 node match: web02"}},
		"too many":                {view.ResultMatches{Full: true}, model.ReportBounds{}, []string{"more than 200000 match"}},
		"a node has very many":    {view.ResultMatches{Cut: many.Full()}, model.ReportBounds{}, []string{"only 50000 resources, and not all manifests, are shown of 1 node: web01"}},
	} {
		got := incompleteResults(&c.results, c.bounds, since)
		if len(got) != len(c.want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i, text := range c.want {
			if !strings.HasPrefix(got[i], text) {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
}

// TestNewest checks that the last reports of any number remain, each once, in both orders.
func TestNewest(t *testing.T) {
	t.Parallel()
	for count, want := range map[int]string{0: " ", 1: "0 0", 3: "012 210", 4: "123 321", 6: "345 543", 8: "567 765"} {
		all := func(yield func(model.Report, error) bool) {
			for i := range 2 * count { // NATS may deliver a report twice
				if !yield(model.Report{Node: "web01", ID: strconv.Itoa(i / 2)}, nil) {
					return
				}
			}
		}
		ids := func(reversed bool) (ids string) {
			var out bytes.Buffer
			c := reportsCommand{Env: &cli.Env{Print: print.Printer{Out: &out}}, Format: print.Format{JSON: true}}
			c.Limit, c.Reverse = 3, reversed
			if err := c.list(t.Context(), all, nil); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(out.String()) {
				var r struct{ ID string }
				if err := json.Unmarshal([]byte(line), &r); err != nil {
					t.Fatal(err)
				}
				ids += r.ID
			}
			return ids
		}
		if got := ids(false) + " " + ids(true); got != want {
			t.Errorf("of %d: %s, want %s", count, got, want)
		}
	}
}
