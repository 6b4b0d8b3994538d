// Package schemas holds the JSON Schemas (draft 2020-12) of the documents that
// muster reads and writes. They are generated from the Go types.
package schemas

import (
	"embed"
	"errors"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/model"
)

//go:generate go run ./internal/gen

//go:embed v1/*.json
var files embed.FS

// base is where the schemas are published.
const base = "https://musterfleet.github.io/muster/schemas/v1/"

// ErrUnknown is a schema asked for by a name that there is none of.
var ErrUnknown = errors.New("unknown schema")

// Document is a kind of document that has a schema.
type Document struct {
	// Name is the schema's.
	Name string
	// Protocol is what such a document says in its protocol field; empty for a manifest, which has none.
	Protocol string
	// Summary is one line for people.
	Summary string
}

// Documents returns every kind of document that has a schema.
func Documents() []Document {
	return []Document{
		{"manifest", "", "A manifest: data, hierarchy, overrides and resources"},
		{"ensure_request", model.ProtocolEnsureRequest, "A request for one resource to be in a state"},
		{"ensure_response", model.ProtocolEnsureResponse, "The response to an ensure request"},
		{"run_request", model.ProtocolRunRequest, "A request to run what is assigned"},
		{"cancel_request", model.ProtocolCancelRequest, "A request to cancel a request"},
		{"run_response", model.ProtocolRunResponse, "The response to a run request"},
		{"transaction", model.ProtocolTransaction, "Result of one resource in one run"},
		{"run", model.ProtocolRun, "The summary of one run of one manifest"},
		{"assignment", model.ProtocolAssignment, "A manifest assigned to a node or group"},
		{"statement", model.ProtocolStatement, "What is signed: the payload of an envelope"},
		{"pause", model.ProtocolPause, "A pause of the nodes of a family, in the bucket of control documents"},
		{"labels", model.ProtocolLabels, "Labels that operators give a node, in the bucket of control documents"},
		{"groups", model.ProtocolGroups, "Groups that operators put a node into, in the bucket of control documents"},
		{"health", model.ProtocolHealth, "A change of a health check's status"},
		{"registration", model.ProtocolRegistration, "A service at an address, as a node registers it"},
		{"node", model.ProtocolNode, "Status of a node"},
		{"agent", model.ProtocolAgent, "Status of an agent, as it answers on its machine"},
	}
}

// Names returns the names of the schemas.
func Names() []string {
	var names []string
	for _, d := range Documents() {
		names = append(names, d.Name)
	}

	return names
}

// Get returns a schema as JSON. The error is ErrUnknown.
func Get(name string) ([]byte, error) {
	text, err := files.ReadFile("v1/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("%w: %q, there is %s", ErrUnknown, name, strings.Join(Names(), ", "))
	}

	return text, nil
}

// URL is the id of a schema, which is also where it is published.
func URL(name string) string { return base + name + ".json" }

// ID returns the URL of the schema for documents of a protocol, for a
// CloudEvent's dataschema; empty for a protocol that has none.
func ID(protocol string) string {
	for _, d := range Documents() {
		if d.Protocol == protocol && protocol != "" {
			return URL(d.Name)
		}
	}

	return ""
}
