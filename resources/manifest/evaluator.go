package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/expr-lang/expr/types"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// World is what the expressions of one document ask for, and the answers.
type evaluator struct {
	Opts *Options
	Doc  *Document
	// Dir is the directory of the document; empty when it has none. Author is who
	// may change what it has evaluated.
	Dir    string
	Author paths.Author
	// Outer is that of the document which includes this one; it has the facts.
	Outer *evaluator
	// Data are the resolved data of the document.
	Data map[string]any
	// Provided returns what the resources declared so far bring, by PathNeed.
	Provided func() map[string]model.Ref
	// Aliases are the references by their aliases.
	Aliases map[model.Ref]model.Ref
	// Sensitive are the resources whose values are not shown, nor the files that they provide.
	Sensitive map[model.Ref]bool

	// Printed are the values that a template printed into the document; nil for none.
	Printed *printedValues

	mu    sync.Mutex
	facts knownFacts
	// Dynamic reports whether something other than the document and data went in.
	Dynamic  bool
	programs map[string]*expression.Program
	// signature is what programs are checked against.
	signature func() types.Map
	// cache holds the files and keys that were read.
	cache map[string]string
	// untrusted is why others may change a file that readFile returned, here or in external data; nil if there is none.
	untrusted atomic.Pointer[error]
	// secrets are all that were seen so far, also within what is secret as a whole.
	secrets []model.Secret
	isKnown map[model.Secret]bool

	// warnings are what expressions do although they are valid, by their subject.
	warnings map[string]model.Problem

	// Absent reports whether the node the manifest is for is not there to be asked (Check);
	// Unsure whether something depends on it.
	ForOtherNode, Unsure bool
	// Relative are the files that expressions read beside the manifest, for Check alone.
	Relative []string
	// inputs are the paths of the input files. The outermost World has them.
	inputs map[string]struct{}
}

// knownFacts are the facts once they were asked for.
type knownFacts struct {
	asked bool
	all   map[string]any
	err   error
	// reported reports whether err was.
	reported bool
}

// NewWorld returns the world of a document in a directory, by its author.
func newEvaluator(opts *Options, doc *Document, dir string, author paths.Author) *evaluator {
	return &evaluator{Opts: opts, Doc: doc, Dir: dir, Author: author, programs: map[string]*expression.Program{}, signature: sync.OnceValue(signature), cache: map[string]string{}, isKnown: map[model.Secret]bool{}, warnings: map[string]model.Problem{}}
}

// Program compiles an expression, once.
func (w *evaluator) Program(source string, withValue bool) *expression.Program {
	key := source
	if withValue {
		key = expression.NameValue + "\x00" + source
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, have := w.programs[key]; have {
		return p
	}
	p := w.compile(source, withValue)
	w.programs[key] = p
	for _, name := range []string{expression.NameFacts, expression.NameEnviron, "now"} {
		w.Dynamic = w.Dynamic || p.Names[name]
	}

	return p
}

var errNoFacts = errors.New("not available here")

// getFacts asks for the facts, once.
func (w *evaluator) getFacts(ctx context.Context) (map[string]any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Dynamic = true
	if w.facts.asked {
		return w.facts.all, w.facts.err
	}
	w.facts.asked = true
	switch {
	case w.Outer != nil:
		w.facts.all, w.facts.err = w.Outer.getFacts(ctx)
	case w.Opts.Facts == nil:
		w.facts.err = errNoFacts
	default:
		w.facts.all, w.facts.err = w.Opts.Facts(ctx)
	}

	return w.facts.all, w.facts.err
}

// SetFacts has expressions see facts that were given.
func (w *evaluator) SetFacts(facts model.Facts) { w.facts.all, w.facts.asked = facts, true }

// Failed makes a failure of an error. That the facts cannot be had is said once.
func (w *evaluator) Failed(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Message: expression.ExprMessage(err), Hint: expression.HintOf(err)}
	var bad *template.Error
	f.sure = errors.As(err, &bad) && bad.Syntax
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

// Learn notes secrets, for whoever must recognise them in the texts of others:
// all but what only came of one.
func (w *evaluator) Learn(secrets ...model.Secret) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, secret := range secrets {
		if !secret.IsDerived() && !w.isKnown[secret] {
			w.isKnown[secret] = true
			w.secrets = append(w.secrets, secret)
		}
	}
}

// Secrets returns the secrets noted so far, each once.
func (w *evaluator) Secrets() []model.Secret {
	w.mu.Lock()
	defer w.mu.Unlock()

	return slices.Clone(w.secrets)
}

