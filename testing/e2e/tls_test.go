package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/testing/natstest"
)

// TestTLS authenticates users by certificate.
func TestTLS(t *testing.T) {
	authority, dir := natstest.NewAuthority(t), t.TempDir()
	cert, key := authority.Issue(t, "nats")
	server := natstest.Start(t, natstest.WithConfig(fmt.Sprintf("tls: {cert_file: %q, key_file: %q, ca_file: %q, verify_and_map: true}\n%s",
		cert, key, authority.CA, `accounts: {FLEET: {jetstream: enabled, users: [{user: "CN=admin"}, {user: "CN=web01", `+muster(t, dir, "fleet", "permissions", "web01", "--one-account", "--groups", "web")+"}]}}")))
	url := strings.Replace(server.URL(), "nats://", "tls://", 1)
	admin, adminKey := authority.Issue(t, "admin")
	node, nodeKey := authority.Issue(t, "web01")
	flags := []string{"--server", url, "--tlsca", authority.CA, "--tlscert", admin, "--tlskey", adminKey}
	with := func(flags []string, args ...string) []string { return append(append([]string{}, flags...), args...) }
	muster(t, dir, with(flags, "fleet", "init")...)

	file := filepath.Join(dir, "motd")
	manifest := write(t, filepath.Join(dir, "motd.yaml"), "muster:\n  resources:\n    - exec:\n        - touch "+file+": {creates: "+file+"}\n")
	config := write(t, filepath.Join(dir, "agent.yaml"), fmt.Sprintf("node: web01\ngroups: [web]\nfacts_dir: \"\"\nnats: {servers: [%q], tlsca: %q, tlscert: %q, tlskey: %q}\n", url, authority.CA, node, nodeKey))
	agent := start(t, filepath.Join(dir, "state"), "agent", "run", "--config", config)
	await(t, "the node is known", func() bool { return strings.Contains(muster(t, dir, with(flags, "fleet", "nodes")...), "web01") })
	muster(t, dir, with(flags, "fleet", "push", "--group", "web", manifest, "--wait")...)
	if !exists(file) {
		t.Error("it was not run")
	}
	if reports := muster(t, dir, with(flags, "fleet", "reports", "--no-follow", "--kind", "run")...); !strings.Contains(reports, "group.web.motd@1") {
		t.Errorf("reports:\n%s", reports)
	}
	if text := agent.text.String(); strings.Contains(text, "denied") {
		t.Errorf("agent:\n%s", text)
	}
	agent.signal(syscall.SIGTERM)
	if code, text := agent.wait(); code != 0 {
		t.Errorf("agent: %d\n%s", code, text)
	}

	other := natstest.NewAuthority(t)
	stranger, strangerKey := other.Issue(t, "admin")
	for name, c := range map[string]struct {
		want  string
		flags []string
	}{
		"no authority":                       {"certificate is not trusted", []string{"--tlscert", admin, "--tlskey", adminKey}},
		"another authority":                  {"certificate is not trusted", []string{"--tlsca", other.CA, "--tlscert", admin, "--tlskey", adminKey}},
		"no certificate":                     {"--tlscert", []string{"--tlsca", authority.CA}},
		"a certificate of another authority": {"--tlscert", []string{"--tlsca", authority.CA, "--tlscert", stranger, "--tlskey", strangerKey}},
	} {
		code, text := start(t, dir, append([]string{"--server", url, "fleet", "nodes"}, c.flags...)...).wait()
		if code == 0 || !strings.Contains(text, c.want) {
			t.Errorf("%s: exit code %d: %s", name, code, text)
		}
	}
}
