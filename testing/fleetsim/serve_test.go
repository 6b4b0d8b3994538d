package fleetsim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/agent/simulate"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/testing/fleetsim"
	"github.com/musterfleet/muster/testing/kvtest"
)

// served is muster fleet serve.
type served struct {
	t    *testing.T
	url  string
	stop func()
}

// serveFleet runs the command until the test ends, or stop is called.
func serveFleet(t *testing.T, server string) *served {
	t.Helper()
	addresses, address := io.Pipe()
	env := cli.NewEnv(resources.All(), strings.NewReader(""), address, io.Discard, cli.NewInterrupt())
	app := fisk.New("muster", "")
	env.AddGlobals(app)
	fleetcmd.AddServe(env, app.Command("fleet", ""))
	if _, err := app.Parse([]string{"--server", server, "fleet", "serve", "--listen", "127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		_, err := env.Run(ctx)
		env.Close()
		_ = address.CloseWithError(errors.Join(err, io.ErrUnexpectedEOF))
		ended <- err
	}()
	s := &served{t: t, stop: sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("fleet serve ended with %v", err)
		}
	})}
	t.Cleanup(s.stop)
	if _, err := fmt.Fscan(addresses, &s.url); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, addresses) }()

	return s
}

// get reads a document of the API.
func (s *served) get(path string, to any) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"api/v1/"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(to); err != nil {
		s.t.Fatalf("%s: %v", path, err)
	}
}

// known returns all lists and the counts of the overview; complete reports whether the server calls them
// complete.
func (s *served) known() (text string, complete bool) {
	s.t.Helper()
	var out strings.Builder
	for _, path := range []string{"nodes?limit=1000", "manifests", "runs?limit=1000", "events?limit=1000", "requests"} {
		var of map[string]any
		s.get(path, &of)
		delete(of, "progress")
		fmt.Fprintf(&out, "%s %v\n", path, of)
	}
	var o view.Overview
	s.get("overview", &o)
	sum := view.Point{}
	for _, p := range o.History {
		sum.Runs, sum.Changed, sum.Failed, sum.Repaired = sum.Runs+p.Runs, sum.Changed+p.Changed, sum.Failed+p.Failed, sum.Repaired+p.Repaired
	}
	fmt.Fprintf(&out, "overview %+v %+v %+v\n", sum, o.Top, o.States)

	return out.String(), o.Progress.Nodes && o.Progress.LastRuns && o.Progress.History
}

// same waits until two know the same, and all of it.
func same(t *testing.T, a, b *served) {
	t.Helper()
	kvtest.Eventually(t, "both know the same", func() (bool, string) {
		one, whole := a.known()
		other, all := b.known()
		at := 0
		for at < min(len(one), len(other)) && one[at] == other[at] {
			at++
		}
		part := func(text string) string { return text[max(at-200, 0):min(at+200, len(text))] }
		return one == other && whole && all, fmt.Sprintf("\n…%s…\n…%s…", part(one), part(other))
	})
}

// TestServeIsKilled: a restarted server and a second one show the same as a server that saw all events. No
// event counts twice.
func TestServeIsKilled(t *testing.T) {
	t.Parallel()
	// serve collects garbage for itself, not for nodes beside it.
	t.Cleanup(func(percent int) func() { return func() { debug.SetGCPercent(percent) } }(debug.SetGCPercent(fleetcmd.SimulateGCPercent)))
	srv, store := kvtest.New(t)
	first := serveFleet(t, srv.URL())
	const count = 60
	if _, err := store.Put(t.Context(), "group.sim.motd", []byte("muster:\n  resources:\n    - file:\n        - /etc/motd: {content: hello, owner: root, group: root, mode: '0644'}\n")); err != nil {
		t.Fatal(err)
	}
	fleetsim.Simulate(t, connect.Options{Servers: []string{srv.URL()}}, fleetcmd.SimulateOptions{Plan: simulate.Plan{Nodes: count, Scenario: "hostile", Seed: 5, RunTime: time.Millisecond}})
	second := serveFleet(t, srv.URL())
	for id, family := range map[string]string{"q1": "group.sim-web", "q2": "group.sim"} {
		request := fmt.Sprintf(`{"protocol":"io.choria.ccm.v1.resource.ensure.request","id":%q,"type":"exec","properties":{"name":"/bin/true","ensure":"present"}}`, id)
		for _, err := range kvtest.Ask(t.Context(), store, store.Names.Request(kvstore.VerbEnsure, family), []byte(request)) {
			if err != nil {
				t.Fatal(err)
			}
			break // the others answer all the same
		}
	}
	for _, s := range []*served{first, second} {
		kvtest.Eventually(t, "all answers are known", func() (bool, string) {
			var got struct{ Requests []view.RequestRow }
			s.get("requests", &got)
			answers := map[string]int{}
			for _, r := range got.Requests {
				answers[r.ID] = r.Answers
			}
			// All but a silent one, which is one of the web servers.
			return answers["q1"] == count*3/5-1 && answers["q2"] == count-1, fmt.Sprint(answers)
		})
	}
	same(t, first, second)
	second.stop()
	same(t, first, serveFleet(t, srv.URL()))
}
