package manifest

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// evalOptions are what expressions may ask for. All but Types may be left out.
type evalOptions struct {
	// Types are the resource types whose outputs are known.
	Types resource.Types
	// Facts returns the facts of the node. It is called at most once a document.
	Facts func(ctx context.Context) (model.Facts, error)
	// Environ is what expressions see as Environ.
	Environ map[string]string
	// KV reads what kvGet asks for.
	KV func(ctx context.Context, bucket, key string) ([]byte, error)
	// Registrations returns what the function registrations asks for.
	Registrations ReadRegistrations
	// MaxBytes is the largest file that is read whole.
	MaxBytes int64
}

// ReadRegistrations gives the registrations that hold now; of a word that is *
// every one.
type ReadRegistrations func(ctx context.Context, cluster, protocol, service, address string) ([]model.Registration, error)

// world is what the expressions of one document ask for, and what came of it.
type world struct {
	opts *evalOptions
	doc  *Document
	// dir is the directory of the document; empty when it has none.
	dir string
	// outer is that of the document which includes this one; it has the facts.
	outer *world
	// provided are the paths that resources declared so far bring, aliases the references that aliases stand for.
	provided map[string]model.Ref
	aliases  map[model.Ref]model.Ref

	mu    sync.Mutex
	facts knownFacts
	// dynamic reports whether something other than the document and data went in.
	dynamic  bool
	programs map[string]*program
	// cache holds the files and keys that were read.
	cache map[string]string
	// secrets are all that were seen so far, also within what is secret as a whole.
	secrets []model.Secret
	isKnown map[model.Secret]bool

	// absent reports whether the node the manifest is for is not there to be asked (Check);
	// unsure whether something depends on it.
	absent, unsure bool
	// relative are the files that expressions read beside the manifest, for Check alone.
	relative []string
}

// knownFacts are the facts once they were asked for.
type knownFacts struct {
	asked bool
	all   map[string]any
	err   error
	// reported reports whether err was.
	reported bool
}

func newWorld(opts *evalOptions, doc *Document, dir string) *world {
	return &world{opts: opts, doc: doc, dir: dir, programs: map[string]*program{}, cache: map[string]string{}, isKnown: map[model.Secret]bool{}}
}

// program compiles an expression, once.
func (w *world) program(source string, withValue bool) *program {
	key := source
	if withValue {
		key = nameValue + "\x00" + source
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, have := w.programs[key]; have {
		return p
	}
	p := compileHere(source, withValue)
	w.programs[key] = p
	for _, name := range []string{nameFacts, nameEnviron, "now"} {
		w.dynamic = w.dynamic || p.names[name]
	}

	return p
}

var errNoFacts = errors.New("not available here")

// getFacts asks for the facts, once.
func (w *world) getFacts(ctx context.Context) (map[string]any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dynamic = true
	if w.facts.asked {
		return w.facts.all, w.facts.err
	}
	w.facts.asked = true
	switch {
	case w.outer != nil:
		w.facts.all, w.facts.err = w.outer.getFacts(ctx)
	case w.opts.Facts == nil:
		w.facts.err = errNoFacts
	default:
		w.facts.all, w.facts.err = w.opts.Facts(ctx)
	}

	return w.facts.all, w.facts.err
}

// setFacts has expressions see facts that were given.
func (w *world) setFacts(facts model.Facts) { w.facts.all, w.facts.asked = facts, true }

// failed makes a failure of an error. That the facts cannot be had is said once.
func (w *world) failed(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{message: exprMessage(err), hint: hintOf(err), sure: isSyntax(err)}
	var file *fs.PathError
	if errors.As(err, &file) && errors.Is(err, fs.ErrNotExist) {
		f.missing = file.Path
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.facts.err != nil && errors.Is(err, w.facts.err) {
		f.known, w.facts.reported = w.facts.reported, true
	}

	return f
}

// isSyntax reports whether a template is invalid on every node.
func isSyntax(err error) bool {
	var bad *template.Error

	return errors.As(err, &bad) && bad.Syntax
}

// learn notes secrets, for whoever must recognise them in the texts of others.
func (w *world) learn(secrets ...model.Secret) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, secret := range secrets {
		if !w.isKnown[secret] {
			w.isKnown[secret] = true
			w.secrets = append(w.secrets, secret)
		}
	}
}

// learnt gives the secrets noted so far, each once.
func (w *world) learnt() []model.Secret {
	w.mu.Lock()
	defer w.mu.Unlock()

	return slices.Clone(w.secrets)
}
