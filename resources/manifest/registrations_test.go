package manifest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources/manifest"
)

// TestRegistrationsInExpressions checks that equal arguments are requested once per document.
func TestRegistrationsInExpressions(t *testing.T) {
	var asked []string
	o := options()
	o.Registrations = func(_ context.Context, cluster, protocol, service, address string) ([]registration.Registration, error) {
		asked = append(asked, strings.Join([]string{cluster, protocol, service, address}, " "))
		if service == "away" {
			return nil, errors.New("no answer")
		}
		return []registration.Registration{
			{Cluster: "prod", Service: "shop", ProtocolName: "http", Address: "10.0.0.1", Port: 80, Priority: 1, TTL: 60e9, Node: "web01", Annotations: map[string]string{"rack": "b4"}},
			{Cluster: "prod", Service: "shop", ProtocolName: "http", Address: "10.0.0.2", Port: 8080, Priority: 9, TTL: 60e9, Node: "web02"},
		}, nil
	}
	for expression, want := range map[string]string{
		`len(registrations('prod', 'http', 'shop', '*'))`:                                                        "2",
		`join(map(registrations('prod', '*', 'shop', '*'), .address + ':' + string(.port)), ' ')`:                "10.0.0.1:80 10.0.0.2:8080",
		`registrations('*', '*', '*', '*')[0].annotations.rack`:                                                  "b4",
		`registrations('*', '*', '*', '*')[1].priority + 1`:                                                      "10",
		`let r = registrations('*', '*', '*', '*')[1]; r.cluster + r.protocol + r.service + r.node + r.ttl`:      "prodhttpshopweb021m0s",
		`len(registrations('a', 'a', 'a', 'a')) + len(registrations('a', 'a', 'a', 'a')) + len(secret('xxxxx'))`: "9",
	} {
		asked = nil
		if got := outcome(t, dataHead+content(fmt.Sprintf("%q", "${ "+expression+" }")), o, manifest.Inputs{}); !strings.Contains(got, `"content":"`+want+`"`) {
			t.Errorf("%s gives %s, want %s", expression, got, want)
		}
		if len(asked) != 1 {
			t.Errorf("%s asked for %q", expression, asked)
		}
	}
	for expression, want := range map[string]string{
		`registrations('a', 'b', 'away', 'd')`: "m.yaml:20:23: the expression fails: registrations: no answer",
		`registrations('', 'b', 'c', 'd')`:     "m.yaml:20:23: the expression fails: registrations: its cluster is empty (write '*' for any)",
		`registrations('a', 'b', 'c', '')`:     "m.yaml:20:23: the expression fails: registrations: its address is empty (write '*' for any)",
	} {
		if got := outcome(t, dataHead+content(fmt.Sprintf("%q", "${ "+expression+" }")), o, manifest.Inputs{}); got != want {
			t.Errorf("%s: got %s, want %s", expression, got, want)
		}
	}
}

// TestRegistrationsMakeAManifestOneThatChanges checks that the manifest is not static, so an agent
// resolves it before each run.
func TestRegistrationsMakeAManifestOneThatChanges(t *testing.T) {
	o := options()
	o.Registrations = func(context.Context, string, string, string, string) ([]registration.Registration, error) {
		return nil, nil
	}
	text := "muster: {resources: [{file: [{/a: {ensure: absent, alias: \"x${ len(registrations('a', 'b', 'c', 'd')) }\"}}]}]}\n"
	doc, err := manifest.Parse("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := manifest.NewLoader(o).Resolve(t.Context(), doc, manifest.Inputs{})
	if err != nil || resolved.Static {
		t.Errorf("%v, static %t", err, resolved.Static)
	}
	// Check leaves registrations to the node.
	if _, err := manifest.NewLoader(o).Check(t.Context(), doc, manifest.Inputs{}); err != nil {
		t.Error(err)
	}
}
