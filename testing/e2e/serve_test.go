package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/testing/natstest"
)

// TestServe: it prints where it serves, shows a node and its run, and ends at ctrl-C with success.
func TestServe(t *testing.T) {
	server := natstest.Start(t)
	dir := t.TempDir()
	fleet := func(args ...string) {
		t.Helper()
		muster(t, dir, append([]string{"--server", server.URL()}, args...)...)
	}
	if code, text := start(t, dir, "fleet", "serve", "--listen", "0.0.0.0:8420").wait(); code != 64 || !strings.Contains(text, "--listen: 0.0.0.0:8420 is not on loopback: ") {
		t.Errorf("another address: exit code %d, %s", code, text)
	}
	for _, asks := range [][]string{{"--oidc-client", "x"}, {"--oidc-read", "staff"}} {
		if code, text := start(t, dir, append([]string{"fleet", "serve"}, asks...)...).wait(); code != 64 || !strings.Contains(text, asks[0]+": also give --oidc-issuer") {
			t.Errorf("%s asks for sign-in: exit code %d, %s", asks, code, text)
		}
	}
	for _, empty := range []string{"--tokens", "--oidc-issuer"} {
		if code, text := start(t, dir, "fleet", "serve", empty, "").wait(); code != 64 || !strings.Contains(text, empty+` "": the value is empty`) {
			t.Errorf("%s of an unset variable: exit code %d, %s", empty, code, text)
		}
	}
	fleet("fleet", "init", "--yes")
	serving := start(t, dir, "--server", server.URL(), "fleet", "serve", "--listen", "127.0.0.1:0")
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`)
	await(t, "it prints its address", func() bool { return address.MatchString(serving.text.String()) })
	get := func(path, token string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address.FindString(serving.text.String())+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	manifest := fmt.Sprintf("muster: {resources: [{file: [{%s/motd: {content: x, owner: \"%d\", group: \"%d\", mode: \"0600\"}}]}]}", dir, os.Geteuid(), os.Getegid())
	fleet("fleet", "push", "--all", "--name", "motd", write(t, filepath.Join(dir, "motd.yaml"), manifest))
	muster(t, filepath.Join(dir, "node"), "--server", server.URL(), "agent", "run", "--node", "n1", "--once")
	await(t, "the node and its run are shown", func() bool {
		_, text := get("api/v1/overview", "")
		return strings.Contains(text, `"state":"stopped"`) && strings.Contains(text, `"history":true`) && strings.Contains(text, `"runs":1`)
	})
	for path, want := range map[string]string{
		"":                      "<html",
		"nodes/n1":              "n1",
		"api/v1/nodes/n1/facts": `"hostname"`,
		"api/v1/runs?node=n1":   `"outcome":"changed"`,
		"metrics":               `muster_fleet_nodes{state="stopped"} 1`,
		"sd/registrations":      "[]",
	} {
		if code, text := get(path, ""); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("/%s: %d %.2000s", path, code, text)
		}
	}
	end := func() {
		t.Helper()
		serving.signal(syscall.SIGINT)
		if code, text := serving.wait(); code != 0 {
			t.Errorf("exit code %d: %s", code, text)
		}
	}
	end()

	// With tokens everybody signs in, also those that ask for metrics.
	tokens := filepath.Join(dir, "tokens")
	token := strings.TrimSpace(muster(t, dir, "fleet", "token", "prometheus", "--file", tokens))
	serving = start(t, dir, "--server", server.URL(), "fleet", "serve", "--listen", "127.0.0.1:0", "--tokens", tokens)
	await(t, "it prints its address", func() bool { return address.MatchString(serving.text.String()) })
	for path, want := range map[string]string{"": "<html", "api/v1/openapi.json": `"openapi": "3.1.0"`, "metrics": "muster_fleet_problems", "sd/registrations": "["} {
		if code, text := get(path, ""); code != http.StatusUnauthorized {
			t.Errorf("/%s without a token: %d %s", path, code, text)
		}
		if code, text := get(path, token); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("/%s: %d %.2000s", path, code, text)
		}
	}
	end()
	if strings.Contains(serving.text.String(), token) {
		t.Error("the token is in the log")
	}
}
