package chaos

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/musterfleet/muster/agent/runner"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// account is what the stream has of the node.
type account struct {
	// ids are the ids of reports and transactions.
	ids map[string]bool
	// seqs are those that came or were dropped, since the state directory was made;
	// states counts its makings.
	seqs    map[uint64]bool
	highest uint64
	states  int
	runs    map[string]*accountedRun
	// stored are how often a file was written, tried how often that failed, by path.
	stored, tried map[string]int
	unchanged     int
}

// accountedRun is a run by its reports.
type accountedRun struct {
	changed, other int
	summary        *model.Run
}

// checkReports returns the problems of the reports in the stream.
func (w judge) checkReports() error {
	a := account{ids: map[string]bool{}, seqs: map[uint64]bool{}, runs: map[string]*accountedRun{}, stored: map[string]int{}, tried: map[string]int{}}
	var all []model.Report
	for r, err := range kvstore.NewReports(w.store.Store).Reports(w.t.Context(), model.ReportRange{Node: node}) {
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	if w.pardons.disorder {
		slices.SortStableFunc(all, func(a, b model.Report) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	for _, r := range all {
		if err := a.take(r, w.pardons); err != nil {
			return err
		}
	}
	if err := errors.Join(a.checkSeqs(), a.checkRuns(w.pardons)); err != nil {
		return err
	}
	for _, path := range w.files {
		replaced, stored := w.history.count(path), a.stored[path]
		most := w.attempts() * (stored + a.tried[path] + a.unchanged + w.pardons.kills)
		if replaced < stored || replaced > most && !w.pardons.dropped {
			return fmt.Errorf("%s was replaced %d times; %d transactions say so, %d say that it failed; %d kills", path, replaced, stored, a.tried[path], w.pardons.kills)
		}
	}

	return nil
}

// attempts is the limit of file replacements per transaction: one, and one more if the file drifts again
// before the verification.
func (w judge) attempts() int {
	if w.raced.Load() {
		return 2
	}

	return 1
}

func (a *account) take(r model.Report, p pardons) error {
	if a.ids[r.ID] {
		return fmt.Errorf("report %s is there twice", r.ID)
	}
	a.ids[r.ID] = true
	if r.Kind == model.KindNode && r.Outcome == model.Outcome(model.NodeStarted) && r.Seq == 1 && a.highest > 0 && a.states < p.newStates {
		if err := a.checkSeqs(); err != nil {
			return err
		}
		a.states++
		a.highest, a.seqs = 0, map[uint64]bool{}
	}
	if a.seqs[r.Seq] {
		return fmt.Errorf("seq %d is there twice: %s %s", r.Seq, r.Kind, r.Outcome)
	}
	if r.Seq < a.highest && !p.dropped {
		return fmt.Errorf("seq %d follows %d: %s %s", r.Seq, a.highest, r.Kind, r.Outcome)
	}
	a.seqs[r.Seq], a.highest = true, max(a.highest, r.Seq)
	switch r.Kind {
	case model.KindTransaction:
		var t model.Transaction
		if err := json.Unmarshal(r.Data, &t); err != nil {
			return err
		}
		return a.transaction(&t)
	case model.KindRun:
		var s model.Run
		if err := json.Unmarshal(r.Data, &s); err != nil {
			return err
		}
		return a.summary(&s)
	case model.KindNode:
		return a.node(r, p)
	}

	return nil
}

func (a *account) run(id string) *accountedRun {
	if a.runs[id] == nil {
		a.runs[id] = &accountedRun{}
	}

	return a.runs[id]
}

func (a *account) transaction(t *model.Transaction) error {
	if a.ids[t.EventID] {
		return fmt.Errorf("transaction %s is there twice", t.EventID)
	}
	a.ids[t.EventID] = true
	run := a.run(t.RunID)
	if run.summary != nil {
		return fmt.Errorf("%s of run %s came after its summary", t.Ref(), t.RunID)
	}
	if t.Changed && t.OK() {
		run.changed++
	} else {
		run.other++
	}
	if slices.ContainsFunc(t.Changes, func(c model.Change) bool { return c.Action == "store" }) {
		if t.OK() {
			a.stored[t.Name]++
		} else {
			a.tried[t.Name]++
		}
	}

	return nil
}

func (a *account) summary(s *model.Run) error {
	run := a.run(s.RunID)
	if run.summary != nil {
		return fmt.Errorf("run %s has two summaries", s.RunID)
	}
	run.summary = s
	for _, u := range s.Unchanged {
		a.unchanged += u.Transactions
	}

	return nil
}

// node notes what an event says was dropped.
func (a *account) node(r model.Report, p pardons) error {
	if r.Outcome != model.Outcome(model.NodeDropped) {
		return nil
	}
	var s model.NodeState
	if err := json.Unmarshal(r.Data, &s); err != nil {
		return err
	}
	if !p.dropped {
		return fmt.Errorf("reports were dropped: %s", s.Message)
	}
	for _, in := range s.DroppedRanges {
		for seq := in.From; seq <= in.To; seq++ {
			a.seqs[seq] = true
		}
		a.highest = max(a.highest, in.To)
	}

	return nil
}

func (a *account) checkSeqs() error {
	for seq := uint64(1); seq <= a.highest; seq++ {
		if !a.seqs[seq] {
			return fmt.Errorf("report %d of %d is missing", seq, a.highest)
		}
	}

	return nil
}

// checkRuns compares the summaries with the transactions.
func (a *account) checkRuns(p pardons) error {
	open := 0
	for id, run := range a.runs {
		s := run.summary
		if s == nil {
			open++
			continue
		}
		unchanged := 0
		for _, u := range s.Unchanged {
			unchanged += u.Transactions
		}
		other := s.Counts.Failed + s.Counts.Skipped + s.Counts.NotRun
		if (run.changed != s.Counts.Changed || run.other+unchanged != other) && !p.dropped {
			return fmt.Errorf("run %s has %d changed and %d other transactions, its summary %+v and %d unchanged", id, run.changed, run.other, s.Counts, unchanged)
		}
	}
	// Several repairs may run at the same time.
	if open > p.kills*2*runner.Most && !p.dropped {
		return fmt.Errorf("%d runs have no summary, after %d kills", open, p.kills)
	}

	return nil
}
