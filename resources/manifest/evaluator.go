package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// evaluator compiles and evaluates the expressions of one document, and caches what they read.
type evaluator struct {
	opts *Options
	doc  *Document
	// dir is the directory of the document, or empty. Author may change what the document
	// evaluates.
	dir    string
	author paths.Author
	// outer is the evaluator of the including document. The outermost evaluator has the facts.
	outer *evaluator
	// Data are the resolved data of the document.
	Data map[string]any
	// common is shared with the child manifests.
	common *shared

	// printed are the values that a template printed into the document, or nil.
	printed *printedValues

	mu    sync.Mutex
	facts knownFacts
	// dynamic reports whether the result depends on more than the document and its data.
	dynamic  bool
	programs map[string]*expression.Program
	// signature is the types of the names that programs may use.
	signature func() types.Map
	// cache contains the files, keys and registrations that were read.
	cache map[string]any
	// untrusted is the reason why others may change a file that readFile returned, here or in
	// external data; nil if there is none.
	untrusted atomic.Pointer[error]
	// secrets are all secrets seen so far, also parts of secret mappings and lists.
	secrets []model.Secret
	isKnown map[model.Secret]bool

	// warnings are the warnings about valid expressions, by subject.
	warnings map[string]model.Problem

	// forOtherNode reports whether the document is for another node (Check). unsure reports whether
	// something depends on that node.
	forOtherNode, unsure bool
	// relative are the files that expressions read beside the manifest, for Check.
	relative []string
	// inputs are the paths of the input files, in the outermost evaluator.
	inputs map[string]struct{}
}

type knownFacts struct {
	read bool
	all  map[string]any
	err  error
	// reported reports whether err was reported.
	reported bool
}

// use selects the additional names of an expression.
type use string

// The uses of expressions.
const (
	anywhere use = ""
	// ofValue is an expression of @validate.
	ofValue use = expression.NameValue
	// ofElement is an expression of an item or a group with each.
	ofElement use = expression.NameEach
)

// Program compiles an expression and caches the result.
func (w *evaluator) Program(source string, of use) *expression.Program {
	key := string(of) + "\x00" + source
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, have := w.programs[key]; have {
		return p
	}
	p := w.compile(source, of)
	w.programs[key] = p
	for _, name := range []string{expression.NameFacts, expression.NameEnviron, "now"} {
		w.dynamic = w.dynamic || p.Names[name]
	}

	return p
}

var errNoFacts = errors.New("not available here")

