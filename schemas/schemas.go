// Package schemas contains the JSON Schemas (draft 2020-12) of the documents that muster reads and
// writes. They are generated from the Go types.
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

// base is the URL where the schemas are published.
const base = "https://musterfleet.github.io/muster/schemas/v1/"

// ErrUnknown is the error of an unknown schema.
var ErrUnknown = errors.New("unknown schema")

// Document is a kind of document with a schema.
type Document struct {
	// Name is the name of the schema.
	Name string
	// Protocol is the value of the field protocol of the document. It is empty for a manifest,
	// which has no such field.
	Protocol string
	// Summary describes the document in one line.
	Summary string
}

// Documents returns all kinds of documents with a schema.
func Documents() []Document {
	return []Document{
		{"manifest", "", "A manifest: data, hierarchy, overrides and resources"},
		{"ensure_request", model.ProtocolEnsureRequest, "A request for one resource to be in a state"},
		{"ensure_response", model.ProtocolEnsureResponse, "The response to an ensure request"},
		{"run_request", model.ProtocolRunRequest, "A request to run assignments"},
		{"cancel_request", model.ProtocolCancelRequest, "A request to cancel a request"},
		{"run_response", model.ProtocolRunResponse, "The response to a run request"},
		{"transaction", model.ProtocolTransaction, "Result of one resource in one run"},
		{"run", model.ProtocolRun, "The summary of one run of one manifest"},
		{"assignment", model.ProtocolAssignment, "A manifest assigned to a node or group"},
		{"statement", model.ProtocolStatement, "The signed payload of an envelope"},
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

// Get returns a schema as JSON. Its error is ErrUnknown.
func Get(name string) ([]byte, error) {
	text, err := files.ReadFile("v1/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("%w: %q, there is %s", ErrUnknown, name, strings.Join(Names(), ", "))
	}

	return text, nil
}

// URL returns the id of a schema, which is the URL where it is published.
func URL(name string) string { return base + name + ".json" }

// ID returns the URL of the schema of a protocol, for the dataschema of a CloudEvent. It is empty
// for a protocol without a schema.
func ID(protocol string) string {
	for _, d := range Documents() {
		if d.Protocol == protocol && protocol != "" {
			return URL(d.Name)
		}
	}

	return ""
}
