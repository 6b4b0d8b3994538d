package schemas_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/model/signed"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 89, time.FixedZone("", 3600))

// transaction has every field set.
func transaction() *model.Transaction {
	return &model.Transaction{
		Protocol: model.ProtocolTransaction, EventID: "2abc", Timestamp: at, Type: "file", Provider: "posix",
		Name: "/etc/motd", Alias: "motd", RequestedEnsure: "present", FinalEnsure: "present", Duration: 3 * time.Millisecond,
		Properties: json.RawMessage(`{"content":"x"}`), Status: json.RawMessage(`{"metadata":{"size":1}}`), NoopMessage: "Would have created the file",
		HealthCheck: []model.HealthResult{{Name: "http", Status: model.HealthCritical, Tries: 2, Output: "refused", Duration: time.Second, Format: model.HealthNagios}}, HealthCheckOnly: true, Errors: []string{"no space left"}, Changed: true, Refreshed: true, Failed: true,
		Skipped: true, Noop: true, UnmetRequirements: []model.Ref{{Type: "exec", Name: "a#b"}},
		RunID: "2abd", Node: "web01", Manifest: "node.web01.motd", Revision: 7, Digest: "sha256-00",
		Changes: []model.Change{{Action: "store", Message: "Would have created the file", Property: "content", From: "a", To: "b", Diff: "-a\n+b\n"}},
		Source:  model.Position{File: "motd.yaml", Line: 3, Column: 5}, Cause: model.CauseDrift, CorrelationID: "c1",
		SkipReason: "control.if is false", WouldRefresh: []model.Ref{{Type: "exec", Name: "reload"}}, NotRun: true,
	}
}

