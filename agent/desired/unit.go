package desired

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
)

// unit is one key of the bucket on this node.
type unit struct {
	key, family, name string
	// record is what is kept on disk; unsaved is that the file differs.
	record  record
	unsaved bool
	// newest is what the bucket holds now, without a value while that was not read;
	// nil while it is not known.
	newest *model.Entry
	// unread is why the value of newest was not read.
	unread error
	// never is why the value of newest is rejected for good: it is not kept, but for its
	// digest; nil while it may pass. rejudge is that it is read again all the same.
	never   error
	rejudge bool
	// versions are those of the candidates that were read.
	versions []*Version
	// active is the version that runs; nil is none.
	active *Version
	retry  retry
	// late is why the newest version is not active, stale why the active one is what
	// it resolved to before.
	late, stale reason
	// untrusted is why the active one, or that the bucket does not have it any more,
	// would not be accepted now.
	untrusted reason
}

// reason is why something is not active; the zero value is none.
type reason struct {
	// rejected is that trying again does not help.
	rejected bool
	text     string
}

// retry plans another try of a transient error.
type retry struct {
	// at is when; zero is never.
	at   time.Time
	wait tasks.Backoff
	// reported is the error that was reported already.
	reported string
}

// clear forgets the error.
func (r *retry) clear() { *r = retry{} }

// plan plans another try, at the latest after longest, unless one is planned. The
// wait begins now: the try that failed may have taken long.
func (r *retry) plan(longest time.Duration) {
	if now := time.Now(); r.at.IsZero() || !now.Before(r.at) {
		r.at = now.Add(min(r.wait.Next(), tasks.Spread(longest, tasks.Jitter)))
	}
}

func newUnit(key string) *unit {
	family, name, _ := model.SplitKey(key)

	return &unit{key: key, family: family, name: name, record: record{Key: key}}
}

// assign takes over what the bucket holds for the key. A value that is known
// already is kept.
func (u *unit) assign(e model.Entry) {
	if u.newest == nil || !sameRevision(*u.newest, e) {
		u.retry.clear()
		u.late, u.stale, u.untrusted, u.unread, u.never = reason{}, reason{}, reason{}, nil, nil
	}
	for _, known := range []*model.Entry{u.newest, u.record.Good, u.record.Newest} {
		if e.Value == nil && known != nil && sameRevision(*known, e) {
			e.Value, e.Digest, e.Refused = known.Value, known.Digest, known.Refused
		}
	}
	u.newest = &e
}

// sameRevision reports whether two entries are one revision of a key; a bucket
// that was recreated counts from 1 again, but at another time.
func sameRevision(a, b model.Entry) bool {
	return a.Revision == b.Revision && a.Time.Equal(b.Time)
}

// size returns how many bytes of values are kept of a unit.
func (u *unit) size() (bytes int) {
	for _, e := range u.candidates() {
		bytes += len(e.Value)
	}

	return bytes
}

// candidates returns the versions of a unit that may become active: the newest,
// and after it the last good one.
func (u *unit) candidates() []model.Entry {
	var out []model.Entry
	if u.newest != nil {
		out = append(out, *u.newest)
	}
	if good := u.record.Good; good != nil && (u.newest == nil || !sameEntry(*good, *u.newest)) {
		out = append(out, *good)
	}

	return out
}

// sameEntry reports whether two entries are one revision of a key.
func sameEntry(a, b model.Entry) bool {
	return a.Revision == b.Revision && string(a.Value) == string(b.Value) && (a.Value != nil || a.Digest == b.Digest)
}

// sumOf returns the digest of the value of an entry, also of one that is not kept.
func sumOf(e model.Entry) string {
	if e.Value == nil && e.Digest != "" {
		return e.Digest
	}

	return model.DigestOf(e.Value)
}

// unused returns an entry without its value, of which the digest stays.
func unused(e model.Entry) model.Entry {
	e.Digest, e.Value = sumOf(e), nil

	return e
}

// isNewest reports whether an entry is what the bucket holds now.
func (u *unit) isNewest(e model.Entry) bool {
	return u.newest != nil && u.newest.Revision == e.Revision
}

// read returns the version of an entry, parsed once. The error is model.Problems.
func (u *unit) read(e model.Entry) (*Version, error) {
	sum := model.DigestOf(e.Value)
	for _, v := range u.versions {
		if v.is(e.Revision, sum) {
			return v, nil
		}
	}
	v, problems := parse(e)
	if len(problems) > 0 {
		return nil, problems
	}
	u.versions = append(u.versions, v)

	return v, nil
}

// forget drops the versions that are no candidates any more.
func (u *unit) forget() {
	candidates := u.candidates()
	u.versions = slices.DeleteFunc(u.versions, func(v *Version) bool {
		return !v.sameAs(u.active) && !slices.ContainsFunc(candidates, func(e model.Entry) bool { return sameEntry(e, v.Entry) })
	})
}

// setActive activates a version, and reports whether it is another one than before.
func (u *unit) setActive(v *Version) bool {
	if u.active.sameAs(v) {
		return false
	}
	u.active = v
	if good := u.record.Good; good == nil || !sameEntry(*good, v.Entry) {
		e := v.Entry
		u.record.Good, u.unsaved = &e, true
		u.clearRejection(e)
	}

	return true
}

// refreshed makes a new resolution the one of the active version, which is not stale any more.
func (u *unit) refreshed(fresh *Resolution) {
	u.active.Resolution = fresh
	if !u.stale.isZero() {
		u.stale = reason{}
		u.retry.clear()
		u.clearRejection(u.active.Entry)
	}
}

// clearRejection clears the recorded rejection of a version, and those of versions
// that are no candidates any more.
func (u *unit) clearRejection(e model.Entry) {
	candidates := u.candidates()
	u.record.Refused = slices.DeleteFunc(u.record.Refused, func(r rejection) bool {
		return r.is(e) || !slices.ContainsFunc(candidates, r.is)
	})
}

// state returns the published state of the key: the active version, and why the
// newest one is not. remaining describes the active version of the same name.
func (u *unit) state(remaining func(*unit) string) model.ManifestState {
	out := model.ManifestState{}
	if u.active != nil {
		out = model.ManifestState{Revision: u.active.Entry.Revision, Digest: u.active.Digest, Late: cmp.Or(u.stale, u.untrusted).String()}
	}
	if u.newest != nil && (u.active == nil || u.active.Entry.Revision != u.newest.Revision) {
		out.Seen, out.SeenAt, out.Late = u.newest.Revision, u.newest.Time, u.late.String()
		if u.late.rejected {
			out.Late += "; " + remaining(u)
		}
	}

	return out
}

// String returns the reason as the state of a node has it.
func (r reason) String() string {
	if r.rejected {
		return model.LateRejected + r.text
	}

	return r.text
}

func (r reason) isZero() bool { return r == reason{} }

// reasonOf returns the reason that an error is.
func reasonOf(err error) reason {
	if problems, invalid := model.FindProblems(err); invalid {
		return reason{rejected: true, text: bounds.Problems(problems)}
	}

	return reason{text: bounds.Text(err.Error())}
}
