package localcmd

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/redact"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/manifest"
)

// graphCommand is muster graph.
type graphCommand struct {
	*cli.Env
	manifestFlags
	print.Format
	dot bool
}

func addGraph(env *cli.Env, app *fisk.Application) {
	c := &graphCommand{Env: env}
	cmd := app.Command("graph", "Show the order of a manifest's resources, and the reasons for it")
	cmd.HelpLong("Changes nothing and reads no resource. An edge that no property declares, because one resource provides what another needs, is marked as automatic.\n\n" +
		"  muster graph site.yaml\n  muster graph --dot site.yaml | dot -Tsvg >site.svg")
	cmd.Flag("dot", "Print for Graphviz").UnNegatableBoolVar(&c.dot)
	c.AddFormat(cmd)
	c.add(cmd)
	c.AddReadEnv(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *graphCommand) run(ctx context.Context) error {
	facts, err := c.LazyFacts(c.Inputs)
	if err != nil {
		return err
	}

	return c.open(ctx, c.Env, c.Loader(facts), func(m opened) error {
		built, err := plan.Build(m.Resources, m.session.known)
		if err != nil {
			return err
		}
		shown := showGraph(m.Resolved, built, m.session.known)
		text := shown.text
		if c.dot {
			text = shown.dot
		}
		return c.Print.Result(c.Format, shown, func() { fmt.Fprint(c.Print.Out, text()) })
	})
}

// shownGraph is what muster graph prints.
type shownGraph struct {
	Resources []shownStep `json:"resources"`
}

// shownStep is a resource in the order of the run.
type shownStep struct {
	Ref    model.Ref      `json:"ref"`
	Alias  string         `json:"alias,omitempty"`
	Source model.Position `json:"source,omitzero"`
	// Excluded is why the control property excludes it.
	Excluded string      `json:"excluded,omitempty"`
	Waits    []shownWait `json:"waits"`
}

// shownWait is the reason for the order of two resources.
type shownWait struct {
	For       model.Ref `json:"for"`
	Reason    string    `json:"reason"`
	Automatic bool      `json:"automatic"`
	// Earlier is set for a resource of an earlier command of the session.
	Earlier bool `json:"earlier,omitempty"`
	// LeftOut is set for a resource of a manifest that control excludes, Unread for
	// one of a manifest that is only read during the run.
	LeftOut bool `json:"left_out,omitempty"`
	Unread  bool `json:"unread,omitempty"`
}

func showGraph(resolved *manifest.Resolved, g *plan.Graph, known plan.Known) shownGraph {
	// A path may be a secret, which only those two resources know.
	redactor := redact.New(resolved.Secrets...)
	out := shownGraph{Resources: []shownStep{}}
	for _, step := range g.Steps() {
		r := step.Resource
		shown := shownStep{Ref: r.Ref(), Alias: r.Meta().Alias, Source: r.Pos, Excluded: redactor.Redact(r.Excluded), Waits: []shownWait{}}
		for i, e := range append(slices.Clone(step.Waits), step.Elsewhere...) {
			wait := shownWait{For: e.From, Reason: redactor.Redact(e.Reason), Automatic: e.Automatic}
			switch {
			case i < len(step.Waits):
			case known(e.From):
				wait.Earlier = true
			case g.IsExcluded(e.From):
				wait.LeftOut = true
			default:
				wait.Unread = true
			}
			shown.Waits = append(shown.Waits, wait)
		}
		out.Resources = append(out.Resources, shown)
	}

	return out
}

// text returns one line for each resource, and one for each resource that it waits for.
func (g shownGraph) text() string {
	var b strings.Builder
	width := len(strconv.Itoa(len(g.Resources)))
	for i, step := range g.Resources {
		fmt.Fprintf(&b, "%*d  %s", width, i+1, print.Text(step.Ref.String()))
		if step.Excluded != "" {
			fmt.Fprintf(&b, "  (excluded: %s)", print.Text(step.Excluded))
		}
		b.WriteByte('\n')
		for _, line := range step.reasons() {
			fmt.Fprintf(&b, "%*s    after %s\n", width, "", print.Text(line))
		}
	}

	return b.String()
}

// reasons returns the resources that a resource waits for, each with all reasons.
func (s shownStep) reasons() []string {
	var order []model.Ref
	why := map[model.Ref][]string{}
	for _, w := range s.Waits {
		if why[w.For] == nil {
			order = append(order, w.For)
		}
		why[w.For] = append(why[w.For], w.words())
	}
	out := make([]string, len(order))
	for i, ref := range order {
		out[i] = ref.String() + " (" + strings.Join(why[ref], ", ") + ")"
	}

	return out
}

func (w shownWait) words() string {
	switch {
	case w.Automatic:
		return "automatic: " + w.Reason
	case w.Earlier:
		return w.Reason + ", of an earlier command of the session"
	case w.LeftOut:
		return w.Reason + ", in a manifest that is left out"
	case w.Unread:
		return w.Reason + ", in a manifest that is read during the run"
	default:
		return w.Reason
	}
}

// dot returns the graph for Graphviz: automatic edges are dashed, excluded
// resources dotted.
func (g shownGraph) dot() string {
	var b strings.Builder
	b.WriteString("digraph muster {\n  rankdir=LR;\n  node [shape=box];\n")
	for _, step := range g.Resources {
		style := ""
		if step.Excluded != "" {
			style = " [style=dotted]"
		}
		fmt.Fprintf(&b, "  %s%s;\n", dotText(step.Ref.String()), style)
	}
	for _, step := range g.Resources {
		for _, w := range step.Waits {
			style := ""
			if w.Automatic {
				style = ", style=dashed"
			}
			fmt.Fprintf(&b, "  %s -> %s [label=%s%s];\n", dotText(w.For.String()), dotText(step.Ref.String()), dotText(w.Reason), style)
		}
	}
	b.WriteString("}\n")

	return b.String()
}

// dotText quotes a text for the DOT language.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(print.Text(s)) + `"`
}
