package page

import (
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/fleet/web/page/texts"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// addressOf returns where a service is.
func addressOf(r registration.Registration) string {
	return texts.Row(r.Endpoint())
}

// ttlOf returns the time to live of a registration.
func ttlOf(r registration.Registration) string {
	if r.TTL == model.Never {
		return "until withdrawn"
	}

	return texts.Duration(r.TTL.Std())
}

// Times is a time range: from Since until before Until, zero for no bound.
type Times struct{ Since, Until time.Time }

// isSet reports whether there is a bound.
func (t Times) isSet() bool { return t != Times{} }

// AuditData is what the page of the revisions of assignments shows.
type AuditData struct {
	Search   string
	Times    Times
	Offset   int
	Rows     []view.AssignmentChange
	Matching int
	// Terms are those of the revisions that are assigned now.
	Terms map[uint64]*model.Terms
	// More is that the bucket has others, which are not among those that are searched.
	More bool
}

// leftOut says whether there are changes that are not shown.
func leftOut(more bool) string {
	if more {
		return "it has more than these: the newest are shown, and of each node or group a quarter at most while others have some"
	}

	return "these are all"
}

// isKey reports whether nodes read a key, so that it has a history.
func isKey(key string) bool { return model.CheckKey(key) == nil }

// revisionURL is the place of a revision in the history of its key.
func revisionURL(c view.AssignmentChange) templ.SafeURL {
	return AuditURL(c.Key) + "#" + revisionID(c.Revision)
}

// revisionID is the id of a revision on the page of its history.
func revisionID(revision uint64) templ.SafeURL {
	return templ.SafeURL("revision-" + strconv.FormatUint(revision, 10))
}

func (d AuditData) pageURL(from int) templ.SafeURL {
	return at(values("q", d.Search, "since", fieldTime(d.Times.Since), "until", fieldTime(d.Times.Until), "offset", offset(from)), "audit")
}

// aboutURL is the page of whom a control key is about.
func aboutURL(key string) templ.SafeURL {
	family, _, _ := model.SplitKey(key)
	if group, is := strings.CutPrefix(family, "group."); is {
		return NodesURL(view.NodeQuery{On: "group(" + strconv.Quote(group) + ")"})
	}

	return NodeURL(strings.TrimPrefix(family, "node."))
}

// isAbout reports whether a control key is about a node or a group, which is not so of every key that somebody may
// write.
func isAbout(key string) bool { return targetOf(key) != "" }

// ManifestsData is what the page of all manifests shows.
type ManifestsData struct {
	Progress view.Progress
	Search   string
	Offset   int
	Rows     []view.ManifestRow
	Matching int
}

func (d ManifestsData) pageURL(from int) templ.SafeURL {
	return at(values("q", d.Search, "offset", offset(from)), "manifests")
}

// Revision is a revision of an assignment, and what it changed.
type Revision struct {
	Entry model.Entry
	// What says what Lines are, or why there are none.
	What string
	// Lines are those of a diff, or of the first revision.
	Lines []string
}

// maxLines is how many lines of a revision are shown.
const maxLines = 400

// lines returns the lines by what they are.
func (r Revision) lines() []line {
	shown := r.Lines[:min(len(r.Lines), maxLines)]
	var out []line
	if strings.HasPrefix(r.What, "Changes") {
		out = diffLines(texts.Cut(strings.Join(shown, "\n"), texts.MaxText))
	} else {
		for _, l := range shown {
			out = append(out, line{text: texts.Cut(l, texts.MaxRow)})
		}
	}
	if more := len(r.Lines) - len(shown); more > 0 {
		out = append(out, line{"hunk", texts.Count(more, "line") + " more"})
	}

	return out
}