// documents are values as muster sends them, complete and minimal.
func documents() []struct {
	schema, name string
	value        any
} {
	counts := model.Counts{Total: 3, Changed: 1, Stable: 2}
	return []struct {
		schema, name string
		value        any
	}{
		{"transaction", "full", transaction()},
		{"transaction", "bare", &model.Transaction{Protocol: model.ProtocolTransaction}},
		{"run", "full", &model.Run{
			Protocol: model.ProtocolRun, RunID: "2abd", Node: "web01", Manifest: "node.web01.motd", Revision: 7, Digest: "sha256-00", Cause: model.CauseManifest,
			Started: at, Duration: time.Second, Counts: counts, Noop: true, Errors: []string{"x"}, Version: "v1.0.0",
			Drift: model.Drifted{Detected: 1, Repaired: 1, Latency: time.Millisecond}, Refused: true, CorrelationID: "c1",
		}},
		{"run", "bare", &model.Run{Protocol: model.ProtocolRun}},
		{"node", "full", &model.NodeState{
			Protocol: model.ProtocolNode, Node: "web01", Event: model.NodeDropped, Version: "v1", Started: at, At: at, Groups: []string{"web"},
			Labels: map[string]string{"rack": "a1"}, Health: model.HealthCounts{OK: 2, Critical: 1}, Outbox: 2, Watches: 3, Clock: model.ClockOffset{Offset: model.Offset(-time.Second), Within: model.Duration(time.Millisecond)}, Message: "full", DroppedFrom: 1, DroppedTo: 9,
			Manifests: map[string]model.ManifestState{"node.web01.motd": {Revision: 6, Digest: "sha256-00", Outcome: model.OutcomeStable, At: at, Counts: counts, Error: "no space left", Seen: 7, Late: "it is not valid"}},
		}},
		{"agent", "full", &model.AgentStatus{
			Protocol: model.ProtocolAgent, Node: "web01", Groups: []string{"web"}, Version: "v1", PID: 1, StateDir: "/var/lib/muster", Started: at, At: at,
			NATS:    model.Connected{Connected: true, Server: "nats://127.0.0.1:4222", Since: at, Error: "x", ErrorAt: at},
			Running: []model.RunningRun{{RunID: "2abd", Manifest: "node.web01.motd", Cause: model.CauseDrift, Part: []model.Ref{{Type: "file", Name: "/etc/motd"}}, Started: at}},
			Manifests: []model.AssignedManifest{{Key: "node.web01.motd", State: model.ManifestState{Revision: 6, Digest: "sha256-00", Counts: counts}, Last: &model.LastRun{
				RunID: "2abd", Revision: 6, Cause: model.CauseManifest, Outcome: model.OutcomeFailed, Started: at, Duration: model.Duration(time.Second), Counts: counts, Errors: []string{"x"},
				Deviations: []model.Deviation{{Resource: "file#/etc/motd", Outcome: model.OutcomeFailed, Reason: "x"}}, More: 1,
			}}},
			Health: model.HealthCounts{OK: 2}, Outbox: 2, Notices: []string{"x"}, LogLevel: "info",
		}},
		{"agent", "bare", &model.AgentStatus{Protocol: model.ProtocolAgent}},
		{"health", "full", &model.HealthReport{
			Protocol: model.ProtocolHealth, Node: "web01", Manifest: "node.web01.shop", Resource: model.Ref{Type: "service", Name: "shop"}, Check: "http",
			Status: model.HealthCritical, Was: model.HealthOK, Output: "refused", At: at, RunID: "2abd",
		}},
		{"health", "first", &model.HealthReport{Protocol: model.ProtocolHealth, Resource: model.Ref{Type: "service", Name: "shop"}, Status: model.HealthOK}},
		{"registration", "full", &registration.Registration{
			Protocol: model.ProtocolRegistration, Cluster: "prod", Service: "shop", ProtocolName: "http", Address: "10.0.0.1", Port: 80, Priority: 1,
			TTL: model.TTL(time.Minute), Annotations: map[string]string{"rack": "b4"}, Node: "web01",
		}},
		{"registration", "bare", &registration.Registration{Protocol: model.ProtocolRegistration}},
		{"node", "unassigned", &model.NodeState{Protocol: model.ProtocolNode, Event: model.NodeUnassigned}},
		{"node", "bare", &model.NodeState{Protocol: model.ProtocolNode}},
		{"node", "empty maps", &model.NodeState{Protocol: model.ProtocolNode, Groups: []string{}, Manifests: map[string]model.ManifestState{"a": {}}}},
		{"ensure_response", "with a state", &model.EnsureResponse{Protocol: model.ProtocolEnsureResponse, State: transaction(), ID: "a1", Phase: model.EnsureDone, Node: "web01"}},
		{"ensure_response", "with an error", &model.EnsureResponse{Protocol: model.ProtocolEnsureResponse, Error: "x"}},
		{"run_request", "full", &model.RunRequest{Protocol: model.ProtocolRunRequest, Manifests: []string{"motd"}, ID: "a1", Expires: at, Noop: true}},
		{"run_request", "bare", &model.RunRequest{Protocol: model.ProtocolRunRequest, Expires: at}},
		{"cancel_request", "full", &model.CancelRequest{Protocol: model.ProtocolCancelRequest, Request: "a1", Kill: true, By: "ann@desk", Expires: at}},
		{"cancel_request", "bare", &model.CancelRequest{Protocol: model.ProtocolCancelRequest, Request: "a1", Expires: at}},
		{"run_response", "full", &model.EnsureResponse{Protocol: model.ProtocolRunResponse, ID: "a1", Phase: model.EnsureDone, Node: "web01", Runs: []model.RequestedRun{{Manifest: "group.web.motd", Revision: 3, RunID: "2abd", Outcome: model.OutcomeChanged, Counts: model.Counts{Total: 1, Changed: 1}}}}},
		{"run_response", "with an error", &model.EnsureResponse{Protocol: model.ProtocolRunResponse, Error: "x"}},
		{"ensure_request", "full", &model.EnsureRequest{Protocol: model.ProtocolEnsureRequest, Type: "exec", Properties: json.RawMessage(`{"name":"/bin/true","returns":[0,2]}`), ID: "a1", Expires: at, Noop: true, Check: true}},
		{"ensure_request", "bare", &model.EnsureRequest{Protocol: model.ProtocolEnsureRequest, Type: "exec", Properties: json.RawMessage(`{"name":"/bin/true"}`)}},
		{"assignment", "full", &model.Assignment{
			Protocol: model.ProtocolAssignment, Name: "motd", Manifest: "muster: {}", Digest: "sha256-00", Data: map[string]any{"a": []int{1}}, Noop: true,
			Drift: model.DriftReport, Interval: model.Duration(90 * time.Second), When: "true", Priority: -1, Expires: at, Issued: at,
		}},
		{"statement", "of an assignment", &signed.Statement{Protocol: model.ProtocolStatement, Fleet: "muster", Action: signed.Assign, Target: "group.web.motd", Content: "muster: {}", Issued: at, Expires: at}},
		{"statement", "of a removal", &signed.Statement{Protocol: model.ProtocolStatement, Fleet: "muster", Action: signed.Remove, Target: "group.web.motd", Issued: at, Expires: at}},
		{"statement", "of a pause", &signed.Statement{Protocol: model.ProtocolStatement, Fleet: "muster", Action: signed.Pause, Target: "group.web", Content: "{}", Issued: at, Expires: at}},
		{"pause", "full", &model.Pause{Protocol: model.ProtocolPause, Until: at, By: "ann", Reason: "the disk is replaced", At: at}},
		{"pause", "bare", &model.Pause{Protocol: model.ProtocolPause}},
		{"labels", "full", &model.Labels{Protocol: model.ProtocolLabels, Labels: map[string]string{"rack": "a3"}}},
		{"node", "paused", &model.NodeState{Protocol: model.ProtocolNode, Paused: &model.Paused{Until: at, By: "ann", From: "group.web.pause"}}},
		{"assignment", "a bundle", &model.Assignment{Protocol: model.ProtocolAssignment, Bundle: "sha256-00"}},
	}
}

