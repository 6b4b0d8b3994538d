package serve

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestFlood: a flooding node has its newest reports, the data of others is current, and memory is limited.
func TestFlood(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	s := serveFleet(t, kvtest.Bind(t, srv), access.Options{})
	s.complete()
	const others = 20
	quiet := func(round int) {
		for i := range others {
			send(t, store, runOf(t, fmt.Sprintf("web%02d", i), fmt.Sprintf("r%d", round), model.OutcomeStable, uint64(round+1)))
		}
	}
	quiet(0)
	flood := make([]model.Report, 2500)
	seq := uint64(0)
	for range 2 {
		for i := range flood {
			seq++
			flood[i] = runOf(t, "flood", ksuid.New().String(), model.OutcomeChanged, seq)
		}
		send(t, store, flood...)
	}
	quiet(1)
	last := flood[len(flood)-1].RunID
	for _, s := range []*served{s, serveFleet(t, kvtest.Bind(t, srv), access.Options{})} {
		kvtest.Eventually(t, "the others are current, and so is the flood", func() (bool, string) {
			var found struct{ Runs []view.RunRow }
			for i := range others {
				s.get(fmt.Sprintf("runs?node=web%02d", i), &found)
				if len(found.Runs) != 2 || found.Runs[0].RunID != "r1" {
					return false, fmt.Sprintf("%+v", found.Runs)
				}
			}
			s.get("runs?node=flood&limit=1", &found)
			return len(found.Runs) == 1 && found.Runs[0].RunID == last && s.overview().Progress.History, fmt.Sprintf("%+v", found.Runs)
		})
	}
}

// hostileText is markup, what a terminal obeys, and what reorders text.
const hostileText = "\"'><script>alert(1)</script><img src=x onerror=alert(1)> \u202etxt.exe\u2066 \x1b]0;owned\x07\x1b[2J\x00 "

// TestHostileNodes: what nodes store and report over NATS, with lines of a megabyte, is text on pages and
// valid JSON in the API and the feed, and no page is large by it.
func TestHostileNodes(t *testing.T) {
	t.Parallel()
	const most = 1_000_000 // of what a server takes
	srv, store := kvtest.NewWith(t, provision.Options{ReportMax: most, StateMax: most})
	s := serveFleet(t, kvtest.Bind(t, srv), access.Options{})
	if _, err := store.Put(t.Context(), "group.sim.motd", []byte("muster: {resources: []}")); err != nil {
		t.Fatal(err)
	}
	line := hostileText + strings.Repeat("long\t", most/7)
	const node = "evil"
	run := ksuid.New().String()
	bad := model.Transaction{
		Type: "file", Name: hostileText, Failed: true, Errors: []string{line}, Source: model.Position{File: hostileText, Line: 3},
		Changes: []model.Change{{Action: hostileText, Message: hostileText, Property: hostileText, From: hostileText, To: hostileText, Diff: "+" + hostileText + strings.Repeat("y", most/10)}},
	}
	send(t, store, transactionOf(t, node, run, bad, model.OutcomeFailed, 1), runOf(t, node, run, model.OutcomeFailed, 2))
	state := model.NodeState{Node: node, Host: hostileText, Message: line, Labels: map[string]string{"x": hostileText}, Groups: []string{"sim"}, Started: time.Now(), At: time.Now()}
	if err := store.PutState(t.Context(), state, time.Hour); err != nil {
		t.Fatal(err)
	}
	facts := model.Facts{hostileText: hostileText, "long": line}
	if err := store.PutFacts(t.Context(), node, facts); err != nil {
		t.Fatal(err)
	}
	kvtest.Eventually(t, "the run is known", func() (bool, string) {
		text := s.text("api/v1/runs?node=evil")
		return strings.Contains(text, run) && strings.Contains(s.text("api/v1/nodes"), `"evil"`), text
	})
	s.complete()
	active := regexp.MustCompile(`<script>|<img|onerror=alert\(1\)>|[\x00\x1b\x07]|\x{202e}|\x{2066}`)
	for _, path := range []string{"/", "/nodes", "/nodes/evil", "/nodes/evil/facts", "/nodes?on=facts.long+!%3D+nil", "/manifests", "/manifests/motd", "/runs/evil/" + run, "/events", "/requests", "/audit"} {
		page := s.text(path)
		if at := active.FindStringIndex(page); at != nil {
			t.Errorf("%s has %q", path, page[max(at[0]-60, 0):min(at[1]+60, len(page))])
		}
		if len(page) > 1<<20 {
			t.Errorf("%s has %d bytes", path, len(page))
		}
	}
	for _, path := range []string{"overview", "nodes", "nodes/evil", "nodes/evil/facts", "runs", "nodes/evil/runs/" + run, "events", "manifests", "requests"} {
		var anything any
		text := s.text("api/v1/" + path)
		if err := json.Unmarshal([]byte(text), &anything); err != nil || strings.ContainsAny(text, "\x00\x1b\x07") {
			t.Errorf("%s: %v in %.300s", path, err, text)
		}
	}
	if text := s.text("metrics"); strings.ContainsAny(text, "\x00\x1b\x07") || strings.Contains(text, "<script>") {
		t.Error("the metrics have what a node said")
	}
}

// TestFarTimes checks that the API serves nodes and runs with times outside the years 0 to 9999.
func TestFarTimes(t *testing.T) {
	t.Parallel()
	srv, store := kvtest.New(t)
	s := serveFleet(t, kvtest.Bind(t, srv), access.Options{})
	if _, err := store.Put(t.Context(), "group.all.motd", []byte("muster: {resources: []}")); err != nil {
		t.Fatal(err)
	}
	for node, text := range map[string]string{"late": "9999-12-31T23:59:59-12:00", "early": "0000-01-01T00:00:00+12:00"} {
		far, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		run := ksuid.New().String()
		summary := runOf(t, node, run, model.OutcomeFailed, 2)
		if summary.Data, err = json.Marshal(model.Run{RunID: run, Manifest: summary.Manifest, Started: far, Duration: time.Hour, Counts: model.Counts{Total: 3}}); err != nil {
			t.Fatal(err)
		}
		send(t, store, transactionOf(t, node, run, model.Transaction{Type: "file", Name: "/etc/motd", Timestamp: far}, model.OutcomeFailed, 1), summary)
		state := model.NodeState{
			Node: node, Started: far, At: far, Groups: []string{}, Paused: &model.Paused{Until: far, At: far},
			Flapping: []model.FlappingState{{Manifest: "group.all.motd", Resource: model.Ref{Type: "file", Name: "/etc/motd"}, Since: far}},
			Manifests: map[string]model.ManifestState{"group.all.motd": {
				Revision: 1, Outcome: model.OutcomeFailed, At: far, SeenAt: far, FailedSince: far, Ran: &model.RanRevision{Revision: 1, At: far},
			}},
		}
		if err := store.PutState(t.Context(), state, time.Hour); err != nil {
			t.Fatal(err)
		}
		kvtest.Eventually(t, "the node and its run are known", func() (bool, string) {
			text := s.text("api/v1/runs?node=" + node)
			return strings.Contains(text, run) && strings.Contains(s.text("api/v1/nodes"), `"`+node+`"`), text
		})
		if text := s.text("api/v1/nodes/" + node); strings.Contains(text, "unreadable") {
			t.Errorf("node %s: %s", node, text)
		}
		for _, path := range []string{"overview", "runs", "nodes/" + node + "/runs/" + run, "events", "manifests"} {
			var anything any
			s.get(path, &anything)
		}
	}
}
