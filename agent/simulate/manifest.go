package simulate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Manifest is a resolved assignment. Nodes share it; it is immutable.
type Manifest struct {
	Digest string
	Noop   bool
	// Expires is the time at which the assignment expires; zero means never.
	Expires   time.Time
	Resources []Resource
}

// Resource is one resource of a manifest.
type Resource struct {
	Ref                     model.Ref
	Alias, Ensure, Provider string
	Source                  model.Position
	// Properties are nil for a sensitive resource.
	Properties json.RawMessage
	Sensitive  bool
}

// changes has the changes of each resource of a manifest, in order; nil for an unchanged resource.
type changes [][]model.Change

// maxCompared is the maximum number of cached comparisons.
const maxCompared = 1000

// comparisons caches the changes between two manifests, because many nodes need them.
type comparisons struct {
	mu   sync.Mutex
	done map[[2]*Manifest]changes
}

// between returns the changes from the manifest before to the manifest after. before may be nil.
func (c *comparisons) between(before, after *Manifest) changes {
	c.mu.Lock()
	defer c.mu.Unlock()
	pair := [2]*Manifest{before, after}
	if out, known := c.done[pair]; known {
		return out
	}
	if c.done == nil || len(c.done) >= maxCompared {
		c.done = map[[2]*Manifest]changes{}
	}
	c.done[pair] = compare(before, after)

	return c.done[pair]
}

func compare(before, after *Manifest) changes {
	known := map[model.Ref]*Resource{}
	if before != nil {
		for i := range before.Resources {
			known[before.Resources[i].Ref] = &before.Resources[i]
		}
	}
	out := make(changes, len(after.Resources))
	for i := range after.Resources {
		r := &after.Resources[i]
		if old := known[r.Ref]; old == nil || !bytes.Equal(old.Properties, r.Properties) {
			out[i] = []model.Change{r.change(old)}
		}
	}

	return out
}

// change returns the change that brings a resource into its state, with the message of its type. old
// is the earlier resource, or nil.
func (r *Resource) change(old *Resource) model.Change {
	switch r.Ref.Type {
	case "file":
		return r.fileChange(old)
	case "package":
		return model.Change{Action: "install", Message: "Would have installed", Property: "ensure", From: model.EnsureAbsent, To: cmp.Or(r.Ensure, model.EnsurePresent)}
	case "service":
		return model.Change{Action: "start", Message: "Would have started", Property: "ensure", From: "stopped", To: cmp.Or(r.Ensure, "running")}
	case "exec":
		return model.Change{Action: "execute", Message: "Would have executed"}
	default:
		return model.Change{Action: "store", Message: "Would have created it", Property: "ensure", From: model.EnsureAbsent, To: cmp.Or(r.Ensure, model.EnsurePresent)}
	}
}

func (r *Resource) fileChange(old *Resource) model.Change {
	if r.Ensure == "directory" {
		return model.Change{Action: "create_directory", Message: "Would have created directory", Property: "ensure", From: model.EnsureAbsent, To: r.Ensure}
	}
	before, after := resource.DiffContent{Absent: true}, r.content()
	out := model.Change{Action: "store", Message: "Would have created the file", Property: "content", From: model.EnsureAbsent, To: resource.DigestWord(after.Digest)}
	if old != nil {
		before = old.content()
		out.Message, out.From = "Would have updated the file", resource.DigestWord(before.Digest)
	}
	if !r.Sensitive {
		out.Diff = resource.Diff(r.Ref.Name, before, after)
	}

	return out
}

// content returns the content that a file has.
func (r *Resource) content() resource.DiffContent {
	var known struct{ Content string }
	_ = json.Unmarshal(r.Properties, &known) // empty file

	return contentOf(known.Content)
}

func contentOf(text string) resource.DiffContent {
	digest := strings.TrimPrefix(model.DigestOf([]byte(text)), model.DigestPrefix)

	return resource.DiffContent{Snippet: resource.SnippetOf(text), Size: int64(len(text)), Digest: digest}
}

// drifted returns the change that repairs a drifted resource. by is a line that was added to a file.
func (r *Resource) drifted(by string) model.Change {
	if r.Ref.Type != "file" || r.Ensure == "directory" {
		return r.change(r)
	}
	after := r.content()
	before := contentOf(after.Text + by + "\n")
	out := model.Change{Action: "store", Message: "Would have updated the file", Property: "content", From: resource.DigestWord(before.Digest), To: resource.DigestWord(after.Digest)}
	if !r.Sensitive {
		out.Diff = resource.Diff(r.Ref.Name, before, after)
	}

	return out
}
