package ask

import (
	"cmp"
	"slices"

	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
)

// Previewed is what would be assigned.
type Previewed struct {
	// Key and Revision are those of the assignment that it is from; without a key somebody wrote it.
	Key      string `json:"key,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	// Name is that of the manifest, Value what would be assigned under it.
	Name  string `json:"name"`
	Value string `json:"-"`
}

// check reports whether it can be previewed.
func (p *Previewed) check() error {
	switch {
	case p == nil || p.Value == "":
		return refuse("there is nothing to preview: choose an assignment, or write a manifest")
	case len(p.Value) > MaxPreviewed:
		return refuse("what is previewed has %d bytes, at most %d are sent: use muster fleet preview --bundle", len(p.Value), MaxPreviewed)
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

// MaxPreviewed is how many bytes may be previewed: nodes get it in one message. All of them together get
// maxSent at most, which is in memory where the messages are signed.
const (
	MaxPreviewed = 256 << 10
	maxSent      = 128 << 20
)

// RevisionOf returns what is previewed of a revision of an assignment, the newest for 0. The error is a *Refusal.
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
			return nil, refuse("revision %d of %s assigns nothing", e.Revision, key)
		}

		return &Previewed{Key: key, Revision: e.Revision, Name: name, Value: string(value)}, nil
	}
	if revision == 0 {
		return nil, refuse("the bucket has no assignment %s", key)
	}

	return nil, refuse("the bucket does not have revision %d of %s any more", revision, key)
}
