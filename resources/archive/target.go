package archive

import (
	"cmp"
	"context"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/musterfleet/muster/resources/host"
)

// target records which archives were unpacked to one place, the last one at the end. Versions
// of an archive share a target, also under different names.
type target struct {
	Target   string     `json:"target"`
	Unpacked []unpacked `json:"unpacked"`
}

// unpacked is an archive that was unpacked, at least in part.
type unpacked struct {
	Archive  string `json:"archive"`
	Checksum string `json:"checksum"`
	// Run is the id of the run, empty outside of one.
	Run string `json:"run,omitempty"`
}

const (
	// targets is the folder of these records in the state directory.
	targets = "unpacked"
	// maxUnpacked bounds the archives of a target.
	maxUnpacked = 20
)

// targetName returns the name of the target: the path that unpacking creates, or the
// directory with the name of the archive without its version. Other archives in the same
// directory are other targets.
func (s *Spec) targetName() string {
	version := regexp.MustCompile(`[0-9]+([._-]?[0-9]+)*`)

	return cmp.Or(s.Creates, s.ExtractParent+" "+version.ReplaceAllString(filepath.Base(s.Name), "#"))
}

// recallTarget returns the record of a target. A damaged one is empty.
func recallTarget(h *host.Host, spec *Spec) (target, error) {
	t, found, err := host.Recall[target](h, targets, spec.targetName())
	if !found || t.Target != spec.targetName() {
		t = target{Target: spec.targetName()}
	}

	return t, err
}

// outdated returns the checksum of the archive that is unpacked in place of the declared one,
// empty for none. Without a declared checksum there is none.
func (t target) outdated(spec *Spec, past record) string {
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
	own := slices.IndexFunc(t.Unpacked, func(u unpacked) bool { return u.Archive == spec.Name && u.Checksum == want })
	for i := last; i > own; i-- {
		// Archives of one run are parts of one manifest, and do not replace each other.
		u := t.Unpacked[i]
		if u.Checksum != want && (own < 0 || u.Run == "" || u.Run != t.Unpacked[own].Run) {
			return u.Checksum
		}
	}

	return ""
}

// rememberTarget records the archive as the last one that is unpacked to the target, where
// there is a state directory.
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
