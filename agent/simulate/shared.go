package simulate

import (
	"context"
	"encoding/json"
	"path"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// loader loads each manifest once for all nodes.
type loader struct {
	manifests *manifest.Loader

	mu     sync.Mutex
	loaded map[version]loadedManifest
}

// version identifies a version of an assignment. It includes the time, because revisions restart at
// 1 in a recreated bucket.
type version struct {
	key      string
	revision uint64
	at       time.Time
	// sum is the digest of a value without a revision, which is not assigned.
	sum string
}

type loadedManifest struct {
	manifest *Manifest
	err      error
}

// maxLoaded is the maximum number of cached manifests.
const maxLoaded = 1000

func newLoader(types resource.Types) *loader {
	return &loader{manifests: manifest.NewLoader(manifest.Options{Types: types}), loaded: map[version]loadedManifest{}}
}

// load returns the manifest of a value, resolved without a node as in muster fleet push. An invalid manifest
// returns model.Problems.
func (l *loader) load(ctx context.Context, e model.Entry) (*Manifest, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := version{key: e.Key, revision: e.Revision, at: e.Time}
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

func (l *loader) read(ctx context.Context, e model.Entry) (*Manifest, error) {
	a, problems := document.DecodeAssigned(e.Key, e.Value)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	out := &Manifest{Digest: a.ContentDigest(), Noop: a.Noop, Expires: a.Expires}
	if a.Bundle != "" {
		out.Resources = []Resource{bundled(e)}
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
func bundled(e model.Entry) Resource {
	return Resource{
		Ref: model.Ref{Type: "archive", Name: path.Join("/opt", e.Name)}, Ensure: model.EnsurePresent,
		Source: model.Position{File: model.BundleManifest, Line: 3, Column: 7},
	}
}

// played returns the simulated form of a resource.
func played(r *resource.Resource) Resource {
	meta := r.Meta()
	out := Resource{
		Ref: r.Ref(), Alias: meta.Alias, Ensure: meta.Ensure, Provider: meta.Provider, Source: r.Pos,
		Sensitive: meta.Sensitive || len(r.Secrets) > 0,
	}
	if !out.Sensitive {
		out.Properties, _ = json.Marshal(r.Spec) // properties are optional
	}

	return out
}