// getFacts returns the facts. It reads them once.
func (w *evaluator) getFacts(ctx context.Context) (map[string]any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dynamic = true
	if w.facts.read {
		return w.facts.all, w.facts.err
	}
	w.facts.read = true
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

// failed converts an error to a failure. It marks repeated errors of the facts as known.
func (w *evaluator) failed(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{message: expression.ExprMessage(err), hint: expression.HintOf(err)}
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

// learn records secrets, to redact them in other texts. It ignores values derived from secrets.
func (w *evaluator) learn(secrets ...model.Secret) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, secret := range secrets {
		if !secret.IsDerived() && !w.isKnown[secret] {
			w.isKnown[secret] = true
			w.secrets = append(w.secrets, secret)
		}
	}
}

// Secrets returns all recorded secrets.
func (w *evaluator) Secrets() []model.Secret {
	w.mu.Lock()
	defer w.mu.Unlock()

	return slices.Clone(w.secrets)
}

func (w *evaluator) setDynamic() {
	w.mu.Lock()
	w.dynamic = true
	w.mu.Unlock()
}

func (w *evaluator) noteInput(path string) {
	for w.outer != nil {
		w = w.outer
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

type fileUse string

const (
	asData fileUse = "file:"
	// A file that is evaluated is a template. It must be from the author of the document.
	evaluated fileUse = "template:"
)

// readFile implements the function readFile. Before the run, a file that an earlier resource
// provides is deferred until that resource has run.
func (w *evaluator) readFile(path string, use fileUse, running bool) (string, error) {
	w.setDynamic()
	if err := w.elsewhere(path); err != nil {
		return "", err
	}
	if !filepath.IsAbs(path) && w.dir == "" {
		return "", expression.WithHint(fmt.Errorf("%q is relative, and this manifest has no directory", path), "deliver manifest and files as a bundle, or give an absolute path")
	}
	path = w.beside(path)
	read := func() (string, error) {
		text, untrusted := files.ReadTrusted(path, w.opts.MaxBytes, w.author)
		if untrusted == nil || use == evaluated {
			return string(text), untrusted
		}
		w.distrust(untrusted)
		text, err := files.Read(path, w.opts.MaxBytes)
		return string(text), err
	}
	if running {
		return read()
	}
	if ref, ok := w.common.paths[resource.PathNeed(path)]; ok {
		return "", waitFor(expression.NameReadFile, ref)
	}
	w.noteInput(path)

	return cached(w, string(use)+path, read)
}

// distrust records why others may change a part of the values of the document.
func (w *evaluator) distrust(reason error) { w.untrusted.CompareAndSwap(nil, &reason) }

// distrusted returns why others may change a part of the values of the document or of its parents,
// or nil.
func (w *evaluator) distrusted() error {
	for ; w != nil; w = w.outer {
		if reason := w.untrusted.Load(); reason != nil {
			return *reason
		}
	}

	return nil
}

func (w *evaluator) beside(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.dir, path)
	}

	return filepath.Clean(path)
}

// cached reads the value of a key once per document.
func cached[T any](w *evaluator, key string, get func() (T, error)) (T, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v, have := w.cache[key].(T); have {
		return v, nil
	}
	v, err := get()
	if err == nil {
		w.cache[key] = v
	}

	return v, err
}

func (w *evaluator) kvGet(ctx context.Context, bucket, key string) (string, error) {
	w.setDynamic()
	if w.opts.KV == nil {
		return "", expression.WithHint(fmt.Errorf("kvGet %w", errNoNATS), noNATSHint)
	}

	return cached(w, "kv:"+bucket+"\x00"+key, func() (string, error) {
		v, err := w.opts.KV(ctx, bucket, key)
		if err != nil {
			return "", fmt.Errorf("kvGet %s/%s: %w", bucket, key, err)
		}
		return string(v), nil
	})
}

var errOnOtherNode = errors.New("only the node has the file")

// elsewhere records the files that expressions read beside the manifest. For another node it
// refuses other files.
func (w *evaluator) elsewhere(path string) error {
	switch {
	case !w.forOtherNode:
		return nil
	case filepath.IsAbs(path):
		return errOnOtherNode
	}
	w.mu.Lock()
	w.relative = append(w.relative, path)
	w.mu.Unlock()

	return nil
}

// tolerates reports whether a failure is ignored because the other node may have what is missing
// here. It marks the result as unsure.
func (w *evaluator) tolerates() bool {
	w.unsure = w.unsure || w.forOtherNode

	return w.forOtherNode
}

// noteData records that an expression reads paths of the data. It warns about a path that only a
// parent document sets.
func (sc *scope) noteData(paths ...[]string) {
	if sc.quiet || sc.phase == inData || sc.outer == nil {
		return
	}
	for _, path := range paths {
		name, parent := sc.onlyOutside(path)
		if parent == "" {
			continue
		}
		sc.warn("data."+name, fmt.Sprintf("`data.%s` is set in %s only", name, parent), notInherited)
	}
}

// warn adds a warning about a subject at the position of the scope, unless there already is one.
func (sc *scope) warn(subject, message, hint string) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if _, have := sc.warnings[subject]; !have {
		sc.warnings[subject] = model.Problem{Pos: sc.at, Message: message, Hint: hint}
	}
}

const notInherited = "child manifests do not inherit data: pass it with `data` of the apply resource"

// Warnings returns the warnings about valid expressions.
func (w *evaluator) Warnings() model.Problems {
	w.mu.Lock()
	defer w.mu.Unlock()

	var out model.Problems
	for _, subject := range slices.Sorted(maps.Keys(w.warnings)) {
		out = append(out, w.warnings[subject])
	}

	return out.Sorted()
}

// onlyOutside returns the first part of a path that is missing from the data, and the nearest
// parent document that sets it. The document is empty if no parent sets it.
func (sc *scope) onlyOutside(path []string) (name, document string) {
	for end := range path {
		part := path[:end+1]
		if _, ok := expression.Find(sc.data, part); ok {
			continue
		}
		for outer := sc.outer; outer != nil; outer = outer.outer {
			if _, ok := expression.Find(outer.Data, part); ok {
				return strings.Join(part, "."), outer.doc.Name()
			}
		}
		return "", ""
	}

	return "", ""
}

// outsideHint returns the remedy for a path, Data.a or data.a, that only a parent document sets.
func (sc *scope) outsideHint(path string) string {
	root, rest, _ := strings.Cut(path, ".")
	if !strings.EqualFold(root, expression.NameData) || sc.phase == inData {
		return ""
	}
	if _, parent := sc.onlyOutside(strings.Split(rest, ".")); parent != "" {
		return parent + " sets it, but " + notInherited
	}

	return ""
}

// dataRead matches the paths of data that a template reads.
var dataRead = regexp.MustCompile(`\b[Dd]ata(?:\.((?:\w+\.)*\w+)|\s*\[?\s*"(\w+)")`)

func (t *templates) noteTexts() {
	for _, text := range t.texts {
		for _, found := range dataRead.FindAllStringSubmatch(text, -1) {
			t.noteData(strings.Split(found[1]+found[2], "."))
		}
	}
}
