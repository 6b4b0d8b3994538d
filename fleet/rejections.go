package fleet

import (
	"cmp"
	"strings"

	"github.com/musterfleet/muster/model"
)

// refusedPrefix is the prefix of a rejection's reason. Nodes publish no separate field for it.
const refusedPrefix = string(model.OutcomeRefused) + ": "

// rejected reports whether a node rejected the newest revision.
func rejected(m *model.ManifestState) bool {
	return m.Outcome == model.OutcomeRefused || strings.HasPrefix(m.Late, refusedPrefix)
}

// rejection returns the reason of a rejection.
func rejection(m *model.ManifestState) string {
	return said(cmp.Or(strings.TrimPrefix(m.Late, refusedPrefix), string(StatusRejected)))
}

// late returns the reason why the newest revision is not active, in the word of the statuses.
func late(m *model.ManifestState) string {
	if reason, ok := strings.CutPrefix(m.Late, refusedPrefix); ok {
		return string(StatusRejected) + ": " + said(reason)
	}

	return said(m.Late)
}

// Rejection is the reason why a node rejected the newest revision of a key.
type Rejection struct {
	Node   string `json:"node"`
	Reason string `json:"reason"`
}

// Rejections returns the nodes that rejected a revision, or would not accept their active revision again, by
// node.
func Rejections(e model.Entry, nodes []model.Node) []Rejection {
	var out []Rejection
	for _, n := range nodes {
		if m := stateOf(&e, &n); rejected(&m) && max(m.Seen, m.Revision) == e.Revision {
			out = append(out, Rejection{n.Node, rejection(&m)})
		}
	}

	return out
}
