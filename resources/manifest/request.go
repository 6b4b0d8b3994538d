package manifest

import (
	"strconv"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// commandType is the only type with read-only requests.
const commandType = "exec"

// ParseRequest reads an ensure request in JSON or YAML. Unknown keys are errors. It also returns
// the properties with their positions, for DecodeOne. The error is model.Problems. With an error,
// the request contains only its id if it is readable.
func ParseRequest(name string, data []byte) (model.EnsureRequest, document.Value, error) {
	var none document.Value
	parsed, err := readMapping(name, data, DefaultMaxBytes, "a request", "")
	r := request{root: parsed}
	if err != nil {
		return r.onlyID(), none, err
	}
	for _, e := range r.root.Entries {
		r.field(e)
	}
	r.need("protocol", r.out.Protocol, "\"protocol\": \""+model.ProtocolEnsureRequest+"\"")
	r.need("type", r.out.Type, "\"type\": \"file\"")
	if r.out.Check && r.out.Type != commandType {
		check, _ := r.root.Get("check")
		r.problems.Add(check.Pos, "", "`check` is for the type %s, not %s", commandType, r.out.Type)
	}
	if len(r.problems) > 0 {
		return r.onlyID(), none, tidyProblems(r.problems)
	}
	r.out.Properties = r.properties.AppendJSON(nil)

	return r.out, r.properties, nil
}

type request struct {
	root       document.Value
	out        model.EnsureRequest
	properties document.Value
	problems   model.Problems
}

func (r *request) onlyID() model.EnsureRequest {
	if id, _ := r.root.Get("id"); id.IsScalar() && model.IsRequestID(id.Text) {
		return model.EnsureRequest{ID: id.Text}
	}

	return model.EnsureRequest{}
}

func (r *request) field(e document.Entry) {
	switch e.Key {
	case "protocol":
		if r.out.Protocol = r.text(e); r.out.Protocol != "" && r.out.Protocol != model.ProtocolEnsureRequest {
			r.problems.Add(e.Value.Pos, "it must be "+model.ProtocolEnsureRequest, "the protocol is %q", r.out.Protocol)
		}
	case "type":
		r.out.Type = r.text(e)
	case "id":
		if r.out.ID = r.text(e); !model.IsRequestID(r.out.ID) {
			r.problems.Add(e.Value.Pos, "", "`id` must be at most %d characters that can be printed", model.MaxRequestID)
		}
	case "properties":
		if e.Value.Kind != document.Map {
			r.problems.Add(e.Value.Pos, "", "`properties` must be a mapping, not %s", e.Value.Kind)
		}
		r.properties = e.Value
	case "expires":
		at, err := time.Parse(time.RFC3339, r.text(e))
		if err != nil {
			r.problems.Add(e.Value.Pos, "for example 2030-01-31T12:00:00Z", "`expires` must be a time as in RFC 3339")
		}
		r.out.Expires = at
	case "noop":
		r.out.Noop = r.bool(e)
	case "check":
		r.out.Check = r.bool(e)
	default:
		known := []string{"protocol", "type", "properties", "id", "expires", "noop", "check"}
		r.problems = append(r.problems, document.Unknown(e.Pos, "key", e.Key, " in the request", known))
	}
}

func (r *request) text(e document.Entry) string {
	if e.Value.Kind != document.String {
		r.problems.Add(e.Value.Pos, "", "`%s` must be text, not %s", e.Key, e.Value.Kind)
	}

	return e.Value.Text
}

func (r *request) bool(e document.Entry) bool {
	yes, err := strconv.ParseBool(e.Value.Text)
	if err != nil || e.Value.Kind != document.Bool {
		r.problems.Add(e.Value.Pos, "", "`%s` must be true or false", e.Key)
	}

	return yes
}

func (r *request) need(key, have, example string) {
	if _, given := r.root.Get(key); !given || have == "" && len(r.problems) == 0 {
		r.problems.Add(r.root.Pos, "add "+example, "the request has no `%s`", key)
	}
}
