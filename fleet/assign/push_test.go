package assign_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/assign"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// memory keeps assignments and bundles as the buckets do.
type memory struct {
	entries map[string][]model.Entry
	bundles map[string][]byte
	last    uint64
	limit   int
	// refused are keys that cannot be written.
	refused map[string]bool
	stored  int
	// lagging is what Get returns of keys; lags is the error of Current.
	lagging map[string]model.Entry
	lags    error
}

func newMemory() *memory {
	return &memory{entries: map[string][]model.Entry{}, bundles: map[string][]byte{}, limit: 1 << 20, refused: map[string]bool{}}
}

func pusher(m *memory) *assign.Pusher { return &assign.Pusher{Assignments: m, Bundles: m} }

func (m *memory) Get(ctx context.Context, key string) (model.Entry, error) {
	if e, lags := m.lagging[key]; lags {
		return e, nil
	}

	return m.current(key)
}

func (m *memory) Current(_ context.Context, key string) (model.Entry, error) {
	if m.lags != nil {
		return model.Entry{}, m.lags
	}

	return m.current(key)
}

func (m *memory) current(key string) (model.Entry, error) {
	all := m.entries[key]
	if len(all) == 0 || all[len(all)-1].Deleted {
		return model.Entry{}, fmt.Errorf("manifest %s: %w", key, model.ErrNotFound)
	}

	return all[len(all)-1], nil
}

var errLags = errors.New("lags")

var errNotAllowed = errors.New("not allowed")

func (m *memory) Put(_ context.Context, key string, value []byte) (uint64, error) {
	switch {
	case m.refused[key]:
		return 0, fmt.Errorf("put manifest %s: %w", key, errNotAllowed)
	case len(value) > m.limit:
		return 0, fmt.Errorf("manifest %s has %d bytes: %w", key, len(value), model.ErrTooLarge)
	}
	m.last++
	m.entries[key] = append(m.entries[key], model.Entry{Key: key, Revision: m.last, Digest: model.DigestOf(value), Value: value})

	return m.last, nil
}

func (m *memory) PutBundle(_ context.Context, r io.ReadSeeker) (string, error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	data, err := io.ReadAll(r)
	m.bundles[model.DigestOf(data)] = data
	m.stored++

	return model.DigestOf(data), err
}

func (m *memory) History(_ context.Context, key string) ([]model.Entry, error) {
	if len(m.entries[key]) == 0 {
		return nil, model.ErrNotFound
	}

	return m.entries[key], nil
}

// text gives a source of a manifest that travels alone.
func textOf(t testing.TB, s string) *assign.Source {
	t.Helper()
	out, err := assign.ReadSource("-", strings.NewReader(s), anything)
	if err != nil {
		t.Fatal(err)
	}

	return out
}

// A manifest without terms is pushed byte for byte, so that any tool could have done it.
func TestPushBare(t *testing.T) {
	const manifest = "# kept\r\nmuster:  {}  \n\n"
	m := newMemory()
	targets := []fleet.Target{{Node: "a"}, {Group: "web"}}
	push := assign.Push{Source: textOf(t, manifest), Name: "motd", Targets: targets}
	done, err := pusher(m).Push(t.Context(), push)
	if err != nil || len(done) != 2 {
		t.Fatal(done, err)
	}
	for i, key := range []string{"node.a.motd", "group.web.motd"} {
		want := assign.Pushed{Key: key, Revision: uint64(i + 1), Digest: model.DigestOf([]byte(manifest))}
		if done[i] != want || string(m.entries[key][0].Value) != manifest {
			t.Errorf("%s: %+v, stored %q", key, done[i], m.entries[key][0].Value)
		}
	}
	again, err := pusher(m).Push(t.Context(), push)
	if err != nil || !again[0].Unchanged || again[0].Revision != 1 || !again[1].Unchanged || m.last != 2 {
		t.Errorf("pushed again: %+v %v", again, err)
	}
	push.Source = textOf(t, manifest+"#")
	changed, err := pusher(m).Push(t.Context(), push)
	if err != nil || changed[0].Unchanged || changed[0].Revision != 3 {
		t.Errorf("changed: %+v %v", changed, err)
	}
	m.entries["node.a.motd"] = append(m.entries["node.a.motd"], model.Entry{Key: "node.a.motd", Revision: 9, Deleted: true})
	m.last = 9
	if back, err := pusher(m).Push(t.Context(), push); err != nil || back[0].Unchanged || back[0].Revision != 10 || !back[1].Unchanged {
		t.Errorf("after a removal: %+v %v", back, err)
	}
}

