package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/model"
)

// steps are the main job, end to end.
func (d *demo) steps(node context.Context) []step {
	return []step{
		{"an embedded NATS", d.startServer},
		{"buckets and streams, and a dashboard", func(ctx context.Context) ([]string, error) { return d.provision(ctx, node) }},
		{"a node", func(ctx context.Context) ([]string, error) { return d.startNode(ctx, node) }},
		{"a manifest is pushed, reconciled and reported", func(ctx context.Context) ([]string, error) { return d.push(ctx, 1) }},
		{"a second version of it", func(ctx context.Context) ([]string, error) { return d.push(ctx, 2) }},
		{"an ad-hoc ensure request", d.ensure},
		{"a file that drifted is repaired", d.drift},
	}
}

// manifest is what the demo's node is assigned.
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
