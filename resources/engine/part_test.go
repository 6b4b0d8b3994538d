package engine_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/engine/plan"
)

// part returns the part of a graph with some resources, "type#name".
func (w *world) part(g *plan.Graph, refs ...string) *plan.Graph {
	w.t.Helper()
	part, ok := g.Part(references(refs...))
	if !ok {
		w.t.Fatalf("no part with %v", refs)
	}
	return part
}

func references(names ...string) (refs []model.Ref) {
	for _, text := range names {
		typ, name, _ := strings.Cut(text, "#")
		refs = append(refs, model.Ref{Type: typ, Name: name})
	}
	return refs
}

// TestPart runs a part of an applied manifest after drift.
func TestPart(t *testing.T) {
	cases := map[string]struct {
		lines, drifted, refs, failed []string
		// looked are the observed resources, want the results.
		looked, want []string
	}{
		"one of many":                {[]string{"thing a value=1", "thing b value=1", "thing c value=1"}, []string{"b"}, []string{"thing#b"}, nil, []string{"b"}, []string{"thing#b changed"}},
		"nothing differs":            {[]string{"thing a value=1", "svc s value=1 subscribe=thing#a"}, nil, []string{"thing#a"}, nil, []string{"a"}, []string{"thing#a stable"}},
		"a subscriber follows":       {[]string{"thing a value=1", "svc s value=1 subscribe=thing#a", "thing b value=1"}, []string{"a"}, []string{"thing#a"}, nil, []string{"a", "s"}, []string{"thing#a changed", "svc#s refreshed"}},
		"a chain follows":            {[]string{"thing a value=1", "svc s value=1 subscribe=thing#a", "svc u value=1 subscribe=svc#s"}, []string{"a"}, []string{"thing#a"}, nil, []string{"a", "s", "u"}, []string{"thing#a changed", "svc#s refreshed", "svc#u refreshed"}},
		"the subscriber itself":      {[]string{"thing a value=1", "svc s value=1 subscribe=thing#a"}, []string{"s"}, []string{"svc#s"}, nil, []string{"s"}, []string{"svc#s changed"}},
		"by its alias":               {[]string{"thing a value=1 alias=first", "svc s value=1 subscribe=thing#first"}, []string{"a"}, []string{"thing#first"}, nil, []string{"a", "s"}, []string{"thing#a changed", "svc#s refreshed"}},
		"what is required stands":    {[]string{"thing a value=1", "thing b value=1 require=thing#a"}, []string{"a", "b"}, []string{"thing#b"}, nil, []string{"b"}, []string{"thing#b changed"}},
		"what is required failed":    {[]string{"thing a value=1", "thing b value=1 require=thing#a"}, []string{"b"}, []string{"thing#b"}, []string{"thing#a"}, []string{"b"}, []string{"thing#b unmet"}},
		"failed, by its alias":       {[]string{"thing a value=1 alias=x", "thing b value=1 require=thing#x"}, []string{"b"}, []string{"thing#b"}, []string{"thing#a"}, []string{"b"}, []string{"thing#b unmet"}},
		"what it must not remove":    {[]string{"rel a value=1 removes=value:b", "rel b value=1"}, nil, []string{"rel#a"}, nil, []string{"a"}, []string{"rel#a stable"}},
		"two of them, in order":      {[]string{"thing c value=1", "thing a value=1 require=thing#b", "thing b value=1"}, []string{"a", "b"}, []string{"thing#a", "thing#b"}, nil, []string{"b", "a"}, []string{"thing#b changed", "thing#a changed"}},
		"a failing change":           {[]string{"thing a value=1 fail_at=apply", "svc s value=1 subscribe=thing#a"}, []string{"a"}, []string{"thing#a"}, nil, []string{"a"}, []string{"thing#a failed"}},
		"a change that fails midway": {[]string{"thing a value=1 fail_at=halfway", "svc s value=1 subscribe=thing#a"}, []string{"a"}, []string{"thing#a"}, nil, []string{"a", "s"}, []string{"thing#a failed", "svc#s stable"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			g := w.graph(c.lines...)
			for _, n := range g.Nodes() {
				w.m.set(n.Ref.Name, "1")
			}
			for _, name := range c.drifted {
				w.m.set(name, "drifted")
			}
			var looked []string
			w.hook = func(event, name string) {
				if event == "status" && !slices.Contains(looked, name) {
					looked = append(looked, name)
				}
			}
			part := w.part(g, c.refs...)
			w.opts.Cause = model.CauseDrift
			w.opts.Prior = plan.HistoryForPartial(part, func(ref model.Ref) bool { return slices.Contains(references(c.failed...), ref) })
			summary := w.run(part)
			w.outcomes(c.want...)
			slices.Sort(looked)
			slices.Sort(c.looked)
			equal(t, looked, c.looked)
			if summary.Counts.Unique != len(c.want) || summary.Counts.Total != len(c.want) {
				t.Errorf("the summary counts %+v, want %d", summary.Counts, len(c.want))
			}
		})
	}
}

