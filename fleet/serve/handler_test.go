package serve

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/web/access"
	"github.com/musterfleet/muster/testing/kvtest"
)

// TestPathsOfPrograms: unknown paths below /api get JSON with the location of the document.
func TestPathsOfPrograms(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	s := serveFleet(t, store, access.Options{})
	for _, path := range []string{"api", "api/", "api/openapi", "api/v2/nodes", "api/v1", "api/v1/none"} {
		response, err := http.Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil {
			t.Error(err)
		}
		kind := response.Header.Get("Content-Type")
		if response.StatusCode != http.StatusNotFound || kind != "application/problem+json" || !strings.Contains(string(text), "/api/v1/openapi.json lists all paths") {
			t.Errorf("%s: %s, %s: %s", path, response.Status, kind, text)
		}
	}
}

// TestHistoryOfNoKey is not there, which another try does not change.
func TestHistoryOfNoKey(t *testing.T) {
	t.Parallel()
	_, store := kvtest.New(t)
	s := serveFleet(t, store, access.Options{})
	s.complete()
	for _, path := range []string{"audit/nope", "audit/group.web.nope", "audit/node..x"} {
		response, err := http.Get(s.url + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil {
			t.Error(err)
		}
		if page := string(text); response.StatusCode != http.StatusNotFound || !strings.Contains(page, "There is no assignment") || !strings.Contains(page, `href="/audit"`) || strings.Contains(page, "Load the page again") {
			t.Errorf("%s: %s: %s", path, response.Status, text)
		}
	}
}
