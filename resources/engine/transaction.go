package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"github.com/segmentio/ksuid"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// begin starts the transaction of a resource.
func (r *run) begin(n *node) *model.Transaction {
	meta := n.res.Meta()
	r.results[n.at].begun = true

	return &model.Transaction{
		Protocol: model.ProtocolTransaction, EventID: ksuid.New().String(), Timestamp: now(),
		Type: n.ref.Type, Name: n.ref.Name, Alias: meta.Alias, RequestedEnsure: meta.Ensure, Source: n.res.Pos,
		RunID: r.opts.RunID, Node: r.opts.Node, Manifest: r.opts.Manifest, Revision: r.opts.Revision,
		Digest: r.opts.Digest, Cause: r.opts.Cause, CorrelationID: r.opts.CorrelationID, Noop: r.isNoop(n),
		HealthCheckOnly: r.scope(n).HealthCheckOnly, Within: within(n),
	}
}

// end completes the transaction, and tells of it once all before it were told of.
func (r *run) end(n *node, t *model.Transaction) {
	res := &r.results[n.at]
	res.done = true
	if res.pending == nil {
		res.pending = r.pendingBefore(n)
	}
	t.Duration = now().Sub(t.Timestamp)
	if p := r.looks[n.at].provider; p != nil {
		t.Provider = p.Name()
	}
	if r.opts.Full || t.Outcome() != model.OutcomeStable {
		r.fillIn(n, t)
	}
	res.untold = t
	r.register(n, t)
	r.countFor(n, t)
	for ; r.told < len(r.results) && r.results[r.told].done; r.told++ {
		if t := r.results[r.told].untold; t != nil {
			r.tell(t)
			r.results[r.told].untold = nil
			if n := r.graph.nodes[r.told]; r.announced[n.ref] {
				r.say(context.Background(), n, n.res.Messages.After)
			}
		}
	}
}

// within gives what includes a resource, nothing for one of the run's own manifest.
func within(n *node) model.Ref {
	if n.owner == nil {
		return model.Ref{}
	}

	return n.owner.ref
}

// tell counts a transaction and hands it on.
func (r *run) tell(t *model.Transaction) {
	r.summary.Counts.Add(t)
	for _, err := range t.Errors {
		r.summary.Errors = append(r.summary.Errors, t.Ref().String()+": "+err)
	}
	if r.opts.OnTransaction != nil {
		r.opts.OnTransaction(t)
	}
}

// describe notes the state a resource was found or left in, where it was looked at.
func (r *run) describe(n *node, t *model.Transaction) {
	if state := r.looks[n.at].state; state != nil {
		t.FinalEnsure = state.State().Ensure
	}
}

// fillIn adds properties and status, unless nothing of them may be shown.
func (r *run) fillIn(n *node, t *model.Transaction) {
	l := r.looks[n.at]
	if r.isSensitive(n) {
		return
	}
	spec := l.spec
	if spec == nil {
		spec = n.res.Spec
	}
	t.Properties = encode(spec)
	if l.state != nil {
		t.Status = encode(l.state)
	}
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		// Specs and states are plain structs; one that cannot be encoded is a
		// mistake of its type that must show, not vanish.
		b, _ = json.Marshal(map[string]string{"error": err.Error()})
	}

	return b
}

// isSensitive says that nothing of a resource's values may be shown: neither as
// declared, nor with what its properties came to at its turn.
func (r *run) isSensitive(n *node) bool {
	spec := r.looks[n.at].spec

	return n.res.Sensitive() || (spec != nil && spec.Meta().Sensitive)
}

// words gives an error as it may be shown.
func (r *run) words(n *node, err error) string {
	if r.isSensitive(n) {
		return r.redact.Redact(resource.WithoutOutput(err))
	}

	return r.redact.Redact(err.Error())
}

// showChanges gives the changes of a plan as they may be shown.
func (r *run) showChanges(n *node, plan resource.Plan) []model.Change {
	out := make([]model.Change, len(plan.Changes))
	for i, c := range plan.Changes {
		if r.isSensitive(n) {
			out[i] = model.Change{Action: c.Action, Message: c.Message, Property: c.Property}
			continue
		}
		c.Diff, c.From, c.To = r.redact.Redact(c.Diff), r.redact.Redact(c.From), r.redact.Redact(c.To)
		out[i] = c
	}

	return out
}

// learnSecrets makes the redactor know the values that must not be shown.
func (r *run) learnSecrets() {
	secrets := slices.Clone(r.opts.Secrets)
	for _, n := range r.graph.nodes {
		secrets = append(secrets, n.res.Secrets...)
		if n.res.Meta().Sensitive {
			secrets = append(secrets, valuesOf(n.res)...)
		}
	}
	r.addSecrets(secrets...)
}

func (r *run) addSecrets(secrets ...model.Secret) {
	if len(secrets) == 0 {
		return
	}
	r.secrets = append(r.secrets, secrets...)
	r.redact = model.NewRedactor(r.secrets...)
}

// valuesOf gives the texts that a sensitive resource is there to hide.
func valuesOf(res *resource.Resource) []model.Secret {
	var out []model.Secret
	for _, p := range res.Type.Properties() {
		if p.Sensitive {
			collect(p.Field(res.Spec), &out)
		}
	}

	return out
}

func collect(v reflect.Value, out *[]model.Secret) {
	switch v.Kind() {
	case reflect.String:
		*out = append(*out, model.NewSecret(v.String()))
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			collect(v.Elem(), out)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), out)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			collect(v.MapIndex(k), out)
		}
	}
}

// env is what a type is handed for a resource, or for many when n is nil.
func (r *run) env(n *node) resource.Env {
	env := r.opts.Env
	if len(r.secrets) > 0 {
		env.Log = slog.New(redacting{env.Log.Handler(), r.redact})
	}
	if n == nil {
		return env
	}
	env.Log = env.Log.With("resource", n.ref.String())
	if n.owner != nil {
		env.Log = env.Log.With("manifest", n.owner.ref.Name)
	}
	env.Scope = r.scope(n)
	env.Children = r.children[n.ref]
	if r.isNoop(n) {
		env.RunEnv = append(slices.Clone(env.RunEnv), EnvNoop+"=1")
	}

	return env
}

// redacting is a log handler that shows no secret.
type redacting struct {
	slog.Handler
	redact model.Redactor
}

// Handle redacts the message and the attributes of a record.
func (h redacting) Handle(ctx context.Context, rec slog.Record) error {
	out := slog.NewRecord(rec.Time, rec.Level, h.redact.Redact(rec.Message), rec.PC)
	rec.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})

	return h.Handler.Handle(ctx, out)
}

// WithAttrs keeps attributes, redacted.
func (h redacting) WithAttrs(attrs []slog.Attr) slog.Handler {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = h.attr(a)
	}

	return redacting{h.Handler.WithAttrs(clean), h.redact}
}

// WithGroup keeps the group.
func (h redacting) WithGroup(name string) slog.Handler {
	return redacting{h.Handler.WithGroup(name), h.redact}
}

func (h redacting) attr(a slog.Attr) slog.Attr {
	if v := a.Value.Resolve(); v.Kind() == slog.KindString || v.Kind() == slog.KindAny {
		if s := strings.TrimSpace(v.String()); s != "" {
			return slog.String(a.Key, h.redact.Redact(v.String()))
		}
	}

	return a
}
