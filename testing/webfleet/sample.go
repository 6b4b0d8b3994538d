package webfleet

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// Version is the version of a Sample's server.
const Version = "1.4.0"

// FailedRun is the path of a run in every Sample that failed, node/id.
const FailedRun = "web003/2ZfZ8kq6mXn1wVtB3rYcHd5sLpQ"

// Sample returns a fleet of some nodes with failures, drift and late ones, the same each time but
// for the times, which end now.
func Sample(nodes int, now time.Time) Data {
	s := &sample{now: now, random: rand.New(rand.NewPCG(1, 2)), data: Data{
		Version: Version, Progress: view.Progress{Nodes: true, LastRuns: true, History: true, Since: now.Add(-24 * time.Hour)},
		Facts: map[string]json.RawMessage{}, Details: map[string]view.RunDetail{}, Revisions: map[string][]model.Entry{},
	}}
	s.assign()
	for i := range nodes {
		s.node(i)
	}
	slices.SortFunc(s.data.Nodes, func(a, b model.Node) int { return strings.Compare(a.Node, b.Node) })
	s.history()
	s.runs()
	s.events()
	s.others()

	return s.data
}

type sample struct {
	now    time.Time
	random *rand.Rand
	data   Data
}

const nginx = `data:
  port: 8080
muster:
  resources:
    - package:
        - nginx:
            ensure: present
    - file:
        - /etc/nginx/nginx.conf:
            ensure: present
            content: "worker_processes auto;\nlisten ${ Data.port };\n"
            mode: "0644"
    - service:
        - nginx:
            ensure: running
            subscribe: file#/etc/nginx/nginx.conf
    - exec:
        - /usr/local/bin/warm-cache --all:
            require: service#nginx
`

// assign puts the assignments, each with its history.
func (s *sample) assign() {
	for i, a := range []struct {
		key, text string
		age       time.Duration
	}{
		{"group.all.base", "muster:\n  resources:\n    - package:\n        - chrony:\n            ensure: latest\n", 26 * 24 * time.Hour},
		{"group.all.sshd", "muster:\n  resources:\n    - file:\n        - /etc/ssh/sshd_config.d/muster.conf:\n            ensure: present\n            content: \"PermitRootLogin no\\n\"\n", 9 * 24 * time.Hour},
		{"group.web.nginx", nginx, 47 * time.Minute},
		{"group.db.postgres", "muster:\n  resources:\n    - service:\n        - postgresql:\n            ensure: running\n", 3 * 24 * time.Hour},
		{"group.edge.cache", "muster:\n  resources:\n    - service:\n        - varnish:\n            ensure: running\n", 6 * time.Hour},
		{"node.db006.tuning", "muster:\n  resources:\n    - exec:\n        - /usr/sbin/sysctl --system:\n", 2 * time.Hour},
	} {
		revision := uint64(1040 + 7*i)
		e := model.Entry{Key: a.key, Revision: revision, Time: s.now.Add(-a.age), Digest: fmt.Sprintf("sha256-%02x9f3c4e1ab27d%02x", i*17, i), By: []string{"anna@desk", "bob@ops1", ""}[i%3]}
		s.data.Entries = append(s.data.Entries, e)
		older := e
		older.Revision, older.Time = revision-31, e.Time.Add(-40*24*time.Hour)
		older.Value = []byte(strings.Replace(strings.Replace(a.text, "8080", "80", 1), "latest", "present", 1))
		e.Value = []byte(a.text)
		s.data.Revisions[a.key] = []model.Entry{older, e}
	}
}

// node adds a node.
func (s *sample) node(i int) {
	group := []string{"web", "db", "edge", "web", "web"}[i%5]
	at := s.now.Add(-time.Duration(s.random.IntN(55)) * time.Second)
	n := model.Node{Heard: at, NodeState: model.NodeState{
		Node: fmt.Sprintf("%s%03d", group, i), Host: fmt.Sprintf("%s%03d.fra1.example.net", group, i), Version: Version, Groups: []string{group},
		Labels: map[string]string{"rack": fmt.Sprintf("%c%d", 'a'+i%4, 1+i%9), "region": []string{"fra1", "ams2"}[i%2]}, Started: s.now.Add(-time.Duration(3+i%60) * 24 * time.Hour), At: at,
		Manifests: map[string]model.ManifestState{}, SilentAfter: model.Duration(3 * time.Minute), Watches: 14 + i%5,
		Health: model.HealthCounts{OK: 3}, Clock: model.ClockOffset{Offset: model.Offset(time.Millisecond), Within: model.Duration(4 * time.Millisecond)},
	}}
	for _, e := range s.data.Entries {
		if e.Family == "" && (strings.HasPrefix(e.Key, "group.all.") || strings.HasPrefix(e.Key, "group."+group+".") || strings.HasPrefix(e.Key, "node."+n.Node+".")) {
			n.Manifests[e.Key] = model.ManifestState{Revision: e.Revision, Digest: e.Digest, Outcome: model.OutcomeStable, At: s.now.Add(-time.Duration(s.random.IntN(29)) * time.Minute), Counts: model.Counts{Total: 4, Unique: 4, Stable: 4}}
		}
	}
	s.trouble(i, &n)
	s.data.Nodes = append(s.data.Nodes, n)
	s.data.Facts[n.Node] = facts(n, i)
}

