package manifest

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// session is what one Resolve, and the late properties that follow from it, know.
type session struct {
	loader *Loader
	doc    *Document
	dir    string
	// parent includes the document, with the resource by and the path prefix; nil
	// for the one that was asked for.
	parent *session
	by     *resource.Resource
	prefix string
	// leaving are the manifests that are left out and lead to the document.
	leaving []string
	// holds is what holds for the resources of the document.
	holds resource.Scope
	// defaults hold for its resources that do not say otherwise.
	defaults model.Common
	// external are the data that win over those of the document and all it includes.
	external map[string]any
	*shared

	mu       sync.Mutex
	facts    map[string]any
	factsErr error
	// asked says that the facts were asked for; they are asked for once.
	asked bool
	// factsTold says that their failure was reported.
	factsTold bool
	// dynamic says that something other than the document and data went in.
	dynamic  bool
	programs map[string]*program
	// cache holds the files and keys that were read.
	cache map[string]string

	// secrets are all that were seen so far, also within what is secret as a whole.
	secrets []model.Secret
	isKnown map[model.Secret]bool

	// absent says that the node the manifest is for is not there to be asked (Check);
	// unsure that something depends on it.
	absent, unsure bool
	// relative are the files that expressions read beside the manifest, declared
	// the properties of resources; both are kept for Check alone.
	relative []string
	declared []resource.Value
	// includedFiles are the files that included manifests name, and these themselves.
	includedFiles []File
}

// shared is what a document and all that it includes have in common.
type shared struct {
	// provided are the paths that resources declared so far bring.
	provided map[string]model.Ref
	// aliases maps an alias to the reference it stands for.
	aliases map[model.Ref]model.Ref
	// included are the resources whose manifests were read.
	included []*resource.Resource
}

// clone gives what can be added to for one run: another one begins anew.
func (s *shared) clone() *shared {
	return &shared{maps.Clone(s.provided), maps.Clone(s.aliases), slices.Clone(s.included)}
}

func (l *Loader) session(doc *Document, in Inputs) *session {
	s := &session{
		loader: l, doc: doc, dir: in.Dir, external: in.Data, shared: &shared{provided: map[string]model.Ref{}, aliases: map[model.Ref]model.Ref{}},
		holds: resource.Scope{Dir: in.Dir, MaxDepth: cmp.Or(in.MaxDepth, DefaultMaxDepth)}, defaults: model.Common{Drift: in.Drift},
		programs: map[string]*program{}, cache: map[string]string{}, isKnown: map[model.Secret]bool{},
	}
	if in.Facts != nil {
		s.facts, s.asked = in.Facts, true
	}

	return s
}

// program compiles an expression, once.
func (s *session) program(source string, withValue bool) *program {
	key := source
	if withValue {
		key = nameValue + "\x00" + source
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, have := s.programs[key]; have {
		return p
	}
	p := compile(source, withValue)
	s.programs[key] = p
	for _, name := range []string{nameFacts, nameEnviron, "now"} {
		s.dynamic = s.dynamic || p.names[name]
	}

	return p
}

var errNoFacts = errors.New("not available here")

// getFacts asks for the facts, once.
func (s *session) getFacts(ctx context.Context) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dynamic = true
	if s.asked {
		return s.facts, s.factsErr
	}
	s.asked = true
	if s.parent != nil {
		s.facts, s.factsErr = s.parent.getFacts(ctx)
		return s.facts, s.factsErr
	}
	if s.loader.opts.Facts == nil {
		s.factsErr = errNoFacts
		return nil, s.factsErr
	}
	facts, err := s.loader.opts.Facts(ctx)
	s.facts, s.factsErr = facts, err

	return s.facts, s.factsErr
}

// failed makes a failure of an error. That the facts cannot be had is said once.
func (s *session) failed(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{message: exprMessage(err), sure: isSyntax(err)}
	var hinted hintedError
	if errors.As(err, &hinted) {
		f.hint = hinted.hint
	}
	var file *fs.PathError
	if errors.As(err, &file) && errors.Is(err, fs.ErrNotExist) {
		f.missing = file.Path
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.factsErr != nil && errors.Is(err, s.factsErr) {
		f.known, s.factsTold = s.factsTold, true
	}

	return f
}

// isSyntax reports whether a template is invalid on every node.
func isSyntax(err error) bool {
	var bad *template.Error

	return errors.As(err, &bad) && bad.Syntax
}
