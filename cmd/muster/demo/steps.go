package demo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/connect"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/model"
)

// steps returns the steps of the demo.
func (d *demo) steps() []step {
	return []step{
		{"an embedded NATS", d.startServer},
		{"buckets and streams, and a dashboard", d.provision},
		{"a node", d.startNodes},
		{"a manifest is pushed, reconciled and reported", func(ctx context.Context) ([]string, error) { return d.push(ctx, 1) }},
		{"a second version of it", func(ctx context.Context) ([]string, error) { return d.push(ctx, 2) }},
		{"an ad-hoc ensure request", d.ensure},
		{"a file that drifted is repaired", d.drift},
	}
}

// embedded is a nats-server in this process.
type embedded struct {
	url, version string
	// stop ends it, and waits.
	stop func()
}

// startServer starts NATS with the accounts that muster fleet accounts prints.
func (d *demo) startServer(context.Context) ([]string, error) {
	accounts, err := provision.AccountsOf(kvstore.DefaultPrefix)
	if err != nil {
		return nil, err
	}
	config, err := d.serverConfig(accounts)
	if err != nil {
		return nil, err
	}
	if d.server, err = serve(config, d.dir); err != nil {
		return nil, err
	}
	d.Flags.Connect = connect.Options{Servers: []string{d.server.url}, User: adminName, PasswordFile: d.password(adminName)}
	d.store, err = d.Store(context.Background())

	return []string{
		"nats-server " + d.server.version + " with JetStream on " + d.server.url,
		"two accounts: " + accounts.Fleet.Name + " for streams and administrators, " + accounts.Nodes.Name + " for nodes",
	}, err
}

// groupName is the group of the node.
const groupName = "web"

// serverConfig returns the accounts with their users for a configuration file. It writes the passwords to
// files: an administrator has the rights of root on the node, and other users of the machine can reach the server.
func (d *demo) serverConfig(accounts provision.Accounts) (string, error) {
	allowed, err := provision.NodePermissions(kvstore.JoinedAPI, kvstore.DefaultPrefix, nodeName, []string{groupName})
	if err != nil {
		return "", err
	}
	passwords := map[string]string{adminName: rand.Text(), nodeName: rand.Text()}
	for user, password := range passwords {
		if err := os.WriteFile(d.password(user), []byte(password), 0o600); err != nil {
			return "", err
		}
	}

	return accounts.ServerConfig(provision.Users{
		accounts.Fleet.Name: {fmt.Sprintf("{user: %s, password: %q}", adminName, passwords[adminName])},
		accounts.Nodes.Name: {fmt.Sprintf("{user: %s, password: %q, %s}", nodeName, passwords[nodeName], allowed.ServerConfig())},
	}), nil
}

