package status_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/agent/status"
	"github.com/musterfleet/muster/model"
)

// newNode returns a node with one assigned manifest.
func newNode(key string) *status.Node {
	n := status.New("v", func() config.Config { return config.Config{} }, func() int { return 0 }, func() int { return 0 }, status.System())
	n.SetAssignments(map[string]model.ManifestState{key: {Revision: 1}})

	return n
}

// TestWhatFailedIsShownFirst of many that were not run.
func TestWhatFailedIsShownFirst(t *testing.T) {
	const key = "group.all.many"
	r := newNode(key)
	found := r.Record(key, true)
	for i := range 60 {
		found.Note(&model.Transaction{Type: "file", Name: fmt.Sprintf("/%d", i), NotRun: true}, true)
	}
	found.Note(&model.Transaction{Type: "file", Name: "/broken", Failed: true}, true)
	found.Conclude(&model.Run{RunID: "run"}, true)
	var out model.AgentStatus
	r.Describe(&out)
	last := out.Manifests[0].Last
	if n := len(last.Deviations); n != 50 || last.More != 11 || last.Deviations[n-1].Resource != "file#/broken" {
		t.Errorf("%d are listed, and %d more: %+v", n, last.More, last.Deviations)
	}
}

// TestLastRepair is shown also where the run of a whole manifest made it, as after a run that
// failed; of a run of a part that ended beside it, the later one is.
func TestLastRepair(t *testing.T) {
	const key = "node.n1.site"
	drifted := func(name string) *model.Transaction {
		return &model.Transaction{Type: "file", Name: name, Changed: true, Cause: model.CauseDrift}
	}
	r := newNode(key)
	shown := func() string {
		var out model.AgentStatus
		r.Describe(&out)
		return out.Manifests[0].Last.Repair.Resource
	}
	record := r.Record(key, true)
	record.Note(drifted("/whole"), true)
	record.Conclude(&model.Run{RunID: "first"}, true)
	if got := shown(); got != "file#/whole" {
		t.Errorf("after the run of the whole, %s is shown", got)
	}
	record.Note(drifted("/part"), false)
	record.Conclude(&model.Run{RunID: "second"}, true)
	if got := shown(); got != "file#/part" {
		t.Errorf("after a run of a part and one without a repair, %s is shown", got)
	}
	record.Note(drifted("/whole"), true)
	record.Note(drifted("/later"), false)
	record.Conclude(&model.Run{RunID: "third"}, true)
	if got := shown(); got != "file#/later" {
		t.Errorf("after a run of the whole, and a later repair beside it, %s is shown", got)
	}
}

// TestPending: a requested change that a run did not make stays pending until a run makes it.
func TestPending(t *testing.T) {
	t.Parallel()
	const key = "node.n1.site"
	outcomes := map[model.Outcome]model.Counts{
		model.OutcomeFailed: {Failed: 1}, model.OutcomeNotRun: {NotRun: 1}, model.OutcomeChanged: {Changed: 1}, model.OutcomeNoop: {Changed: 1, Noop: 1},
	}
	for _, c := range []struct {
		cause           model.Cause
		outcome         model.Outcome
		pending, failed bool
	}{
		{model.CauseManifest, model.OutcomeFailed, true, true},
		{model.CauseManifest, model.OutcomeNotRun, true, false},
		{model.CauseCommand, model.OutcomeFailed, true, true},
		{model.CauseRequest, model.OutcomeFailed, true, true},
		{model.CauseManifest, model.OutcomeChanged, false, false},
		{model.CauseManifest, model.OutcomeNoop, false, false},
		{model.CauseSchedule, model.OutcomeFailed, false, true},
		{model.CauseHealth, model.OutcomeNotRun, false, false},
	} {
		n := newNode(key)
		n.Record(key, true).Conclude(&model.Run{Cause: c.cause, Counts: outcomes[c.outcome]}, true)
		if pending, failed := n.Pending(key); pending != c.pending || failed != c.failed {
			t.Errorf("%s, %s: %v, %v", c.cause, c.outcome, pending, failed)
		}
	}
}

