package manifest

import (
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// unknownReferences finds what the resources of a document that is not valid
// refer to and it does not declare. The engine finds the same in a valid one,
// but then it is too late to report everything at once.
func (b *build) unknownReferences(all []declared, known func(model.Ref) bool) model.Problems {
	var problems model.Problems
	for _, d := range all {
		for _, key := range []string{"require", "subscribe"} {
			refs, _ := d.properties.Get(key)
			for _, item := range refs.Items {
				ref, err := model.ParseRef(item.Text)
				if _, declared := b.known[ref]; declared || err != nil || !item.IsScalar() || (known != nil && known(ref)) || strings.Contains(item.Text, "${") || strings.Contains(item.Text, "{{") {
					continue
				}
				problems.Add(item.Pos, b.nearestReference(ref), "`%s` names %s, which is not declared", key, ref)
			}
		}
	}

	return problems
}

func (b *build) nearestReference(ref model.Ref) string {
	names := make([]string, 0, len(b.known))
	for k := range b.known {
		names = append(names, k.String())
	}
	slices.Sort(names)
	if near := resource.Nearest(ref.String(), names); near != "" {
		return "did you mean " + near + "?"
	}

	return ""
}
