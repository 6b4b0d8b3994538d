//go:build system

package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/agent/simulate"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/testing/fleetsim"
	"github.com/musterfleet/muster/testing/kvtest"
)

// nodes is how many nodes are played.
const nodes = 500

// The versions of the manifest that is looked at: late nodes have only the first.
const (
	nginxConf = "worker_processes auto;\nevents { worker_connections 768; }\nhttp {\n  server { listen 80; }\n}\n"
	nginx     = `muster:
  resources:
    - package:
        - nginx: {ensure: present}
    - file:
        - defaults: {owner: root, group: root, mode: "0644"}
        - /etc/nginx/nginx.conf:
            require: ["package#nginx"]
            content: %q
        - /var/www/html/index.html:
            content: |
              <h1>It works</h1>
    - service:
        - nginx:
            ensure: running
            enable: true
            subscribe: ["file#/etc/nginx/nginx.conf"]
`
)

// invalid is a manifest that nodes reject.
const invalid = "muster:\n  resources:\n    - file:\n        - /etc/monitoring.yaml: {owner: root, group: root, mode: \"0644\", contnet: x}\n"

// assigned is what the nodes are assigned, by key.
func assigned() map[string]string {
	file := func(path, content string) string {
		return fmt.Sprintf("muster: {resources: [{file: [{%s: {content: %q, owner: root, group: root, mode: \"0644\"}}]}]}\n", path, content)
	}

	return map[string]string{
		"group.sim.base":           "muster: {resources: [{package: [{chrony: {ensure: present}}]}, {service: [{chrony: {ensure: running, enable: true}}]}]}\n",
		"group.sim.sshd":           file("/etc/ssh/sshd_config.d/50-muster.conf", "PermitRootLogin no\n"),
		"group.sim-web.nginx":      fmt.Sprintf(nginx, nginxConf),
		"group.sim-db.postgres":    file("/etc/postgresql/16/main/conf.d/muster.conf", "shared_buffers = 4GB\n"),
		"group.sim-cache.varnish":  "muster: {resources: [{service: [{varnish: {ensure: running}}]}]}\n",
		"node.sim-0019.monitoring": invalid,
	}
}

// world is a simulated fleet on a NATS server, and muster fleet serve over it.
type world struct {
	t     *testing.T
	store *kvtest.Store
	url   string
	// token is the token for the API; empty without one.
	token string
	// rejected counts the nodes with a rejected manifest, by reject.
	rejected int
}

// newWorld returns a fleet whose nodes have run their assignments, after the dashboard shows it.
func newWorld(t *testing.T) *world {
	t.Helper()
	srv, store := kvtest.New(t)
	w := &world{t: t, store: store}
	for key, manifest := range assigned() {
		w.put(key, manifest)
	}
	fleetsim.Simulate(t, connect.Options{Servers: []string{srv.URL()}}, fleetcmd.SimulateOptions{
		Plan: simulate.Plan{Nodes: nodes, Seed: 3, RunTime: time.Millisecond},
	})
	w.put("group.sim-web.nginx", fmt.Sprintf(nginx, strings.Replace(nginxConf, "listen 80;", "listen 8080;", 1)))
	w.register()
	w.request()
	w.url = run(t, "--server", srv.URL(), "fleet", "serve", "--listen", "127.0.0.1:0")
	// serve collects garbage for one fleet, not for 500 nodes beside it.
	t.Cleanup(func(percent int) func() { return func() { debug.SetGCPercent(percent) } }(debug.SetGCPercent(fleetcmd.SimulateGCPercent)))
	kvtest.Eventually(t, "the dashboard shows the fleet", func() (bool, string) {
		var o view.Overview
		w.get("overview", &o)
		counts := map[string]int{}
		for _, s := range o.States {
			counts[string(s.State)] = s.Nodes
		}
		ready := o.Total == nodes && counts["failed"] > 10 && counts["pending"] == 1 && counts["rejected"] == 1 && counts["unreachable"] > 3 && len(o.Top.Drifting) > 2
		return ready && o.Progress.History, fmt.Sprint(counts, len(o.Top.Drifting), o.Progress)
	})

	return w
}

// run runs muster until the test ends, and returns its first line, as the address of muster fleet serve. It must log no
// warning.
func run(t *testing.T, args ...string) string {
	t.Helper()
	log := make(warning, 1)
	t.Cleanup(func() { // after it has ended
		select {
		case text := <-log:
			t.Errorf("fleet serve logs %s", text)
		default:
		}
	})

	return runLogging(t, log, args...)
}