// trouble gives some of the nodes a problem.
func (s *sample) trouble(i int, n *model.Node) {
	fail := func(key, text string) {
		if m, runs := n.Manifests[key]; runs {
			m.Outcome, m.Error, m.Counts = model.OutcomeFailed, text, model.Counts{Total: 4, Unique: 4, Stable: 3, Failed: 1}
			n.Manifests[key] = m
			n.Health.OK, n.Health.Critical = 2, 1
		}
	}
	switch {
	case n.Node == "web020" || i == 3 || i%83 == 6:
		fail("group.web.nginx", "group.web.nginx:18:11: exec#/usr/local/bin/warm-cache --all: exit code 7")
		fail("group.edge.cache", "group.edge.cache:4:11: service#varnish: unit varnish.service not found")
	case i%61 == 10:
		fail("group.web.nginx", "group.web.nginx:6:11: package#nginx: E: Unable to fetch some archives, maybe run apt-get update?")
	case i%71 == 5:
		if m, runs := n.Manifests["group.web.nginx"]; runs {
			m.Seen, m.Revision, m.Late = m.Revision, m.Revision-31, "refused: signed by a key that this node does not trust"
			n.Manifests["group.web.nginx"] = m
		}
	case i%47 == 18:
		if m, runs := n.Manifests["group.web.nginx"]; runs {
			m.Revision -= 31
			n.Manifests["group.web.nginx"] = m
		}
	case i%97 == 7:
		n.Silent, n.Heard = true, s.now.Add(-time.Duration(17+i)*time.Minute)
	case i == 111:
		n.Event = model.NodeStopped
	case i == 29 || i == 34:
		n.Clock = model.ClockOffset{Offset: model.Offset(time.Duration(i) * time.Minute), Within: model.Duration(10 * time.Millisecond)}
	case i%120 == 52:
		n.Outbox, n.Version = 40+i, "1.3.2"
		n.Message = "group.canary is not permitted: NATS does not let the node read it"
	case i%37 == 12:
		n.Version = "1.3.2"
	case i%90 == 41:
		n.Flapping = []model.FlappingState{{Manifest: "group.all.sshd", Resource: model.Ref{Type: "file", Name: "/etc/ssh/sshd_config.d/muster.conf"}, Since: s.now.Add(-31 * time.Minute), Writer: "cloud-init (pid 812)"}}
	}
}

func facts(n model.Node, i int) json.RawMessage {
	out, err := json.Marshal(map[string]any{
		"host":    map[string]any{"info": map[string]any{"hostname": n.Host, "platform": "debian", "platform_version": "12.5", "kernel": "6.1.0-18-amd64", "uptime": 86400 * (1 + i)}},
		"cpu":     map[string]any{"count": 4 + i%3*4, "model": "AMD EPYC 7543"},
		"memory":  map[string]any{"total": 16 << 30, "swap": 0},
		"network": map[string]any{"primary": map[string]any{"interface": "eth0", "address": fmt.Sprintf("10.20.%d.%d", i/250, i%250)}, "dns": []string{"10.20.0.2", "10.20.0.3"}},
	})
	if err != nil {
		panic(err) // these values are valid JSON
	}

	return out
}

