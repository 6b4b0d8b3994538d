package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/choria-io/fisk"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/facts"
	"github.com/musterfleet/muster/resources/manifest"
)

// inputs are the flags that say what goes into a manifest besides itself.
type inputs struct {
	facts     []string
	factFiles []string
	data      string
	// dataSet tells --data - from none: fisk makes an empty text of a lone dash.
	dataSet bool
	// maxDepth is how deep manifests may include one another; 0 is the default.
	maxDepth int
}

func (i *inputs) addFacts(cmd *fisk.CmdClause) {
	cmd.Flag("fact", "Set a fact; dots in the name make it nested").PlaceHolder("NAME=VALUE").StringsVar(&i.facts)
	cmd.Flag("facts", "Read facts from a JSON or YAML file").PlaceHolder("FILE").StringsVar(&i.factFiles)
}

func (i *inputs) addMaxDepth(cmd *fisk.CmdClause) {
	wholeNumber(cmd.Flag("max-depth", "How deep manifests may apply further manifests").Default(strconv.Itoa(manifest.DefaultMaxDepth)).Envar("MUSTER_MAX_DEPTH"), &i.maxDepth)
}

// checkMaxDepth refuses a depth that would be no limit, or let nothing run.
func (i *inputs) checkMaxDepth() error {
	if i.maxDepth < 1 {
		return usagef("--max-depth must be at least 1, not %d", i.maxDepth)
	}

	return nil
}

func (i *inputs) add(cmd *fisk.CmdClause) {
	i.addFacts(cmd)
	cmd.Flag("data", "Take further data from a file, kv://bucket/key or http(s)://; it wins over the manifest's own").PlaceHolder("SOURCE").IsSetByUser(&i.dataSet).StringVar(&i.data)
}

// gather gives the node's facts with those of the flags over them.
func (a *app) gather(ctx context.Context, in inputs) (model.Facts, error) {
	var extra []map[string]any
	for _, file := range in.factFiles {
		more, err := facts.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--facts: %w", err)
		}
		extra = append(extra, more)
	}
	for _, pair := range in.facts {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, usagef("--fact %q: write it as name=value", pair)
		}
		extra = append(extra, nested(name, value))
	}
	all, errs := facts.Gather(ctx, facts.Options{Dir: a.configDir, Extra: extra})
	for _, err := range errs {
		a.log.Warn("a source of facts failed", "error", err)
	}

	return all, nil
}

// nested makes {a: {b: value}} of a.b.
func nested(name, value string) map[string]any {
	parts := strings.Split(name, ".")
	out := map[string]any{parts[len(parts)-1]: value}
	for i := len(parts) - 2; i >= 0; i-- {
		out = map[string]any{parts[i]: out}
	}

	return out
}

// lazyFacts gathers facts at most once, and only when something asks.
func (a *app) lazyFacts(in inputs) func(context.Context) (model.Facts, error) {
	var once sync.Once
	var all model.Facts
	var err error

	return func(ctx context.Context) (model.Facts, error) {
		once.Do(func() { all, err = a.gather(ctx, in) })
		return all, err
	}
}

// loader reads manifests with everything the command line gives it, for a
// command that changes nothing.
func (a *app) loader(ask func(context.Context) (model.Facts, error)) *manifest.Loader {
	return manifest.NewLoader(a.loaderOptions(ask))
}

func (a *app) loaderOptions(ask func(context.Context) (model.Facts, error)) manifest.Options {
	return manifest.Options{
		Types:   a.types,
		Facts:   ask,
		Environ: environ(),
		Stdin:   a.stdin,
		KV: func(ctx context.Context, bucket, key string) ([]byte, error) {
			store, err := a.store(ctx)
			if err != nil {
				return nil, err
			}
			return store.KVGet(ctx, bucket, key)
		},
		Registrations: a.readRegistrations(a.store),
		Object: func(ctx context.Context, bucket, name string) (io.ReadCloser, error) {
			store, err := a.store(ctx)
			if err != nil {
				return nil, err
			}
			return store.Object(ctx, bucket, name)
		},
		// The state directory is for what changes the machine.
		Unpack: func(ctx context.Context, r io.Reader) (string, func() error, error) {
			return a.unpack(ctx, r, func() (string, error) { return os.MkdirTemp("", "muster-bundle-") })
		},
	}
}

// unpackForRun unpacks a bundle where the next run finds what a killed one left.
func (a *app) unpackForRun(ctx context.Context, r io.Reader) (dir string, cleanup func() error, err error) {
	return a.unpack(ctx, r, func() (string, error) { return a.host().TempDir("bundle") })
}

// unpack unpacks a bundle into a directory of its own.
func (a *app) unpack(ctx context.Context, r io.Reader, makeDir func() (string, error)) (dir string, cleanup func() error, err error) {
	dir, err = makeDir()
	if err != nil {
		return "", nil, err
	}
	cleanup = func() error { return os.RemoveAll(dir) }
	if err := archive.Unpack(ctx, r, dir, archive.Limits{}); err != nil {
		_ = cleanup()
		return "", nil, err
	}

	return dir, cleanup, nil
}

// environ is the environment that expressions see.
func environ() map[string]string {
	out := map[string]string{}
	for _, pair := range command.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		out[name] = value
	}

	return out
}

// journalName tells a manifest from others: a file by where it really is, what
// came from standard input by what it says.
func journalName(source, digest string) string {
	if source == "-" {
		return source + " " + digest
	}
	name := identify(source)
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}

	return name
}

// identify names a manifest: the absolute path of a file, else its source.
func identify(source string) string {
	if source == "-" || strings.Contains(source, "://") {
		return source
	}
	abs, err := filepath.Abs(source)
	if err != nil {
		return source
	}

	return abs
}
