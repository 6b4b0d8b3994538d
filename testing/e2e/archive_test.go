package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/markdown"
	"github.com/musterfleet/muster/testing/racing"
	"github.com/musterfleet/muster/testing/webtest"
)

// appArchive is a tar.gz with a program in it.
func appArchive(t *testing.T) string {
	t.Helper()

	return string(hosttest.TarGz(t, 0o755, "bin/app", "#!/bin/sh\n"))
}

// TestExamplesOfTheArchivePage runs the examples of the page against a local server.
func TestExamplesOfTheArchivePage(t *testing.T) {
	server, content := webtest.Start(t), appArchive(t)
	server.Put("/app-2.0.tar.gz", webtest.Text(content))
	s := newShow(t, "nats://127.0.0.1:1")
	if err := os.MkdirAll(filepath.Join(s.dir, "var/cache"), 0o755); err != nil {
		t.Fatal(err)
	}
	uid, gid := hosttest.Owner(t)
	here := strings.NewReplacer("https://releases.example.com", server.URL, "/var/cache", s.dir+"/var/cache", "/opt/app", s.dir+"/opt/app",
		`"owner": "root"`, `"owner": "`+uid+`"`, `"group": "root"`, `"group": "`+gid+`"`)
	checksum := regexp.MustCompile(`checksum: [0-9a-f]{64}`)
	blocks := markdown.Blocks(docsPage(t, "types/archive.md"))
	ran := 0
	for i, b := range blocks {
		b.Text = checksum.ReplaceAllString(here.Replace(b.Text), fmt.Sprintf("checksum: %x", sha256.Sum256([]byte(content))))
		s.write(b)
		if b.Language == "sh" && b.Info == "run" {
			s.compare(blocks[i+1], s.run(b))
			ran++
		}
	}
	if ran != 2 || !exists(s.dir+"/opt/app/bin/app") || !exists(s.dir+"/var/cache/app.tar.gz") {
		t.Errorf("%d examples were run", ran)
	}
}

// proxy is an HTTP proxy with a password, which passes every request to a server.
func proxy(t *testing.T, to *webtest.Server, user, password string) *httptest.Server {
	t.Helper()
	target, err := url.Parse(to.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth := &http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
		if u, pw, _ := auth.BasicAuth(); u != user || pw != password {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		r.URL.Host, r.RequestURI = target.Host, ""
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	t.Cleanup(p.Close)

	return p
}

// ensureArchive runs muster ensure archive with an environment, and gives its
// exit code and all that it printed and left in its state directory.
func ensureArchive(t *testing.T, env []string, args ...string) (int, string) {
	t.Helper()
	state := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "muster", append([]string{"--log-level", "debug", "ensure", "archive"}, args...)...)
	cmd.Env = append(append(os.Environ(), "MUSTER_STATE_DIR="+state), env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	text := string(out)
	err = filepath.WalkDir(state, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		left, err := os.ReadFile(path)
		text += string(left)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return cmd.ProcessState.ExitCode(), text
}

// TestArchiveCredentials goes through the proxy of the environment and through
// TLS, with credentials in every place: they get where they belong, and nowhere else.
func TestArchiveCredentials(t *testing.T) {
	plain := webtest.Start(t, webtest.WithAuth("joe", "hunter2"))
	secure := webtest.StartTLS(t, webtest.WithAuth("joe", "hunter2"))
	for _, s := range []*webtest.Server{plain, secure} {
		s.Put("/app.tar.gz", webtest.Text(appArchive(t)))
	}
	p := proxy(t, plain, "proxyuser", "pr0xypass")
	env := []string{
		"HTTP_PROXY=" + strings.Replace(p.URL, "://", "://proxyuser:pr0xypass@", 1), "SSL_CERT_FILE=" + secure.TrustFile(t), "NO_PROXY=",
	}
	owner := []string{"--owner", strconv.Itoa(os.Geteuid()), "--group", strconv.Itoa(os.Getegid()), "--headers", "Private-Token=h3ader-token"}
	for name, c := range map[string]struct {
		base, query string
		args        []string
		code        int
		want        string
	}{
		"by the proxy":           {"http://joe:hunter2@releases.example.com", "?token=s3cret-token", nil, 0, "changed"},
		"by TLS":                 {strings.Replace(secure.URL, "://", "://joe:hunter2@", 1), "", nil, 0, "changed"},
		"with properties":        {"http://releases.example.com", "", []string{"--username", "joe", "--password", "hunter2"}, 0, "changed"},
		"with the wrong ones":    {"http://joe:s3cret-token@releases.example.com", "", nil, 1, "the server answered 401 Unauthorized"},
		"a wrong checksum":       {"http://joe:hunter2@releases.example.com", "", []string{"--checksum", strings.Repeat("0", 64)}, 1, "the checksum does not match"},
		"a URL that is none":     {"ftp://joe:hunter2@releases.example.com", "", nil, 64, "the scheme of the url must be http or https"},
		"noop says nothing else": {"http://joe:hunter2@releases.example.com", "", []string{"--noop", "--extract-parent", t.TempDir()}, 0, "Would have downloaded. Would have extracted"},
	} {
		for _, format := range []string{"text", "json"} {
			t.Run(name+"/"+format, func(t *testing.T) {
				args := append([]string{filepath.Join(t.TempDir(), "app.tar.gz"), "--url", c.base + "/app.tar.gz" + c.query}, append(c.args, owner...)...)
				if format == "json" {
					args = append(args, "--json")
				}
				code, text := ensureArchive(t, env, args...)
				if code != c.code || !strings.Contains(text, c.want) {
					t.Errorf("exit code %d, without %q:\n%s", code, c.want, text)
				}
				for _, secret := range []string{"hunter2", "s3cret-token", "h3ader-token", "pr0xypass", "am9lOmh1bnRlcjI="} {
					if strings.Contains(text, secret) {
						t.Errorf("%q is shown:\n%s", secret, text)
					}
				}
			})
		}
	}
}

// TestArchiveHeaderForms sends headers that are written as for curl or as key and value.
func TestArchiveHeaderForms(t *testing.T) {
	archive := appArchive(t)
	var header atomic.Pointer[http.Header]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header.Store(&r.Header)
		_, _ = io.WriteString(w, archive)
	}))
	defer server.Close()
	for form, want := range map[string]string{
		"X-A=b": "b", "X-A: b": "b", "X-A:b": "b", "X-A=b: c=d": "b: c=d", "X-A: b=c:d": "b=c:d", "X-A s3cret": "", "s3cret": "",
	} {
		args := []string{filepath.Join(t.TempDir(), "app.tar.gz"), server.URL + "/app.tar.gz", "--owner", strconv.Itoa(os.Geteuid()), "--group", strconv.Itoa(os.Getegid()), "-H", "X-B=1", "-H", form}
		header.Store(&http.Header{})
		code, text := ensureArchive(t, nil, args...)
		switch got := *header.Load(); {
		case want == "" && (code != 64 || !strings.Contains(text, "--headers: item 2 is no pair: write it as KEY=VALUE or 'KEY: VALUE'") || strings.Contains(text, "s3cret")):
			t.Errorf("%s: exit code %d\n%s", form, code, text)
		case want != "" && (code != 0 || got.Get("X-A") != want || got.Get("X-B") != "1"):
			t.Errorf("%s: exit code %d, %v\n%s", form, code, got, text)
		}
	}
}

