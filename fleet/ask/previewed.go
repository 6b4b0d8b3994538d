package ask

import (
	"cmp"
	"slices"

	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// Previewed is the assignment to preview.
type Previewed struct {
	// Key and Revision identify the stored assignment, empty for a new manifest.
	Key      string `json:"key,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	// Name is the name of the manifest, and Value the assigned value.
	Name  string `json:"name"`
	Value string `json:"-"`
}

// check returns an error if the assignment cannot be previewed.
func (p *Previewed) check() error {
	switch {
	case p == nil || p.Value == "":
		return refuse("there is nothing to preview: choose an assignment, or write a manifest")
	case len(p.Value) > MaxPreviewed:
		return refuse("the previewed value has %d bytes, at most %d are sent: use muster fleet preview --bundle", len(p.Value), MaxPreviewed)
	}
	if err := model.CheckName(p.Name); err != nil {
		return refuse("%v", err)
	}
	key := cmp.Or(p.Key, model.Key(model.GroupFamily(model.GroupAll), p.Name))
	if problems := assign.ProblemsOf(key, []byte(p.Value)); len(problems) > 0 {
		return refuse("%s", assign.Invalid(problems))
	}

	return nil
}

// MaxPreviewed is the maximum length of a previewed value, because nodes receive it in one message. maxSent limits the
// messages to all nodes together, because signed messages are held in memory.
const (
	MaxPreviewed = 256 << 10
	maxSent      = 128 << 20
)

// RevisionOf returns a revision of an assignment to preview, the newest for 0. The error is a *Refusal.
func RevisionOf(key string, all []model.Entry, revision uint64) (*Previewed, error) {
	for _, e := range slices.Backward(all) {
		if revision != 0 && e.Revision != revision {
			continue
		}
		value, err := signed.Content(e.Value)
		_, name, _ := model.SplitKey(key)
		switch {
		case err != nil:
			return nil, refuse("%v", err)
		case e.Deleted || e.Refused != "":
			return nil, refuse("revision %d of %s is a removal or invalid", e.Revision, key)
		}

		return &Previewed{Key: key, Revision: e.Revision, Name: name, Value: string(value)}, nil
	}
	if revision == 0 {
		return nil, refuse("the bucket has no assignment %s", key)
	}

	return nil, refuse("the bucket does not have revision %d of %s any more", revision, key)
}