// provision creates the buckets and streams of a fleet, and serves its dashboard.
func (d *demo) provision(ctx context.Context) ([]string, error) {
	if err := d.command(ctx, "fleet", "init", "--yes"); err != nil {
		return nil, err
	}
	if err := provision.New(d.store).Check(ctx); err != nil {
		return nil, err
	}
	var err error
	if d.dashboard, err = d.startShown(ctx, "fleet serve", "fleet", "serve", "--listen", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if _, err := d.shown(ctx); err != nil {
		return nil, err
	}
	open := "the dashboard answers: open " + d.dashboard + " in a browser"
	if d.once {
		open = "the dashboard answers on " + d.dashboard + " until the last step: without --once, on a terminal, it stays until ctrl-C"
	}

	return []string{"all buckets and streams are up to date", open}, nil
}

// shown returns the number of nodes that the dashboard shows.
func (d *demo) shown(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.dashboard+"api/v1/nodes?limit=1", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var page struct{ Known int }
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil {
		return 0, fmt.Errorf("the dashboard answers %s: %w", response.Status, err)
	}

	return page.Known, nil
}

// awaitShown waits until the dashboard shows a number of nodes.
func (d *demo) awaitShown(ctx context.Context, want int) error {
	const pause = 20 * time.Millisecond
	for {
		if got, err := d.shown(ctx); err != nil || got == want {
			return err
		}
		if err := kvstore.Pause(ctx, pause); err != nil {
			return err
		}
	}
}

const (
	// simulatedNodes is the number of simulated nodes. It is large enough to show a fleet on the dashboard.
	simulatedNodes = 25
	// simulatedGroup is the group of all simulated nodes.
	simulatedGroup = "sim"
	// configuration checks for drift often.
	configuration = "interval: 2s\n"
)

// simulatedManifest is assigned to the simulated nodes only.
const simulatedManifest = `muster:
  resources:
    - package:
        - chrony: {ensure: present}
    - file:
        - defaults: {owner: root, group: root, mode: "0644"}
        - /etc/motd:
            content: |
              Managed by muster.
        - /etc/chrony/chrony.conf:
            content: |
              pool ntp.example.net iburst
              driftfile /var/lib/chrony/chrony.drift
              makestep 1 3
            require: ["package#chrony"]
    - service:
        - chrony:
            ensure: running
            enable: true
            subscribe: ["file#/etc/chrony/chrony.conf"]
`

// startNodes starts an agent, and simulated nodes beside it.
func (d *demo) startNodes(ctx context.Context) ([]string, error) {
	if err := os.WriteFile(filepath.Join(d.dir, "agent.yaml"), []byte(configuration), 0o644); err != nil {
		return nil, err
	}
	args := []string{"agent", "run", "--node", nodeName, "--group", groupName}
	d.show(args)
	if _, err := d.start(nodeName, "agent run", append([]string{"--config-dir", d.dir, "--state-dir", filepath.Join(d.dir, "state"), "--log-level", "debug"}, args...)...); err != nil {
		return nil, err
	}
	if err := d.await(ctx, model.ReportRange{Kind: model.KindNode, Outcome: string(model.NodeStarted)}, func(model.Report) bool { return true }); err != nil {
		return nil, err
	}
	if _, err := kvstore.NewAssignments(d.store).Put(ctx, model.Key(model.GroupFamily(simulatedGroup), "base"), []byte(simulatedManifest)); err != nil {
		return nil, err
	}
	if _, err := d.startShown(ctx, "fleet simulate", "fleet", "simulate", "--nodes", fmt.Sprint(simulatedNodes), "--keep"); err != nil {
		return nil, err
	}

	return []string{"node " + nodeName + " reported that it started", fmt.Sprintf("%d simulated nodes joined", simulatedNodes), "the dashboard shows all of them"}, d.awaitShown(ctx, 1+simulatedNodes)
}

// await reads reports of the node from the stream until one matches.
func (d *demo) await(ctx context.Context, f model.ReportRange, is func(model.Report) bool) error {
	f.Node, f.Since, f.Follow = nodeName, d.began, true
	for r, err := range kvstore.NewReports(d.store).Reports(ctx, f) {
		if err != nil {
			return err
		}
		if is(r) {
			return nil
		}
	}

	return errors.New("the report did not arrive")
}

// manifest returns a version of the manifest of the node.
func (d *demo) manifest(version int) string {
	return fmt.Sprintf(`data:
  version: %d
  workers: 2
hierarchy:
  order: ["os:${ Facts.host.info.os }"]
overrides:
  os:linux: {workers: %d}
muster:
  resources:
    - file:
        - defaults: {owner: "%d", group: "%d", mode: "0644"}
        - %s: {ensure: directory, mode: "0755"}
        - %[5]s/motd:
            content: |
              version ${ Data.version } on ${ Facts.host.info.os }
        - %[5]s/app.conf:
            mode: "0640"
            content: |
              workers = ${ Data.workers }
        - %[5]s/hello.sh:
            mode: "0755"
            content: |
              #!/bin/sh
              echo "hello from $${0##*/}"
    - exec:
        - reload:
            command: echo reloaded >> reloads
            provider: shell
            cwd: %[5]s
            refresh_only: true
            subscribe: ["file#%[5]s/app.conf"]
`, version, 2+version, os.Geteuid(), os.Getegid(), filepath.Dir(d.path("x")))
}

// push assigns a version of the manifest and verifies the result.
func (d *demo) push(ctx context.Context, version int) ([]string, error) {
	file := filepath.Join(d.dir, "site.yaml")
	if err := os.WriteFile(file, []byte(d.manifest(version)), 0o644); err != nil {
		return nil, err
	}
	if err := d.command(ctx, "fleet", "push", "--node", nodeName, "--wait", file); err != nil {
		return nil, err
	}
	var run model.Run
	err := d.awaitRun(ctx, func(r model.Run) bool {
		run = r
		return r.Cause == model.CauseManifest && r.Counts.Changed > 0 && r.Counts.Failed == 0 && !d.isOld(r)
	})
	if err != nil {
		return nil, fmt.Errorf("the report of the run: %w", err)
	}
	want := map[string]string{
		"motd":     fmt.Sprintf("version %d on linux\n", version),
		"app.conf": fmt.Sprintf("workers = %d\n", 2+version),
		"hello.sh": "#!/bin/sh\necho \"hello from ${0##*/}\"\n",
		"reloads":  strings.Repeat("reloaded\n", version),
	}
	for name, content := range want {
		if err := d.has(name, content); err != nil {
			return nil, err
		}
	}

	return []string{
		fmt.Sprintf("read from the stream: run %s %s, revision %d, %d changed of %d, in %s", run.RunID, run.Outcome(), run.Revision, run.Counts.Changed, run.Counts.Total, run.Duration.Round(time.Millisecond)),
		fmt.Sprintf("read from the disk: %d files with the content of version %d, %s", len(want)-1, version, print.Count(version, "reload")),
	}, nil
}

// isOld reports whether a run belongs to an earlier push. Each push has its own digest.
func (d *demo) isOld(r model.Run) bool {
	if d.digests[r.Digest] {
		return true
	}
	d.digests[r.Digest] = true

	return false
}

func (d *demo) has(name, content string) error {
	text, err := os.ReadFile(d.path(name))
	if err != nil {
		return err
	}
	if string(text) != content {
		return fmt.Errorf("%s holds %q, not %q", d.path(name), text, content)
	}

	return nil
}

func (d *demo) awaitRun(ctx context.Context, is func(model.Run) bool) error {
	return d.await(ctx, model.ReportRange{Kind: model.KindRun}, func(r model.Report) bool {
		var run model.Run
		return json.Unmarshal(r.Data, &run) == nil && is(run)
	})
}

// ensure requests one resource of the node, by subject.
func (d *demo) ensure(ctx context.Context) ([]string, error) {
	path := d.path("adhoc")
	err := d.command(ctx, "fleet", "ensure", "--node", nodeName, "file", path, "--content", "asked for", "--owner", fmt.Sprint(os.Geteuid()), "--file-group", fmt.Sprint(os.Getegid()), "--mode", "0600")
	if err != nil {
		return nil, err
	}
	if err := d.has("adhoc", "asked for"); err != nil {
		return nil, err
	}
	err = d.await(ctx, model.ReportRange{Kind: model.KindEnsure}, func(r model.Report) bool {
		var answer model.EnsureResponse
		return json.Unmarshal(r.Data, &answer) == nil && answer.Phase == model.EnsureDone && answer.State != nil && answer.State.Name == path
	})

	return []string{"the node answered, the file is there", "the answer is in the stream too"}, err
}

// drift changes a file behind the node's back.
func (d *demo) drift(ctx context.Context) ([]string, error) {
	path := d.path("motd")
	if err := os.WriteFile(path, []byte("tampered\n"), 0o644); err != nil {
		return nil, err
	}
	d.Print.Printf("  $ echo tampered > %s\n", path)
	var run model.Run
	err := d.awaitRun(ctx, func(r model.Run) bool { run = r; return r.Drift.Repaired > 0 })
	if err != nil {
		return nil, fmt.Errorf("the report of the repair: %w", err)
	}

	found := fmt.Sprintf("read from the stream: run %s %s, cause %s, repaired %s after it was noticed", run.RunID, run.Outcome(), run.Cause, model.ShortDuration(run.Drift.Latency))

	return []string{found}, d.has("motd", "version 2 on linux\n")
}
