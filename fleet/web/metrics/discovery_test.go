package metrics_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
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
