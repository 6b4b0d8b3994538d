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

// maxPlan limits the encoded length of a plan in bytes: operators collect the plans of thousands of
// nodes.
const maxPlan = 64 << 10

// parsePreview decodes a preview request.
func parsePreview(data []byte) (req model.PreviewRequest, err error) {
	if _, problems := document.DecodeInto("preview", data, document.MaxBytes, &req); problems != nil {
		return model.PreviewRequest{}, problems
	}

	return req, check(req)
}

// Names replaces node-specific texts in the locations of a plan, so that equal plans of different
// nodes are shown once.
type Names = strings.Replacer

// NamesOf returns Names that replace key, the name of the document, by name, and make paths below dir
// relative.
func NamesOf(key, name, dir string) *Names {
	if dir == "" {
		return strings.NewReplacer(key, name)
	}

	return strings.NewReplacer(dir+"/", "", key, name)
}

// Rejected returns the plan for a manifest that the node would reject.
func Rejected(problems model.Problems, names *Names) *model.Plan {
	p := &model.Plan{}
	for _, problem := range problems.Sorted() {
		p.Errors = append(p.Errors, "would be rejected: "+names.Replace(problem.Error()))
	}

	return finish(p)
}

// Inactive returns the plan for a manifest that would not run.
func Inactive(why string) *model.Plan { return finish(&model.Plan{Inactive: why}) }

// Of returns the plan that a noop run predicts.
func Of(run *model.Run, all []*model.Transaction, names *Names) *model.Plan {
	p := &model.Plan{Counts: run.Counts}
	reported := map[string]bool{}
	for _, t := range all {
		if t.OK() && !t.Changed {
			continue
		}
		for _, text := range t.Errors {
			reported[t.Label()+": "+text] = true
		}
		p.Transactions = append(p.Transactions, bare(t, names))
	}
	for _, text := range run.Errors {
		if !reported[text] {
			p.Errors = append(p.Errors, names.Replace(text))
		}
	}

	return finish(p)
}

// bare returns the parts of a transaction that are equal on all nodes with the same changes.
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

// finish sets the digest of a plan, then cuts the plan to maxPlan: first it removes diffs from the
// end, then resources from the end.
func finish(p *model.Plan) *model.Plan {
	encoded, err := json.Marshal(p)
	if err != nil {
		encoded = fmt.Append(nil, err)
	}
	p.Digest = model.DigestOf(encoded)
	over := len(encoded) - maxPlan
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
	b, _ := json.Marshal(v) // the same value was encoded before

	return len(b)
}
