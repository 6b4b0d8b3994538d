package metrics_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/web/metrics"
	"github.com/musterfleet/muster/model/registration"
)

// services are what nodes registered, or why that cannot be read.
type services struct {
	all []registration.Registration
	err error
}

func (s services) Registrations(context.Context) ([]registration.Registration, error) {
	return s.all, s.err
}

// TestAnnotationsThatShareALabel are logged, each once, and a few only: nodes write them.
func TestAnnotationsThatShareALabel(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	s := services{all: []registration.Registration{
		{Cluster: "prod", Service: "shop", ProtocolName: "http", Address: "fd00::1", Port: 80, Node: "web02", Annotations: map[string]string{"a.b": "1", "a-b": "2", "c": "3"}},
	}}
	h := metrics.Discovery(&s, slog.New(slog.NewTextHandler(&log, nil)))
	ask := func(query string) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/sd/registrations"+query, nil))
	}
	ask("")
	ask("?service=shop")
	const want = `msg="annotations with the same Prometheus label, only the first is written" label=__meta_muster_annotation_a_b annotations="a-b, a.b" node=web02 service=shop address=fd00::1 port=80`
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), want) {
		t.Errorf("%d warnings: %s", n, log.String())
	}
	s.all = slices.Clone(s.all)
	for port := range 300 {
		r := s.all[0]
		r.Port = 1000 + port
		s.all = append(s.all, r)
	}
	ask("?cluster=prod")
	ask("?protocol=http")
	if n := strings.Count(log.String(), "level=WARN"); n != 100 {
		t.Errorf("%d warnings", n)
	}
}

func TestDiscovery(t *testing.T) {
	t.Parallel()
	all := []registration.Registration{
		{Cluster: "prod", Service: "shop", ProtocolName: "http", Address: "fd00::1", Port: 80, Priority: 1, Node: "web02", Annotations: map[string]string{"a.b": "1", "a-b": "2"}},
		{Cluster: "prod", Service: "db", ProtocolName: "mysql", Address: "10.0.0.1", Port: 3306, Priority: 7, Node: "db01"},
	}
	for _, c := range []struct {
		services
		query  string
		status int
		want   string
	}{
		{services{all, nil}, "", http.StatusOK, `[{"targets":["10.0.0.1:3306"],"labels":{"__meta_muster_priority":"7","cluster":"prod","node":"db01","protocol":"mysql","service":"db"}},` +
			`{"targets":["[fd00::1]:80"],"labels":{"__meta_muster_annotation_a_b":"2","__meta_muster_priority":"1","cluster":"prod","node":"web02","protocol":"http","service":"shop"}}]`},
		{services{all, nil}, "?protocol=mysql&service=db&cluster=prod", http.StatusOK, `[{"targets":["10.0.0.1:3306"],"labels":{"__meta_muster_priority":"7","cluster":"prod","node":"db01","protocol":"mysql","service":"db"}}]`},
		{services{all, nil}, "?srevice=db", http.StatusUnprocessableEntity, `unknown parameter "srevice", there are: cluster, service, protocol`},
		{services{all, nil}, "?cluster=" + strings.Repeat("x", 5000), http.StatusUnprocessableEntity, "the parameters are longer than 4096 bytes"},
		{services{all, nil}, "?cluster=none", http.StatusOK, `[]`},
		{services{nil, nil}, "", http.StatusOK, `[]`},
		{services{nil, errors.New("NATS cannot be reached")}, "", http.StatusBadGateway, "the registrations cannot be read: NATS cannot be reached"},
	} {
		w := httptest.NewRecorder()
		metrics.Discovery(c.services, slog.New(slog.DiscardHandler)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/sd/registrations"+c.query, nil))
		if w.Code != c.status || strings.TrimSpace(w.Body.String()) != c.want || c.status == http.StatusOK && w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%+v: %d %v %s", c, w.Code, w.Header(), w.Body)
		}
	}
}

// TestDiscoveryIsAsNewAsItsSource: a later request has the new registrations.
func TestDiscoveryIsAsNewAsItsSource(t *testing.T) {
	t.Parallel()
	s := services{all: []registration.Registration{{Cluster: "prod", Service: "shop", Address: "10.0.0.1", Port: 80}}}
	h := metrics.Discovery(&s, slog.New(slog.DiscardHandler))
	ask := func(query string) string {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/sd/registrations"+query, nil))
		return w.Body.String()
	}
	if text := ask(""); !strings.Contains(text, "10.0.0.1:80") {
		t.Error(text)
	}
	s.all[0].Address = "10.0.0.2"
	for query, want := range map[string]string{"": "10.0.0.2:80", "?service=shop": "10.0.0.2:80", "?service=db": "[]"} {
		if text := ask(query); !strings.Contains(text, want) {
			t.Errorf("%q: %s", query, text)
		}
	}
	s.all = nil
	if text := ask(""); text != "[]" {
		t.Errorf("nothing is registered: %s", text)
	}
}

// TestDiscoveryThatFails logs a few lines, independent of the number of requests.
func TestDiscoveryThatFails(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	h := metrics.Discovery(services{err: errors.New("NATS cannot be reached")}, slog.New(slog.NewTextHandler(&log, nil)))
	for range 50 {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/sd/registrations", nil))
	}
	if n := strings.Count(log.String(), "registrations cannot be read for Prometheus"); n != 10 {
		t.Errorf("%d lines", n)
	}
}
