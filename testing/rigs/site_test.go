//go:build system

package rigs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/markdown"
	"github.com/musterfleet/muster/testing/rigs"
)

// siteExample is the example that manages a whole service.
const siteExample = "site/manifest.yaml"

// TestSiteServes installs, configures and starts the nginx of Debian with the example, changes it, repairs
// drift, and refuses an invalid configuration.
func TestSiteServes(t *testing.T) {
	const path = "/root/examples/" + siteExample
	n := node{Machine: rigs.BootWith(t, "nginx"), t: t}
	n.Copy(build(t), "/usr/local/bin/muster")
	n.Copy(filepath.Join(rigs.Checkout(t), "examples"), "/root/examples")
	run := func(want []string, args ...string) {
		t.Helper()
		if got := changed(apply(t, n.Machine, append(args, path)...)); !slices.Equal(got, want) {
			t.Errorf("changed are %q, not %q", got, want)
		}
	}
	const pkg, root, page, conf, test, svc = "package#nginx", "file#/srv/site", "file#/srv/site/index.html", "file#/etc/nginx/conf.d/site.conf", "exec#nginx -t", "service#nginx"

	before := n.Changes()
	for _, tx := range apply(t, n.Machine, "--noop", path) {
		if known := tx.Ref().String() == pkg || tx.Ref().String() == root || tx.Ref().String() == page; tx.Changed != known || tx.Skipped == known {
			t.Errorf("noop says of %s changed %t, skipped %t: %s", tx.Ref(), tx.Changed, tx.Skipped, tx.NoopMessage)
		}
	}
	unchanged(t, before, n.Changes())

	run([]string{pkg, root, page, conf, test, svc})
	run(nil)
	run(nil, "--noop")
	for _, tx := range apply(t, n.Machine, "--monitor-only", path) {
		if tx.Ref().String() == svc && (len(tx.HealthCheck) != 1 || tx.HealthCheck[0].Status != "ok") {
			t.Errorf("the site is %+v", tx.HealthCheck)
		}
	}

	// Another title and another name: only the second is nginx's business.
	pid := n.sh("systemctl show -P MainPID nginx")
	run([]string{page}, "--fact", "environment=production")
	if now := n.sh("systemctl show -P MainPID nginx"); now != pid {
		t.Errorf("nginx was restarted for a page")
	}
	run([]string{page, conf, test, svc}, "--fact", "fqdn=www.example.com")
	if now := n.sh("systemctl show -P MainPID nginx"); now == pid {
		t.Errorf("nginx was not restarted for its configuration")
	}

	// A user edits it and stops nginx.
	n.sh("echo '# by hand' >> /etc/nginx/conf.d/site.conf; systemctl stop nginx")
	run([]string{conf, test, svc})

	// A configuration that nginx refuses does not reach it.
	pid = n.sh("systemctl show -P MainPID nginx")
	n.sh("cp /root/examples/site/files/site.conf.tmpl /root/good; echo 'no such directive;' >> /root/examples/site/files/site.conf.tmpl")
	r := n.Run("muster", "apply", path)
	if r.Code == 0 || !strings.Contains(r.Stderr, "unknown directive") {
		t.Errorf("exit code %d\n%s", r.Code, r.Stderr)
	}
	if now := n.sh("systemctl show -P MainPID nginx"); now != pid {
		t.Errorf("nginx was restarted into a configuration that it refuses")
	}
	n.sh("cp /root/good /root/examples/site/files/site.conf.tmpl")
	run([]string{conf, test, svc})
	run(nil)

	// The page of the file type shows how to validate one file of conf.d.
	text, err := os.ReadFile(filepath.Join(rigs.Checkout(t), "docs/types/file.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := markdown.Blocks(string(text))
	at := slices.IndexFunc(blocks, func(b markdown.Block) bool { return strings.HasPrefix(b.Text, "# fragment.yaml\n") })
	if at < 0 {
		t.Fatal("docs/types/file.md has no fragment.yaml")
	}
	put(t, n.Machine, "/root/fragment.yaml", blocks[at].Text)
	if got := changed(apply(t, n.Machine, "/root/fragment.yaml")); !slices.Equal(got, []string{conf}) {
		t.Errorf("changed are %q", got)
	}
	put(t, n.Machine, "/root/fragment.yaml", strings.Replace(blocks[at].Text, "listen", "listens", 1))
	if r := n.Run("muster", "apply", "/root/fragment.yaml"); r.Code == 0 || !strings.Contains(r.Stderr, `unknown directive \"listens\"`) {
		t.Errorf("exit code %d\n%s", r.Code, r.Stderr)
	}
	if names := n.sh("ls -A /etc/nginx/conf.d"); names != "site.conf" {
		t.Errorf("/etc/nginx/conf.d contains %q", names)
	}
}
