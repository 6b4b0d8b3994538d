package requests

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// maxPlan is how long a plan may be, encoded: operators collect those of thousands of nodes.
const maxPlan = 64 << 10

// parse decodes a preview request.
func parsePreview(data []byte) (req model.PreviewRequest, err error) {
	if _, problems := document.DecodeInto("preview", data, document.MaxBytes, &req); problems != nil {
		return model.PreviewRequest{}, problems
	}

	return req, check(req)
}

// Names replaces what a node has of its own in the places of a plan: equal plans are shown
// once.
type Names = strings.Replacer

// NamesOf returns the Names by which key, the name of the document, becomes name, and what is
// below dir is relative.
func NamesOf(key, name, dir string) *Names {
	if dir == "" {
		return strings.NewReplacer(key, name)
	}

	return strings.NewReplacer(dir+"/", "", key, name)
}

// Rejected returns the plan of what the node would reject.
func Rejected(problems model.Problems, names *Names) *model.Plan {
	p := &model.Plan{}
	for _, problem := range problems.Sorted() {
		p.Errors = append(p.Errors, "would be rejected: "+names.Replace(problem.Error()))
	}

	return finish(p)
}

// Inactive returns the plan of what would not run.
func Inactive(why string) *model.Plan { return finish(&model.Plan{Inactive: why}) }

// Of returns the plan that a noop run predicts, of its transactions.
func Of(run *model.Run, all []*model.Transaction, names *Names) *model.Plan {
	p := &model.Plan{Counts: run.Counts}
	said := map[string]bool{}
	for _, t := range all {
		if t.OK() && !t.Changed {
			continue
		}
		for _, text := range t.Errors {
			said[t.Label()+": "+text] = true
		}
		p.Transactions = append(p.Transactions, bare(t, names))
	}
	for _, text := range run.Errors {
		if !said[text] {
			p.Errors = append(p.Errors, names.Replace(text))
		}
	}

	return finish(p)
}

// bare returns what of a transaction is the same on all nodes that have the same to do.
func bare(t *model.Transaction, names *Names) model.Transaction {
	out := model.Transaction{
		Protocol: t.Protocol, Type: t.Type, Name: t.Name, Alias: t.Alias, RequestedEnsure: t.RequestedEnsure,
		NoopMessage: t.NoopMessage, Changed: t.Changed, Failed: t.Failed, Skipped: t.Skipped, Noop: t.Noop,
		UnmetRequirements: t.UnmetRequirements, Changes: slices.Clone(t.Changes), Source: t.Source, Within: t.Within,
		SkipReason: t.SkipReason, WouldRefresh: t.WouldRefresh, NotRun: t.NotRun,
	}
	out.Source.File = names.Replace(out.Source.File)
	for _, text := range t.Errors {
		out.Errors = append(out.Errors, names.Replace(text))
	}

	return out
}

// finish digests a plan, and bounds it after that: first the diffs go, the last ones first,
// then resources.
func finish(p *model.Plan) *model.Plan {
	whole, err := json.Marshal(p)
	if err != nil {
		whole = fmt.Append(nil, err)
	}
	p.Digest = model.DigestOf(whole)
	over := len(whole) - maxPlan
	if over <= 0 {
		return p
	}
	p.Cut = true
	p.Errors = bounds.Errors(p.Errors, maxPlan/4)
	for i := len(p.Transactions) - 1; i >= 0 && over > 0; i-- {
		t := &p.Transactions[i]
		before := encodedLen(t)
		t.Errors = bounds.Errors(t.Errors, maxPlan/8)
		for j := range t.Changes {
			t.Changes[j].Diff = ""
		}
		over -= before - encodedLen(t)
	}
	for len(p.Transactions) > 0 && encodedLen(p) > maxPlan {
		p.Transactions = p.Transactions[:len(p.Transactions)*3/4]
	}

	return p
}

func encodedLen(v any) int {
	b, _ := json.Marshal(v) // it was encoded before

	return len(b)
}
