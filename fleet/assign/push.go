package assign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// Assignments is the bucket of the assignments. Errors name the key.
type Assignments interface {
	// Get returns the current assignment. The error wraps model.ErrNotFound if there is none, and model.ErrUnusable if
	// its headers are invalid. A server that lags may answer with an older revision.
	Get(ctx context.Context, key string) (model.Entry, error)
	// Current returns the current assignment like Get, but also from servers that lag.
	Current(ctx context.Context, key string) (model.Entry, error)
	// History returns the stored revisions of a key, the newest last; the error wraps
	// model.ErrNotFound when there are none.
	History(ctx context.Context, key string) ([]model.Entry, error)
	// Put stores a value and returns its revision; the error wraps model.ErrTooLarge.
	Put(ctx context.Context, key string, value []byte) (uint64, error)
}

// Bundles is the store of bundles.
type Bundles interface {
	// PutBundle stores a bundle, read from its beginning, under its digest, and
	// returns the digest. It does not store a bundle twice.
	PutBundle(ctx context.Context, r io.ReadSeeker) (digest string, err error)
}

// Push is a manifest with its targets and terms.
type Push struct {
	Source  *Source
	Name    string
	Targets []fleet.Target
	// Terms are the settings of the assignment. Without any, the manifest is pushed without a document.
	Terms model.Assignment
	// Bundle forces a bundle if the manifest alone would be enough.
	Bundle bool
}

// Pushed is the result for one target.
type Pushed struct {
	Key      string `json:"key"`
	Revision uint64 `json:"revision"`
	// Digest is the digest of the manifest's text or the bundle's bytes.
	Digest string `json:"digest"`
	Bundle bool   `json:"bundle,omitempty"`
	// Unchanged means that the assignment already had this content.
	Unchanged bool `json:"unchanged,omitempty"`
	// Replaced is the replaced revision, 0 for none.
	Replaced uint64 `json:"-"`
}

// Pusher assigns manifests.
type Pusher struct {
	Assignments Assignments
	Bundles     Bundles
	// Signer signs values; nil means unsigned.
	Signer *Signing
	// OnUnsigned, if set, receives the keys whose signed values were replaced by unsigned ones.
	OnUnsigned func(key string)
	// OnBundle, if set, receives the size of a bundle in bytes before it is stored.
	OnBundle func(size int64)
}

// Push assigns to every target. It returns the results also if some fail; the error names the failed ones. It
// skips unchanged assignments. The error wraps model.ErrTooLarge if only a bundle can be pushed.
func (p *Pusher) Push(ctx context.Context, push Push) ([]Pushed, error) {
	value, digest, bundle, err := push.Value(ctx)
	if bundle != nil {
		defer os.Remove(bundle.Name()) // the system removes a remaining file
		defer bundle.Close()
	}
	if err != nil {
		return nil, err
	}
	store := sync.OnceValue(func() error { return p.store(ctx, bundle, digest) })
	var done []Pushed
	var failed []error
	for _, target := range push.Targets {
		one := Pushed{Key: target.Key(push.Name), Digest: digest, Bundle: bundle != nil}
		if err := p.one(ctx, &one, value, store); err != nil {
			failed = append(failed, err)
			continue
		}
		done = append(done, one)
	}

	return done, errors.Join(failed...)
}

// one assigns to one target. It stores the bundle first, so that no node reads a missing one.
func (p *Pusher) one(ctx context.Context, out *Pushed, value []byte, store func() error) error {
	current, err := p.Assignments.Get(ctx, out.Key)
	if err == nil && sameContent(out.Key, current.Value, value) {
		// A server that lags may return an inactive revision.
		current, err = p.Assignments.Current(ctx, out.Key)
	}
	if err != nil && !errors.Is(err, model.ErrNotFound) && !errors.Is(err, model.ErrUnusable) {
		return err
	}
	out.Replaced = current.Revision
	if err == nil && sameContent(out.Key, current.Value, value) {
		if out.Unchanged, err = p.inForce(ctx, current); err != nil || out.Unchanged {
			out.Revision = current.Revision
			return err
		}
	}
	if out.Bundle {
		if err := store(); err != nil {
			return fmt.Errorf("%s: %w", out.Key, err)
		}
	}
	switch {
	case p.Signer != nil:
		if value, err = p.Signer.Sign(ctx, signed.Assign, out.Key, value, current.Value); err != nil {
			return fmt.Errorf("%s: %w", out.Key, err)
		}
	case p.OnUnsigned != nil && signed.IsEnvelope(current.Value):
		p.OnUnsigned(out.Key)
	}
	out.Revision, err = p.Assignments.Put(ctx, out.Key, value)

	return err
}

