//go:build system

package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/kvstore"
)

const (
	// paintTimes is how often each page is opened.
	paintTimes = 7
	// maxWire is how many bytes a page may take over the wire, with all that it needs.
	maxWire = 100_000
)

// paintPages are the pages that are opened; run is the path of a run.
func paintPages(run string) map[string]string {
	pages := map[string]string{
		"run": "runs/" + run, "history": "audit/group.web.motd", "audit-nodes": "audit/nodes", "registrations": "registrations", "actions": "actions",
		"pause-all": "actions/pause?on=true", "run-failed": "actions/run?on=state+%3D%3D+%22failed%22", "preview": "actions/preview",
		"events-of-node": "events?q=web00017", "manifest-failed": "manifests/motd?status=failed", "login": "login",
	}
	for name, path := range servedPages {
		if name != "api" && name != "metrics" {
			pages[name] = path
		}
	}

	return pages
}

// painted contains one measurement of a page: milliseconds and bytes.
type painted struct {
	Name                string
	Status              int
	Paint, Server, Load float64
	Page, Bytes, Cached int
}

// BenchmarkPaint opens the pages of muster fleet serve over 10,000 nodes in Chromium, each with an empty
// cache. It measures the time to first paint, the time of the server and the bytes on the wire. NATS, serve
// and the browser are separate processes.
func BenchmarkPaint(b *testing.B) {
	tools, err := filepath.Abs("../../.rig/tools")
	if err != nil {
		b.Fatal(err)
	}
	muster := build(b)
	for b.Loop() {
		u, store := emptyFleet(b)
		fillNodes(b, store, muster)
		e := newEvents(b, store.Conn)
		sent := e.fill(b, store, 128<<20)
		if _, err := kvstore.NewControl(store.Store).By("anna").Put(b.Context(), "node.web00017.pause", []byte(`{"protocol": "io.muster.v1.pause", "by": "anna"}`)); err != nil {
			b.Fatal(err)
		}
		secret, line, err := access.NewToken(access.Operate, "anna")
		if err != nil {
			b.Fatal(err)
		}
		tokens := filepath.Join(b.TempDir(), "tokens")
		if err := os.WriteFile(tokens, []byte(line), 0o600); err != nil {
			b.Fatal(err)
		}
		s := startServe(b, muster, adminURL(b, u), "--tokens", tokens, "--actions")
		s.token = secret
		s.awaitProgress(b)
		// The run before the last one: both of its reports are stored.
		pages, err := json.Marshal(paintPages(nodeName((sent-1)/2%servedNodes) + "/" + e.last))
		if err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command("node", "paint.mjs")
		cmd.Env = append(os.Environ(), "MODULES="+tools, "BASE="+s.url, "TOKEN="+secret, "PAGES="+string(pages), fmt.Sprint("TIMES=", paintTimes))
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		reportPaints(b, out)
	}
}

// reportPaints prints a table with the measurements of each page.
func reportPaints(b *testing.B, out []byte) {
	b.Helper()
	all := map[string][]painted{}
	for line := range bytes.Lines(out) {
		var p painted
		if err := json.Unmarshal(line, &p); err != nil {
			b.Fatalf("%v: %s", err, line)
		}
		all[p.Name] = append(all[p.Name], p)
	}
	fmt.Printf("\n%-16s %9s %9s %9s %9s %9s %9s %9s\n", "page", "paint", "median", "server", "median", "loaded", "page kB", "all kB")
	slowest, largest, serving := 0.0, 0, 0.0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		found := all[name]
		middle := func(of func(painted) float64) (least, median float64) {
			slices.SortFunc(found, func(a, b painted) int { return cmp.Compare(of(a), of(b)) })
			return of(found[0]), of(found[len(found)/2])
		}
		leastServer, server := middle(func(p painted) float64 { return p.Server })
		_, load := middle(func(p painted) float64 { return p.Load })
		least, paint := middle(func(p painted) float64 { return p.Paint })
		most := slices.MaxFunc(found, func(a, b painted) int { return cmp.Compare(a.Bytes, b.Bytes) })
		fmt.Printf("%-16s %6.0f ms %6.0f ms %6.1f ms %6.1f ms %6.0f ms %9.1f %9.1f\n", name, least, paint, leastServer, server, load, float64(most.Page)/1000, float64(most.Bytes)/1000)
		slowest, serving, largest = max(slowest, paint), max(serving, server), max(largest, most.Bytes)
		if most.Status != 200 || most.Cached > 0 || most.Bytes == 0 {
			b.Errorf("%s is not what should be measured: %+v", name, most)
		}
		if most.Bytes > maxWire {
			b.Errorf("%s takes %d bytes over the wire, at most %d are wanted", name, most.Bytes, maxWire)
		}
	}
	report(b, slowest, "ms-slowest-median-paint")
	report(b, serving, "ms-slowest-median-server")
	report(b, float64(largest)/1000, "kB-largest")
}