// TestPartBesideAFullRun: a partial run that changes a result of a full run in progress makes the
// counts of the full run outdated.
func TestPartBesideAFullRun(t *testing.T) {
	t.Parallel()
	const key = "node.n1.site"
	stable, failed := model.Transaction{Type: "file", Name: "/a"}, model.Transaction{Type: "file", Name: "/a", Failed: true}
	notRun := model.Transaction{Type: "file", Name: "/a", NotRun: true, RetryAt: time.Now()}
	for name, c := range map[string]struct {
		full  model.Transaction
		parts []model.Transaction
		want  bool
	}{
		"no part":                    {full: failed},
		"the same result":            {stable, []model.Transaction{stable}, false},
		"a repair":                   {failed, []model.Transaction{stable}, true},
		"a failure":                  {stable, []model.Transaction{failed}, true},
		"a repair after the failure": {stable, []model.Transaction{failed, stable}, false},
		"a part that is put off":     {stable, []model.Transaction{notRun}, false},
		"a part of what did not run": {notRun, []model.Transaction{stable}, true},
	} {
		r := newNode(key).Record(key, true)
		r.Note(&c.full, true)
		for _, part := range c.parts {
			r.Note(&part, false)
		}
		if got := r.Conclude(&model.Run{Counts: model.Counts{Total: 1}}, true); got != c.want {
			t.Errorf("%s: outdated %v", name, got)
		}
	}
}

// TestEndOfAFailure: a full run must follow when all resources have recovered. Before, the state names the
// first resource that fails.
func TestEndOfAFailure(t *testing.T) {
	t.Parallel()
	const key = "node.n1.site"
	n := newNode(key)
	r := n.Record(key, true)
	note := func(name string, failed, full bool) {
		r.Note(&model.Transaction{Type: "file", Name: name, Failed: failed, Errors: []string{"no"}}, full)
	}
	note("/a", true, true)
	note("/b", true, true)
	r.Conclude(&model.Run{Revision: 1, Errors: []string{"site.yaml:3: file#/a: no", "site.yaml:4: file#/b: no"}, Counts: model.Counts{Total: 2, Failed: 2}}, true)
	for _, c := range []struct {
		name  string
		stale bool
		text  string
	}{
		{"/a", false, "site.yaml:4: file#/b: no"},
		{"/b", true, "site.yaml:4: file#/b: no"},
	} {
		note(c.name, false, false)
		if stale := r.ConcludePart(&model.Run{Counts: model.Counts{Total: 1, Changed: 1}}); stale != c.stale {
			t.Errorf("after %s: stale %v", c.name, stale)
		}
		if s := n.State().Manifests[key]; s.Outcome != model.OutcomeFailed || s.Error != c.text {
			t.Errorf("after %s: %s, %q", c.name, s.Outcome, s.Error)
		}
	}
}

// TestFormerRevision: a run of a former revision writes nothing into the record of the current one.
func TestFormerRevision(t *testing.T) {
	t.Parallel()
	const key = "node.n1.site"
	n := newNode(key)
	former := n.Record(key, true)
	n.Activate(key)
	former.Note(&model.Transaction{Type: "file", Name: "/a", Failed: true}, true)
	former.ConcludeFormer(&model.Run{RunID: "former", Counts: model.Counts{Total: 1, Failed: 1}})
	if failed := n.Record(key, false).Failed(); len(failed) > 0 {
		t.Errorf("%v failed", failed)
	}
	var out model.AgentStatus
	if n.Describe(&out); out.Manifests[0].State.Outcome != "" || out.Manifests[0].Last.RunID != "former" || len(out.Manifests[0].Last.Deviations) != 1 {
		t.Errorf("%+v", out.Manifests[0])
	}
	n.SetAssignments(nil)
	former.ConcludeFormer(&model.Run{RunID: "gone"})
	if len(n.State().Manifests) > 0 {
		t.Error("a removed manifest is shown")
	}
}
