package desired

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/tasks"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
)

type unit struct {
	key, family, name string
	// record is the record on disk. unsaved means that the file differs.
	record  record
	unsaved bool
	// newest is the newest entry of the bucket, without a value until it is read; nil if it is unknown.
	newest *model.Entry
	// unread is the reason why the value of newest was not read.
	unread error
	// never is the permanent reason why newest is rejected; only its digest is stored. It is nil if there is
	// none. rejudge means that it is read again.
	never   error
	rejudge bool
	// versions are the versions of the read candidates.
	versions []*Version
	active   *Version
	retry    retry
	// late is the reason why the newest version is not active. stale is the reason why the active version has
	// an old resolution.
	late, stale reason
	// untrusted is the reason why the active version, or its removal, would not be accepted now.
	untrusted reason
}

// reason is the reason why a version is not active; the zero value is none.
type reason struct {
	// rejected means that the reason is permanent.
	rejected bool
	text     string
}

// retry schedules retries of a transient error.
type retry struct {
	at       time.Time
	wait     tasks.Backoff
	reported string
}

func (r *retry) clear() { *r = retry{} }

// plan schedules a retry after at most longest, unless one is scheduled. The delay starts now, because the
// failed attempt may have taken long.
func (r *retry) plan(longest time.Duration) {
	if now := time.Now(); r.at.IsZero() || !now.Before(r.at) {
		r.at = now.Add(min(r.wait.Next(), tasks.Spread(longest, tasks.Jitter)))
	}
}

func newUnit(key string) *unit {
	family, name, _ := model.SplitKey(key)

	return &unit{key: key, family: family, name: name, record: record{Key: key}}
}

// assign sets the entry of the bucket for the key. It keeps a known value.
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

// sameRevision reports whether two entries are one revision of a key. A recreated bucket counts from 1 again,
// at another time.
func sameRevision(a, b model.Entry) bool {
	return a.Revision == b.Revision && a.Time.Equal(b.Time)
}

func (u *unit) size() (bytes int) {
	for _, e := range u.candidates() {
		bytes += len(e.Value)
	}

	return bytes
}

// candidates returns the versions of a unit that may become active: the newest, then the last good one.
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

func sameEntry(a, b model.Entry) bool {
	return a.Revision == b.Revision && string(a.Value) == string(b.Value) && (a.Value != nil || a.Digest == b.Digest)
}

// sumOf returns the digest of the value of an entry, also if the value is not stored.
func sumOf(e model.Entry) string {
	if e.Value == nil && e.Digest != "" {
		return e.Digest
	}

	return model.DigestOf(e.Value)
}

// unused returns an entry without its value, but with the digest.
func unused(e model.Entry) model.Entry {
	e.Digest, e.Value = sumOf(e), nil

	return e
}

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

func (u *unit) forget() {
	candidates := u.candidates()
	u.versions = slices.DeleteFunc(u.versions, func(v *Version) bool {
		return !v.sameAs(u.active) && !slices.ContainsFunc(candidates, func(e model.Entry) bool { return sameEntry(e, v.Entry) })
	})
}

// setActive activates a version, and reports whether it differs from the previous one.
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

// warn logs the warnings of the active version unless they are the logged ones.
func (u *unit) warn(ctx context.Context, log *slog.Logger, logged model.Problems) {
	found := u.active.Resolution.Warnings
	if found.Error() == logged.Error() {
		return
	}
	for _, w := range found {
		log.WarnContext(ctx, "manifest", "key", u.key, "revision", u.active.Entry.Revision, "warning", w.Error())
	}
}

func (u *unit) refreshed(ctx context.Context, log *slog.Logger, fresh *Resolution) {
	logged := u.active.Resolution.Warnings
	u.active.Resolution = fresh
	u.warn(ctx, log, logged)
	if !u.stale.isZero() {
		u.stale = reason{}
		u.retry.clear()
		u.clearRejection(u.active.Entry)
	}
}

// clearRejection removes the recorded rejections of a version and of versions that are no longer candidates.
func (u *unit) clearRejection(e model.Entry) {
	candidates := u.candidates()
	u.record.Refused = slices.DeleteFunc(u.record.Refused, func(r rejection) bool {
		return r.is(e) || !slices.ContainsFunc(candidates, r.is)
	})
}