// TestPushDoesNotBelieveAServerThatLags: the server claims that the pushed value is active, while another is.
func TestPushDoesNotBelieveAServerThatLags(t *testing.T) {
	m := newMemory()
	push := func(manifest string) (assign.Pushed, error) {
		t.Helper()
		done, err := pusher(m).Push(t.Context(), assign.Push{Source: textOf(t, manifest), Name: "motd", Targets: []fleet.Target{{Group: "web"}}})
		if err != nil {
			return assign.Pushed{}, err
		}
		return done[0], nil
	}
	const key, first = "group.web.motd", "muster: {}\n"
	if _, err := push(first); err != nil {
		t.Fatal(err)
	}
	m.lagging = map[string]model.Entry{key: m.entries[key][0]}
	if _, err := push(first + "# second\n"); err != nil {
		t.Fatal(err)
	}
	m.lags = errLags
	if done, err := push(first); !errors.Is(err, errLags) {
		t.Errorf("while nobody knows: %+v, %v", done, err)
	}
	m.lags = nil
	if done, err := push(first); err != nil || done.Unchanged || done.Revision != 3 || done.Replaced != 2 {
		t.Errorf("pushed back: %+v, %v", done, err)
	}
	if done, err := push(first); err != nil || !done.Unchanged || done.Revision != 3 {
		t.Errorf("again: %+v, %v", done, err)
	}
}

func TestPushTerms(t *testing.T) {
	const manifest = "muster: {}\n\ttab and \"quotes\" <&>\n"
	expires := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	m := newMemory()
	push := assign.Push{Source: textOf(t, manifest), Name: "motd", Targets: []fleet.Target{{Group: "web"}}, Terms: model.Assignment{
		Data: map[string]any{"port": 80}, Noop: true, Drift: model.DriftReport, Interval: model.Duration(90 * time.Second), When: "Facts.a > 1", Priority: 3, Expires: expires,
	}}
	if _, err := pusher(m).Push(t.Context(), push); err != nil {
		t.Fatal(err)
	}
	stored := m.entries["group.web.motd"][0]
	a, problems := document.DecodeAssigned(stored.Key, stored.Value)
	if problems != nil || a.Protocol != model.ProtocolAssignment || a.Name != "motd" || a.Manifest != manifest || a.Digest != model.DigestOf([]byte(manifest)) || a.Bundle != "" {
		t.Errorf("stored %s", stored.Value)
	}
	if !a.Noop || a.Drift != model.DriftReport || a.Interval.Std() != 90*time.Second || a.When != "Facts.a > 1" || a.Priority != 3 || !a.Expires.Equal(expires) || fmt.Sprint(a.Data) != "map[port:80]" || a.Issued.IsZero() {
		t.Errorf("stored %s", stored.Value)
	}
	// The time of issue alone is no change.
	if again, err := pusher(m).Push(t.Context(), push); err != nil || !again[0].Unchanged {
		t.Errorf("pushed again: %+v %v", again, err)
	}
	push.Terms.Noop = false
	if changed, err := pusher(m).Push(t.Context(), push); err != nil || changed[0].Unchanged {
		t.Errorf("other terms: %+v %v", changed, err)
	}
	push.Terms = model.Assignment{}
	if bare, err := pusher(m).Push(t.Context(), push); err != nil || bare[0].Unchanged {
		t.Errorf("without terms: %+v %v", bare, err)
	}
}

// Each of the terms makes an assignment document.
func TestEachTerm(t *testing.T) {
	for _, terms := range []model.Assignment{
		{Data: map[string]any{"a": 1}}, {Noop: true}, {Drift: model.DriftIgnore}, {Interval: model.Duration(time.Second)}, {When: "true"}, {Priority: -1}, {Expires: time.Unix(1, 0)},
	} {
		m := newMemory()
		push := assign.Push{Source: textOf(t, "muster: {}\n"), Name: "motd", Targets: []fleet.Target{{Node: "a"}}, Terms: terms}
		if _, err := pusher(m).Push(t.Context(), push); err != nil {
			t.Fatal(err)
		}
		if a, problems := document.DecodeAssigned("node.a.motd", m.entries["node.a.motd"][0].Value); problems != nil || a.Bare {
			t.Errorf("%+v is pushed bare", terms)
		}
	}
}

