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

// session is the state of one Resolve and of its deferred properties.
type session struct {
	*evaluator
	loader *Loader
	// parent is the session of the including document, by the including resource, prefix the path
	// of the document as named there. They are unset for the root document.
	parent *session
	by     *resource.Resource
	prefix string
	// excludedPaths are the paths of the excluded manifests that lead to the document.
	excludedPaths []string
	// resourceScope is the scope of the resources of the document.
	resourceScope resource.Scope
	// defaults are the defaults of the common properties.
	defaults model.Common
	// external are the data that win over the data of the document and of its child manifests.
	external map[string]any
	// common is shared with the child manifests.
	common *shared

	// declared are the properties of resources, for Check.
	declared []document.Value
	// includedFiles are the child manifests and the files that they name.
	includedFiles []File
}

// shared is the common state of a document and its child manifests.
type shared struct {
	// paths are the paths that the declared resources provide. uncollected are the resources whose
	// paths are not collected yet, because few manifests need them.
	paths       map[string]model.Ref
	uncollected []*resource.Resource
	// aliases maps an alias to its reference.
	aliases map[model.Ref]model.Ref
	// sensitive are the resources whose values are secret.
	sensitive map[model.Ref]bool
	// included are the resources whose manifest was read.
	included []*resource.Resource
	// including are all resources that include a manifest, without duplicates.
	including []*resource.Resource
	// reads counts the included manifests. isFull is set after the problem of
	// resource.MaxInclusions.
	reads  int
	isFull bool
}

// instance returns the number of an including resource among those with its name. Identical
// resources share a number.
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

// clone returns a copy for one run, so that its additions do not affect the next run.
func (s *shared) clone() *shared {
	out := *s
	out.paths, out.aliases, out.sensitive = maps.Clone(s.paths), maps.Clone(s.aliases), maps.Clone(s.sensitive)
	out.uncollected, out.included, out.including = slices.Clone(s.uncollected), slices.Clone(s.included), slices.Clone(s.including)

	return &out
}

// provided returns the paths that the declared resources provide, each with the first resource.
func (s *shared) provided() map[string]model.Ref {
	for _, res := range s.uncollected {
		for _, p := range res.Type.Relations(res.Spec).Provides {
			if _, taken := s.paths[p.What]; !taken && !p.Implicit && strings.HasPrefix(p.What, resource.PathNeed("")) {
				s.paths[p.What] = res.Ref()
			}
		}
	}
	s.uncollected = nil

	return s.paths
}

func (l *Loader) session(doc *Document, in Inputs) *session {
	s := &session{
		loader: l, evaluator: newEvaluator(&l.opts, doc, in.Dir, in.Author), external: in.Data,
		resourceScope: resource.Scope{Dir: in.Dir, Author: in.Author, MaxDepth: cmp.Or(in.MaxDepth, DefaultMaxDepth)}, defaults: model.Common{Drift: in.Drift},
	}
	if in.Untrusted != nil {
		s.distrust(in.Untrusted)
	}
	s.useShared(&shared{paths: map[string]model.Ref{}, aliases: map[model.Ref]model.Ref{}, sensitive: map[model.Ref]bool{}})
	if in.Facts != nil {
		s.setFacts(in.Facts)
	}

	return s
}

// useShared connects the session to the common state.
func (s *session) useShared(common *shared) {
	s.common, s.provided, s.aliases, s.sensitive = common, common.provided, common.aliases, common.sensitive
}