// inForce reports whether nodes accept a revision like the pushed value.
func (p *Pusher) inForce(ctx context.Context, current model.Entry) (bool, error) {
	if p.Signer == nil {
		return true, nil
	}
	all, err := p.Assignments.History(ctx, current.Key)
	if err != nil || all[len(all)-1].Revision != current.Revision {
		return false, err
	}
	signed, err := p.Signer.HasSigned(ctx, all)
	if err != nil {
		return false, fmt.Errorf("%s: %w", current.Key, err)
	}

	return signed, nil
}

func (p *Pusher) store(ctx context.Context, bundle *os.File, digest string) error {
	info, err := bundle.Stat()
	if err != nil {
		return err
	}
	if p.OnBundle != nil {
		p.OnBundle(info.Size())
	}
	stored, err := p.Bundles.PutBundle(ctx, bundle)
	if err == nil && stored != digest {
		err = fmt.Errorf("stored as %s, want %s", stored, digest)
	}
	if err != nil {
		return fmt.Errorf("store bundle: %w", err)
	}

	return nil
}

// Value returns the value for the bucket, and the bundle, if needed, as a temporary file, because it may be
// larger than memory. The caller closes and removes it, also after an error.
func (push Push) Value(ctx context.Context) (value []byte, digest string, bundle *os.File, err error) {
	digest = model.DigestOf(push.Source.Text)
	a := push.Terms
	switch {
	case push.Bundle || push.Source.NeedsBundle():
		if bundle, err = os.CreateTemp("", "muster-bundle-*.tar.gz"); err != nil {
			return nil, "", nil, err
		}
		if digest, err = push.Source.Bundle(ctx, bundle); err != nil {
			return nil, "", bundle, err
		}
		a.Bundle = digest
	case reflect.ValueOf(a).IsZero():
		return push.Source.Text, digest, nil, nil
	default:
		a.Manifest = string(push.Source.Text)
	}
	a.Protocol, a.Name, a.Digest, a.Issued = model.ProtocolAssignment, push.Name, digest, time.Now().UTC()
	value, err = model.EncodeAssignment(a)

	return value, digest, bundle, err
}

// InForce is the key of an assignment, and the nodes that report it as active.
type InForce struct {
	Key   string
	Nodes []string
}

// InForceBeside returns the active keys of other names on the targets of a push, as nodes report them. Nodes
// reject a manifest that declares a resource differently than one of these.
func (push Push) InForceBeside(nodes []model.Node) []InForce {
	byKey := fleet.ActiveKeys(push.Targets, push.Name, nodes, func(name string) bool { return name != push.Name })
	var out []InForce
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		out = append(out, InForce{key, byKey[key]})
	}

	return out
}

// Conflict is a resource of a push that an active assignment declares differently.
type Conflict struct {
	model.Problem
	// Nodes are the target nodes that report the assignment as active.
	Nodes []string
}

// CompareError reports an active assignment that cannot be read to compare it with a push.
type CompareError struct {
	InForce
	Err error
}

// Error names the assignment and the reason.
func (e *CompareError) Error() string { return fmt.Sprintf("cannot compare with %s: %v", e.Key, e.Err) }

// Unwrap returns the error of the read.
func (e *CompareError) Unwrap() error { return e.Err }

// Conflicts compares a push with the assignments of InForceBeside. It skips resources that only a node can resolve. It
// returns a *CompareError if an assignment cannot be read.
func (push Push) Conflicts(ctx context.Context, b Bucket, types resource.Types, nodes []model.Node) ([]Conflict, error) {
	var out []Conflict
	for _, met := range push.InForceBeside(nodes) {
		e, err := b.Get(ctx, met.Key)
		if errors.Is(err, model.ErrNotFound) || errors.Is(err, model.ErrUnusable) {
			continue
		}
		if err != nil {
			return nil, &CompareError{met, err}
		}
		claims := plan.Claims{}
		claims.Add(met.Key, declaredBy(ctx, e, types))
		for _, p := range claims.Conflicts(push.Source.declared) {
			out = append(out, Conflict{p, met.Nodes})
		}
	}

	return out, nil
}

// declaredBy returns the resources of an assignment that do not depend on a node. It returns nothing for a
// bundle.
func declaredBy(ctx context.Context, e model.Entry, types resource.Types) []*resource.Resource {
	a, problems := document.DecodeAssigned(e.Key, e.Value)
	if problems != nil {
		return nil
	}
	doc, err := manifest.Parse(e.Key, []byte(a.Manifest))
	if err != nil {
		return nil
	}
	checked, err := manifest.NewLoader(manifest.Options{Types: types}).Check(ctx, doc, manifest.Inputs{Data: a.Data, Drift: a.Drift})
	if err != nil {
		return nil
	}

	return sameOnAllNodes(checked.Resources)
}

