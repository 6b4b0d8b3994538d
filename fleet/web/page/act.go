package page

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
)

// Acts are the permissions of a user.
type Acts struct {
	// May permits actions.
	May bool
	// CannotRun and CannotPreview are the reasons why nodes cannot receive these requests, empty if they can.
	CannotRun, CannotPreview string
}

// cannot returns why nodes cannot receive a request of a kind, empty if they can.
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

func (a Acts) cannots() []string {
	all := slices.DeleteFunc([]string{a.CannotRun, a.CannotPreview}, func(why string) bool { return why == "" })

	return slices.Compact(all)
}

// ActionForm is the content of the page that confirms an action.
type ActionForm struct {
	Acts
	Kind   ask.Kind
	Target ask.Target
	Match  ask.Match
	// Progress describes how complete the list of nodes is.
	Progress view.Progress
	// Problem is the reason why the action was rejected, and Busy means that the server has too many actions.
	Problem string
	Busy    bool
	// Until, Reason, Manifests, Within and Noop are the inputs.
	Until, Reason, Manifests, Within string
	Noop                             bool
}

func (f ActionForm) possible() bool {
	return len(f.Match.Nodes) > 0 && f.cannot(f.Kind) == ""
}

func (f ActionForm) title() string {
	name := wordsOf(f.Kind).name
	if f.Kind == ask.Run {
		name += ":"
	}

	return name + " " + f.whom()
}

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

func (f ActionForm) absent() int {
	count := 0
	for _, n := range f.Match.Nodes {
		if n.Silent || n.Stopped() {
			count++
		}
	}

	return count
}

func (f ActionForm) names() []string {
	return nodesOf(f.Match.Nodes[:min(len(f.Match.Nodes), 24)], func(n model.Node) string { return n.Node })
}

func (f ActionForm) effect() string {
	switch f.Kind {
	case ask.Pause:
		return "A paused node observes and changes nothing: it runs no new assignment, repairs no drift and refuses requests. A run in progress ends. The node catches up after the pause."
	case ask.Resume:
		return "Nodes run new assignments and repair drift. A node stays paused while one of its groups is paused."
	default:
		return "Nodes run their assignments now, before the next interval. A run in progress ends first. A paused node refuses, except for a noop run."
	}
}

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

// back returns the page for users who do not confirm.
func (f ActionForm) back() templ.SafeURL {
	switch {
	case len(f.Target.Nodes) == 1:
		return NodeURL(f.Target.Nodes[0])
	case f.Target.Group != "":
		return NodesURL(view.NodeQuery{On: "group(" + strconv.Quote(f.Target.Group) + ")"})
	case f.Target.On != ask.EveryNode:
		return NodesURL(view.NodeQuery{On: f.Target.On})
	default:
		return "/nodes"
	}
}

// kindWords are the words for a kind of action: its name, the button that confirms it, and the past tense for the nodes
// on which it succeeded.
type kindWords struct{ name, button, did string }

func wordsOf(k ask.Kind) kindWords {
	name := Row(string(k))

	return cmp.Or(map[ask.Kind]kindWords{
		ask.Pause:   {"Pause", "Pause", "paused"},
		ask.Resume:  {"Resume", "Resume", "resumed"},
		ask.Run:     {"Run now", "Run", "ran"},
		ask.Preview: {"Preview", "Preview", "would be in order"},
	}[k], kindWords{name, name, name})
}

// actURL returns the page that confirms an action.
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

// ofQuery returns the target of the nodes that a page lists, and whether a target can select them.
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
		on = ask.EveryNode
	}

	return ask.Target{On: on}, q.Search == ""
}

// ofManifest returns the target of the nodes with a status of a manifest, or with any status.
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

// pausedGroup returns the group whose pause a node has, empty for none.
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

func statesOf(a ask.Action) []share {
	var out []share
	for _, s := range a.States {
		out = append(out, share{ofRequest(s.State), s.Nodes})
	}

	return out
}

func doneOn(a ask.Action) int {
	if i := slices.IndexFunc(a.States, func(s ask.StateCount) bool { return s.State == ask.StateDone }); i >= 0 {
		return a.States[i].Nodes
	}

	return 0
}

func manifestNames(all []string) string {
	if len(all) == 0 {
		return "all that is assigned"
	}

	return Row(strings.Join(all, ", "))
}

func absentText(k ask.Kind, n int) string {
	if k.Live() {
		return "will not answer."
	}

	return plural(n, "does so when it is back.", "do so when they are back.")
}

func actionsHint(a Acts) string {
	if a.May {
		return "Pages of nodes and manifests have buttons to pause and resume nodes, and to run their assignments now."
	}

	return "Users with the role operate can pause and resume nodes, and run their assignments, on the pages of nodes and manifests."
}

func runManifest(d ManifestData) string {
	if d.Query.Status == "" {
		return "Run now on its nodes"
	}

	return "Run now where " + strings.ToLower(ofStatus(d.Query.Status).word)
}

const whoSeesPlans = "Only users with the role operate see plans and the reports about them."

// PreviewForm is the content of the page that starts a preview.
type PreviewForm struct {
	Acts
	// Progress describes how complete the list of nodes is.
	Progress view.Progress
	// Keys are the keys of the assignments.
	Keys []string
	// Key, Revision, Name, Manifest, On and Within are the inputs. Problem is the reason why the preview was rejected.
	Key, Revision, Name, Manifest, On, Within, Problem string
	// Busy means that the server has too many actions.
	Busy bool
}

const maxKeys = 1000

// keys returns the assignments to choose from, including the chosen one.
func (f PreviewForm) keys() []string {
	all := f.Keys[:min(len(f.Keys), maxKeys)]
	if f.Key != "" && !slices.Contains(all, f.Key) {
		all = append([]string{f.Key}, all...)
	}

	return all
}

// previewURL returns the page that previews a revision of an assignment on its targets.
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

// planSteps returns the resources of the plans of an action. The plans share the budget of texts.
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

func previewedText(p *ask.Previewed) string {
	if p.Key == "" {
		return "a pasted manifest, as " + Row(p.Name)
	}

	return Row(p.Key) + ", revision " + RevisionText(p.Revision)
}

const maxAnswers = 500

// RequestData is the content of the page of a request.
type RequestData struct {
	Detail  view.RequestDetail
	Answers view.Answers
	// Err is the reason why the answers cannot be read, empty if they were.
	Err string
}

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

func (d RequestData) more() int { return max(len(d.Answers.Answers)-maxAnswers, 0) }

func exitCodeText(code *int) string {
	if code == nil {
		return ""
	}

	return strconv.Itoa(*code)
}

func answersURL(id string, run bool, document string) templ.SafeURL {
	return at(ofRun(run), "api", "v1", "requests", id, document)
}
