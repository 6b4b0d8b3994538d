package webhook

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSilentReceiver: who does not answer in time is named in plain words.
func TestSilentReceiver(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer receiver.Close()
	defer close(release)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := NewSender(Hook{Name: "slow", URL: receiver.URL, SecretFile: secret})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.client.Timeout = time.Millisecond
	if err := s.Send(t.Context(), time.Now(), "id", []byte("{}")); err == nil || err.Error() != "the receiver did not answer within 1ms" {
		t.Error(err)
	}
}