// history makes a day of what happened.
func (s *sample) history() {
	for i := range 96 {
		p := view.Point{At: s.now.Add(-time.Duration(96-i) * 15 * time.Minute), Runs: 900 + s.random.IntN(80), Changed: s.random.IntN(14), Repaired: s.random.IntN(6)}
		switch {
		case i > 91:
			p.Changed, p.Failed = 110-20*(i-92), 14+s.random.IntN(6)
		case i > 60 && i < 66:
			p.Changed, p.Failed = 40+s.random.IntN(20), s.random.IntN(5)
		}
		s.data.History = append(s.data.History, p)
	}
	members := func(names ...string) view.Members {
		names = slices.DeleteFunc(names, func(name string) bool { return s.data.Facts[name] == nil })
		return view.Members{Nodes: len(names), First: names}
	}
	s.data.Top = view.Top{
		Failing: []view.TopResource{
			{Manifest: "nginx", Resource: "exec#/usr/local/bin/warm-cache --all", Count: 64, Last: s.now.Add(-2 * time.Minute), Text: "exit code 7: curl: (7) Failed to connect to 127.0.0.1 port 8080", Now: 14, Since: s.now.Add(-3 * time.Hour), Members: members("web003", "web020", "web089")},
			{Manifest: "cache", Resource: "service#varnish", Count: 12, Last: s.now.Add(-9 * time.Minute), Text: "unit varnish.service not found", Members: members("edge172")},
		},
		Drifting: []view.TopResource{
			{Manifest: "sshd", Resource: "file#/etc/ssh/sshd_config.d/muster.conf", Count: 41, Last: s.now.Add(-4 * time.Minute), Text: "content: 1 line differs", Members: members("db041", "db131", "db221", "db311", "db401")},
			{Manifest: "base", Resource: "package#chrony", Count: 6, Last: s.now.Add(-3 * time.Hour), Text: "ensure: absent", Members: members("edge012")},
		},
		Flapping: []view.TopResource{
			{Manifest: "sshd", Resource: "file#/etc/ssh/sshd_config.d/muster.conf", Count: 5, Last: s.now.Add(-4 * time.Minute), Text: "probably written by cloud-init (pid 812)", Members: members("db041", "db131")},
		},
	}
}

// runs makes the newest runs, one of them failed with all there is to see.
func (s *sample) runs() {
	for i, n := range s.data.Nodes {
		for _, e := range s.data.Entries {
			m, runs := n.Manifests[e.Key]
			if !runs {
				continue
			}
			r := view.RunRow{RunID: fmt.Sprintf("2Zf%024d", i*10+len(s.data.Runs)), Node: n.Node, Manifest: e.Key, Revision: m.Revision, Cause: model.CauseSchedule, Outcome: m.Outcome, Started: m.At, Duration: time.Duration(40+s.random.IntN(300)) * time.Millisecond, Counts: m.Counts, Error: m.Error}
			if n.Node == "web003" && e.Key == "group.web.nginx" {
				_, r.RunID, _ = strings.Cut(FailedRun, "/")
				r.Cause = model.CauseManifest
				s.failedRun(r)
			}
			s.data.Runs = append(s.data.Runs, r)
		}
	}
	slices.SortStableFunc(s.data.Runs, func(a, b view.RunRow) int { return b.Started.Compare(a.Started) })
}

func (s *sample) failedRun(r view.RunRow) {
	at := func(line int) model.Position { return model.Position{File: r.Manifest, Line: line, Column: 11} }
	s.data.Details[FailedRun] = view.RunDetail{
		Node: r.Node,
		Run: &model.Run{
			RunID: r.RunID, Node: r.Node, Manifest: r.Manifest, Revision: r.Revision, Cause: r.Cause, Started: r.Started, Duration: 4812 * time.Millisecond, Version: Version,
			Counts: model.Counts{Total: 4, Unique: 4, Stable: 1, Changed: 2, Refreshed: 1, Failed: 1}, Errors: []string{r.Error},
		},
		Transactions: []model.Transaction{
			{Type: "package", Name: "nginx", Provider: "apt", RequestedEnsure: "present", FinalEnsure: "1.22.1-9+deb12u1", Duration: 12 * time.Millisecond, Source: at(6)},
			{
				Type: "file", Name: "/etc/nginx/nginx.conf", Provider: "posix", RequestedEnsure: "present", FinalEnsure: "present", Changed: true, Duration: 8 * time.Millisecond, Source: at(9),
				Changes: []model.Change{
					{Action: "store", Message: "updated the content", Property: "content", Diff: "--- /etc/nginx/nginx.conf\n+++ /etc/nginx/nginx.conf\n@@ -1,2 +1,2 @@\n worker_processes auto;\n-listen 80;\n+listen 8080;\n"},
					{Action: "chmod", Message: "changed the mode", Property: "mode", From: "0600", To: "0644"},
				},
			},
			{
				Type: "service", Name: "nginx", Provider: "systemd", RequestedEnsure: "running", FinalEnsure: "running", Changed: true, Refreshed: true, Duration: 410 * time.Millisecond, Source: at(14),
				Changes:     []model.Change{{Action: "restart", Message: "restarted the service, file#/etc/nginx/nginx.conf changed"}},
				HealthCheck: []model.HealthResult{{Name: "http", Status: model.HealthOK, Tries: 2, Output: "HTTP OK: 200 in 3 ms"}, {Name: "workers", Status: model.HealthWarning, Tries: 1, Output: "only 2 of 4 workers answer"}},
			},
			{
				Type: "exec", Name: "/usr/local/bin/warm-cache --all", Provider: "shell", Failed: true, Duration: 4300 * time.Millisecond, Source: at(18),
				Errors: []string{"exit code 7\nfetching /index.html\ncurl: (7) Failed to connect to 127.0.0.1 port 8080 after 0 ms: Couldn't connect to server"},
			},
		},
	}
}

