package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/fleetsim"
	"github.com/musterfleet/muster/testing/kvtest"
)

const (
	servedNodes = 10_000
	// servedRate is how many reports a second come then, for so many seconds.
	servedRate = 20_000
	servedFor  = 5
)

// servedPages are the pages and answers that are timed.
var servedPages = map[string]string{
	"overview": "", "nodes": "nodes", "failed": "nodes?state=failed", "target": `nodes?on=labels.rack+%3D%3D+"a3"&sort=state`, "search": "nodes?q=web0001", "node": "nodes/web00017",
	"node-facts": "nodes/web00017/facts", "manifests": "manifests", "manifest": "manifests/motd", "events": "events", "events-failed": "events?outcome=failed", "requests": "requests", "audit": "audit",
	"api": "api/v1/nodes?limit=1000", "metrics": "metrics",
}

// BenchmarkServe runs muster fleet serve over 10,000 nodes with varied facts of this machine and some MiB of
// reports. It measures start time, memory, time and size of pages, and 20,000 reports a second. The server is
// a separate process.
func BenchmarkServe(b *testing.B) {
	muster := build(b)
	for _, size := range []int{128, 1024} {
		b.Run(fmt.Sprint(size, "MiB"), func(b *testing.B) {
			for b.Loop() {
				measureServe(b, muster, size<<20)
			}
		})
	}
}

func measureServe(b *testing.B, muster string, size int) {
	u, store := emptyFleet(b)
	facts := fillNodes(b, store, muster)
	report(b, float64(facts), "B-facts")
	e := newEvents(b, store.Conn)
	sent := e.fill(b, store, size)
	report(b, float64(sent), "reports")

	s := startServe(b, muster, adminURL(b, u))
	s.awaitProgress(b)
	report(b, peak(b, s.pid), "MB-peak")
	s.timePages(b, e)
	e.keepRate(b, store, s, sent)
	report(b, peak(b, s.pid), "MB-peak-after")
	report(b, u.Server.CPU(b).Seconds(), "s-cpu-server")
}

// emptyFleet returns a fleet without data.
func emptyFleet(b *testing.B) (fleetsim.Users, *kvtest.Store) {
	b.Helper()
	u := fleetsim.ByConfig(b, nil)
	nc, err := connect.Dial(b.Context(), u.Options(""))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	store := kvtest.Must(b, func() (*kvtest.Store, error) { return kvtest.Of(nc, "") })
	if _, err := store.Apply(b.Context(), provision.Options{}); err != nil {
		b.Fatal(err)
	}

	return u, store
}

// adminURL is where its administrator connects.
func adminURL(b *testing.B, u fleetsim.Users) string {
	b.Helper()

	return strings.Replace(u.Server.URL(b), "nats://", "nats://admin:admin@", 1)
}

// fillNodes stores facts of nodes and their states with six manifests each, and returns the size of one
// node's data.
func fillNodes(b *testing.B, store *kvtest.Store, muster string) (size int) {
	b.Helper()
	text, err := exec.Command(muster, "facts").Output()
	if err != nil {
		b.Fatal(err)
	}
	var facts model.Facts
	if err := json.Unmarshal(text, &facts); err != nil {
		b.Fatal(err)
	}
	keys := []string{"group.web.base", "group.web.sshd", "group.web.motd", "group.web.users", "group.web.app", "group.web.nginx"}
	manifest, revisions := []byte("muster: {resources: []}"), map[string]uint64{}
	for _, key := range keys {
		if revisions[key], err = store.Put(b.Context(), key, manifest); err != nil {
			b.Fatal(err)
		}
	}
	put := func(subject string, document any) int {
		data, err := json.Marshal(document)
		if err == nil {
			err = store.Conn.Publish(subject, data)
		}
		if err != nil {
			b.Fatal(err)
		}
		return len(data)
	}
	now := time.Now()
	for i := range servedNodes {
		node := nodeName(i)
		n := model.NodeState{
			Protocol: model.ProtocolNode, Node: node, Version: "1.2.0", Host: node + ".example.net", Groups: []string{"web"}, Started: now, At: now, SilentAfter: model.Duration(time.Hour),
			Labels: map[string]string{"rack": fmt.Sprintf("a%d", i%50), "role": "web", "site": "fra2"}, Manifests: map[string]model.ManifestState{},
		}
		for _, key := range keys {
			m := model.ManifestState{Revision: revisions[key], Digest: model.DigestOf(manifest), Outcome: model.OutcomeStable, At: now, Counts: model.Counts{Total: 12, Stable: 12}}
			if i%50 == 0 {
				m.Outcome, m.Error = model.OutcomeFailed, fmt.Sprintf("%s:4:11: exec#/bin/false: desired state not achieved: exit code %d", key, i%70)
			}
			n.Manifests[key] = m
		}
		put(store.Names.NodeState(node), n)
		facts["hostname"], facts["fqdn"], facts["rack"], facts["serial"] = node, node+".example.net", n.Labels["rack"], ksuid.New().String()
		size = put(store.Names.NodeFacts(node), facts)
	}
	if err := store.Conn.Flush(); err != nil {
		b.Fatal(err)
	}
	kvtest.Eventually(b, "the nodes are stored", func() (bool, string) {
		stored := 0
		for _, err := range store.Stored(b.Context()) {
			if err != nil {
				return false, err.Error()
			}
			stored++
		}
		return stored == servedNodes, fmt.Sprint(stored)
	})

	return size
}

