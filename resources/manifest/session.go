package manifest

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/resource"
)

// session is what one Resolve, and the late properties that follow from it, know.
type session struct {
	*evaluator
	loader *Loader
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
	// common is what it shares with those that it includes.
	common *shared

	// declared are the properties of resources, kept for Check alone.
	declared []document.Value
	// includedFiles are the files that included manifests name, and these themselves.
	includedFiles []File
}

// shared is what a document and all that it includes have in common.
type shared struct {
	// paths are those that resources declared so far bring; bringing are the
	// resources that were not asked yet, for few manifests need to know.
	paths    map[string]model.Ref
	bringing []*resource.Resource
	// aliases maps an alias to its reference.
	aliases map[model.Ref]model.Ref
	// sensitive are the resources whose values are not shown.
	sensitive map[model.Ref]bool
	// included are resources with a manifest that was read.
	included []*resource.Resource
	// including are all resources that include a manifest, without repetitions.
	including []*resource.Resource
	// reads counts the manifests that were read for an inclusion. isFull is set after the problem of resource.MaxInclusions.
	reads  int
	isFull bool
}

// instance returns the number of a resource that includes a manifest among those with its name. Resources that are
// the same share a number.
func (s *shared) instance(res *resource.Resource) int {
	last := 0
	for _, other := range s.including {
		if other.Type != res.Type || other.Meta().Name != res.Meta().Name {
			continue
		}
		if other.IsSame(res) {
			return other.Instance
		}
		last = max(last, other.Instance)
	}
	s.including = append(s.including, res)

	return last + 1
}

// clone returns a copy for one run: what that adds is not seen by the next.
func (s *shared) clone() *shared {
	out := *s
	out.paths, out.aliases, out.sensitive = maps.Clone(s.paths), maps.Clone(s.aliases), maps.Clone(s.sensitive)
	out.bringing, out.included, out.including = slices.Clone(s.bringing), slices.Clone(s.included), slices.Clone(s.including)

	return &out
}

// provided returns the paths that resources declared so far bring, each by the first.
func (s *shared) provided() map[string]model.Ref {
	for _, res := range s.bringing {
		for _, p := range res.Type.Relations(res.Spec).Provides {
			if _, taken := s.paths[p.What]; !taken && !p.Implicit && strings.HasPrefix(p.What, resource.PathNeed("")) {
				s.paths[p.What] = res.Ref()
			}
		}
	}
	s.bringing = nil

	return s.paths
}

func (l *Loader) session(doc *Document, in Inputs) *session {
	s := &session{
		loader: l, evaluator: newEvaluator(&l.opts, doc, in.Dir, in.Author), external: in.Data,
		holds: resource.Scope{Dir: in.Dir, Author: in.Author, MaxDepth: cmp.Or(in.MaxDepth, DefaultMaxDepth)}, defaults: model.Common{Drift: in.Drift},
	}
	if in.Untrusted != nil {
		s.Distrust(in.Untrusted)
	}
	s.share(&shared{paths: map[string]model.Ref{}, aliases: map[model.Ref]model.Ref{}, sensitive: map[model.Ref]bool{}})
	if in.Facts != nil {
		s.SetFacts(in.Facts)
	}

	return s
}

// share has the document know what others declare.
func (s *session) share(common *shared) {
	s.common, s.Provided, s.Aliases, s.Sensitive = common, common.provided, common.aliases, common.sensitive
}
