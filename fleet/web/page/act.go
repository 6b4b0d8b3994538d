package page

import (
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// Acts is what whoever looks at a page may do beside looking.
type Acts struct {
	// May is that they may act at all.
	May bool
	// CannotRun is why no node can be asked to run something, CannotPreview why none can to preview
	// something; empty where they can.
	CannotRun, CannotPreview string
}

// cannot returns why nodes cannot be asked for something, empty where they can or need not be.
func (a Acts) cannot(k ask.Kind) string {
	switch k {
	case ask.Run:
		return a.CannotRun
	case ask.Preview:
		return a.CannotPreview
	default:
		return ""
	}
}

// cannots returns all that says so, each once.
func (a Acts) cannots() []string {
	all := slices.DeleteFunc([]string{a.CannotRun, a.CannotPreview}, func(why string) bool { return why == "" })

	return slices.Compact(all)
}

// ActionForm is what the page shows on which an action is confirmed.
type ActionForm struct {
	Acts
	Kind   ask.Kind
	Target ask.Target
	Match  ask.Match
	// Progress is how complete the fleet is of which the nodes match.
	Progress view.Progress
	// Problem is why it was not done, or cannot be.
	Problem string
	// Busy is that there was no place for it.
	Busy bool
	// What was filled in.
	Until, Reason, Manifests, Within string
	Noop                             bool
}

// possible reports whether there is anything to confirm.
func (f ActionForm) possible() bool {
	return len(f.Match.Nodes) > 0 && f.cannot(f.Kind) == ""
}

// title is that of the page.
func (f ActionForm) title() string {
	name := wordsOf(f.Kind).name
	if f.Kind == ask.Run {
		name += ":"
	}

	return name + " " + f.whom()
}

// whom names the nodes.
func (f ActionForm) whom() string {
	switch {
	case f.Target.Group != "":
		return "group " + f.Target.Group
	case len(f.Match.Nodes) == 1 && f.Match.All:
		return "the only node"
	case len(f.Match.Nodes) == 1:
		return f.Match.Nodes[0].Node
	default:
		return Count(len(f.Match.Nodes), "node")
	}
}

// absent counts the nodes that do not answer.
func (f ActionForm) absent() int {
	count := 0
	for _, n := range f.Match.Nodes {
		if n.Silent || n.Stopped() {
			count++
		}
	}

	return count
}

// names are those of the first nodes.
func (f ActionForm) names() []string {
	return nodesOf(f.Match.Nodes[:min(len(f.Match.Nodes), 24)], func(n model.Node) string { return n.Node })
}

// effect is what the action does, in a sentence.
func (f ActionForm) effect() string {
	switch f.Kind {
	case ask.Pause:
		return "A paused node observes and changes nothing: it runs nothing that is assigned meanwhile, repairs no drift and refuses requests. A run in progress ends. It catches up when the pause is over."
	case ask.Resume:
		return "Nodes run what was assigned meanwhile, and repair what drifted. A node stays paused while one of its groups is."
	default:
		return "Nodes run what is assigned to them now, instead of waiting for the interval. A run in progress ends first. A paused node refuses, but for a run that changes nothing."
	}
}

// aim are the fields of the target.
func (f ActionForm) aim() [][2]string { return aimOf(f.Target) }

func aimOf(t ask.Target) [][2]string {
	var out [][2]string
	for _, n := range t.Nodes {
		out = append(out, [2]string{"node", n})
	}
	if t.Group != "" {
		out = append(out, [2]string{"group", t.Group})
	}
	if t.On != "" {
		out = append(out, [2]string{"on", t.On})
	}

	return out
}

// back is where whoever does not confirm goes.
func (f ActionForm) back() templ.SafeURL {
	switch {
	case len(f.Target.Nodes) == 1:
		return NodeURL(f.Target.Nodes[0])
	case f.Target.Group != "":
		return NodesURL(view.NodeQuery{On: "group(" + strconv.Quote(f.Target.Group) + ")"})
	case f.Target.On != everyNode:
		return NodesURL(view.NodeQuery{On: f.Target.On})
	default:
		return "/nodes"
	}
}

// everyNode is the target expression of all nodes.
const everyNode = ask.EveryNode

// kindWords are the words for a kind of action: its name, the button that confirms it, and what
// nodes did on which all is well.
type kindWords struct{ name, button, did string }

func wordsOf(k ask.Kind) kindWords {
	switch k {
	case ask.Pause:
		return kindWords{"Pause", "Pause", "paused"}
	case ask.Resume:
		return kindWords{"Resume", "Resume", "resumed"}
	case ask.Run:
		return kindWords{"Run now", "Run", "ran"}
	case ask.Preview:
		return kindWords{"Preview", "Preview", "would be in order"}
	default:
		name := Row(string(k))
		return kindWords{name, name, name}
	}
}

// actURL returns the page on which an action is confirmed.
func actURL(k ask.Kind, t ask.Target, more ...string) templ.SafeURL {
	q := values(more...)
	for _, field := range aimOf(t) {
		q.Add(field[0], field[1][:min(len(field[1]), maxExpression)])
	}

	return at(q, "actions", string(k))
}

// ActionURL returns the page of an action.
func ActionURL(id string) templ.SafeURL { return at(nil, "actions", id) }

func onNode(name string) ask.Target { return ask.Target{Nodes: []string{name}} }

// ofQuery returns the target of what a page of nodes lists; ok is false where no target means that.
func ofQuery(q view.NodeQuery) (t ask.Target, ok bool) {
	on := q.On
	if q.State != "" {
		state := "state == " + strconv.Quote(string(q.State))
		if on != "" {
			state = "(" + on + ") && " + state
		}
		on = state
	}
	if on == "" {
		on = everyNode
	}

	return ask.Target{On: on}, q.Search == ""
}

// ofManifest returns the target of the nodes that have a status of a manifest, or any.
func ofManifest(q view.ManifestQuery) ask.Target {
	on := "manifest(" + strconv.Quote(q.Name) + ").status"
	if q.Status == "" {
		var all []string
		for _, s := range []fleet.Status{fleet.StatusUpToDate, fleet.StatusFailed, fleet.StatusRejected, fleet.StatusPending, fleet.StatusUnreachable, fleet.StatusUnreadable} {
			all = append(all, strconv.Quote(string(s)))
		}
		return ask.Target{On: on + " in [" + strings.Join(all, ", ") + "]"}
	}

	return ask.Target{On: on + " == " + strconv.Quote(string(q.Status))}
}

// pausedGroup returns the group by which a node is paused, empty where it is not by one.
func pausedGroup(p *model.Paused) string {
	if p == nil {
		return ""
	}
	t, name, ok := strings.Cut(strings.TrimPrefix(p.From, "group."), ".")
	if !strings.HasPrefix(p.From, "group.") || !ok || name != model.ControlPause {
		return ""
	}

	return t
}

// ActionTitle describes an action.
func ActionTitle(a ask.Action) string {
	name := wordsOf(a.Kind).name
	if a.Noop {
		name = "Noop run"
	}
	if a.Previewed != nil {
		name = "Preview of " + Row(a.Previewed.Name)
	}
	of := Count(a.Nodes, "node")
	if len(a.Target.Nodes) == 1 {
		of = a.Target.Nodes[0]
	}

	return name + ": " + Row(of)
}

// statesOf returns the parts of the bar of an action.
func statesOf(a ask.Action) []share {
	var out []share
	for _, s := range a.States {
		out = append(out, share{ofRequest(s.State), s.Nodes})
	}

	return out
}

// doneOn counts the nodes on which all is well.
func doneOn(a ask.Action) int {
	for _, s := range a.States {
		if s.State == ask.StateDone {
			return s.Nodes
		}
	}

	return 0
}

func manifestNames(all []string) string {
	if len(all) == 0 {
		return "all that is assigned"
	}

	return Row(strings.Join(all, ", "))
}

func confirmText(f ActionForm) string {
	return wordsOf(f.Kind).button + " " + Count(len(f.Match.Nodes), "node")
}

// absentText is what nodes do that are away.
func absentText(k ask.Kind, n int) string {
	switch {
	case k.Live():
		return "will not answer."
	case n == 1:
		return "does so when it is back."
	default:
		return "do so when they are back."
	}
}

// matchWord is between a number of nodes and the expression that they match.
func matchWord(n int) string {
	if n == 1 {
		return " matches "
	}

	return " match "
}

func actionsHint(a Acts) string {
	if a.May {
		return "Pages of nodes and manifests have buttons to pause and resume nodes, and to run what is assigned to them, now."
	}

	return "Whoever has the role operate pauses and resumes nodes, and runs what is assigned to them, from the pages of nodes and manifests."
}

// runManifest is the button that runs a manifest on the nodes that the page lists.
func runManifest(d ManifestData) string {
	if d.Query.Status == "" {
		return "Run now on its nodes"
	}

	return "Run now where " + strings.ToLower(ofStatus(d.Query.Status).word)
}

// whoSeesPlans is for whoever writes what is previewed.
const whoSeesPlans = "Only the role operate sees plans, and what nodes say of them."

// PreviewForm is what the page shows on which a preview is chosen.
type PreviewForm struct {
	Acts
	// Progress is how complete the fleet is.
	Progress view.Progress
	// Keys are those of the assignments.
	Keys []string
	// What was filled in, and why it did nothing.
	Key, Revision, Name, Manifest, On, Within, Problem string
	// Busy is that there was no place for it.
	Busy bool
}

// maxKeys is how many assignments can be chosen.
const maxKeys = 1000

// keys are the assignments that can be chosen, with one that was.
func (f PreviewForm) keys() []string {
	all := f.Keys[:min(len(f.Keys), maxKeys)]
	if f.Key != "" && !slices.Contains(all, f.Key) {
		all = append([]string{f.Key}, all...)
	}

	return all
}

// previewURL returns the page on which a revision of an assignment is previewed, for those that it is for.
func previewURL(key string, revision uint64) templ.SafeURL {
	on := ""
	if t, _, err := fleet.ParseKey(key); err == nil {
		on = "node == " + strconv.Quote(t.Node)
		if t.Node == "" {
			on = "group(" + strconv.Quote(t.Group) + ")"
		}
	}

	return at(values("key", key, "revision", strconv.FormatUint(revision, 10), "on", on), "actions", "preview")
}

// planSteps are the resources of the plans of an action, which share the texts of the page.
func planSteps(a ask.Action) [][]step {
	b := &budget{maxTexts}
	out := make([][]step, len(a.Plans))
	for i, g := range a.Plans {
		if g.Plan == nil {
			continue
		}
		for _, t := range g.Plan.Transactions[:min(len(g.Plan.Transactions), maxSteps/5)] {
			s := newStep(t, b)
			s.open = i == 0 || s.open
			out[i] = append(out[i], s)
		}
	}

	return out
}

// planText is what a plan comes to, in a few words.
func planText(g ask.Group) string {
	switch {
	case g.Error != "":
		return Row(g.Error)
	case g.Plan == nil:
		return ""
	case g.Plan.Inactive != "":
		return Row(g.Plan.Inactive)
	}
	c := g.Plan.Counts
	of := " of " + Count(c.Total, "resource") + " would "
	bad := c.Failed + c.Unmet + c.NotRun
	switch {
	case bad > 0 && c.Changed > 0:
		return Number(bad) + of + "fail or not run, " + Number(c.Changed) + " would change"
	case bad > 0:
		return Number(bad) + of + "fail or not run"
	case len(g.Plan.Errors) > 0:
		return "nodes would reject it"
	default:
		return Number(c.Changed) + of + "change"
	}
}

// previewedText is what was previewed.
func previewedText(p *ask.Previewed) string {
	if p.Key == "" {
		return "a pasted manifest, as " + Row(p.Name)
	}

	return Row(p.Key) + ", revision " + RevisionText(p.Revision)
}

// maxAnswers is the maximum number of answers on a page.
const maxAnswers = 500

// RequestData is the content of the page of a request.
type RequestData struct {
	Detail  view.RequestDetail
	Answers view.Answers
	// Err is the reason why the answers cannot be read, empty if they were.
	Err string
}

// answerGroup are nodes with equal answers.
type answerGroup struct {
	view.EqualAnswers
	// stdout and stderr are cut to a limit. shown are the nodes with a row.
	stdout, stderr string
	shown          []view.Answer
}

// groups returns groups of equal answers, with at most maxAnswers rows in all groups together. Each group has at
// least one row.
func (d RequestData) groups() []answerGroup {
	equal := d.Answers.Equal()
	equal = equal[:min(len(equal), maxAnswers)]
	room, b := maxAnswers-len(equal), &budget{maxTexts}
	var out []answerGroup
	for _, g := range equal {
		more := min(len(g.Nodes)-1, room)
		room -= more
		out = append(out, answerGroup{g, b.take(g.Stdout), b.take(g.Stderr), g.Nodes[:1+more]})
	}

	return out
}

// more returns the number of answers without a row.
func (d RequestData) more() int { return max(len(d.Answers.Answers)-maxAnswers, 0) }

// exitCodeText returns an exit code, empty if no command ran.
func exitCodeText(code *int) string {
	if code == nil {
		return ""
	}

	return strconv.Itoa(*code)
}

// answersURL returns the URL of the answers to a request in the API.
func answersURL(id string, run bool, document string) templ.SafeURL {
	return at(ofRun(run), "api", "v1", "requests", id, document)
}
