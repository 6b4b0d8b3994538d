package webhook_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/musterfleet/muster/fleet/webhook"
)

// secret is one of 32 bytes.
const secret = "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="

func secretFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}

	return path
}

// TestSecrets: each that is not valid is refused, with the remedy and without the secret.
func TestSecrets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"valid":         {secret + "\n", 0o600, ""},
		"open to all":   {secret, 0o644, "so others may read it: chmod 600"},
		"no prefix":     {strings.TrimPrefix(secret, "whsec_"), 0o600, "must have one line: whsec_ and the base64 of 24 to 64 random bytes"},
		"no base64":     {"whsec_????", 0o600, "must have one line"},
		"too short":     {"whsec_MDEyMzQ1", 0o600, "must have one line"},
		"too long":      {"whsec_" + strings.Repeat("MDEy", 22), 0o600, "must have one line"},
		"several lines": {secret + "\n" + secret, 0o600, "must have one line"},
	} {
		s, err := webhook.NewSender(webhook.Hook{Name: "pager", SecretFile: secretFile(t, c.text, c.mode)})
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		case err != nil && strings.Contains(err.Error(), "MDEyMzQ1"):
			t.Errorf("%s: shows the secret: %v", name, err)
		case err == nil:
			s.Close()
		}
	}
}

func TestSend(t *testing.T) {
	t.Parallel()
	verify, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	var status int
	var header http.Header
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = verify.Verify(body, r.Header)
		}
		if err != nil || r.Method != http.MethodPost || string(body) != `{"id":"1"}` || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/cloudevents+json") {
			t.Errorf("%v: %s %s %v", err, r.Method, body, r.Header)
		}
		for key, values := range header {
			w.Header()[key] = values
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(receiver.Close)
	s, err := webhook.NewSender(webhook.Hook{Name: "pager", URL: receiver.URL + "/?token=hidden", SecretFile: secretFile(t, secret, 0o600)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	now := time.Now()
	for _, c := range []struct {
		status  int
		header  http.Header
		want    string
		content bool
		after   time.Duration
	}{
		{http.StatusOK, nil, "", false, 0},
		{http.StatusAccepted, nil, "", false, 0},
		{http.StatusNoContent, nil, "", false, 0},
		{http.StatusBadRequest, nil, "400 Bad Request", true, 0},
		{http.StatusRequestEntityTooLarge, nil, "413", true, 0},
		{http.StatusUnprocessableEntity, nil, "422", true, 0},
		{http.StatusUnauthorized, nil, "401 Unauthorized", false, 0},
		{http.StatusNotFound, nil, "404 Not Found", false, 0},
		{http.StatusFound, http.Header{"Location": {"http://127.0.0.1:1/"}}, "redirects are not followed", false, 0},
		{http.StatusInternalServerError, nil, "500", false, 0},
		{http.StatusTooManyRequests, http.Header{"Retry-After": {"7"}}, "429", false, 7 * time.Second},
		{http.StatusServiceUnavailable, http.Header{"Retry-After": {now.Add(time.Hour).UTC().Format(http.TimeFormat)}}, "503", false, 5 * time.Minute},
		{http.StatusServiceUnavailable, http.Header{"Retry-After": {"-1"}}, "503", false, 0},
		{http.StatusServiceUnavailable, http.Header{"Retry-After": {"soon"}}, "503", false, 0},
	} {
		status, header = c.status, c.header
		err := s.Send(t.Context(), now, "id", []byte(`{"id":"1"}`))
		var asked webhook.AfterError
		errors.As(err, &asked)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || errors.Is(err, webhook.ErrContent) != c.content || asked.After != c.after {
			t.Errorf("%d %v: %v, after %s", c.status, c.header, err, asked.After)
		}
	}
	receiver.Close()
	if err := s.Send(t.Context(), now, "id", nil); err == nil || strings.Contains(err.Error(), "hidden") || errors.Is(err, webhook.ErrContent) {
		t.Errorf("without a receiver: %v", err)
	}
}
