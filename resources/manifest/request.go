package manifest

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/resource"
)

// ParseRequest reads an ensure request in JSON or YAML. It is strict: unknown
// keys are errors. Besides the request it gives the properties with their
// places, for DecodeOne. The error is model.Problems.
func ParseRequest(name string, data []byte) (model.EnsureRequest, resource.Value, error) {
	var none resource.Value
	root, err := readMapping(name, data, DefaultMaxBytes, "a request", "")
	if err != nil {
		return model.EnsureRequest{}, none, err
	}
	r := request{root: root}
	for _, e := range root.Entries {
		r.field(e)
	}
	r.need("protocol", r.out.Protocol, "\"protocol\": \""+model.ProtocolEnsureRequest+"\"")
	r.need("type", r.out.Type, "\"type\": \"file\"")
	if len(r.problems) > 0 {
		return model.EnsureRequest{}, none, finish(r.problems)
	}
	r.out.Properties = r.properties.AppendJSON(nil)

	return r.out, r.properties, nil
}

// request takes a request apart.
type request struct {
	root       resource.Value
	out        model.EnsureRequest
	properties resource.Value
	problems   model.Problems
}

func (r *request) field(e resource.Entry) {
	switch e.Key {
	case "protocol":
		if r.out.Protocol = r.text(e); r.out.Protocol != "" && r.out.Protocol != model.ProtocolEnsureRequest {
			r.problems.Add(e.Value.Pos, "it must be "+model.ProtocolEnsureRequest, "the protocol is %q", r.out.Protocol)
		}
	case "type":
		r.out.Type = r.text(e)
	case "id":
		r.out.ID = r.text(e)
	case "properties":
		if e.Value.Kind != resource.Map {
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
		yes, err := strconv.ParseBool(e.Value.Text)
		if err != nil || e.Value.Kind != resource.Bool {
			r.problems.Add(e.Value.Pos, "", "`noop` must be true or false")
		}
		r.out.Noop = yes
	default:
		known := []string{"protocol", "type", "properties", "id", "expires", "noop"}
		r.problems = append(r.problems, document.Unknown(e.Pos, "key", e.Key, " in the request", known))
	}
}

func (r *request) text(e resource.Entry) string {
	if e.Value.Kind != resource.String {
		r.problems.Add(e.Value.Pos, "", "`%s` must be text, not %s", e.Key, e.Value.Kind)
	}

	return e.Value.Text
}

func (r *request) need(key, have, example string) {
	if _, given := r.root.Get(key); !given || have == "" && len(r.problems) == 0 {
		r.problems.Add(r.root.Pos, "add "+example, "the request has no `%s`", key)
	}
}

// DecodeOne is ResolveOne without a look at what the resource includes.
func (l *Loader) DecodeOne(typ string, properties resource.Value) (*resource.Resource, error) {
	return l.decodeOne(typ, properties, resource.Decode)
}

// ResolveOne makes the resource of an ensure request, the last of what it gives;
// before it stand those of the manifest that it includes. Its values are literal:
// nothing in them is an expression. The error is that of Resolve.
func (l *Loader) ResolveOne(ctx context.Context, typ string, properties resource.Value, in Inputs) (*Resolved, error) {
	return l.resolveOne(ctx, typ, properties, in, resource.Decode)
}

// ResolveQuestion is ResolveOne for a resource that is only asked about: what is
// not given is not missed.
func (l *Loader) ResolveQuestion(ctx context.Context, typ string, properties resource.Value, in Inputs) (*Resolved, error) {
	return l.resolveOne(ctx, typ, properties, in, resource.DecodeQuestion)
}

func (l *Loader) resolveOne(ctx context.Context, typ string, properties resource.Value, in Inputs, decode decode) (*Resolved, error) {
	res, err := l.decodeOne(typ, properties, decode)
	if err != nil {
		return nil, err
	}
	b := &build{session: l.session(&Document{}, in), out: &Resolved{}, links: []resource.Links{resource.LinksOf(res)}}
	b.keep(res, properties)
	b.out.Warnings = nil // those are for what runs again and again
	b.assemble(ctx)

	return b.finish(ctx, in)
}

// Sensitive says that nothing of the values of a request may be shown or kept,
// which nobody knows of one that is not valid.
func (l *Loader) Sensitive(typ string, properties resource.Value) bool {
	res, err := l.decodeOne(typ, properties, resource.Decode)

	return err != nil || res.Sensitive()
}

type decode func(*resource.Type, resource.Value, model.Position) (*resource.Resource, model.Problems)

func (l *Loader) decodeOne(typ string, properties resource.Value, decode decode) (*resource.Resource, error) {
	t, ok := l.opts.Types.Get(typ)
	if !ok {
		return nil, model.Problems{unknownType(l.opts.Types, typ, properties.Pos)}
	}
	res, problems := decode(t, properties, properties.Pos)
	if i := slices.IndexFunc(properties.Entries, func(e resource.Entry) bool { return e.Key == keyControl }); i >= 0 {
		problems.Add(properties.Entries[i].Pos, "decide before asking", "`control` belongs into a manifest, not into a request")
	}
	if len(problems) > 0 {
		return nil, finish(problems)
	}

	return res, nil
}
