package web_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/testing/webfleet"
)

// hostile is text that a node may write anywhere: HTML, scripts, links, characters that reorder text or
// control a terminal, invalid UTF-8, and a very long line.
var hostile = "\"'><script>alert(1)</script><img src=x onerror=alert(1)> javascript:alert(1) http://evil.example/ \u202etxt.exe\u2066 \x1b[31m\x00 \xff " + strings.Repeat("long", 10_000)

// raw is text of others that no page may contain.
var raw = regexp.MustCompile(`<script>|<img|href="[^"/#]|src="[^"/]|[\x00\x1b]|\x{202e}|\x{2066}`)

// TestHostileNodes: nothing that a node says is more than a text, and none fills a page.
func TestHostileNodes(t *testing.T) {
	t.Parallel()
	h := dashboard(webfleet.New(hostileData(), time.Now))
	for _, path := range []string{"/", "/nodes", "/nodes?state=failed", "/nodes/evil", "/nodes/evil/facts", "/manifests", "/manifests/motd", "/runs/evil/1", "/events", "/requests", "/requests/evil", "/registrations", "/audit", "/audit/group.web.motd"} {
		body := has(t, h, path, http.StatusOK)
		for _, at := range raw.FindAllStringIndex(body, 3) {
			t.Errorf("%s has %q", path, body[max(at[0]-60, 0):min(at[1]+60, len(body))])
		}
		if len(body) > 900_000 {
			t.Errorf("%s has %d bytes", path, len(body))
		}
		if path != "/audit" && path != "/manifests" && !strings.Contains(body, `\u202e`) && !strings.Contains(body, "evil") {
			t.Errorf("%s does not show what there is", path)
		}
	}
	// The same through a link from another site.
	for _, path := range []string{"/nodes?on=%3Cscript%3E%E2%80%AE", "/nodes?q=%22%3E%3Cscript%3E%00", "/nodes/%3Cscript%3E", "/manifests/%3Cscript%3E", "/runs/%3Cscript%3E/%E2%80%AE", "/events?node=%22%3E%3Cscript%3E", "/audit/%3Cscript%3E", "/%3Cscript%3E", "/nodes?state=%3Cscript%3E&sort=%22%3E%3Cscript%3E"} {
		if at := raw.FindString(get(t, h, path).Body.String()); at != "" {
			t.Errorf("%s has %q", path, at)
		}
	}
}

func hostileData() webfleet.Data {
	d := webfleet.Sample(3, time.Now())
	now := time.Now()
	key := "group.web.motd"
	huge := hostile + strings.Repeat("x", 1<<20)
	d.Entries = append(d.Entries, model.Entry{Key: key, Revision: 2000, Time: now, Digest: hostile, By: hostile})
	d.Nodes = append(d.Nodes, model.Node{Heard: now, NodeState: model.NodeState{
		Node: "evil", Host: huge, Version: hostile, Groups: []string{"web", hostile}, Labels: map[string]string{hostile: hostile}, Message: hostile, Started: now, At: now,
		Manifests: map[string]model.ManifestState{key: {Revision: 2000, Digest: hostile, Outcome: model.OutcomeFailed, At: now, Error: hostile, Counts: model.Counts{Total: 1, Failed: 1}}},
		Flapping:  []model.FlappingState{{Manifest: hostile, Resource: model.Ref{Type: "file", Name: hostile}, Writer: hostile}},
	}})
	members := view.Members{Nodes: 1, First: []string{"evil"}}
	top := []view.TopResource{{Manifest: hostile, Resource: hostile, Text: hostile, Count: 1, Last: now, Members: members}}
	d.Top = view.Top{Failing: top, Drifting: top, Flapping: top}
	d.Progress.Problems = []string{hostile}
	d.Events = []view.Event{{Seq: 9, ID: hostile, Node: "evil", Kind: hostile, Outcome: model.Outcome(hostile), Cause: model.Cause(hostile), Manifest: hostile, Resource: hostile, RunID: hostile, CorrelationID: hostile, Text: huge, Time: now}}
	d.Runs = []view.RunRow{{RunID: hostile, Node: "evil", Manifest: key, Outcome: model.Outcome(hostile), Cause: model.Cause(hostile), Error: hostile, Started: now}}
	d.Missing = map[string][]string{"evil": slices.Repeat([]string{hostile}, 100)}
	d.Requests = []view.RequestRow{{ID: "evil", By: hostile, To: hostile, On: hostile, Nodes: 1 << 40, Resource: hostile, First: now, Last: now}, {ID: hostile, By: hostile, Nodes: 1 << 40, Resource: hostile, First: now, Last: now}}
	d.Registrations = []registration.Registration{{Cluster: hostile, Service: hostile, ProtocolName: hostile, Address: hostile, Node: hostile, Annotations: map[string]string{hostile: hostile}}}
	d.Facts["evil"], _ = json.Marshal(map[string]any{hostile: map[string]any{hostile: []any{hostile, 1, nil}}})
	d.Revisions[key] = []model.Entry{{Key: key, Revision: 1, Time: now, Value: []byte("a: 1\n")}, {Key: key, Revision: 2, Time: now, Value: []byte(huge), Refused: hostile, Digest: hostile, By: hostile}}
	bad := model.Transaction{
		Type: hostile, Name: hostile, Provider: hostile, Failed: true, Errors: []string{hostile, huge}, Source: model.Position{File: hostile, Line: 3}, SkipReason: hostile, NoopMessage: hostile,
		Changes:           []model.Change{{Action: hostile, Message: hostile, Property: hostile, From: hostile, To: hostile, Diff: strings.Repeat("+"+hostile[:200]+"\n", 5000)}},
		HealthCheck:       []model.HealthResult{{Name: hostile, Status: model.HealthStatus(hostile), Output: hostile}},
		UnmetRequirements: []model.Ref{{Type: hostile, Name: hostile}}, WouldRefresh: []model.Ref{{Type: hostile, Name: hostile}}, Within: model.Ref{Type: hostile, Name: hostile},
		Drift: &model.Repair{From: hostile},
	}
	d.Details["evil/1"] = view.RunDetail{Node: "evil", Run: &model.Run{Node: "evil", Manifest: hostile, Version: hostile, Errors: []string{hostile}, Unchanged: []model.Unchanged{{RunID: hostile}}}, Transactions: []model.Transaction{bad, bad, bad, bad, bad, bad, bad, bad, bad, bad, bad, bad}}

	return d
}