func TestPushBundle(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	m := newMemory()
	dir := write(t, map[string]string{"manifest.yaml": "muster: {}\n", "files/motd": "hello"})
	push := assign.Push{Source: read(t, dir, anything), Name: "site", Targets: []fleet.Target{{Node: "a"}, {Node: "b"}}}
	p, size := pusher(m), int64(0)
	p.OnBundle = func(n int64) { size += n }
	done, err := p.Push(t.Context(), push)
	if err != nil {
		t.Fatal(err)
	}
	if size != int64(len(m.bundles[done[0].Digest])) {
		t.Errorf("the size is %d bytes", size)
	}
	a, problems := document.DecodeAssigned("node.b.site", m.entries["node.b.site"][0].Value)
	if problems != nil || !done[0].Bundle || a.Bundle != done[0].Digest || a.Digest != a.Bundle || a.Manifest != "" || m.bundles[a.Bundle] == nil || m.stored != 1 {
		t.Errorf("%+v, %+v, stored %d times", done, a, m.stored)
	}
	again, err := pusher(m).Push(t.Context(), push)
	if err != nil || !again[0].Unchanged || !again[1].Unchanged || m.stored != 1 {
		t.Errorf("pushed again: %+v %v, stored %d times", again, err, m.stored)
	}
	if err := os.WriteFile(filepath.Join(dir, "files/motd"), []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if changed, err := pusher(m).Push(t.Context(), push); err != nil || changed[0].Unchanged || m.stored != 2 {
		t.Errorf("changed: %+v %v, stored %d times", changed, err, m.stored)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// An oversized value is refused with a reason, and fits as a bundle.
func TestPushTooLarge(t *testing.T) {
	m := newMemory()
	m.limit = 600
	push := assign.Push{Source: textOf(t, strings.Repeat("# long\n", 100)), Name: "motd", Targets: []fleet.Target{{Node: "a"}}}
	done, err := pusher(m).Push(t.Context(), push)
	wantError(t, err, model.ErrTooLarge, "node.a.motd")
	if len(done) > 0 {
		t.Errorf("done: %+v", done)
	}
	push.Bundle = true
	if done, err = pusher(m).Push(t.Context(), push); err != nil || !done[0].Bundle {
		t.Errorf("as a bundle: %+v %v", done, err)
	}
	if got := listing(t, m.bundles[done[0].Digest])["manifest.yaml"]; !strings.HasSuffix(got, strings.Repeat("# long\n", 100)) {
		t.Errorf("the bundle's manifest is %q", got)
	}
}

// One target that fails keeps nothing from the others, and is named.
func TestPushGoesOn(t *testing.T) {
	m := newMemory()
	m.refused["node.b.motd"] = true
	done, err := pusher(m).Push(t.Context(), assign.Push{Source: textOf(t, "muster: {}"), Name: "motd", Targets: []fleet.Target{{Node: "a"}, {Node: "b"}, {Node: "c"}}})
	wantError(t, err, errNotAllowed, "node.b.motd: ")
	if len(done) != 2 || done[0].Key != "node.a.motd" || done[1].Key != "node.c.motd" {
		t.Errorf("done: %+v", done)
	}
}

func TestReadable(t *testing.T) {
	const bare = "muster:\n  resources: []\n"
	if got := assign.Readable("node.a.motd", []byte(bare)); got != bare {
		t.Errorf("a bare manifest reads %q", got)
	}
	for _, garbage := range []string{"", "\x00", "{", "[1, 2]", "protocol: [", "text"} {
		if got := assign.Readable("node.a.motd", []byte(garbage)); !strings.HasPrefix(got, "# nodes reject this: ") || !strings.HasSuffix(got, "\n"+garbage) {
			t.Errorf("%q reads %q", garbage, got)
		}
	}
	m := newMemory()
	push := assign.Push{Source: textOf(t, bare), Name: "motd", Targets: []fleet.Target{{Node: "a"}}, Terms: model.Assignment{Noop: true}}
	if _, err := pusher(m).Push(t.Context(), push); err != nil {
		t.Fatal(err)
	}
	got := assign.Readable("node.a.motd", m.entries["node.a.motd"][0].Value)
	if !strings.Contains(got, "manifest: |\n  muster:\n    resources: []\n") || !strings.Contains(got, "noop: true\n") {
		t.Errorf("an assignment reads\n%s", got)
	}
	// A handwritten YAML assignment counts too.
	if a, problems := document.DecodeAssigned("node.a.motd", []byte(got)); problems != nil || a.Manifest != bare || !a.Noop {
		t.Errorf("read back: %+v", a)
	}
}

// The manifest stays the same, whether the assignment is JSON or YAML.
func FuzzManifestIsKept(f *testing.F) {
	for _, s := range []string{"muster: {}\n", "a\u0085b\u2028c\u2029d\ufeffe\x7f", "\r\n\t \"\\<>&", "\U0001f600", "'{{ ${ x } }}'", " # \n\n", "\ufffd\uffff", "\x00\x01\x1b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) || s == "" {
			return
		}
		m := newMemory()
		push := assign.Push{Source: textOf(t, s), Name: "motd", Targets: []fleet.Target{{Node: "a"}}, Terms: model.Assignment{Noop: true}}
		if _, err := pusher(m).Push(t.Context(), push); err != nil {
			t.Fatal(err)
		}
		value := m.entries["node.a.motd"][0].Value
		var asJSON, asYAML model.Assignment
		if err := json.Unmarshal(value, &asJSON); err != nil || asJSON.Manifest != s {
			t.Errorf("%q as JSON: %q %v", s, asJSON.Manifest, err)
		}
		if err := yaml.Unmarshal(value, &asYAML); err != nil || asYAML.Manifest != s {
			t.Errorf("%q as YAML: %q %v", s, asYAML.Manifest, err)
		}
	})
}

func TestHistory(t *testing.T) {
	m := newMemory()
	const key = "node.a.motd"
	for _, manifest := range []string{"one\nsame\n", "two\nsame\n"} {
		if _, err := m.Put(t.Context(), key, []byte(manifest)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := m.History(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	newest, err := assign.FindRevision(all, 0)
	if err != nil || newest.Revision != 2 {
		t.Fatal(newest, err)
	}
	before, err := assign.RevisionBefore(all, newest)
	if err != nil || before.Revision != 1 {
		t.Fatal(before, err)
	}
	if diff := diffOf(t, m, before, newest); diff != "--- node.a.motd@1 manifest.yaml\n+++ node.a.motd@2 manifest.yaml\n@@ -1,2 +1,2 @@\n-one\n+two\n same\n" {
		t.Errorf("diff is %q", diff)
	}
	if diff := diffOf(t, m, before, before); diff != "" {
		t.Errorf("diff with itself is %q", diff)
	}
	_, err = assign.FindRevision(all, 7)
	wantError(t, err, model.ErrNotFound, "1, 2")
	_, err = assign.RevisionBefore(all, before)
	wantError(t, err, model.ErrNotFound, "before")
	_, err = assign.FindRevision(nil, 0)
	wantError(t, err, model.ErrNotFound, "")
	_, err = assign.FindRevision(append(all, model.Entry{Key: key, Revision: 3, Deleted: true}), 0)
	wantError(t, err, model.ErrNotFound, "removed with revision 3")
}

// diffOf compares two revisions.
func diffOf(t *testing.T, m *memory, from, to model.Entry) string {
	t.Helper()
	var both [2]assign.Content
	for i, e := range []model.Entry{from, to} {
		var err error
		if both[i], err = assign.ReadContent(t.Context(), e, func(_ context.Context, digest string) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(m.bundles[digest])), nil
		}); err != nil {
			t.Fatal(err)
		}
	}

	diff, err := both[0].Diff(t.Context(), both[1])
	if err != nil {
		t.Fatal(err)
	}

	return diff
}

// Manifests are compared with manifests, whatever is around them.
func TestDiffOfForms(t *testing.T) {
	m := newMemory()
	const manifest = "muster: {}\n"
	dir := write(t, map[string]string{"manifest.yaml": manifest, "a": "one\n", "gone": "x\n", "binary": "\xff\x00", "link": "->a"})
	other := write(t, map[string]string{"manifest.yaml": manifest, "a": "two\n", "new": "y\n", "binary": "\xff\x01", "link": "->a"})
	entry := func(push assign.Push) model.Entry {
		push.Name, push.Targets = "m", []fleet.Target{{Node: "a"}}
		if _, err := pusher(m).Push(t.Context(), push); err != nil {
			t.Fatal(err)
		}
		all := m.entries["node.a.m"]
		return all[len(all)-1]
	}
	bare := entry(assign.Push{Source: textOf(t, manifest)})
	terms := entry(assign.Push{Source: textOf(t, manifest), Terms: model.Assignment{Noop: true}})
	bundle := entry(assign.Push{Source: read(t, dir, anything)})
	changed := entry(assign.Push{Source: read(t, other, anything)})
	if diff := diffOf(t, m, bare, terms); diff != "--- node.a.m@1 (terms)\n+++ node.a.m@2 (terms)\n@@ -0,0 +1 @@\n+noop: true\n" {
		t.Errorf("terms:\n%s", diff)
	}
	data := entry(assign.Push{Source: textOf(t, "data: {greeting: hello}\nmuster: {}\n")})
	greets := entry(assign.Push{Source: textOf(t, "data: {greeting: bye}\nmuster: {}\n")})
	if diff := diffOf(t, m, data, greets); strings.Contains(diff, "(terms)") || strings.Count(diff, "bye") != 1 {
		t.Errorf("data of a manifest:\n%s", diff)
	}
	diff := diffOf(t, m, bundle, changed)
	for _, want := range []string{"@3 a\n", "-one\n", "+two\n", "@3 gone\n", "-x\n", "@4 new\n", "+y\n", "@4 binary\n", "+sha256-"} {
		if !strings.Contains(diff, want) {
			t.Errorf("no %q in\n%s", want, diff)
		}
	}
	if strings.Contains(diff, "link") || strings.Contains(diff, "manifest.yaml") || strings.Contains(diff, "(terms)") {
		t.Errorf("what is the same is in\n%s", diff)
	}
	if diff := diffOf(t, m, bare, bundle); strings.Contains(diff, "manifest.yaml") || !strings.Contains(diff, "+one\n") {
		t.Errorf("of a bundle:\n%s", diff)
	}
	if diff := diffOf(t, m, bare, model.Entry{Key: "node.a.m", Revision: 9, Deleted: true}); !strings.Contains(diff, "-muster: {}\n") {
		t.Errorf("of a removal:\n%s", diff)
	}
}

func TestRollback(t *testing.T) {
	one, two := model.Entry{Key: "node.a.m", Revision: 1, Value: []byte("one")}, model.Entry{Key: "node.a.m", Revision: 2, Value: []byte("two")}
	again, gone := model.Entry{Key: "node.a.m", Revision: 3, Value: []byte("two")}, model.Entry{Key: "node.a.m", Revision: 4, Deleted: true}
	for name, c := range map[string]struct {
		all  []model.Entry
		to   uint64
		want uint64
	}{
		"the one before":  {[]model.Entry{one, two}, 0, 1},
		"the same before": {[]model.Entry{one, two, again}, 0, 1},
		"a removed one":   {[]model.Entry{one, two, again, gone}, 0, 3},
		"before it":       {[]model.Entry{one, gone, two}, 0, 1},
		"a named one":     {[]model.Entry{one, two, again}, 2, 2},
	} {
		if got, err := assign.RollbackTo(c.all, c.to, nil); err != nil || got.Revision != c.want {
			t.Errorf("%s: %d, %v", name, got.Revision, err)
		}
	}
	_, err := assign.RollbackTo([]model.Entry{one}, 0, nil)
	wantError(t, err, model.ErrNotFound, "there is no earlier revision than 1")
	_, err = assign.RollbackTo([]model.Entry{two, again, gone, again}, 0, nil)
	wantError(t, err, model.ErrNotFound, "no earlier revision differs; give --to N: 2, 3")
	_, err = assign.RollbackTo([]model.Entry{one, gone}, 4, nil)
	wantError(t, err, nil, "removed")
	_, err = assign.RollbackTo([]model.Entry{one}, 9, nil)
	wantError(t, err, model.ErrNotFound, "the bucket has 1")
}

// TestRollbackPrefers the preferred revision, and skips revisions that no node uses.
func TestRollbackPrefers(t *testing.T) {
	all := []model.Entry{
		{Key: "node.a.m", Revision: 1, Value: []byte("one")}, {Key: "node.a.m", Revision: 2, Value: []byte("two")},
		{Key: "node.a.m", Revision: 3, Refused: "for its headers"}, {Key: "node.a.m", Revision: 4, Value: []byte("four")},
	}
	for preferred, want := range map[uint64]uint64{1: 1, 2: 2, 3: 2, 4: 2, 9: 2} {
		got, err := assign.RollbackTo(all, 0, func(e model.Entry) bool { return e.Revision == preferred })
		if err != nil || got.Revision != want {
			t.Errorf("%d is preferred: %d, %v", preferred, got.Revision, err)
		}
	}
	_, err := assign.RollbackTo(all[2:], 0, nil)
	wantError(t, err, model.ErrNotFound, "there is no earlier revision than 4")
}

// TestContentReadsAllOfABundle: its digest is checked at its end, behind the archive.
func TestContentReadsAllOfABundle(t *testing.T) {
	m := newMemory()
	dir := write(t, map[string]string{"manifest.yaml": "muster: {}\n"})
	push := assign.Push{Source: read(t, dir, anything), Name: "m", Targets: []fleet.Target{{Node: "a"}}}
	if _, err := pusher(m).Push(t.Context(), push); err != nil {
		t.Fatal(err)
	}
	damaged := errors.New("damaged")
	_, err := assign.ReadContent(t.Context(), m.entries["node.a.m"][0], func(_ context.Context, digest string) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(m.bundles[digest]), iotest.ErrReader(damaged))), nil
	})
	wantError(t, err, damaged, "damaged")
}