// state returns the published state of the key: the active version, and the reason why the newest is not
// active. remaining describes the active version of the same name.
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

// String returns the reason as published in the state of a node.
func (r reason) String() string {
	if r.rejected {
		return model.LateRejected + r.text
	}

	return r.text
}

func (r reason) isZero() bool { return r == reason{} }

func reasonOf(err error) reason {
	if problems, invalid := model.FindProblems(err); invalid {
		return reason{rejected: true, text: bounds.Problems(problems)}
	}

	return reason{text: bounds.Text(err.Error())}
}

type record struct {
	Key string `json:"key"`
	// Good is the last version that resolved.
	Good *model.Entry `json:"good,omitempty"`
	// Newest is the last known version of the bucket, if it differs.
	Newest *model.Entry `json:"newest,omitempty"`
	// Applied is the sum of the version with a successful run. After a restart it shows whether a change is
	// still requested.
	Applied string `json:"applied,omitempty"`
	// Refused are the rejected versions. Each is reported once.
	Refused []rejection `json:"refused,omitempty"`
}

type rejection struct {
	Revision uint64 `json:"revision"`
	Sum      string `json:"sum"`
	Problems string `json:"problems"`
}

func (r rejection) is(e model.Entry) bool {
	return r.Revision == e.Revision && r.Sum == sumOf(e)
}

type bucketRecord struct {
	// Stream and Kept are the fields of model.Sync.
	Stream time.Time `json:"stream,omitzero"`
	Kept   []string  `json:"kept,omitempty"`
}

// store stores records in one file each, and seen.json beside them.
type assignmentStore struct {
	host *host.Host
	dir  string
	seen string
	log  *slog.Logger
}

func openAssignments(h *host.Host, stateDir string, log *slog.Logger) (*assignmentStore, error) {
	s := &assignmentStore{host: h, dir: filepath.Join(stateDir, "assignments"), seen: filepath.Join(stateDir, "seen.json"), log: log}

	return s, h.MakeDirectory(s.dir, files.OwnAttrs(0o700))
}

// bucket reads the stored state of the bucket. It logs and ignores a damaged file, because the bucket is read
// anyway.
func (s *assignmentStore) bucket() (bucketRecord, error) {
	out, err := host.ReadRecord[bucketRecord](s.seen)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case errors.Is(err, host.ErrDamaged):
		s.log.Warn("stored state of the bucket ignored", "error", err)
		err = nil
	}

	return out, err
}

func (s *assignmentStore) writeBucket(ctx context.Context, b bucketRecord) error {
	return s.host.WriteRecord(ctx, s.seen, b)
}

// all reads all records. It logs and skips an unreadable record, because the bucket has it.
func (s *assignmentStore) all() ([]record, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var out []record
	for _, e := range entries {
		key, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		r, err := s.read(key)
		if err != nil {
			s.log.Error("stored assignment is unreadable, ignored", "key", key, "error", err)
			continue
		}
		out = append(out, r)
	}

	return out, nil
}

func (s *assignmentStore) read(key string) (record, error) {
	r, err := host.ReadRecord[record](s.path(key))
	if err != nil {
		return r, err
	}
	if _, _, ok := model.SplitKey(key); !ok || r.Key != key || (r.Good != nil && r.Good.Key != key) || (r.Newest != nil && r.Newest.Key != key) {
		return r, fmt.Errorf("%s is that of %q", s.path(key), r.Key)
	}

	return r, nil
}

func (s *assignmentStore) write(ctx context.Context, r record) error {
	return s.host.WriteRecord(ctx, s.path(r.Key), r)
}

func (s *assignmentStore) remove(key string) error { return s.host.Remove(s.path(key)) }

func (s *assignmentStore) path(key string) string { return filepath.Join(s.dir, key+".json") }

// CheckAssignment checks the stored assignment at a path. It returns the reason why OpenSet would ignore it,
// or model.Problems if its last good version would be rejected.
func CheckAssignment(path string) error {
	r, err := (&assignmentStore{dir: filepath.Dir(path)}).read(strings.TrimSuffix(filepath.Base(path), ".json"))
	if err != nil || r.Good == nil {
		return err
	}
	_, problems := parse(*r.Good)

	return problems.Err()
}

// CheckBucket checks the stored state of the bucket.
func CheckBucket(path string) error {
	_, err := host.ReadRecord[bucketRecord](path)

	return err
}