// sameOnAllNodes filters the resources that are the same on each node.
func sameOnAllNodes(all []*resource.Resource) []*resource.Resource {
	return slices.DeleteFunc(all, func(r *resource.Resource) bool { return r.ResolveDeferred != nil || r.Type.NeedsOrigin })
}

// Enforced returns the keys that a push replaces and that nodes enforce: the keys of the push, and the keys of its name
// that its targets would no longer run.
func (push Push) Enforced(ctx context.Context, b Bucket, nodes []model.Node) ([]string, error) {
	keys := fleet.ActiveKeys(push.Targets, push.Name, nodes, func(name string) bool { return name == push.Name })
	for _, t := range push.Targets {
		keys[t.Key(push.Name)] = nil
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		e, err := b.Get(ctx, key)
		if errors.Is(err, model.ErrNotFound) || errors.Is(err, model.ErrUnusable) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if a, _ := document.DecodeAssigned(key, e.Value); !a.Noop {
			out = append(out, key)
		}
	}

	return out, nil
}

// sameContent reports whether two values of a key have the same Identity.
func sameContent(key string, a, b []byte) bool {
	id := Identity(key, a)

	return id != "" && id == Identity(key, b)
}

// Identity returns a digest that is equal for values with the same assignment, signed or not, at any time. It
// is empty for a broken envelope.
func Identity(key string, value []byte) string {
	v, problems := document.DecodeAssigned(key, value)
	content := v.Content
	if content == nil {
		return ""
	}
	if problems == nil && !v.Bare {
		v.Issued = time.Time{}
		var err error
		if content, err = model.EncodeAssignment(v.Assignment); err != nil {
			return ""
		}
	}

	return model.DigestOf(content)
}

// Readable returns a value of a key for users: a bare manifest unchanged, an assignment document as YAML with
// the lines of the manifest, a signed document without its envelope. A rejected value follows the reason,
// unchanged if it is no assignment.
func Readable(key string, value []byte) string {
	v, problems := document.DecodeAssigned(key, value)
	text := v.Content
	switch {
	case problems != nil && text == nil:
		text = value
	case problems == nil:
		problems = ofManifest(key, v)
		if readable, err := AssignmentYAML(v.Assignment); err == nil && !v.Bare {
			text = readable
		}
	}
	if len(problems) > 0 {
		return "# " + Invalid(problems) + "\n" + string(text)
	}

	return string(text)
}

// ProblemsOf returns the reasons why nodes reject an assignment, independent of the node; nil for none.
func ProblemsOf(key string, content []byte) model.Problems {
	v, problems := document.DecodeAssignedContent(key, content)
	if problems == nil {
		problems = ofManifest(key, v)
	}

	return problems
}

// AssignmentYAML returns an assignment document as YAML.
func AssignmentYAML(a model.Assignment) ([]byte, error) {
	encoded, err := model.EncodeAssignment(a)
	if err != nil {
		return nil, err
	}

	return document.YAML(encoded)
}

// ofManifest returns the problems of the manifest of a value that are independent of the node.
func ofManifest(key string, v document.Assigned) model.Problems {
	if v.Bundle != "" {
		return nil
	}
	doc, err := manifest.Parse(key, []byte(v.Manifest))
	if err == nil {
		return doc.Problems()
	}
	problems, ok := model.FindProblems(err)
	if !ok {
		problems.Add(model.Position{File: key}, "", "%v", err)
	}

	return problems
}

// Invalid describes in one line why nodes reject a value.
func Invalid(problems model.Problems) string {
	return "nodes reject this: " + strings.Join(strings.Fields(problems.Error()), " ")
}

// CountPushed returns the numbers of pushed and unchanged targets.
func CountPushed(done []Pushed, targets int) string {
	unchanged := 0
	for _, p := range done {
		if p.Unchanged {
			unchanged++
		}
	}
	text := fmt.Sprintf("%d of %d pushed", len(done)-unchanged, targets)
	if unchanged > 0 {
		text += fmt.Sprintf(", %d unchanged", unchanged)
	}

	return text
}

// GoalOf returns the goal that every node runs the pushed revisions while they are the assigned ones.
func GoalOf(done []Pushed) Goal {
	g := Goal{Revisions: map[string]uint64{}, InForce: true}
	for _, p := range done {
		g.Keys = append(g.Keys, p.Key)
		g.Revisions[p.Key] = p.Revision
		_, g.Name, _ = fleet.ParseKey(p.Key)
	}

	return g
}
