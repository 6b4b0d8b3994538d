package ask_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/model"
)

func amount(t *testing.T, text string) ask.Amount {
	t.Helper()
	out, err := ask.ParseAmount(text)
	if err != nil {
		t.Fatal(err)
	}

	return out
}

func TestAmounts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"0": 0, "50": 50, "0%": 0, "10%": 19, "100%": 199} {
		if got := amount(t, text).Of(199); got != want {
			t.Errorf("%s of 199 is %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{"", "%", "-1", "101%", "1.5", "ten", "1 %", "99999999999999999999"} {
		if _, err := ask.ParseAmount(text); err == nil {
			t.Errorf("%q is an amount", text)
		}
	}
}

func names(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("n%d", i))
	}

	return out
}

// outcomes returns a network of ten nodes: the nodes in failed fail, those in missing do not answer, and those in slow do
// not finish.
func outcomes(failed, missing, slow string) *network {
	n := &network{answers: map[string][]model.EnsureResponse{}}
	for _, node := range names(10) {
		phase := model.EnsureDone
		switch {
		case strings.Contains(missing, node):
			continue
		case strings.Contains(failed, node):
			phase = model.EnsureFailed
		case strings.Contains(slow, node):
			phase = model.EnsureRunning
		}
		n.answers["node."+node] = []model.EnsureResponse{{Node: node, Phase: phase}}
	}

	return n
}

func TestBatchesStop(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size, most            string
		failed, missing, slow string
		asked                 int
		stopped               string
	}{
		"nothing fails":          {size: "3", most: "0", asked: 10},
		"one node each":          {size: "1%", most: "0", failed: "n2", asked: 3, stopped: "stopped after batch 3 of 10: 1 failed or did not answer, at most 0 may"},
		"as many as may":         {size: "3", most: "2", failed: "n0", missing: "n4", asked: 10},
		"one too many":           {size: "3", most: "1", failed: "n0", missing: "n4", asked: 6, stopped: "stopped after batch 2 of 4: 2 failed or did not answer, at most 1 may"},
		"who does not finish":    {size: "5", most: "10%", slow: "n0 n1", asked: 5, stopped: "stopped after batch 1 of 2: 2 failed or did not answer, at most 1 may"},
		"no bound":               {size: "5", failed: "n0 n1 n2 n3 n4 n5", asked: 10},
		"in the last batch":      {size: "5", most: "0", failed: "n9", asked: 10},
		"more than there are":    {size: "50", most: "0", failed: "n0", asked: 10},
		"a percentage of a none": {size: "50%", most: "0%", missing: "n4", asked: 5, stopped: "stopped after batch 1 of 2: 1 failed or did not answer, at most 0 may"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			by := ask.BatchLimits{Size: amount(t, c.size)}
			if c.most != "" {
				most := amount(t, c.most)
				by.MaxFailures = &most
			}
			n := outcomes(c.failed, c.missing, c.slow)
			got, err := (&ask.Request{Network: n, Targets: fleet.Targets(names(10), nil, false), Batches: &by}).Send(t.Context())
			asked := strings.Fields(strings.Join(n.sent, " "))
			if err != nil || len(asked) != c.asked || len(got.NotAsked) != 10-c.asked || got.Stopped != c.stopped {
				t.Errorf("asked %v, not %v, %q, %v", asked, got.NotAsked, got.Stopped, err)
			}
			if states := got.NodeStates(); len(states) != 10 {
				t.Errorf("states %v", states)
			}
			if isOK := c.failed+c.missing+c.slow == ""; got.OK() != isOK {
				t.Errorf("OK is %v", got.OK())
			}
		})
	}
}

// An error or the end of the context ends all batches.
func TestBatchesEnd(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	n := outcomes("", "", "n0 n1")
	n.await = func(batch string) error {
		if batch == "batch 2 of 3" {
			return lost
		}
		return nil
	}
	r := ask.Request{Network: n, Targets: fleet.Targets(names(6), nil, false), Batches: &ask.BatchLimits{Size: amount(t, "2")}}
	got, err := r.Send(t.Context())
	if !errors.Is(err, lost) || strings.Join(got.NotAsked, " ") != "n2 n3 n4 n5" || len(got.Answers) != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	n.held = true
	r.OnProgress = func(_ string, p ask.Progress) {
		if p.Acknowledged == 2 {
			cancel()
		}
	}
	got, err = r.Send(ctx)
	if err != nil || strings.Join(got.NotAsked, " ") != "n2 n3 n4 n5" || got.Stopped != "" || got.OK() {
		t.Errorf("got %+v, %v", got, err)
	}
}