func nodeName(i int) string { return fmt.Sprintf("web%05d", i) }

// events are two reports of a run. Each copy gets another node and other ids.
type events struct {
	transaction, run template
	// js waits where the server has too much to store.
	js jetstream.JetStream
	// last is the newest run, as a path of pages.
	last string
}

// template is a report with places for what differs.
type template struct {
	kind, outcome string
	text          []byte
	node          []int
	id, runID     []int
}

func newEvents(b *testing.B, nc *nats.Conn) *events {
	b.Helper()
	const pending = 4000
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(pending))
	if err != nil {
		b.Fatal(err)
	}
	transaction := model.Transaction{
		Protocol: model.ProtocolTransaction, Type: "file", Name: "/etc/motd", Provider: "posix", Changed: true, RequestedEnsure: "present", FinalEnsure: "present",
		Properties: []byte(`{"ensure":"present","content":"` + strings.Repeat("x", 300) + `","owner":"root","group":"root","mode":"0644"}`),
		Changes:    []model.Change{{Action: "store", Message: "changed the content", Property: "content", Diff: strings.Repeat("+a line\n", 40)}},
	}
	run := model.Run{Protocol: model.ProtocolRun, Started: time.Now(), Duration: time.Second, Counts: model.Counts{Total: 12, Changed: 1, Stable: 11}}

	return &events{js: js, transaction: newTemplate(b, model.KindTransaction, model.ProtocolTransaction, transaction), run: newTemplate(b, model.KindRun, model.ProtocolRun, run)}
}

func newTemplate(b *testing.B, kind, protocol string, document any) template {
	b.Helper()
	data, err := json.Marshal(document)
	if err != nil {
		b.Fatal(err)
	}
	id, run := ksuid.New().String(), ksuid.New().String()
	text, err := kvstore.Reports{}.Event(model.Report{
		ID: id, Type: protocol, Node: nodeName(0), Kind: kind, Outcome: model.OutcomeChanged, Time: time.Now(), Seq: 1, RunID: run,
		Manifest: "group.web.motd", Revision: 3, Digest: "sha256-" + strings.Repeat("0123456789abcdef", 4), Cause: model.CauseSchedule, Data: data,
	})
	if err != nil {
		b.Fatal(err)
	}

	return template{kind, string(model.OutcomeChanged), text, placesOf(text, nodeName(0)), placesOf(text, id), placesOf(text, run)}
}

// placesOf returns where a text has another.
func placesOf(text []byte, what string) (all []int) {
	for from := 0; ; {
		at := bytes.Index(text[from:], []byte(what))
		if at < 0 {
			return all
		}
		all = append(all, from+at)
		from += at + len(what)
	}
}

// send publishes the report with a number, and returns how many bytes it has. Two are one run.
func (e *events) send(b *testing.B, store *kvtest.Store, number int) int {
	t := &e.transaction
	if number%2 == 1 {
		t = &e.run
	} else {
		e.last = ksuid.New().String()
	}
	node, text := nodeName(number/2%servedNodes), bytes.Clone(t.text)
	id := ksuid.New().String()
	for what, places := range map[string][]int{node: t.node, id: t.id, e.last: t.runID} {
		for _, at := range places {
			copy(text[at:], what)
		}
	}
	m := &nats.Msg{Subject: store.Names.Report(node, t.kind, t.outcome), Header: nats.Header{nats.MsgIdHdr: {id}}, Data: text}
	if _, err := e.js.PublishMsgAsync(m, jetstream.WithStallWait(time.Minute)); err != nil {
		b.Fatal(err)
	}

	return len(text) + len(m.Subject) + 60
}

// fill publishes reports of so many bytes together, and returns how many these are.
func (e *events) fill(b *testing.B, store *kvtest.Store, size int) (sent int) {
	b.Helper()
	for bytesSent := 0; bytesSent < size; sent++ {
		bytesSent += e.send(b, store, sent)
	}
	<-e.js.PublishAsyncComplete()
	awaitStored(b, store, uint64(sent))

	return sent
}

// awaitStored waits until the stream has a sequence.
func awaitStored(b *testing.B, store *kvtest.Store, seq uint64) {
	b.Helper()
	kvtest.Eventually(b, "the reports are stored", func() (bool, string) {
		_, last, err := kvstore.NewReports(store.Store).Age(b.Context())
		return err == nil && last >= seq, fmt.Sprint(last, err)
	})
}

// servedFleet is muster fleet serve in a separate process.
type servedFleet struct {
	url string
	// token is the token of the requester; empty without one.
	token string
	pid   int
	began time.Time
}

