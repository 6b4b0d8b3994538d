package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// DescribeReport returns the subject of a report in a word or two, and a short description, empty if the outcome is
// enough.
func DescribeReport(r model.Report) (subject, summary string) {
	switch r.Type {
	case model.ProtocolTransaction:
		t := decoded[model.Transaction](r.Data)
		if len(t.Errors) > 0 {
			return t.Label(), DescribeTransaction(t)
		}
		return t.Ref().String(), DescribeTransaction(t)
	case model.ProtocolEnsureResponse:
		subject, response := "ensure", decoded[model.EnsureResponse](r.Data)
		if response.State != nil {
			subject += " " + response.State.Ref().String()
		}
		return subject, DescribeAnswer(*response)
	case model.ProtocolRunResponse:
		return "run", DescribeAnswer(*decoded[model.EnsureResponse](r.Data))
	case model.ProtocolHealth:
		h := decoded[model.HealthReport](r.Data)
		if h.Output == "" && h.Was != "" {
			h.Output = "was " + string(h.Was)
		}
		return h.Resource.String() + " " + h.Check, h.Output
	case model.ProtocolNode:
		state := decoded[model.NodeState](r.Data)
		if state.Message == "" && state.Event == model.NodeStarted {
			state.Message = "muster " + state.Version
		}
		return "", state.Message
	case model.ProtocolRun:
		summary = DescribeRun(decoded[model.Run](r.Data))
	}
	if r.Manifest != "" && r.Revision != 0 {
		return fmt.Sprintf("%s@%d", r.Manifest, r.Revision), summary
	}

	return r.Manifest, summary
}

// SenderOf returns the unverified sender of the request that a report answers, empty for none.
func SenderOf(r model.Report) string {
	if r.Kind != model.KindEnsure {
		return ""
	}
	a := decoded[model.EnsureResponse](r.Data)
	if a.Sender == nil {
		return ""
	}

	return a.Sender.By
}

// decoded decodes a document. An invalid document is empty, and the report shows only its envelope.
func decoded[T any](data json.RawMessage) *T {
	v, err := model.DecodeJSON[T](data)
	if err != nil {
		return new(T)
	}

	return v
}

// maxUnchanged limits the named runs with unchanged results, because a node may write any number.
const maxUnchanged = 10

// DescribeRun describes a run in one line: counts, duration, errors.
func DescribeRun(r *model.Run) string {
	text := r.Counts.Text() + " in " + r.Duration.Round(time.Millisecond).String()
	if r.Noop {
		text += " (noop)"
	}
	if r.Retry {
		text += ", tried again"
	}
	if !r.RetryAt.IsZero() {
		text += ", put off by a limit, the next until " + r.RetryAt.Local().Format(model.TimeFormat)
	}
	for _, u := range r.Unchanged[:min(len(r.Unchanged), maxUnchanged)] {
		text += fmt.Sprintf(", %d unchanged since %s", u.Transactions, runTime(u.RunID))
	}
	if more := len(r.Unchanged) - maxUnchanged; more > 0 {
		text += fmt.Sprintf(", others since %d more runs", more)
	}
	if len(r.Errors) > 0 {
		text += ": " + strings.Join(r.Errors, "; ")
	}

	return text
}

// runTime returns the start time of a run, from its id, with the id.
func runTime(id string) string {
	at, err := ksuid.Parse(id)
	if err != nil {
		return "run " + id
	}

	return at.Time().Local().Format(model.TimeFormat) + " (run " + id + ")"
}

// DescribeTransaction describes the result of a resource in a few words, with the time of a repair.
func DescribeTransaction(t *model.Transaction) string {
	text := describeResult(t)
	if d := t.Drift; d != nil && len(t.Errors) == 0 && !t.Refreshed {
		text += " (drift, repaired in " + model.ShortDuration(d.Latency) + ")"
	}

	return text
}