func TestDocumentsAreValid(t *testing.T) {
	for _, d := range documents() {
		t.Run(d.schema+"/"+d.name, func(t *testing.T) {
			text, err := json.Marshal(d.value)
			if err != nil {
				t.Fatal(err)
			}
			if err := compile(t, d.schema).Validate(parse(t, text)); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
}

// TestEveryFieldCounts breaks each complete document in every way that affects a reader.
func TestEveryFieldCounts(t *testing.T) {
	for _, d := range documents() {
		if d.name == "bare" {
			continue
		}
		schema := compile(t, d.schema)
		text, err := json.Marshal(d.value)
		if err != nil {
			t.Fatal(err)
		}
		spoilt := func(what string, spoil func(map[string]any)) {
			doc := parse(t, text).(map[string]any)
			spoil(doc)
			if schema.Validate(doc) == nil {
				t.Errorf("%s %s with %s is taken for valid", d.schema, d.name, what)
			}
		}
		spoilt("an unknown field", func(m map[string]any) { m["unheard"] = 1 })
		spoilt("another protocol", func(m map[string]any) { m["protocol"] = "io.muster.v2.other" })
		spoilt("no protocol", func(m map[string]any) { delete(m, "protocol") })
		for key := range parse(t, text).(map[string]any) {
			switch key {
			case "properties", "status", "health_check":
				if d.schema == "transaction" {
					continue
				}
			}
			spoilt(key+" of another type", func(m map[string]any) { m[key] = wrong(m[key]) })
		}
	}
}

// wrong returns a value of another JSON type.
func wrong(v any) any {
	switch v.(type) {
	case string:
		return []any{}
	default:
		return "text"
	}
}

func TestAssignmentHoldsOneThing(t *testing.T) {
	schema := compile(t, "assignment")
	for _, text := range []string{
		`{"protocol":"io.muster.v1.assignment"}`,
		`{"protocol":"io.muster.v1.assignment","manifest":"x","bundle":"y"}`,
		`{"protocol":"io.muster.v1.assignment","manifest":"x","interval":"30"}`,
		`{"protocol":"io.muster.v1.assignment","manifest":"x","drift":"fix"}`,
	} {
		if schema.Validate(parse(t, []byte(text))) == nil {
			t.Errorf("%s is taken for valid", text)
		}
	}
}
