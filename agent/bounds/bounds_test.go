package bounds

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

func TestReportsFitIntoAMessage(t *testing.T) {
	big := strings.Repeat("\"\\é", 1<<20)
	tx := &model.Transaction{Type: "file", Name: "/x", Failed: true, Properties: json.RawMessage(`{"a": "` + strings.Repeat("x", 1<<20) + `"}`), Errors: []string{big}}
	for range 500 {
		tx.Changes = append(tx.Changes, model.Change{Action: "store", Message: "Would have updated the file", Diff: big, From: big, To: big})
	}
	short := Transaction(tx, maxReport)
	data, err := json.Marshal(short)
	if err != nil || len(data) > maxReport {
		t.Errorf("%d bytes are left (%v)", len(data), err)
	}
	if short.Name != "/x" || !short.Failed || !strings.HasSuffix(short.Errors[0], "(cut)") || short.Changes[0].Message == "" {
		t.Errorf("what matters is gone: %.300s", data)
	}
	if len(tx.Changes) != 500 || tx.Properties == nil || tx.Errors[0] != big {
		t.Error("the transaction itself was changed")
	}
	small := &model.Transaction{Name: "/x", Properties: json.RawMessage(`{}`)}
	if Transaction(small, maxReport) != small {
		t.Error("a small one is copied")
	}

	var errs []string
	for i := range 5000 {
		errs = append(errs, fmt.Sprint(i, strings.Repeat("x", 1<<13)))
	}
	bound := Errors(errs, maxReport)
	if len(bound) != maxErrors+1 || bound[maxErrors] != "and 4900 more" || len(bound[0]) > MaxError+20 {
		t.Errorf("%d errors, the last is %q", len(bound), bound[len(bound)-1])
	}
}

// TestWhatJSONMakesLongerFitsIntoAMessage: JSON encodes one byte as up to six. The property of a
// change may be a file name, which the owner of a directory chooses.
func TestWhatJSONMakesLongerFitsIntoAMessage(t *testing.T) {
	for _, limit := range []int{maxReport, 64 << 10} {
		for _, hard := range []string{"<", "\x01", "\"", "\xff", "\u2028", "é"} {
			long := strings.Repeat(hard, 8<<10)
			var errs []string
			state := model.NodeState{Manifests: map[string]model.ManifestState{}}
			tx := &model.Transaction{NoopMessage: long, SkipReason: long}
			for i := range 150 {
				errs = append(errs, long)
				tx.Changes = append(tx.Changes, model.Change{Property: long, Diff: long, From: long, To: long, Message: long})
				tx.HealthCheck = append(tx.HealthCheck, model.HealthResult{Name: "x", Output: long})
				state.Manifests[fmt.Sprint("group.all.", i)] = model.ManifestState{Late: Text(long), Error: Text(long)}
			}
			tx.Errors = errs
			for what, document := range map[string]any{
				"a run":         &model.Run{Errors: Errors(errs, limit)},
				"a transaction": Transaction(tx, limit),
				"a state":       State(state, limit),
			} {
				if b, err := json.Marshal(document); err != nil || len(b) > limit {
					t.Errorf("%s of %q has %d bytes, at most %d fit (%v)", what, hard, len(b), limit, err)
				}
			}
			if !utf8.ValidString(Text(long)) || len(Text(long)) > maxText+len(cutMark) {
				t.Errorf("%q is cut to %d bytes", hard, len(Text(long)))
			}
		}
	}
}

