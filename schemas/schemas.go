// Package schemas contains the JSON Schemas (draft 2020-12) of the documents that muster reads and
// writes. They are generated from the Go types.
package schemas

import (
	"embed"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/model/signed"
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
	// Type is the Go type of the document, nil for a manifest and an ensure request.
	Type reflect.Type
	// Summary describes the document in one line.
	Summary string
}

// Documents returns all kinds of documents with a schema.
func Documents() []Document {
	return []Document{
		{"manifest", "", nil, "A manifest: data, hierarchy, overrides and resources"},
		{"ensure_request", model.ProtocolEnsureRequest, nil, "A request for one resource to be in a state"},
		{"ensure_response", model.ProtocolEnsureResponse, reflect.TypeFor[model.EnsureResponse](), "The response to an ensure request"},
		{"run_request", model.ProtocolRunRequest, reflect.TypeFor[model.RunRequest](), "A request to run assignments"},
		{"cancel_request", model.ProtocolCancelRequest, reflect.TypeFor[model.CancelRequest](), "A request to cancel a request"},
		{"run_response", model.ProtocolRunResponse, reflect.TypeFor[model.EnsureResponse](), "The response to a run request"},
		{"transaction", model.ProtocolTransaction, reflect.TypeFor[model.Transaction](), "Result of one resource in one run"},
		{"run", model.ProtocolRun, reflect.TypeFor[model.Run](), "The summary of one run of one manifest"},
		{"assignment", model.ProtocolAssignment, reflect.TypeFor[model.Assignment](), "A manifest assigned to a node or group"},
		{"statement", model.ProtocolStatement, reflect.TypeFor[signed.Statement](), "The signed payload of an envelope"},
		{"pause", model.ProtocolPause, reflect.TypeFor[model.Pause](), "A pause of the nodes of a family, in the bucket of control documents"},
		{"labels", model.ProtocolLabels, reflect.TypeFor[model.Labels](), "Labels that operators give a node, in the bucket of control documents"},
		{"groups", model.ProtocolGroups, reflect.TypeFor[model.Groups](), "Groups that operators put a node into, in the bucket of control documents"},
		{"health", model.ProtocolHealth, reflect.TypeFor[model.HealthReport](), "A change of a health check's status"},
		{"registration", model.ProtocolRegistration, reflect.TypeFor[registration.Registration](), "A service at an address, as a node registers it"},
		{"node", model.ProtocolNode, reflect.TypeFor[model.NodeState](), "Status of a node"},
		{"agent", model.ProtocolAgent, reflect.TypeFor[model.AgentStatus](), "Status of an agent, as it answers on its machine"},
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
