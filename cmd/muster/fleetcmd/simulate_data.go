package fleetcmd

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"sync"
	"time"

	"github.com/musterfleet/muster/agent/simulate"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// controls holds the control documents, read by one consumer for all simulated nodes: a watch per node would
// double the subscriptions.
type controls struct {
	// store returns the store of one connection.
	store func() *kvstore.Store

	mu sync.Mutex
	// families holds the entries by family and key.
	families map[string]map[string]model.Entry
	sync     model.Sync
}

func newControls(store func() *kvstore.Store) *controls {
	return &controls{store: store, families: map[string]map[string]model.Entry{}}
}

// provisionPoll is the interval between checks whether a fleet without the bucket has one now.
const provisionPoll = 30 * time.Second

// Run follows the bucket until ctx ends. It calls changed with each changed family, or with an empty string
// for all.
func (c *controls) Run(ctx context.Context, changed func(family string)) error {
	for {
		err := c.follow(ctx, changed)
		if ctx.Err() != nil {
			return nil
		}
		if !errors.Is(err, model.ErrNotProvisioned) {
			c.note(func(s *model.Sync) { s.Err = err })
			changed("")
			return err
		}
		c.note(func(s *model.Sync) { s.At, s.Err = time.Now(), nil }) // the bucket does not exist
		changed("")
		if kvstore.Pause(ctx, provisionPoll) != nil {
			return nil
		}
	}
}

// follow follows the bucket until an error.
func (c *controls) follow(ctx context.Context, changed func(family string)) error {
	known := false
	for f, err := range kvstore.NewControl(c.store()).Follow(ctx) {
		if err != nil {
			return err
		}
		c.take(f.Entry)
		switch {
		case known:
			changed(f.Family)
		case f.Complete:
			known = true
			c.note(func(s *model.Sync) { s.At, s.Err = time.Now(), nil })
			changed("")
		}
	}

	return ctx.Err()
}

func (c *controls) note(change func(*model.Sync)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.sync)
}

// take applies an entry. It ignores an entry without a key.
func (c *controls) take(e model.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := c.families[e.Family]
	switch {
	case e.Key == "":
	case e.Deleted:
		delete(keys, e.Key)
	case keys == nil:
		c.families[e.Family] = map[string]model.Entry{e.Key: e}
	default:
		keys[e.Key] = e
	}
}

// Entries returns the current entries of some families.
func (c *controls) Entries(families []string) (map[string]model.Entry, model.Sync) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]model.Entry{}
	for _, family := range families {
		maps.Copy(out, c.families[family])
	}

	return out, c.sync
}

// loader loads each manifest once for all nodes.
type loader struct {
	manifests *manifest.Loader

	mu     sync.Mutex
	loaded map[simulatedVersion]result
}

// simulatedVersion identifies a version of an assignment. It includes the time, because revisions restart at
// 1 in a recreated bucket.
type simulatedVersion struct {
	key      string
	revision uint64
	at       time.Time
	// sum is the digest of a value without a revision, which is not assigned.
	sum string
}

type result struct {
	manifest *simulate.Manifest
	err      error
}

// maxLoaded is the maximum number of cached manifests.
const maxLoaded = 1000

func newLoader(types resource.Types) *loader {
	return &loader{manifests: manifest.NewLoader(manifest.Options{Types: types}), loaded: map[simulatedVersion]result{}}
}

// load returns the manifest of a value, resolved without a node as in muster fleet push. An invalid manifest
// returns model.Problems.
func (l *loader) load(ctx context.Context, e model.Entry) (*simulate.Manifest, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := simulatedVersion{key: e.Key, revision: e.Revision, at: e.Time}
	if e.Revision == 0 {
		v.sum = model.DigestOf(e.Value)
	}
	known, has := l.loaded[v]
	if has {
		return known.manifest, known.err
	}
	known.manifest, known.err = l.read(ctx, e)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if len(l.loaded) >= maxLoaded {
		clear(l.loaded)
	}
	l.loaded[v] = known

	return known.manifest, known.err
}

func (l *loader) read(ctx context.Context, e model.Entry) (*simulate.Manifest, error) {
	a, problems := document.DecodeAssigned(e.Key, e.Value)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	out := &simulate.Manifest{Digest: a.ContentDigest(), Noop: a.Noop, Expires: a.Expires}
	if a.Bundle != "" {
		out.Resources = []simulate.Resource{bundled(e)}
		return out, nil
	}
	doc, err := manifest.Parse(e.Key, []byte(a.Manifest))
	if err != nil {
		return nil, err
	}
	checked, err := l.manifests.Check(ctx, doc, manifest.Inputs{Data: a.Data, Drift: a.Drift})
	if err != nil {
		return nil, err
	}
	for _, r := range checked.Resources {
		out.Resources = append(out.Resources, played(r))
	}

	return out, nil
}

// bundled returns one resource in place of all resources of a bundle, because simulated nodes do not download
// bundles.
func bundled(e model.Entry) simulate.Resource {
	return simulate.Resource{
		Ref: model.Ref{Type: "archive", Name: path.Join("/opt", e.Name)}, Ensure: model.EnsurePresent,
		Source: model.Position{File: model.BundleManifest, Line: 3, Column: 7},
	}
}

// played returns the simulated form of a resource.
func played(r *resource.Resource) simulate.Resource {
	meta := r.Meta()
	out := simulate.Resource{
		Ref: r.Ref(), Alias: meta.Alias, Ensure: meta.Ensure, Provider: meta.Provider, Source: r.Pos,
		Sensitive: meta.Sensitive || len(r.Secrets) > 0,
	}
	if !out.Sensitive {
		out.Properties, _ = json.Marshal(r.Spec) // properties are optional
	}

	return out
}
