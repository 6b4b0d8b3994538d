package archive

import (
	"cmp"
	"context"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/resource"
)

// records is the folder of the records in the state directory.
const records = "archives"

// record is the state of an unpacked archive, in the state directory. With it, muster repeats an extraction
// that a kill interrupted, and knows the checksum of a removed archive. The zero value is no record.
type record struct {
	Archive  string `json:"archive"`
	Checksum string `json:"checksum"`
	// Extracted is set once the archive is unpacked completely.
	Extracted bool `json:"extracted"`
	// Invalid marks content with this checksum that is not an archive.
	Invalid bool `json:"invalid,omitempty"`
}

func (r record) isPending() bool { return r.Archive != "" && !r.Extracted }

// recall returns the record of an archive. A damaged record is a pending extraction, because unpacking once
// more loses nothing.
func recall(h *host.Host, name string) (record, error) {
	r, found, err := host.Recall[record](h, records, name)
	if found && r.Archive != name {
		r = record{Archive: name}
	}

	return r, err
}

func remember(ctx context.Context, h *host.Host, r record) error {
	if h.StateDir() == "" {
		return nil
	}

	return h.Remember(ctx, records, r.Archive, r)
}

// target records the archives that were unpacked to one location, the last one at the end.
// Versions of an archive share a target, even if their names differ.
type target struct {
	Target   string     `json:"target"`
	Unpacked []unpacked `json:"unpacked"`
}

// unpacked is an archive that was unpacked completely or in part.
type unpacked struct {
	Archive  string `json:"archive"`
	Checksum string `json:"checksum"`
	// Run is the id of the run, empty outside of one.
	Run string `json:"run,omitempty"`
	// Adopted means that muster found the target and did not unpack the archive.
	Adopted bool `json:"adopted,omitempty"`
}

const (
	// targets is the folder of these records in the state directory.
	targets = "unpacked"
	// maxUnpacked is the maximum number of recorded archives of a target.
	maxUnpacked = 20
)

// versionInName matches the version in the name of an archive.
var versionInName = regexp.MustCompile(`[0-9]+([._-]?[0-9]+)*`)

// targetName returns the creates path, or else extract_parent with the name of the archive
// without its version. Different archives in one directory are different targets.
func (s *Spec) targetName() string {
	return cmp.Or(s.Creates, s.ExtractParent+" "+versionInName.ReplaceAllString(filepath.Base(s.Name), "#"))
}

func recallTarget(h *host.Host, spec *Spec) (target, error) {
	t, found, err := host.Recall[target](h, targets, spec.targetName())
	if !found || t.Target != spec.targetName() {
		t = target{Target: spec.targetName()}
	}

	return t, err
}

// index returns the index of the declared archive, -1 if it was not unpacked.
func (t target) index(spec *Spec) int {
	return slices.IndexFunc(t.Unpacked, func(u unpacked) bool { return u.Archive == spec.Name && u.Checksum == spec.wantedChecksum() })
}

// outdated returns the checksum of the unpacked archive if the declared checksum differs,
// else the empty string. run is the id of the current run.
func (t target) outdated(spec *Spec, past record, run string) string {
	want, last := spec.wantedChecksum(), len(t.Unpacked)-1
	if want == "" {
		return ""
	}
	if last < 0 {
		// Earlier versions of muster recorded only the archive.
		if past.Extracted && past.Checksum != want {
			return past.Checksum
		}
		return ""
	}
	own := t.index(spec)
	for i := last; i > own; i-- {
		// Archives of one run belong to one manifest and do not replace each other.
		u := t.Unpacked[i]
		together := u.Run != "" && (own >= 0 && u.Run == t.Unpacked[own].Run || own < 0 && u.Adopted && u.Run == run)
		if u.Checksum != want && !together {
			return u.Checksum
		}
	}

	return ""
}

// rememberTarget records the archive that is about to be unpacked to the target. Without a
// state directory it does nothing.
func rememberTarget(ctx context.Context, h *host.Host, spec *Spec, last unpacked) error {
	if h.StateDir() == "" {
		return nil
	}
	t, err := recallTarget(h, spec)
	if err != nil {
		return err
	}
	t.Unpacked = append(slices.DeleteFunc(t.Unpacked, func(u unpacked) bool { return u.Archive == last.Archive }), last)
	t.Unpacked = t.Unpacked[max(len(t.Unpacked)-maxUnpacked, 0):]

	return h.Remember(ctx, targets, t.Target, t)
}

// Adopt records the declared checksum of an archive that was unpacked without a record:
// by another program, or before the state directory was lost. The next checksum differs from it.
func (Type) Adopt(ctx context.Context, env resource.Env, spec *Spec, state *State) error {
	if env.Host.StateDir() == "" || spec.Ensure == model.EnsureAbsent || spec.ExtractParent == "" || spec.Checksum == "" {
		return nil
	}
	t, err := recallTarget(env.Host, spec)
	if err != nil || t.index(spec) >= 0 {
		return err
	}
	want := spec.wantedChecksum()
	known := state.Metadata.Checksum == want || state.past.Extracted && state.past.Checksum == want
	if spec.Creates != "" && !known {
		env.Log.WarnContext(ctx, "unpacked archive has no record, assuming the declared checksum; to unpack it again, remove the creates path",
			"archive", spec.Name, "creates", spec.Creates)
	}

	return rememberTarget(ctx, env.Host, spec, unpacked{Archive: spec.Name, Checksum: want, Run: env.RunID, Adopted: true})
}