func describeResult(t *model.Transaction) string {
	switch {
	case len(t.Errors) > 0:
		return strings.Join(t.Errors, "; ")
	case len(t.UnmetRequirements) > 0:
		refs := make([]string, len(t.UnmetRequirements))
		for i, ref := range t.UnmetRequirements {
			refs[i] = ref.String()
		}
		return "needs " + strings.Join(refs, ", ")
	case t.NoopMessage != "":
		return t.NoopMessage
	case t.SkipReason != "":
		return t.SkipReason
	}
	if code := ExitCode(t); code != nil {
		return fmt.Sprintf("ran (exit %d)", *code)
	}
	var words []string
	for i, c := range t.Changes {
		word, detail := cmp.Or(c.Message, c.Action), ""
		if c.Property != "" && c.Property != "ensure" && c.Property != "content" && c.To != "" {
			detail = c.Property + " " + c.From + " -> " + c.To
		}
		if detail != "" && c.Message == "" && i > 0 && t.Changes[i-1].Action == c.Action {
			// The count includes the message before it.
			if open, has := strings.CutSuffix(words[len(words)-1], ")"); has {
				words[len(words)-1] = open + ", " + detail + ")"
				continue
			}
		}
		if detail != "" {
			word += " (" + detail + ")"
		}
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}

	return strings.Join(words, ", ")
}

// ExitCode returns the exit code of a command, nil if no command ran.
func ExitCode(t *model.Transaction) *int {
	switch v := t.Outputs["exit_code"].(type) {
	case float64:
		code := int(v)
		return &code
	case int:
		return &v
	}
	if t.Noop || len(t.Status) == 0 {
		return nil
	}

	return decoded[struct {
		ExitCode *int `json:"exit_code"`
	}](t.Status).ExitCode
}

// DescribeAnswer describes the result of an ensure or run request in a few words.
func DescribeAnswer(r model.EnsureResponse) string {
	switch {
	case r.Error != "":
		return r.Error
	case r.State != nil:
		return DescribeTransaction(r.State)
	case r.Protocol == model.ProtocolRunResponse && r.Phase.Final() && r.Phase != model.EnsureExpired:
		return describeRequested(r.Runs)
	default:
		return string(r.Phase)
	}
}

// OutcomeOf returns the outcome of an answer.
func OutcomeOf(r model.EnsureResponse) model.Outcome {
	switch {
	case r.State != nil:
		return r.State.Outcome()
	case r.Phase == model.EnsureCancelled:
		return model.OutcomeNotRun
	case r.Error != "":
		return model.OutcomeFailed
	case r.Protocol == model.ProtocolRunResponse && r.Phase == model.EnsureDone:
		return model.OutcomeOf(r.Runs)
	default:
		return model.Outcome(r.Phase)
	}
}

func describeRequested(all []model.RequestedRun) string {
	text := DescribeRuns(all)
	if i := slices.IndexFunc(all, func(r model.RequestedRun) bool { return !r.OK() }); i >= 0 {
		text += " (" + all[i].Manifest + ": " + cmp.Or(all[i].Error, string(all[i].Outcome)) + ")"
	}

	return text
}

// DescribeRuns counts the manifests of a run request, for a display with the errors beside it.
func DescribeRuns(all []model.RequestedRun) string {
	changed, noop, failed, skipped := 0, 0, 0, 0
	for _, r := range all {
		switch {
		case !r.OK():
			failed++
		case r.Outcome == model.OutcomeSkipped:
			skipped++
		case r.Counts.Made() > 0:
			changed++
		case r.Counts.Noop > 0:
			noop++
		}
	}
	text := fmt.Sprintf("%d manifests", len(all))
	switch len(all) {
	case 0:
		return "no assignment applies"
	case 1:
		text = "1 manifest"
	}
	for _, more := range []struct {
		count int
		word  string
	}{{changed, "changed"}, {noop, "would change"}, {failed, "failed"}, {skipped, "skipped"}} {
		if more.count > 0 {
			text += fmt.Sprintf(", %d %s", more.count, more.word)
		}
	}

	return text
}

// ChangeKind is the effect of a revision of an assignment or a control key.
type ChangeKind string

// The kinds. A revision that no node uses is refused.
const (
	ChangeAssigned ChangeKind = "assigned"
	ChangePaused   ChangeKind = "paused"
	ChangeResumed  ChangeKind = "resumed"
	ChangeWritten  ChangeKind = "written"
	ChangeRemoved  ChangeKind = "removed"
	ChangeRefused  ChangeKind = "refused"
)

// ControlChange describes a revision of a control key or an assignment. The OpenAPI document contains the name, and uses
// Change for model.Change.
type ControlChange struct {
	Key      string     `json:"key"`
	Revision uint64     `json:"revision"`
	Time     time.Time  `json:"at"`
	Kind     ChangeKind `json:"kind"`
	// By is the unverified author, empty if unknown. Text describes a change of a control key in one line; for an
	// assignment, it is the reason why no node uses it.
	By   string `json:"by,omitempty"`
	Text string `json:"text"`
	// Signed means that a control key has a signature, which only nodes verify.
	Signed bool `json:"signed,omitempty"`
}

