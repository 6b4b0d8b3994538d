package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/musterfleet/muster/testing/loopback"
)

// serverVariable turns this test program into a nats-server with the configuration that it names. A signal
// reloads the configuration, as on a real machine.
const serverVariable = "MUSTER_E2E_SERVER"

func serve(config string) int {
	opts, err := server.ProcessConfigFile(config)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	srv.ConfigureLogger()
	srv.Start()
	srv.WaitForShutdown()

	return 0
}

// TestNewPermissionsByReload has a node come into a group before the server
// permits it that, and then the server with its new permissions.
func TestNewPermissionsByReload(t *testing.T) {
	dir, address := t.TempDir(), loopback.Address(t).String()
	config := filepath.Join(dir, "nats.conf")
	permit := func(groups string) {
		t.Helper()
		permissions := muster(t, dir, "fleet", "permissions", "web01", "--one-account", "--groups", groups)
		write(t, config, fmt.Sprintf("listen: %q\njetstream: {store_dir: %q}\nauthorization: {users: [\n{user: admin, password: admin}\n{user: web01, password: web01, %s}\n]}\n", address, dir+"/js", permissions))
	}
	permit("web")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	srv := exec.CommandContext(t.Context(), program)
	srv.Env = append(os.Environ(), serverVariable+"="+config)
	said := &output{}
	srv.Stdout, srv.Stderr = said, said
	if err := srv.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = srv.Process.Kill()
		_ = srv.Wait()
		if t.Failed() {
			t.Log(said)
		}
	})
	await(t, "the server is ready", func() bool { return strings.Contains(said.String(), "Server is ready") })
	admin := []string{"--server", "nats://admin:admin@" + address}
	muster(t, dir, append([]string{"fleet", "init"}, admin...)...)
	node := start(t, filepath.Join(dir, "node"), "agent", "run", "--config-dir", dir, "--node", "web01", "--group", "web", "--group", "db", "--server", "nats://web01:web01@"+address)
	await(t, "something is denied", func() bool { return strings.Contains(node.text.String(), "permission denied") })

	permit("web,db")
	if err := srv.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	await(t, "a request of the group is answered", func() bool {
		code, _ := start(t, dir, append([]string{"fleet", "ensure", "exec", "true", "--creates", "/", "--group", "db", "--timeout", "2s"}, admin...)...).wait()
		return code == 0
	})
	muster(t, dir, append([]string{"fleet", "group", "web01", "+ops", "--timeout", "0"}, admin...)...)
	await(t, "the group is shown as not permitted", func() bool {
		_, text := start(t, dir, append([]string{"fleet", "describe", "web01"}, admin...)...).wait()
		return strings.Contains(text, "ops, web, db, all") && strings.Contains(text, "not permitted")
	})
	if code, text := start(t, dir, append([]string{"fleet", "group", "web01", "+ops"}, admin...)...).wait(); code != 1 || !strings.Contains(text, "not permitted") {
		t.Errorf("a group that is not permitted yet: exit code %d\n%s", code, text)
	}
	permit("web,db,ops")
	if err := srv.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	await(t, "a request of the new group is answered", func() bool {
		code, _ := start(t, dir, append([]string{"fleet", "ensure", "exec", "true", "--creates", "/", "--group", "ops", "--timeout", "2s"}, admin...)...).wait()
		return code == 0
	})
	node.signal(syscall.SIGTERM)
	if code, text := node.wait(); code != 0 {
		t.Errorf("the agent ended with %d\n%s", code, text)
	}
}
