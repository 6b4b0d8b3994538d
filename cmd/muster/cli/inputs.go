package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/facts"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/manifest"
)

// Stdin is the source of a lone dash, which fisk passes as an empty argument.
const Stdin = "-"

// Inputs are the flags for the external inputs of a manifest.
type Inputs struct {
	Data     string
	MaxDepth int

	// NoSystemFacts omits the facts of the machine. Environ has facts that override them. FactArguments are
	// facts as NAME=VALUE, which override all others.
	NoSystemFacts bool
	Environ       map[string]string
	FactArguments []string

	facts, factFiles []string
	// isData, isHiera and isDataFile report whether these flags of external data are set. Env.Given cannot tell, because
	// a property can have the flag --data.
	isData, isHiera, isDataFile bool
}

// AddFacts adds --fact and --facts.
func (i *Inputs) AddFacts(cmd *fisk.CmdClause) {
	cmd.Flag("fact", "Set a fact; dots in the name nest it").PlaceHolder("NAME=VALUE").StringsVar(&i.facts)
	cmd.Flag("facts", "Read facts from a JSON or YAML file").PlaceHolder("FILE").StringsVar(&i.factFiles)
}

// AddMaxDepth adds --max-depth.
func (i *Inputs) AddMaxDepth(cmd *fisk.CmdClause) {
	Int(cmd.Flag("max-depth", "Maximum depth of nested manifests").Default(strconv.Itoa(manifest.DefaultMaxDepth)).Envar("MUSTER_MAX_DEPTH"), &i.MaxDepth)
}

// CheckMaxDepth rejects a depth below 1.
func (i *Inputs) CheckMaxDepth() error {
	if i.MaxDepth < 1 {
		return Usagef("--max-depth must be at least 1, not %d", i.MaxDepth)
	}

	return nil
}

// envHiera is the variable with the source of external data in scripts for CCM.
const envHiera = "CCM_HIERA_DATA"

// AddData adds --data, and its hidden alias --hiera.
func (i *Inputs) AddData(cmd *fisk.CmdClause, help string) {
	i.AddOnlyData(cmd, help)
	i.AddHiera(cmd, "The same as --data").Hidden()
}

// AddOnlyData adds --data without --hiera.
func (i *Inputs) AddOnlyData(cmd *fisk.CmdClause, help string) {
	cmd.Flag("data", help).PlaceHolder("SOURCE").IsSetByUser(&i.isData).StringVar(&i.Data)
}

// AddHiera adds --hiera, the name of --data in commands that have --data as a property of a resource.
func (i *Inputs) AddHiera(cmd *fisk.CmdClause, help string) *fisk.FlagClause {
	flag := cmd.Flag("hiera", help).PlaceHolder("SOURCE").IsSetByUser(&i.isHiera)
	flag.StringVar(&i.Data)

	return flag
}

// AddDataFile adds --data-file, an alias of --data.
func (i *Inputs) AddDataFile(cmd *fisk.CmdClause) {
	cmd.Flag("data-file", "The same as --data").Short('D').PlaceHolder("SOURCE").IsSetByUser(&i.isDataFile).StringVar(&i.Data)
}

// DataSource returns the source of external data from a flag or CCM_HIERA_DATA, and the name of that flag or variable for
// errors. The source is empty if there is no external data.
func (i *Inputs) DataSource() (source, name string, err error) {
	for _, flag := range []struct {
		name  string
		isSet bool
	}{{"--data", i.isData}, {"--hiera", i.isHiera}, {"--data-file", i.isDataFile}} {
		switch {
		case !flag.isSet:
		case name != "":
			return "", "", Usagef("%s is an alias of %s; remove one of them", flag.name, name)
		default:
			name = flag.name
		}
	}
	if name == "" {
		return os.Getenv(envHiera), envHiera, nil
	}

	return cmp.Or(i.Data, Stdin), name, nil
}

// Facts gathers the node's facts and overrides them with the facts of the flags.
func (e *Env) Facts(ctx context.Context, in Inputs) (model.Facts, error) {
	extra, err := in.givenFacts()
	if err != nil {
		return nil, err
	}

	return e.gatherFacts(ctx, in, extra), nil
}