// IsBy reports whether the author of a change is a user, with or without the host or the source
// after the name.
func IsBy(author, user string) bool {
	rest, is := strings.CutPrefix(author, user)

	return is && (rest == "" || rest[0] == '@' || rest[0] == ' ')
}

// ControlChanges describes revisions of control keys that contain a text in their key, name or description, ignoring
// case. An empty text selects all.
func ControlChanges(all []model.Entry, search string) []ControlChange {
	out := []ControlChange{}
	for _, e := range all {
		c := ControlChange{Key: e.Key, Revision: e.Revision, Time: e.Time, By: e.By, Signed: signed.IsEnvelope(e.Value)}
		c.Kind, c.Text = describeControl(e)
		// Older revisions have no author, except pauses.
		if p, err := decodePause(e.Value); err == nil {
			c.By = cmp.Or(c.By, p.By)
		}
		if contains(search, c.Key, c.By, c.Text) {
			out = append(out, c)
		}
	}

	return out
}

// contains reports whether one of the texts contains a searched text, ignoring case.
func contains(search string, texts ...string) bool {
	return strings.Contains(strings.ToLower(strings.Join(texts, " ")), strings.ToLower(search))
}

// describeControl describes a revision of a control key in one line.
func describeControl(e model.Entry) (kind ChangeKind, text string) {
	_, name, _ := model.SplitKey(e.Key)
	kind = ChangeWritten
	if name == model.ControlPause {
		kind = ChangePaused
	}
	switch {
	case e.Refused != "":
		return ChangeRefused, "not used: it " + e.Refused
	case e.Deleted && name == model.ControlPause:
		return ChangeResumed, "resumed"
	case e.Deleted:
		return ChangeRemoved, name + " removed"
	case name != model.ControlPause && name != model.ControlLabels && name != model.ControlGroups:
		return kind, "no key that muster knows"
	}
	text, err := DescribeControlValue(name, e.Value)
	switch {
	case err != nil:
		text = "not used: " + err.Error()
	case name == model.ControlPause:
		p, _ := decodePause(e.Value)
		text = p.String()
	case text != nothingOf(name):
		text = name + " " + text
	}

	return kind, text
}

// DescribeControlValue describes the value of a control key by the last part of the key: end, author and reason of a
// pause; labels; groups.
func DescribeControlValue(name string, value []byte) (string, error) {
	switch name {
	case model.ControlPause:
		p, err := decodePause(value)
		return p.Details(), err
	case model.ControlLabels:
		l, err := decodeSigned(value, model.DecodeLabels)
		return cmp.Or(l.String(), nothingOf(name)), err
	case model.ControlGroups:
		g, err := decodeSigned(value, model.DecodeGroups)
		return cmp.Or(g.String(), nothingOf(name)), err
	default:
		return "", nil
	}
}

func nothingOf(name string) string { return "no " + name }

func decodePause(value []byte) (model.Paused, error) {
	p, err := decodeSigned(value, model.DecodePause)

	return model.Paused{Until: p.Until, By: p.By, Reason: p.Reason}, err
}

// decodeSigned decodes a document with or without an envelope.
func decodeSigned[T any](value []byte, decode func([]byte) (T, error)) (T, error) {
	content, err := signed.Content(value)
	if err != nil {
		var none T
		return none, err
	}

	return decode(content)
}

// AssignmentChanges describes revisions of assignments that contain a text in their key, name, kind or problem,
// ignoring case. An empty text selects all.
func AssignmentChanges(all []model.Entry, search string) []ControlChange {
	out := []ControlChange{}
	for _, e := range all {
		c := ControlChange{Key: e.Key, Revision: e.Revision, Time: e.Time, By: e.By, Kind: ChangeAssigned, Text: e.Refused}
		switch {
		case e.Refused != "":
			c.Kind = ChangeRefused
		case e.Deleted:
			c.Kind = ChangeRemoved
		case e.Invalid:
			c.Kind, c.Text = ChangeRefused, "its key is not node.<node>.<name> or group.<group>.<name>"
		}
		if contains(search, c.Key, c.By, string(c.Kind), c.Text) {
			out = append(out, c)
		}
	}

	return out
}

// MergeChanges returns changes of assignments and control keys as one list, oldest first.
func MergeChanges(assigned, written []ControlChange) []ControlChange {
	out := slices.Concat(assigned, written)
	slices.SortFunc(out, func(a, b ControlChange) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Key, b.Key))
	})

	return out
}