// events makes the newest events.
func (s *sample) events() {
	seq := uint64(184_220)
	for i := range 260 {
		n := s.data.Nodes[(i*37)%len(s.data.Nodes)]
		e := view.Event{Seq: seq - uint64(i), ID: fmt.Sprintf("2Zg%024d", i), Time: s.now.Add(-time.Duration(i*i/40+i) * time.Second), Node: n.Node, Manifest: "group.all.base", RunID: fmt.Sprintf("2Zf%024d", i), Cause: model.CauseSchedule}
		switch i % 9 {
		case 0, 1, 2, 3:
			e.Kind, e.Outcome, e.Text = model.KindRun, model.OutcomeStable, "4 resources in 121ms"
		case 4:
			e.Kind, e.Outcome, e.Resource, e.Cause, e.Manifest, e.Text = model.KindTransaction, model.OutcomeChanged, "file#/etc/ssh/sshd_config.d/muster.conf", model.CauseDrift, "group.all.sshd", "updated the content (drift, repaired in 38ms)"
		case 5:
			e.Kind, e.Outcome, e.Resource, e.Manifest, e.Text = model.KindTransaction, model.OutcomeFailed, "exec#/usr/local/bin/warm-cache --all", "group.web.nginx", "group.web.nginx:18:11: exit code 7"
		case 6:
			e.Kind, e.Outcome, e.Resource, e.Text = model.KindHealth, "warning", "service#nginx", "only 2 of 4 workers answer"
		case 7:
			e.Kind, e.Outcome, e.Manifest, e.RunID, e.Cause, e.Text = model.KindNode, "started", "", "", "", "muster "+Version
		case 8:
			e.Kind, e.Outcome, e.Resource, e.Manifest, e.CorrelationID, e.Cause, e.Text = model.KindEnsure, model.OutcomeRefreshed, "service#nginx", "", "req-7c1f", model.CauseEnsure, "restarted the service"
		}
		s.data.Events = append(s.data.Events, e)
	}
}

func (s *sample) others() {
	s.data.Requests = []view.RequestRow{
		{ID: "req-7c1f", By: "anna@desk", Nodes: 305, On: `group("web") || group("db")`, Resource: "service#nginx", First: s.now.Add(-41 * time.Minute), Last: s.now.Add(-40 * time.Minute), Answers: 300, Failed: 2, Changed: 298},
		{ID: "req-66d0", Resource: "exec#/usr/bin/uptime", First: s.now.Add(-3 * time.Hour), Last: s.now.Add(-3 * time.Hour), Answers: 498},
	}
	s.data.Answers = map[string][]view.Answer{}
	zero, three := 0, 3
	for i, n := range s.data.Nodes {
		a := view.Answer{Node: n.Node, Time: s.now.Add(-3 * time.Hour), Duration: 12 * time.Millisecond, Outcome: model.OutcomeChanged, ExitCode: &zero, Text: "ran the command", Stdout: "up 12 days\n"}
		if i%20 == 7 {
			a.Outcome, a.ExitCode, a.Text, a.Stdout, a.Stderr = model.OutcomeFailed, &three, "exit code 3", "", "uptime: cannot open /proc/uptime\n"
		}
		s.data.Answers["req-66d0"] = append(s.data.Answers["req-66d0"], a)
	}
	s.data.Missing = map[string][]string{"req-7c1f": {"db006", "edge012", "web003", "web020", "web089"}}
	for i := range 12 {
		s.data.Registrations = append(s.data.Registrations, registration.Registration{Cluster: "production", Service: []string{"web", "postgres", "cache"}[i%3], ProtocolName: []string{"http", "postgresql", "http"}[i%3], Address: fmt.Sprintf("10.20.0.%d", 10+i), Port: []int{8080, 5432, 6081}[i%3], Priority: 10, TTL: model.TTL(time.Minute), Node: s.data.Nodes[(i*7)%len(s.data.Nodes)].Node, Annotations: map[string]string{"zone": "fra1"}})
	}
}