// TestWhatGoSaysGoesToTheLog sends an unsolicited response between two requests. Go's HTTP client logs it.
func TestWhatGoSaysGoesToTheLog(t *testing.T) {
	server := webtest.Start(t)
	server.Put("/app.tar.gz", webtest.Text(appArchive(t)))
	unasked := func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = buffered.WriteString("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\ns3cret-token")
		_ = errors.Join(buffered.Flush(), conn.Close())
	}
	for _, level := range []string{"debug", "info"} {
		server.Next("/app.tar.gz", unasked)
		cmd := exec.CommandContext(t.Context(), "muster", "--log-level", level, "--log-format", "json", "ensure", "archive", filepath.Join(t.TempDir(), "app.tar.gz"),
			"--url", server.URL+"/app.tar.gz", "--owner", strconv.Itoa(os.Geteuid()), "--group", strconv.Itoa(os.Getegid()))
		cmd.Env = append(os.Environ(), "MUSTER_STATE_DIR="+t.TempDir())
		var said bytes.Buffer
		cmd.Stderr = &said
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s", err, said.String())
		}
		if told := strings.Contains(said.String(), "Unsolicited response"); told != (level == "debug") || strings.Contains(said.String(), "s3cret-token") {
			t.Errorf("at level %s it says\n%s", level, said.String())
		}
		for line := range strings.Lines(said.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("past the log: %s", line)
			}
		}
	}
}