// SetDynamic notes that something other than the document and data went in.
func (w *evaluator) SetDynamic() {
	w.mu.Lock()
	w.Dynamic = true
	w.mu.Unlock()
}

// NoteInput records a file as an input of the document.
func (w *evaluator) NoteInput(path string) {
	for w.Outer != nil {
		w = w.Outer
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inputs == nil {
		w.inputs = map[string]struct{}{}
	}
	w.inputs[path] = struct{}{}
}

// Inputs returns the sorted paths of the input files of the document and of the documents that
// it includes.
func (w *evaluator) Inputs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()

	return slices.Sorted(maps.Keys(w.inputs))
}

// fileUse is what a file is read for.
type fileUse string

const (
	asData fileUse = "file:"
	// evaluated are templates, which the author of the document must have written.
	evaluated fileUse = "template:"
)

// readFile is the function readFile. A file that an earlier resource of the
// manifest makes has to wait for it, so while nothing is running it is late.
func (w *evaluator) readFile(path string, use fileUse, running bool) (string, error) {
	w.SetDynamic()
	if err := w.elsewhere(path); err != nil {
		return "", err
	}
	if !filepath.IsAbs(path) && w.Dir == "" {
		return "", expression.WithHint(fmt.Errorf("%q is relative, and this manifest has no directory", path), "deliver manifest and files as a bundle, or give an absolute path")
	}
	path = w.beside(path)
	read := func() (string, error) {
		text, untrusted := files.ReadTrusted(path, w.Opts.MaxBytes, w.Author)
		if untrusted == nil || use == evaluated {
			return string(text), untrusted
		}
		w.Distrust(untrusted)
		text, err := files.Read(path, w.Opts.MaxBytes)
		return string(text), err
	}
	if running {
		return read()
	}
	if ref, ok := w.Provided()[resource.PathNeed(path)]; ok {
		return "", waitFor(expression.NameReadFile, ref)
	}
	w.NoteInput(path)

	return w.cached(string(use)+path, read)
}

// Distrust notes that others may change a part of the values of the document, and why.
func (w *evaluator) Distrust(reason error) { w.untrusted.CompareAndSwap(nil, &reason) }

// Distrusted returns why others may change a part of the values of the document, or of a document that includes it; nil if
// they may not.
func (w *evaluator) Distrusted() error {
	for ; w != nil; w = w.Outer {
		if reason := w.untrusted.Load(); reason != nil {
			return *reason
		}
	}

	return nil
}

// checkText refuses to evaluate a text that can have parts of a file that others may change:
// the document has read such a file, and the text is no literal of the expression.
func (sc *scope) checkText(text string) error {
	if sc.program.HasLiteral(text) {
		return nil
	}
	if reason := sc.Distrusted(); reason != nil {
		return fmt.Errorf("the text may have parts of a file that readFile returned: %w", reason)
	}

	return nil
}

// beside returns the whole path of a file.
func (w *evaluator) beside(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.Dir, path)
	}

	return filepath.Clean(path)
}

// cached reads the value of a key once, so that it is the same in the whole document.
func (w *evaluator) cached(key string, get func() (string, error)) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v, have := w.cache[key]; have {
		return v, nil
	}
	v, err := get()
	if err == nil {
		w.cache[key] = v
	}

	return v, err
}

// kvGet is the function kvGet.
func (w *evaluator) kvGet(ctx context.Context, bucket, key string) (string, error) {
	w.SetDynamic()
	if w.Opts.KV == nil {
		return "", expression.WithHint(fmt.Errorf("kvGet %w", errNoNATS), noNATSHint)
	}

	return w.cached("kv:"+bucket+"\x00"+key, func() (string, error) {
		v, err := w.Opts.KV(ctx, bucket, key)
		if err != nil {
			return "", fmt.Errorf("kvGet %s/%s: %w", bucket, key, err)
		}
		return string(v), nil
	})
}

// ErrElsewhere is a file that only the node has.
var errOnOtherNode = errors.New("it is the node's")

// elsewhere notes the files that expressions read beside the manifest, and
// keeps them from reading others of this machine when the manifest is for another.
func (w *evaluator) elsewhere(path string) error {
	switch {
	case !w.ForOtherNode:
		return nil
	case filepath.IsAbs(path):
		return errOnOtherNode
	}
	w.mu.Lock()
	w.Relative = append(w.Relative, path)
	w.mu.Unlock()

	return nil
}

// Tolerates reports whether a failure is left to the node: it can have what is missing
// here. From then on nothing that follows from it is sure.
func (w *evaluator) Tolerates() bool {
	w.Unsure = w.Unsure || w.ForOtherNode

	return w.ForOtherNode
}
