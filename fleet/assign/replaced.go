package assign

import (
	"slices"

	"github.com/musterfleet/muster/model"
)

// Replacement returns the newest stored revision of an assignment if it replaced another revision: it is
// later, and removes the assignment or has other content. all is sorted.
func Replacement(all []model.Entry, revision uint64) (by model.Entry, is bool) {
	if len(all) == 0 || all[len(all)-1].Revision <= revision {
		return model.Entry{}, false
	}
	by = all[len(all)-1]
	at := slices.IndexFunc(all, func(e model.Entry) bool { return e.Revision == revision })

	return by, by.Deleted || at < 0 || !sameContent(by.Key, by.Value, all[at].Value)
}