// TestWhatAServerSaysIsPrintable sends terminal escapes in the status line.
func TestWhatAServerSaysIsPrintable(t *testing.T) {
	server := webtest.Start(t)
	server.Put("/x", webtest.Text("x"))
	server.Put("/x.tar.gz", webtest.Text("x"))
	evil := func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = buffered.WriteString("HTTP/1.1 404 \x1b[2J\u009bowned\u202e\r\nContent-Length: 0\r\n\r\n")
		_ = errors.Join(buffered.Flush(), conn.Close())
	}
	dir, url := t.TempDir(), server.URL+"/x"
	archive := []string{"ensure", "archive", filepath.Join(dir, "a.tar.gz"), "--url", url + ".tar.gz", "--owner", strconv.Itoa(os.Geteuid()), "--group", strconv.Itoa(os.Getegid())}
	for _, args := range [][]string{
		archive, append([]string{"--log-format", "json"}, archive...), append(archive, "--json"),
		{"apply", url}, {"data", "resolve", url}, {"ensure", "scaffold", filepath.Join(dir, "s"), "--source", url + ".tar.gz"},
	} {
		server.Next("/x", evil)
		server.Next("/x.tar.gz", evil)
		code, text := start(t, filepath.Join(dir, "state"), args...).wait()
		if code == 0 || strings.ContainsAny(text, "\x1b\u009b\u202e") || !strings.Contains(text, "owned") {
			t.Errorf("%q: exit code %d\n%q", args, code, text)
		}
	}
}

// TestKillBetweenDownloadAndExtraction kills muster while it unpacks: the next
// run unpacks again, although what creates names exists by then.
func TestKillBetweenDownloadAndExtraction(t *testing.T) {
	server, dir := webtest.Start(t), t.TempDir()
	// The garbage after the program delays the run long enough to kill muster.
	server.Put("/app.tar.gz", webtest.Text(string(hosttest.TarGz(t, 0o755, "bin/app", "#!/bin/sh\n", "data", strings.Repeat("\x00", racing.Less(256, 32)<<20)))))
	manifest := write(t, filepath.Join(dir, "m.yaml"), fmt.Sprintf(`
muster:
  resources:
    - archive:
        - %s/app.tar.gz: {url: %q, extract_parent: %[1]s/opt, creates: %[1]s/opt/bin/app, cleanup: true, owner: "%[3]d", group: "%[4]d"}
`, dir, server.URL+"/app.tar.gz", os.Geteuid(), os.Getegid()))
	p := start(t, filepath.Join(dir, "state"), "apply", manifest)
	await(t, "the program is unpacked", func() bool { return exists(filepath.Join(dir, "opt/bin/app")) })
	p.signal(syscall.SIGKILL)
	p.wait()
	if !exists(filepath.Join(dir, "app.tar.gz")) {
		t.Fatal("muster had unpacked everything when it was killed")
	}
	code, text := start(t, filepath.Join(dir, "state"), "apply", manifest).wait()
	app, err := os.ReadFile(filepath.Join(dir, "opt/bin/app"))
	if code != 0 || err != nil || string(app) != "#!/bin/sh\n" || exists(filepath.Join(dir, "app.tar.gz")) {
		t.Errorf("exit code %d, the program is %q, %v\n%s", code, app, err, text)
	}
	if n := len(server.Requests()); n != 1 {
		t.Errorf("it was fetched %d times", n)
	}
	if code, text := start(t, filepath.Join(dir, "state"), "apply", manifest).wait(); code != 0 || !strings.Contains(text, "app.tar.gz stable") {
		t.Errorf("the run after that: exit code %d\n%s", code, text)
	}
}

// TestLostRecordOfAnArchive loses the state directory between two versions. muster records the
// declared version with a warning, once, and unpacks the next one.
func TestLostRecordOfAnArchive(t *testing.T) {
	server := webtest.Start(t)
	dir := t.TempDir()
	uid, gid := hosttest.Owner(t)
	ensure := func(state string, version int, args ...string) string {
		content := string(hosttest.TarGz(t, 0o755, "bin/app", strconv.Itoa(version)))
		server.Put("/app.tar.gz", webtest.Text(content))
		return muster(t, state, append([]string{"ensure", "archive", dir + "/app.tar.gz", "--url", server.URL + "/app.tar.gz", "--checksum", fmt.Sprintf("%x", sha256.Sum256([]byte(content))),
			"--extract-parent", dir + "/opt", "--creates", dir + "/opt/bin/app", "--cleanup", "--owner", uid, "--group", gid}, args...)...)
	}
	holds := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(dir + "/opt/bin/app"); err != nil || string(got) != want {
			t.Errorf("version %q is unpacked, not %s: %v", got, want, err)
		}
	}
	const warning = "unpacked archive has no record"
	ensure(t.TempDir(), 1)
	holds("1")
	state := t.TempDir()
	if out := ensure(state, 2, "--noop"); !strings.Contains(out, "stable") || strings.Contains(out, warning) {
		t.Errorf("noop prints %s", out)
	}
	if out := ensure(state, 2); !strings.Contains(out, "stable") || !strings.Contains(out, warning) {
		t.Errorf("the first run prints %s", out)
	}
	if out := ensure(state, 2); !strings.Contains(out, "stable") || strings.Contains(out, warning) {
		t.Errorf("the second run prints %s", out)
	}
	holds("1")
	ensure(state, 3)
	holds("3")
}