// runLogging is run that may log warnings.
func runLogging(t *testing.T, log io.Writer, args ...string) string {
	t.Helper()
	address := make(line, 1)
	env := cli.NewEnv(resources.All(), strings.NewReader(""), address, log, cli.NewInterrupt())
	app := fisk.New("muster", "")
	env.AddGlobals(app)
	fleetcmd.AddServe(env, app.Command("fleet", ""))
	if _, err := app.Parse(args); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		_, err := env.Run(ctx)
		env.Close()
		ended <- err
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("fleet serve ended with %v", err)
		}
	})
	select {
	case url := <-address:
		return url
	case err := <-ended:
		ended <- err
		t.Fatal(err)
		return ""
	}
}

// line receives the first line that is written to it.
type line chan string

// Write expects whole lines.
func (l line) Write(b []byte) (int, error) {
	select {
	case l <- strings.TrimSpace(string(b)):
	default:
	}

	return len(b), nil
}

// warning receives the first line of a log that is more than information.
type warning chan string

// Write expects whole lines.
func (w warning) Write(b []byte) (int, error) {
	if text := strings.TrimSpace(string(b)); !strings.Contains(text, "INFO ") {
		return line(w).Write(b)
	}

	return len(b), nil
}

func (w *world) put(key, manifest string) {
	w.t.Helper()
	if _, err := w.store.Put(w.t.Context(), key, []byte(manifest)); err != nil {
		w.t.Fatal(err)
	}
}

// register has the nodes register services.
func (w *world) register() {
	w.t.Helper()
	services := []registration.Registration{{Service: "web", ProtocolName: "http", Port: 8080}, {Service: "postgres", ProtocolName: "postgresql", Port: 5432}, {Service: "cache", ProtocolName: "http", Port: 6081}}
	for i := range 12 {
		r := services[i%len(services)]
		r.Cluster, r.Address, r.Node, r.Priority, r.TTL, r.Annotations = "production", fmt.Sprintf("10.20.0.%d", 10+i), fmt.Sprintf("sim-%04d", 1+7*i), 10, model.TTL(time.Hour), map[string]string{"zone": "fra2"}
		if err := w.store.Register(w.t.Context(), r); err != nil {
			w.t.Fatal(err)
		}
	}
}

// request asks the databases for something, once.
func (w *world) request() {
	w.t.Helper()
	for _, request := range []string{
		`{"protocol":"io.choria.ccm.v1.resource.ensure.request","id":"req-7c1f","type":"service","properties":{"name":"postgresql","ensure":"running"}}`,
		`{"protocol":"io.choria.ccm.v1.resource.ensure.request","id":"req-8d20","type":"exec","properties":{"name":"uptime -p"}}`,
	} {
		w.requestOne(request)
	}
}

func (w *world) requestOne(request string) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	for _, err := range kvtest.Ask(ctx, w.store, w.store.Names.Request(kvstore.VerbEnsure, "group.sim-db"), []byte(request)) {
		if err != nil {
			w.t.Fatal(err)
		}
		return // the others answer all the same
	}
}

// get asks the API of the dashboard.
func (w *world) get(path string, out any) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+"api/v1/"+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if w.token != "" {
		request.Header.Set("Authorization", "Bearer "+w.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(out); err != nil {
		w.t.Fatalf("%s: %v", path, err)
	}
}

// failedRun returns the path of a run of nginx that failed, and changed something, node/id.
func (w *world) failedRun() string {
	w.t.Helper()
	var found struct{ Runs []view.RunRow }
	w.get("runs?limit=1000&manifest=nginx&outcome=failed", &found)
	i := slices.IndexFunc(found.Runs, func(r view.RunRow) bool { return r.Counts.Changed > 0 })
	if i < 0 {
		w.t.Fatalf("no run of %d failed and changed something", len(found.Runs))
	}

	return found.Runs[i].Node + "/" + found.Runs[i].RunID
}

// reject assigns a manifest to one more node, which rejects and reports it; each call uses another node.
func (w *world) reject(http.ResponseWriter, *http.Request) {
	w.rejected++
	w.put(fmt.Sprintf("node.sim-%04d.new-rejection", 20*w.rejected), invalid)
}

// hooks serves what the browser has happen.
func (w *world) hooks() string {
	server := httptest.NewServer(http.HandlerFunc(w.reject))
	w.t.Cleanup(server.Close)

	return server.URL
}
