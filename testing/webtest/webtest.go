// Package webtest is a real HTTP server for the tests of what fetches: with
// TLS, basic authentication, ranges, redirects, and answers that break off,
// hang or fail in the way that servers do.
package webtest

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server serves files below its URL. Make it with Start.
type Server struct {
	// URL is its root, without a slash at the end.
	URL string

	server         *httptest.Server
	user, password string
	withoutRanges  bool

	mu       sync.Mutex
	files    map[string]File
	moved    map[string]string
	next     map[string][]Answer
	requests []*http.Request
}

// File is the content of a path.
type File struct {
	Content io.ReaderAt
	Size    int64
	// ETag is sent as given, with quotes; empty: not sent.
	ETag string
	// Modified is sent unless it is zero.
	Modified time.Time
}

// Text makes a file of text with an ETag.
func Text(content string) File {
	sum := sha256.Sum256([]byte(content))

	return File{Content: strings.NewReader(content), Size: int64(len(content)), ETag: fmt.Sprintf(`"%x"`, sum[:4])}
}

// Answer handles one request. File is the default content.
type Answer func(w http.ResponseWriter, r *http.Request, file http.Handler)

// Option is how a server differs from a plain one.
type Option func(*Server)

// WithAuth asks for a user and a password.
func WithAuth(user, password string) Option {
	return func(s *Server) { s.user, s.password = user, password }
}

// WithoutRanges always sends whole files.
func WithoutRanges() Option { return func(s *Server) { s.withoutRanges = true } }

// Start starts a server on the loopback interface, which ends with the test.
func Start(t testing.TB, options ...Option) *Server { return start(t, httptest.NewServer, options) }

// StartTLS is Start with a certificate that only TLS and TrustFile know.
func StartTLS(t testing.TB, options ...Option) *Server {
	return start(t, httptest.NewTLSServer, options)
}

func start(t testing.TB, make func(http.Handler) *httptest.Server, options []Option) *Server {
	t.Helper()
	s := &Server{files: map[string]File{}, moved: map[string]string{}, next: map[string][]Answer{}}
	for _, o := range options {
		o(s)
	}
	s.server = make(http.HandlerFunc(s.serve))
	s.URL = s.server.URL
	t.Cleanup(s.Close)

	return s
}

// Close ends the server and all its connections.
func (s *Server) Close() {
	s.server.CloseClientConnections()
	s.server.Close()
}

// Put places a file.
func (s *Server) Put(path string, f File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = f
}

// Redirect redirects a path to another URL.
func (s *Server) Redirect(path, target string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved[path] = target
}

// Next sets the answers to the next requests for a path, one each.
func (s *Server) Next(path string, answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[path] = append(s.next[path], answers...)
}

// Requests returns the requests so far, in their order.
func (s *Server) Requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.requests)
}

// TLS is the configuration of a client that trusts the server.
func (s *Server) TLS() *tls.Config {
	return s.server.Client().Transport.(*http.Transport).TLSClientConfig
}

// TrustFile writes the certificate for SSL_CERT_FILE.
func (s *Server) TrustFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trust.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}

	return path
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Clone(r.Context()))
	answer, file := s.answer(r)
	// The lock is for the tables, not for an answer that takes its time.
	s.mu.Unlock()
	defer s.mu.Lock()
	if answer != nil {
		answer(w, r, file)
		return
	}
	file.ServeHTTP(w, r)
}

// answer returns the next answer for a request and the content of its file.
func (s *Server) answer(r *http.Request) (Answer, http.Handler) {
	var answer Answer
	if queue := s.next[r.URL.Path]; len(queue) > 0 {
		answer, s.next[r.URL.Path] = queue[0], queue[1:]
	}
	user, password, _ := r.BasicAuth()
	if user != s.user || password != s.password {
		return answer, status(http.StatusUnauthorized)
	}
	if target, ok := s.moved[r.URL.Path]; ok {
		return answer, http.RedirectHandler(target, http.StatusFound)
	}
	f, ok := s.files[r.URL.Path]
	if !ok {
		return answer, status(http.StatusNotFound)
	}

	return answer, s.fileHandler(f)
}

func status(code int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
}

func (s *Server) fileHandler(f File) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.ETag != "" {
			w.Header().Set("ETag", f.ETag)
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		if s.withoutRanges {
			r.Header.Del("Range")
			w = plain{w}
		}
		http.ServeContent(w, r, "", f.Modified, io.NewSectionReader(f.Content, 0, f.Size))
	})
}

// plain is an answer that does not offer ranges.
type plain struct{ http.ResponseWriter }

// WriteHeader withdraws the offer.
func (p plain) WriteHeader(code int) {
	p.Header().Del("Accept-Ranges")
	p.ResponseWriter.WriteHeader(code)
}