// givenFacts returns the facts of the flags.
func (i Inputs) givenFacts() (extra []map[string]any, err error) {
	pairs := slices.Concat(i.facts, i.FactArguments)
	for at, pair := range pairs {
		if name, _, ok := strings.Cut(pair, "="); !ok || name == "" {
			kind := "--fact"
			if at >= len(i.facts) {
				kind = "fact"
			}
			return nil, Usagef("%s %q: write it as name=value", kind, pair)
		}
	}
	if len(i.Environ) > 0 {
		environ := make(map[string]any, len(i.Environ))
		for name, value := range i.Environ {
			environ[name] = value
		}
		extra = append(extra, environ)
	}
	for _, file := range i.factFiles {
		more, err := facts.ReadFile(file)
		if err != nil {
			return nil, FileError("--facts", file, fmt.Errorf("--facts: %w", err))
		}
		extra = append(extra, more)
	}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		extra = append(extra, nested(name, value))
	}

	return extra, nil
}

func (e *Env) gatherFacts(ctx context.Context, in Inputs, extra []map[string]any) model.Facts {
	all, errs := facts.Gather(ctx, facts.Options{Dir: e.Flags.ConfigDir, Extra: extra, OnlyExtra: in.NoSystemFacts})
	for _, err := range errs {
		e.Log.Warn("fact source failed", "error", err)
	}

	return all
}

// nested returns {a: {b: value}} for a.b.
func nested(name, value string) map[string]any {
	first, rest, more := strings.Cut(name, ".")
	if !more {
		return map[string]any{name: value}
	}

	return map[string]any{first: nested(rest, value)}
}

// FactsFunc returns the facts of a node.
type FactsFunc func(context.Context) (model.Facts, error)

// LazyFacts returns a function that gathers facts at its first call. It parses the flags immediately, and
// returns an error about them.
func (e *Env) LazyFacts(in Inputs) (FactsFunc, error) {
	extra, err := in.givenFacts()
	if err != nil {
		return nil, err
	}
	var once sync.Once
	var all model.Facts

	return func(ctx context.Context) (model.Facts, error) {
		once.Do(func() { all = e.gatherFacts(ctx, in, extra) })
		return all, nil
	}, nil
}

// Loader returns a loader of manifests for a command that changes nothing.
func (e *Env) Loader(facts FactsFunc) *manifest.Loader {
	return manifest.NewLoader(e.LoaderOptions(facts))
}

// LoaderOptions are the options of Loader.
func (e *Env) LoaderOptions(facts FactsFunc) manifest.Options {
	return manifest.Options{
		Types:         e.Types,
		Facts:         facts,
		Environ:       e.environFile.environ(e.Log),
		Registrations: Registrations(e.Log, e.Store),
		Warn:          func(w model.Problem) { e.Log.Warn(w.Error()) },
		Stdin:         e.Stdin,
		KV: func(ctx context.Context, bucket, key string) ([]byte, error) {
			store, err := e.Store(ctx)
			if err != nil {
				return nil, err
			}
			return kvstore.NewContent(store).KVGet(ctx, bucket, key)
		},
		Object: func(ctx context.Context, bucket, name string) (io.ReadCloser, error) {
			store, err := e.Store(ctx)
			if err != nil {
				return nil, err
			}
			return kvstore.NewContent(store).Object(ctx, bucket, name)
		},
		// Only commands that change the machine use the state directory.
		Unpack: func(ctx context.Context, r io.Reader) (string, func() error, error) {
			return unpack(ctx, r, func() (string, error) { return os.MkdirTemp("", "muster-bundle-") })
		},
	}
}

// UnpackForRun returns a function that unpacks a bundle into a directory where the next run finds the files
// of a killed run.
func UnpackForRun(h *host.Host) func(context.Context, io.Reader) (dir string, cleanup func() error, err error) {
	return func(ctx context.Context, r io.Reader) (string, func() error, error) {
		return unpack(ctx, r, func() (string, error) { return h.TempDir("bundle") })
	}
}

func unpack(ctx context.Context, r io.Reader, makeDir func() (string, error)) (dir string, cleanup func() error, err error) {
	dir, err = makeDir()
	if err != nil {
		return "", nil, err
	}
	cleanup = func() error { return paths.RemoveTree(context.WithoutCancel(ctx), dir) }
	if err := archive.Unpack(ctx, r, dir, archive.Limits{}); err != nil {
		_ = cleanup()
		return "", nil, err
	}

	return dir, cleanup, nil
}

// Environ returns the environment for expressions.
func Environ() map[string]string {
	out := map[string]string{}
	for _, pair := range command.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		out[name] = value
	}

	return out
}