func startServe(b *testing.B, muster, server string, args ...string) *servedFleet {
	b.Helper()
	cmd := exec.Command(muster, append([]string{"--server", server, "fleet", "serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	s := &servedFleet{began: time.Now()}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s.pid = cmd.Process.Pid
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		b.Fatal("it serves nothing")
	}
	s.url = strings.TrimSpace(lines.Text())

	return s
}

// get returns the content of a path as a browser receives it, and the bytes on the wire.
func (s *servedFleet) get(b *testing.B, path string) (body []byte, wire int) {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("%s: %s %.300s %v", path, response.Status, body, err)
	}

	return body, len(body)
}

// awaitProgress reports when nodes, last runs and history are complete, and what that took.
func (s *servedFleet) awaitProgress(b *testing.B) {
	b.Helper()
	type progress struct {
		Nodes, History bool
		LastRuns       bool `json:"last_runs"`
	}
	known := map[string]bool{}
	kvtest.Eventually(b, "all is known", func() (bool, string) {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.url+"api/v1/requests", nil)
		if err != nil {
			return false, err.Error()
		}
		if s.token != "" {
			request.Header.Set("Authorization", "Bearer "+s.token)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, err.Error()
		}
		defer response.Body.Close()
		var now struct{ Progress progress }
		if err := json.NewDecoder(response.Body).Decode(&now); err != nil {
			return false, err.Error()
		}
		for name, is := range map[string]bool{"nodes": now.Progress.Nodes, "last-runs": now.Progress.LastRuns, "history": now.Progress.History} {
			if is && !known[name] {
				known[name] = true
				report(b, time.Since(s.began).Seconds(), "s-"+name)
				report(b, cpu(b, s.pid).Seconds(), "s-cpu-"+name)
				report(b, resident(b, s.pid), "MB-"+name)
			}
		}
		return now.Progress.History, fmt.Sprintf("%+v", now)
	})
}

// timePages prints how long pages take at least, and how large they are.
func (s *servedFleet) timePages(b *testing.B, e *events) {
	b.Helper()
	slowest, largest := time.Duration(0), 0
	for name, path := range servedPages {
		least, size := time.Hour, 0
		before := cpu(b, s.pid)
		const times = 7
		for i := range times {
			began := time.Now()
			// A rendered page is reused for a second, so each request is for another page.
			mark := "?"
			if strings.Contains(path, "?") {
				mark = "&"
			}
			if strings.HasPrefix(path, "api/") || path == "metrics" {
				_, size = s.get(b, path)
			} else {
				_, size = s.get(b, fmt.Sprintf("%s%sx=%d", path, mark, i))
			}
			least = min(least, time.Since(began))
		}
		fmt.Printf("\n"+"%-14s %8s least, %4d ms CPU, %6.1f kB", name, least.Round(100*time.Microsecond), (cpu(b, s.pid)-before).Milliseconds()/times, float64(size)/1000)
		if slowest = max(slowest, least); !strings.HasPrefix(path, "api/") {
			largest = max(largest, size)
		}
	}
	report(b, float64(slowest.Microseconds())/1000, "ms-slowest-page")
	report(b, float64(largest)/1000, "kB-largest-page")
}

// keepRate publishes reports at a rate, and says how far the feed and the view are behind then.
func (e *events) keepRate(b *testing.B, store *kvtest.Store, s *servedFleet, sent int) {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.url+"api/v1/events/stream?kind=run", nil)
	if err != nil {
		b.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	arrived := make(chan uint64, 1)
	total := sent + servedRate*servedFor
	go func() {
		defer close(arrived)
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var seq uint64
			if _, err := fmt.Sscanf(lines.Text(), "id: %d", &seq); err == nil && seq >= uint64(total)-1 { // the last may be no run
				return
			}
		}
	}()
	before := cpu(b, s.pid)
	began := time.Now()
	for i := sent; i < total; i++ {
		e.send(b, store, i)
		if ahead := time.Duration(i-sent)*time.Second/servedRate - time.Since(began); ahead > time.Millisecond {
			<-time.After(ahead)
		}
	}
	<-e.js.PublishAsyncComplete()
	published := time.Since(began)
	awaitStored(b, store, uint64(total))
	storedAfter := time.Since(began)
	<-arrived
	shown := time.Since(began)
	report(b, float64(total-sent)/published.Seconds(), "published/s")
	report(b, float64(total-sent)/shown.Seconds(), "shown/s")
	report(b, (shown - storedAfter).Seconds(), "s-feed-behind-stream")
	report(b, float64((cpu(b, s.pid)-before).Microseconds())/float64(total-sent), "cpu-us/report")
}

// peak returns the largest resident memory of a process so far, in MB.
func peak(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\nVmHWM:")
	var kB float64
	if _, err := fmt.Sscan(after, &kB); err != nil {
		b.Fatalf("%v\n%s", err, text)
	}

	return kB / 1024
}

// report reports a figure, and prints it at once: all of it takes minutes.
func report(b *testing.B, figure float64, unit string) {
	b.Helper()
	fmt.Printf("%s %.3f\n", unit, figure)
	b.ReportMetric(figure, unit)
}
