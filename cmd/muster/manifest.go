package main

import (
	"cmp"
	"context"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/resources/manifest"
)

// manifestInputs are a manifest, and what goes into it besides itself.
type manifestInputs struct {
	inputs
	source string
}

func (m *manifestInputs) addManifest(cmd *fisk.CmdClause) {
	cmd.Arg("manifest", "A path, -, kv://bucket/key, obj://bucket/name or http(s)://; a tar.gz is a bundle").Required().StringVar(&m.source)
	m.add(cmd)
	m.addMaxDepth(cmd)
}

func (m *manifestInputs) name() string { return cmp.Or(m.source, stdinName) }

// opened is a manifest of which all expressions are resolved.
type opened struct {
	*manifest.Resolved
	source  *manifest.Source
	session *earlier
}

// withManifest fetches and checks a manifest, and works out its resources. What
// it unpacked is there until do returns.
func (a *app) withManifest(ctx context.Context, loader *manifest.Loader, in manifestInputs, do func(opened) error) error {
	if err := in.checkMaxDepth(); err != nil {
		return err
	}
	source, err := loader.Fetch(ctx, in.name())
	if err != nil {
		return err
	}
	defer a.closing(source.Close)
	session, err := a.openSession()
	if err != nil {
		return err
	}
	doc, err := loader.Parse(source)
	if err != nil {
		return err
	}
	external, err := a.externalData(ctx, loader, in.inputs)
	if err != nil {
		return err
	}
	resolved, err := loader.Resolve(ctx, doc, manifest.Inputs{Data: external, Dir: source.Dir, Known: session.known, MaxDepth: in.maxDepth})
	if err != nil {
		return err
	}

	return do(opened{resolved, source, session})
}

func (a *app) externalData(ctx context.Context, loader *manifest.Loader, in inputs) (map[string]any, error) {
	if !in.dataSet {
		return nil, nil
	}

	return loader.LoadData(ctx, cmp.Or(in.data, stdinName), manifest.Inputs{})
}

// closing closes something of which only the log needs to know.
func (a *app) closing(f func() error) {
	if err := f(); err != nil {
		a.log.Warn("cleaning up", "error", err)
	}
}

// stdinName is the source that a lone dash names, of which fisk makes an empty
// argument.
const stdinName = "-"
