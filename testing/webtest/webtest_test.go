package webtest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/webtest"
)

// get asks for a path and gives the status and the body, with a * where it broke off.
func get(t *testing.T, client *http.Client, target string, headers ...string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return "*"
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	text := resp.Status[:3] + " " + resp.Header.Get("ETag") + " " + string(body)
	if err != nil {
		text += "*"
	}

	return text
}

func TestServer(t *testing.T) {
	s := webtest.Start(t)
	s.Put("/a", webtest.Text("0123456789"))
	s.Redirect("/b", s.URL+"/a")
	s.Next("/a", webtest.Plain(), webtest.Cut(4), webtest.Status(503, "Retry-After", "1"), webtest.With(206, "xyz", "ETag", `"x"`))
	for i, want := range []string{`200 "84d89877" 0123456789`, `200 "84d89877" 0123*`, "503  ", `206 "x" xyz`, `200 "84d89877" 0123456789`} {
		if got := get(t, http.DefaultClient, s.URL+"/a"); got != want {
			t.Errorf("answer %d is %q, not %q", i, got, want)
		}
	}
	if got := get(t, http.DefaultClient, s.URL+"/b", "Range", "bytes=4-"); got != `206 "84d89877" 456789` {
		t.Errorf("a range behind a redirect: %q", got)
	}
	if got := get(t, http.DefaultClient, s.URL+"/c"); got != "404  " {
		t.Errorf("nothing there: %q", got)
	}
	if n := len(s.Requests()); n != 8 {
		t.Errorf("%d requests were recorded", n)
	}
}

func TestServerWithTLSAndAuth(t *testing.T) {
	s := webtest.StartTLS(t, webtest.WithAuth("joe", "hunter2"), webtest.WithoutRanges())
	s.Put("/a", webtest.Text("0123456789"))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: s.TLS()}}
	if got := get(t, client, s.URL+"/a"); got != "401  " {
		t.Errorf("without a password: %q", got)
	}
	if got := get(t, client, strings.Replace(s.URL, "://", "://joe:hunter2@", 1)+"/a", "Range", "bytes=4-"); got != `200 "84d89877" 0123456789` {
		t.Errorf("with one: %q", got)
	}
	if got := get(t, http.DefaultClient, s.URL+"/a"); got != "*" {
		t.Errorf("without trust: %q", got)
	}
}
