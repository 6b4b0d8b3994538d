package webhook

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/musterfleet/muster/resources/host/files"
)

const (
	// Patience is the timeout of one attempt.
	Patience = 10 * time.Second
	// maxAnswer is the maximum number of bytes of an answer that are read.
	maxAnswer = 64 << 10
	// The size of a secret in bytes, by the specification.
	minSecret, maxSecret = 24, 64
	maxSecretFile        = 4 << 10
	// maxAfter limits the wait that an answer may request.
	maxAfter = 5 * time.Minute
)

// ErrContent is an event that the receiver rejects permanently.
var ErrContent = errors.New("the receiver does not take it")

// AfterError is a failure after which the receiver requests a pause.
type AfterError struct {
	error
	After time.Duration
}

// Unwrap returns the failure.
func (e AfterError) Unwrap() error { return e.error }

// Sender sends events to one webhook. Create it with NewSender.
type Sender struct {
	Hook
	signer *standardwebhooks.Webhook
	client *http.Client
}

// NewSender reads the secret of a webhook. It returns an error if other users can read or change the file, or if the
// secret is invalid.
func NewSender(h Hook) (*Sender, error) {
	text, err := files.ReadSecret(h.SecretFile, maxSecretFile)
	if err != nil {
		return nil, fmt.Errorf("webhook %s: %w", h.Name, err)
	}
	secret := strings.TrimSpace(string(text))
	encoded, is := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !is || len(key) < minSecret || len(key) > maxSecret {
		return nil, fmt.Errorf("webhook %s: %s must have one line: whsec_ and the base64 of %d to %d random bytes", h.Name, h.SecretFile, minSecret, maxSecret)
	}
	signer, err := standardwebhooks.NewWebhookRaw(key)
	if err != nil {
		return nil, fmt.Errorf("webhook %s: %w", h.Name, err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost, transport.MaxResponseHeaderBytes = 1, maxAnswer
	client := &http.Client{Transport: transport, Timeout: Patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

	return &Sender{h, signer, client}, nil
}

// Close ends its connections.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// Send sends an event in structured JSON once. The error wraps ErrContent if a retry is useless, and AfterError if the
// receiver requests a pause.
func (s *Sender) Send(ctx context.Context, now time.Time, id string, body []byte) error {
	signature, err := s.signer.Sign(id, now, body)
	if err != nil {
		return fmt.Errorf("cannot be signed: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", event.ApplicationCloudEventsJSON+"; charset=UTF-8")
	r.Header.Set("User-Agent", "muster")
	r.Header.Set(standardwebhooks.HeaderWebhookID, id)
	r.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	r.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	answer, err := s.client.Do(r)
	if known, is := errors.AsType[*url.Error](err); is {
		err = known.Err // without the URL, which may contain a secret
	}
	if timedOut := net.Error(nil); ctx.Err() == nil && errors.As(err, &timedOut) && timedOut.Timeout() {
		return fmt.Errorf("the receiver did not answer within %s", s.client.Timeout)
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	// A hijacked connection has no timeout.
	if answer.StatusCode != http.StatusSwitchingProtocols {
		_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) // so that the connection can be reused
	}

	return judge(answer, now)
}

func judge(answer *http.Response, now time.Time) error {
	err := fmt.Errorf("the receiver answers %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 300 && code < 400:
		return fmt.Errorf("%w, another address: redirects are not followed, set `url` to where it leads", err)
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge, code == http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: %w", ErrContent, err)
	}
	if after := retryAfter(answer.Header.Get("Retry-After"), now); after > 0 {
		return AfterError{err, after}
	}

	return err
}

// retryAfter returns the pause in the header Retry-After, limited by maxAfter; 0 for none.
func retryAfter(text string, now time.Time) time.Duration {
	after := time.Duration(0)
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		after = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		after = at.Sub(now)
	}

	return max(min(after, maxAfter), 0)
}