// TestNoPart checks a reference that the manifest does not declare. It may belong to a manifest
// that was read during a run.
func TestNoPart(t *testing.T) {
	w := newWorld(t)
	if part, ok := w.graph("thing a value=1").Part(references("thing#other")); ok {
		t.Fatalf("a part: %v", part.Nodes())
	}
}

// TestPartKeepsTheWholesProviders checks a change that would remove something that a resource
// outside of the part provides.
func TestPartKeepsTheWholesProviders(t *testing.T) {
	w := newWorld(t)
	g := w.graph("rel a value=1 provides=x", "rel b value=1 provides=y")
	part := w.part(g, "rel#a")
	if p := part.ProviderBeside(part.Nodes()[0], "y"); p == nil || p.Ref.Name != "b" {
		t.Errorf("beside a, %v provides y, want b", p)
	}
	if p := part.ProviderBeside(part.Nodes()[0], "x"); p != nil {
		t.Errorf("beside a, %v provides x", p.Ref)
	}
}

// TestRepairIsDescribed checks the drift in the transaction of a repair.
func TestRepairIsDescribed(t *testing.T) {
	w := newWorld(t)
	g := w.graph("thing a value=1")
	w.m.set("a", "other")
	w.opts.Woken = time.Now().Add(-time.Second)
	w.run(g)
	if w.txs["thing#a"].Drift != nil {
		t.Error("a change that somebody asked for is drift")
	}
	w.m.set("a", "other")
	w.opts.Cause = model.CauseDrift
	w.run(w.part(g, "thing#a"))
	d := w.txs["thing#a"].Drift
	if d == nil || d.From != "value: other" || !d.SeenAt.Equal(w.opts.Woken) || d.Latency < time.Second || !d.RepairedAt.Equal(d.SeenAt.Add(d.Latency)) {
		t.Errorf("the drift is %+v", d)
	}
}

// TestPartAndPendingRefreshes checks the journal, which a part shares with its manifest.
func TestPartAndPendingRefreshes(t *testing.T) {
	w := newWorld(t)
	g := w.graph("thing a value=1", "svc s value=1 subscribe=thing#a", "thing b value=1", "svc u value=1 subscribe=thing#b")
	for _, n := range g.Nodes() {
		w.m.set(n.Ref.Name, "1")
	}
	dir := t.TempDir()
	file := engine.NewFileJournal(w.opts.Env.Host, dir, "test")
	w.opts.Journal, w.opts.Cause = file, model.CauseDrift
	if err := file.Add(t.Context(), references("svc#u")...); err != nil {
		t.Fatal(err)
	}
	w.m.set("a", "drifted")
	w.run(w.part(g, "thing#a"))
	w.outcomes("thing#a changed", "svc#s refreshed")
	if pending, err := file.Pending(); err != nil || !slices.Equal(pending, references("svc#u")) {
		t.Fatalf("%v is pending (%v), want the one that the part has nothing to do with", pending, err)
	}

	t.Run("damaged", func(t *testing.T) {
		files, err := filepath.Glob(filepath.Join(dir, "owed", "*.json"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.m.set("a", "drifted")
		summary := w.run(w.part(g, "thing#a"))
		w.outcomes("thing#a failed")
		contains(t, strings.Join(summary.Errors, "\n"), "journal of pending refreshes is damaged", "not changed, because the refresh of its subscribers cannot be recorded")
		w.m.set("b", "drifted")
		part := w.part(g, "thing#b")
		w.run(part)
		w.outcomes("thing#b failed")
		w.opts.Cause = model.CauseSchedule
		w.run(g) // the full run refreshes all subscribers
		w.outcomes("thing#a changed", "svc#s refreshed", "thing#b changed", "svc#u refreshed")
	})
}
