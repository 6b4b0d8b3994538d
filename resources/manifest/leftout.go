package manifest

import (
	"context"
	"maps"
	"slices"

	"github.com/musterfleet/muster/model"
)

// leaveOut returns the names of all that a manifest declares which control leaves
// out: nothing comes of it, but others may refer to it. They are nil when not
// all of them are known, as where it cannot be read here. What else is wrong with
// it does not matter.
func (b *build) leaveOut(ctx context.Context, i inclusion) map[model.Ref]bool {
	s := b.session
	var err error
	if i.path, err = s.besideManifest(i.Meta().Name); err != nil || s.holds.Depth >= s.holds.MaxDepth || slices.Contains(s.leaving, i.path) {
		return nil
	}
	if _, later := s.broughtLater(i.path, b.out.Resources); later {
		return nil
	}
	child, err := s.include(ctx, &i, i.Spec, s.common.clone())
	if err != nil || child.openEnded || child.leftOpen || len(child.session.Doc.Problems()) > 0 {
		return nil
	}
	out := child.allLeftOut()
	for _, l := range child.links {
		for _, name := range l.Names() {
			out[name] = true
		}
	}

	return out
}

// allLeftOut returns the references to what a manifest declares that is left out.
func (b *build) allLeftOut() map[model.Ref]bool {
	out := map[model.Ref]bool{}
	for _, res := range b.out.Resources {
		maps.Copy(out, res.LeftOut)
	}

	return out
}