// Outputs of a command are cut before anything else that people read.
func TestLongOutputsAreCut(t *testing.T) {
	const limit = 56 << 10
	long := strings.Repeat("a line of output\n", 2<<10)
	diff := strings.Repeat("+ a line of a diff\n", 200)
	tx := &model.Transaction{Properties: json.RawMessage(`{}`), Outputs: map[string]any{"stdout": long, "stderr": long, "exitcode": 1}, Changes: []model.Change{{Diff: diff}}}
	short := Transaction(tx, limit)
	stdout, _ := short.Outputs["stdout"].(string)
	if data, err := json.Marshal(short); err != nil || len(data) > limit || len(stdout) < 8<<10 || !strings.HasSuffix(stdout, cutMark) || short.Outputs["exitcode"] != 1 || short.Changes[0].Diff != diff {
		t.Errorf("%d bytes, %d of the output (%v)", len(data), len(stdout), err)
	}
	if tx.Outputs["stdout"] != long {
		t.Error("the transaction itself was changed")
	}
}

// The state of a node with very many manifests is no reason to report no event.
func TestAnEventFitsWhateverTheStateHas(t *testing.T) {
	state := model.NodeState{Node: "web01", Event: model.NodeStarted, Manifests: map[string]model.ManifestState{}}
	for i := range 1000 {
		state.Manifests[fmt.Sprint("group.all.", i)] = model.ManifestState{Digest: strings.Repeat("x", 64)}
	}
	state.RejectedControl = map[string]string{"node.web01.pause": strings.Repeat("x", 60<<10)}
	short := Event(state, 56<<10)
	if data, err := json.Marshal(short); err != nil || len(data) > 56<<10 || short.Node != "web01" || short.Event != model.NodeStarted || short.Message != "" {
		t.Errorf("%d bytes (%v)", len(data), err)
	}
	state.Manifests = map[string]model.ManifestState{"group.all.motd": {}}
	state.RejectedControl = map[string]string{"node.web01.pause": strings.Repeat("x", 60<<10)}
	if short := Event(state, 56<<10); len(short.Manifests) != 1 || len(short.RejectedControl) != 1 || len(short.RejectedControl["node.web01.pause"]) > 1<<10 {
		t.Error("a state that fits once its texts are shorter lost its manifests")
	}
}

// TestManyManifestsFitIntoAState: the state drops manifests that do not fit, but no failed one, and its message names the
// remedy.
func TestManyManifestsFitIntoAState(t *testing.T) {
	t.Parallel()
	of := func(count int) model.NodeState {
		s := model.NodeState{Node: "web01", Message: "polled", Manifests: map[string]model.ManifestState{}}
		for i := range count {
			s.Manifests[fmt.Sprintf("group.all.site-%d", i)] = model.ManifestState{
				Revision: 10000, Digest: "sha256-" + strings.Repeat("0", 64), Outcome: model.OutcomeStable, At: time.Now(), Counts: model.Counts{Total: 12, Unique: 12, Stable: 12},
			}
		}
		s.Manifests["node.web01.last"] = model.ManifestState{Revision: 1, Outcome: model.OutcomeFailed, Error: "no space left", Counts: model.Counts{Total: 1, Failed: 1}}

		return s
	}
	for count, left := range map[int]bool{100: false, 2000: false, 10_000: true} {
		s := State(of(count), maxReport)
		b, err := json.Marshal(s)
		if err != nil || len(b) > maxReport {
			t.Errorf("%d: %d bytes (%v)", count, len(b), err)
		}
		if failed := s.Manifests["node.web01.last"]; failed.Error != "no space left" || failed.Counts.Failed != 1 {
			t.Errorf("%d: the failed one is %+v", count, failed)
		}
		missing := count + 1 - len(s.Manifests)
		if (missing > 0) != left || left && (len(s.Manifests) < 2000 || !strings.Contains(s.Message, fmt.Sprintf("polled; the states of %d of %d manifests are not stored", missing, count+1)) || !strings.Contains(s.Message, "--state-max")) {
			t.Errorf("%d: %d are left out: %s", count, missing, s.Message)
		}
	}
	if s := State(of(10_000), MaxState(4<<20)); len(s.Manifests) != 10_001 {
		t.Errorf("%d fit into a larger bucket", len(s.Manifests))
	}
}
