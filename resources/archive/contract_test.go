package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/archive"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
	"github.com/musterfleet/muster/testing/webtest"
	"golang.org/x/sys/unix"
)

func archiveType() *resource.Type {
	return archive.New(archive.NewHTTP(archive.HTTPOptions{Backoff: time.Millisecond}))
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pack makes a tar.gz of files, name and content in turn.
func pack(t testing.TB, files ...string) string {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	packed := tar.NewWriter(zipped)
	for i := 0; i < len(files); i += 2 {
		check(t, packed.WriteHeader(&tar.Header{Name: files[i], Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(files[i+1]))}))
		_, err := io.WriteString(packed, files[i+1])
		check(t, err)
	}
	check(t, errors.Join(packed.Close(), zipped.Close()))

	return b.String()
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))

	return hex.EncodeToString(digest[:])
}

// stand is a server with two versions of an application.
type stand struct {
	server   *webtest.Server
	old, new string
}

func newStand(t testing.TB) stand {
	s := stand{server: webtest.Start(t), old: pack(t, "app/bin/tool", "1\n"), new: pack(t, "app/bin/tool", "2\n", "app/conf", "new\n")}
	for _, path := range []string{"/a.tar.gz", "/a.tgz"} {
		s.server.Put(path, webtest.Text(s.new))
	}

	return s
}

// of gives properties of DIR/a.tar.gz from the server; DIR stands for the case's directory.
func (s stand) of(t testing.TB, more typetest.Properties) func(string) typetest.Properties {
	user, group := hosttest.Owner(t)

	return func(dir string) typetest.Properties {
		p := typetest.Properties{"name": dir + "/a.tar.gz", "url": s.server.URL + "/a.tar.gz", "owner": user, "group": group}
		for key, value := range more {
			if text, ok := value.(string); ok {
				value = strings.ReplaceAll(text, "DIR", dir)
			}
			p[key] = value
		}
		return p
	}
}

type setup = func(t *testing.T, dir string)

func all(setups ...setup) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		for _, s := range setups {
			s(t, dir)
		}
	}
}

func withFile(name, content string) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, name)
		check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(t, os.WriteFile(path, []byte(content), 0o640))
	}
}

// holds checks the content of a file; no content means no file.
func holds(name, content string) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		got, err := os.ReadFile(filepath.Join(dir, name))
		if content == "" && errors.Is(err, os.ErrNotExist) {
			return
		}
		if err != nil || string(got) != content {
			t.Errorf("%s holds %d bytes, %.20q, not %.20q: %v", name, len(got), got, content, err)
		}
	}
}

const (
	downloaded  = "Would have downloaded"
	extracted   = "Would have extracted"
	cleanedUp   = "Would have cleaned up"
	removed     = "Would have removed"
	markerOfApp = "DIR/opt/app/bin/tool"
)

func TestContract(t *testing.T) {
	s := newStand(t)
	cases := append(decisionCases(t, s), applyCases(t, s)...)
	typetest.Run(t, typetest.Config{Type: archiveType(), ReadOnly: typetest.Only("getent "), Cases: append(cases, obstacleCases(t, s)...)})
}

// decisionCases are the rows of "Decision Table" and "State Checks", and the
// rows of the specification's README on archives.
func decisionCases(t *testing.T, s stand) []typetest.Case {
	kept := s.of(t, typetest.Properties{"extract_parent": "DIR/opt", "creates": markerOfApp})
	swept := s.of(t, typetest.Properties{"extract_parent": "DIR/opt", "creates": markerOfApp, "cleanup": true})
	wantsNew := s.of(t, typetest.Properties{"checksum": strings.ToUpper(sum(s.new))})
	made, archived, stale := withFile("opt/app/bin/tool", "0\n"), withFile("a.tar.gz", s.new), withFile("a.tar.gz", s.old)

	return []typetest.Case{
		{Name: "absent, missing", Properties: s.of(t, typetest.Properties{"ensure": "absent"})},
		{Name: "absent, there", Setup: archived, Properties: s.of(t, typetest.Properties{"ensure": "absent"}), Message: removed, Check: holds("a.tar.gz", "")},
		{Name: "absent, only a name", Setup: archived, Message: removed, Properties: func(dir string) typetest.Properties {
			return typetest.Properties{"name": dir + "/a.tar.gz", "ensure": "absent"}
		}},
		{Name: "creates there, archive there", Setup: all(made, archived), Properties: kept, Check: holds("opt/app/bin/tool", "0\n")},
		{Name: "creates there, cleanup, archive missing", Setup: made, Properties: swept, Check: all(holds("opt/app/bin/tool", "0\n"), holds("a.tar.gz", ""))},
		{Name: "creates missing, archive there", Setup: archived, Properties: kept, Message: extracted, Check: all(holds("opt/app/bin/tool", "2\n"), holds("a.tar.gz", s.new))},
		{Name: "creates missing, archive missing", Properties: kept, Message: downloaded + ". " + extracted, Check: all(holds("opt/app/bin/tool", "2\n"), holds("a.tar.gz", s.new))},
		{Name: "cleanup false, archive missing", Setup: made, Properties: kept, Message: downloaded + ". " + extracted, Check: all(holds("opt/app/bin/tool", "2\n"), holds("a.tar.gz", s.new))},
		{Name: "checksum differs", Setup: stale, Properties: wantsNew, Message: downloaded, Check: holds("a.tar.gz", s.new)},
		{Name: "checksum is the same", Setup: archived, Properties: wantsNew},
		{Name: "checksum differs, creates there", Setup: all(made, stale), Message: downloaded + ". " + extracted, Check: holds("opt/app/bin/tool", "2\n"), Properties: s.of(t, typetest.Properties{
			"extract_parent": "DIR/opt", "creates": markerOfApp, "checksum": sum(s.new)})},
		{Name: "checksum unset, another content", Setup: stale, Properties: s.of(t, nil), Check: holds("a.tar.gz", s.old)},
		{Name: "cleanup, creates there, archive left over", Setup: all(made, archived), Properties: swept, Message: cleanedUp, Check: all(holds("a.tar.gz", ""), holds("opt/app/bin/tool", "0\n"))},
		{Name: "cleanup, creates there, another archive left over", Setup: all(made, stale), Message: cleanedUp, Check: holds("a.tar.gz", ""), Properties: s.of(t, typetest.Properties{
			"extract_parent": "DIR/opt", "creates": markerOfApp, "cleanup": true, "checksum": sum(s.new)})},
	}
}

// applyCases are the branches of "Apply Logic", "Creates Property", "Cleanup
// Property", "Checksum Verification" and "Supported Archive Formats".
func applyCases(t *testing.T, s stand) []typetest.Case {
	swept := s.of(t, typetest.Properties{"extract_parent": "DIR/opt", "creates": markerOfApp, "cleanup": true})

	return []typetest.Case{
		{Name: "what it creates is gone again", Properties: swept, Message: downloaded + ". " + extracted + ". " + cleanedUp, Drift: func(t testing.TB, dir string) { check(t, os.RemoveAll(dir+"/opt/app")) }},
		{Name: "the archive is gone again", Properties: s.of(t, nil), Message: downloaded, Drift: func(t testing.TB, dir string) { check(t, os.Remove(dir+"/a.tar.gz")) }},
		{Name: "no extraction asked for", Properties: s.of(t, nil), Message: downloaded, Check: holds("a.tar.gz", s.new)},
		{Name: "a download is extracted without creates", Properties: s.of(t, typetest.Properties{"extract_parent": "DIR/opt"}), Message: downloaded + ". " + extracted, Check: holds("opt/app/conf", "new\n")},
		{Name: "no download is not extracted without creates", Setup: withFile("a.tar.gz", s.new), Properties: s.of(t, typetest.Properties{"extract_parent": "DIR/opt"}), Check: holds("opt/app/conf", "")},
		{Name: "all three", Properties: swept, Message: downloaded + ". " + extracted + ". " + cleanedUp, Check: all(holds("opt/app/bin/tool", "2\n"), holds("a.tar.gz", ""))},
		{Name: "extracted and cleaned up", Setup: withFile("a.tar.gz", s.old), Properties: swept, Message: extracted + ". " + cleanedUp, Check: all(holds("opt/app/bin/tool", "1\n"), holds("a.tar.gz", ""))},
		{Name: "what is there is overwritten", Setup: all(withFile("opt/app/conf", "old\n"), withFile("opt/other", "kept")), Properties: swept, Message: downloaded + ". " + extracted + ". " + cleanedUp, Check: all(holds("opt/app/conf", "new\n"), holds("opt/other", "kept"))},
		{Name: "with its checksum", Properties: s.of(t, typetest.Properties{"checksum": sum(s.new)}), Message: downloaded, Check: holds("a.tar.gz", s.new)},
		{Name: ".tgz and .tar.gz are the same", Properties: s.of(t, typetest.Properties{"name": "DIR/b.tar.gz", "url": s.server.URL + "/a.tgz", "extract_parent": "DIR/opt"}), Message: downloaded + ". " + extracted, Check: holds("opt/app/conf", "new\n")},
		{Name: "and the other way round", Properties: s.of(t, typetest.Properties{"name": "DIR/b.tgz"}), Message: downloaded, Check: holds("b.tgz", s.new)},
		{Name: "a deep target", Properties: s.of(t, typetest.Properties{"extract_parent": "DIR/opt/new/er"}), Message: downloaded + ". " + extracted, Check: holds("opt/new/er/app/conf", "new\n")},
	}
}

// obstacleCases are what stands in the way, and links.
func obstacleCases(t *testing.T, s stand) []typetest.Case {
	link := func(name, target string) setup {
		return func(t *testing.T, dir string) { check(t, os.Symlink(target, filepath.Join(dir, name))) }
	}
	directory := func(t *testing.T, dir string) { check(t, os.Mkdir(filepath.Join(dir, "a.tar.gz"), 0o755)) }
	fifo := func(t *testing.T, dir string) { check(t, unix.Mkfifo(filepath.Join(dir, "a.tar.gz"), 0o644)) }
	absent := s.of(t, typetest.Properties{"ensure": "absent"})

	return []typetest.Case{
		{Name: "a directory", Setup: directory, Properties: s.of(t, nil), Error: "path exists as a directory"},
		{Name: "a directory, absent", Setup: directory, Properties: absent, Error: "path exists as a directory"},
		{Name: "a fifo", Setup: fifo, Properties: s.of(t, nil), Error: "path exists as a fifo, socket or device"},
		{Name: "a fifo, absent", Setup: fifo, Properties: absent, Message: removed},
		{Name: "a link is replaced", Setup: all(withFile("t", s.old), link("a.tar.gz", "t")), Properties: s.of(t, nil), Message: downloaded, Check: all(holds("a.tar.gz", s.new), holds("t", s.old))},
		{Name: "a link, absent", Setup: all(withFile("t", s.old), link("a.tar.gz", "t")), Properties: absent, Message: removed, Check: holds("t", s.old)},
		{Name: "no directory for it", Properties: s.of(t, typetest.Properties{"name": "DIR/no/a.tar.gz"}), Error: "/no is not a directory, it does not exist"},
		{Name: "a file in place of its directory", Setup: withFile("f", ""), Properties: s.of(t, typetest.Properties{"name": "DIR/f/a.tar.gz"}), Error: "/f is not a directory"},
		{Name: "a file in place of the target", Setup: withFile("opt", ""), Properties: s.of(t, typetest.Properties{"extract_parent": "DIR/opt"}), Error: "/opt exists and is not a directory"},
		{Name: "a file above the target", Setup: withFile("f", ""), Properties: s.of(t, typetest.Properties{"extract_parent": "DIR/f/opt"}), Error: "/f is not a directory"},
		{Name: "a link to the target", Setup: all(withFile("real/x", ""), link("opt", "real")), Properties: s.of(t, typetest.Properties{"extract_parent": "DIR/opt"}), Message: downloaded + ". " + extracted, Check: holds("real/app/conf", "new\n")},
		{Name: "no such owner", Properties: s.of(t, typetest.Properties{"owner": "no-such-user"}), Error: "no such account"},
	}
}

// one is a resource of the type that is taken step by step.
type one struct {
	t        *testing.T
	typ      *resource.Type
	env      resource.Env
	spec     resource.Spec
	provider resource.Provider
}

func newOne(t *testing.T, properties typetest.Properties) *one {
	t.Helper()
	typ := archiveType()
	r, problems := resource.Decode(typ, typetest.Value(properties), model.Position{})
	check(t, problems.Err())
	provider, err := typ.Select(nil, r.Spec)
	check(t, err)

	return &one{t: t, typ: typ, spec: r.Spec, provider: provider, env: resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t)}}
}

// due looks and plans.
func (o *one) due() (resource.State, resource.Plan) {
	o.t.Helper()
	state, err := o.typ.Status(o.t.Context(), o.env, o.provider, o.spec)
	check(o.t, err)
	plan, err := o.typ.Plan(o.spec, state, false)
	check(o.t, err)

	return state, plan
}

func (o *one) apply(plan resource.Plan) (resource.Outcome, error) {
	return o.typ.Apply(o.t.Context(), o.env, o.provider, o.spec, plan)
}

// TestOwnerOrGroupDiffers is the last row of the decision table, as far as
// every user can take it; the system tests do what only root may.
func TestOwnerOrGroupDiffers(t *testing.T) {
	s := newStand(t)
	for _, property := range []string{"owner", "group"} {
		dir := t.TempDir()
		withFile("a.tar.gz", s.new)(t, dir)
		_, plan := newOne(t, s.of(t, typetest.Properties{property: "4000000000"})(dir)).due()
		if plan.Message() != downloaded || len(plan.Changes) != 1 || plan.Changes[0].Property != property || plan.Changes[0].To != "4000000000" {
			t.Errorf("%s: %+v", property, plan.Changes)
		}
		withFile("opt/app/bin/tool", "0\n")(t, dir)
		for cleanup, want := range map[bool]string{false: downloaded + ". " + extracted, true: cleanedUp} {
			more := typetest.Properties{property: "4000000000", "extract_parent": "DIR/opt", "creates": markerOfApp, "cleanup": cleanup}
			if _, plan := newOne(t, s.of(t, more)(dir)).due(); plan.Message() != want {
				t.Errorf("%s, creates there, cleanup %t: %q", property, cleanup, plan.Message())
			}
		}
	}
}

// TestDecisionMatrix covers the five rows of "Decision Matrix" of the provider and the cases between
// them.
func TestDecisionMatrix(t *testing.T) {
	s := newStand(t)
	const all3, both, sweep = downloaded + ". " + extracted + ". " + cleanedUp, downloaded + ". " + extracted, extracted + ". " + cleanedUp
	for _, c := range []struct {
		archive               string
		creates, sum, cleanup bool
		want                  string
	}{
		{"", false, false, false, both},
		{"", false, true, false, both},
		{"", true, false, false, both},
		{"", true, true, false, both},
		{s.new, false, false, false, extracted},
		{s.new, false, true, false, extracted},
		{s.new, true, false, false, ""},
		{s.new, true, true, false, ""},
		{s.old, false, false, false, extracted},
		{s.old, false, true, false, both},
		{s.old, true, false, false, ""},
		{s.old, true, true, false, both},
		{"", false, false, true, all3},
		{"", false, true, true, all3},
		{"", true, false, true, ""},
		{"", true, true, true, ""},
		{s.new, false, false, true, sweep},
		{s.new, false, true, true, sweep},
		{s.new, true, false, true, cleanedUp},
		{s.new, true, true, true, cleanedUp},
		{s.old, false, false, true, sweep},
		{s.old, false, true, true, all3},
		{s.old, true, false, true, cleanedUp},
		{s.old, true, true, true, cleanedUp},
	} {
		dir := t.TempDir()
		more := typetest.Properties{"extract_parent": "DIR/opt", "creates": markerOfApp, "cleanup": c.cleanup}
		if c.sum {
			more["checksum"] = sum(s.new)
		}
		if c.archive != "" {
			withFile("a.tar.gz", c.archive)(t, dir)
		}
		if c.creates {
			withFile("opt/app/bin/tool", "0\n")(t, dir)
		}
		o := newOne(t, s.of(t, more)(dir))
		_, plan := o.due()
		if plan.Message() != c.want {
			t.Errorf("%d bytes of an archive, creates %t, checksum %t, cleanup %t: noop says %q, not %q", len(c.archive), c.creates, c.sum, c.cleanup, plan.Message(), c.want)
		}
		outcome, err := o.apply(plan)
		check(t, err)
		state, after := o.due()
		if err := o.typ.Verify(o.spec, outcome, state); err != nil || !after.Empty() {
			t.Errorf("%d bytes of an archive, creates %t, checksum %t, cleanup %t: still due: %q, %v", len(c.archive), c.creates, c.sum, c.cleanup, after.Message(), err)
		}
	}
}

// TestExtractionNamesWhatIsMissing where extract_parent is there.
func TestExtractionNamesWhatIsMissing(t *testing.T) {
	s := newStand(t)
	for name, more := range map[string]typetest.Properties{
		"creates": {"extract_parent": "DIR/opt", "creates": markerOfApp}, "extract_parent": {"extract_parent": "DIR/opt"},
	} {
		dir := t.TempDir()
		withFile("opt/other", "")(t, dir)
		_, plan := newOne(t, s.of(t, more)(dir)).due()
		got, want := plan.Changes[len(plan.Changes)-1], model.Change{Property: "extract_parent", From: "not extracted", To: dir + "/opt"}
		if name == "creates" {
			want = model.Change{Property: "creates", From: "absent", To: strings.Replace(markerOfApp, "DIR", dir, 1)}
		}
		if got.Property != want.Property || got.From != want.From || got.To != want.To {
			t.Errorf("%s: it is due because of %s, %s -> %s", name, got.Property, got.From, got.To)
		}
	}
}

// TestExtractionIsOwed has extractions that did not come to their end.
func TestExtractionIsOwed(t *testing.T) {
	s := newStand(t)
	for name, more := range map[string]typetest.Properties{
		"without creates": {"extract_parent": "DIR/opt"},
		"creates there":   {"extract_parent": "DIR/opt", "creates": "DIR/there", "checksum": sum(s.new)},
		"with cleanup":    {"extract_parent": "DIR/opt", "creates": "DIR/opt/app/bin/tool", "cleanup": true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			all(withFile("there", ""), withFile("opt", "in the way"))(t, dir)
			o := newOne(t, s.of(t, more)(dir))
			// It is only found out at the extraction, as a full disk would be.
			full := resource.Plan{Changes: []model.Change{{Action: "download"}, {Action: "extract"}}}
			if _, err := o.apply(full); err == nil {
				t.Fatal("it was unpacked into a file")
			}
			holds("a.tar.gz", s.new)(t, dir)
			check(t, os.Remove(filepath.Join(dir, "opt")))
			withFile("opt/app/bin/tool", "half")(t, dir)
			// As another process would find it.
			_, plan := o.due()
			if want := extracted; !strings.HasPrefix(plan.Message(), want) {
				t.Fatalf("what is owed is forgotten: %q", plan.Message())
			}
			_, err := o.apply(plan)
			check(t, err)
			holds("opt/app/bin/tool", "2\n")(t, dir)
			if _, plan := o.due(); !plan.Empty() {
				t.Errorf("it is still owed: %q", plan.Message())
			}
		})
	}
}

// TestOwedExtractionOfALostArchive has the archive vanish, as below /tmp at a boot.
func TestOwedExtractionOfALostArchive(t *testing.T) {
	s, dir := newStand(t), t.TempDir()
	o := newOne(t, s.of(t, typetest.Properties{"extract_parent": "DIR/opt", "creates": markerOfApp, "cleanup": true})(dir))
	withFile("opt", "in the way")(t, dir)
	if _, err := o.apply(resource.Plan{Changes: []model.Change{{Action: "download"}, {Action: "extract"}}}); err == nil {
		t.Fatal("it was unpacked into a file")
	}
	check(t, errors.Join(os.Remove(filepath.Join(dir, "opt")), os.Remove(filepath.Join(dir, "a.tar.gz"))))
	withFile("opt/app/bin/tool", "half")(t, dir)
	if _, plan := o.due(); plan.Message() != downloaded+". "+extracted+". "+cleanedUp {
		t.Errorf("noop says %q", plan.Message())
	}
	for _, damage := range []string{"", "{", `{"archive":"/other"}`} {
		records, err := filepath.Glob(filepath.Join(o.env.Host.StateDir(), "archives", "*.json"))
		if err != nil || len(records) != 1 {
			t.Fatal(records, err)
		}
		check(t, os.WriteFile(records[0], []byte(damage), 0o600))
		if _, plan := o.due(); !plan.Has("extract") {
			t.Errorf("with a record of %q noop says %q", damage, plan.Message())
		}
	}
}

// TestRemovalForgets has an archive that is absent owe nothing.
func TestRemovalForgets(t *testing.T) {
	s, dir := newStand(t), t.TempDir()
	o := newOne(t, s.of(t, typetest.Properties{"extract_parent": "DIR/opt"})(dir))
	_, plan := o.due()
	_, err := o.apply(plan)
	check(t, err)
	o.spec.Meta().Ensure = model.EnsureAbsent
	_, plan = o.due()
	_, err = o.apply(plan)
	check(t, err)
	if records, _ := filepath.Glob(filepath.Join(o.env.Host.StateDir(), "archives", "*")); len(records) > 0 {
		t.Errorf("%v are left", records)
	}
}

// TestOutputs has the checksum in every state that is as it should be.
func TestOutputs(t *testing.T) {
	s := newStand(t)
	outputs := func(o *one, outcome resource.Outcome) any {
		state, plan := o.due()
		if !plan.Empty() {
			t.Errorf("still due: %s", plan.Message())
		}
		return o.typ.Outputs(o.spec, state, outcome)["checksum"]
	}
	for name, more := range map[string]typetest.Properties{
		"kept":       nil,
		"extracted":  {"extract_parent": "DIR/opt"},
		"cleaned up": {"extract_parent": "DIR/opt", "creates": markerOfApp, "cleanup": true},
	} {
		o := newOne(t, s.of(t, more)(t.TempDir()))
		_, plan := o.due()
		outcome, err := o.apply(plan)
		check(t, err)
		if got := outputs(o, outcome); got != sum(s.new) {
			t.Errorf("%s: just now it is %v", name, got)
		}
		if got := outputs(o, resource.Outcome{}); got != sum(s.new) {
			t.Errorf("%s: afterwards it is %v", name, got)
		}
	}
	dir := t.TempDir()
	withFile("opt/app/bin/tool", "")(t, dir)
	more := typetest.Properties{"extract_parent": "DIR/opt", "creates": markerOfApp, "cleanup": true}
	if got := outputs(newOne(t, s.of(t, more)(dir)), resource.Outcome{}); got != nil {
		t.Errorf("of an archive that was never seen it is %v", got)
	}
	more["checksum"] = strings.ToUpper(sum(s.old))
	if got := outputs(newOne(t, s.of(t, more)(dir)), resource.Outcome{}); got != sum(s.old) {
		t.Errorf("of one that was only asked for it is %v", got)
	}
}

// TestVerify has what a run can leave that is not as it should be.
func TestVerify(t *testing.T) {
	s, dir := newStand(t), t.TempDir()
	o := newOne(t, s.of(t, typetest.Properties{"extract_parent": "DIR/opt", "creates": "DIR/opt/app/bin/other"})(dir))
	_, plan := o.due()
	outcome, err := o.apply(plan)
	check(t, err)
	state, _ := o.due()
	if err := o.typ.Verify(o.spec, outcome, state); err == nil || !strings.Contains(err.Error(), "`creates` must name a path in the archive") {
		t.Errorf("creates names nothing: %v", err)
	}
	o = newOne(t, s.of(t, nil)(dir))
	withFile("a.tar.gz", s.old)(t, dir)
	state, _ = o.due()
	if err := o.typ.Verify(o.spec, outcome, state); err == nil || !strings.Contains(err.Error(), "it changed after the download") {
		t.Errorf("another archive: %v", err)
	}
}

// TestQuestion asks for the state with a name alone.
func TestQuestion(t *testing.T) {
	dir := t.TempDir()
	typ := archiveType()
	for _, content := range []string{"", "text"} {
		if content != "" {
			withFile("a.zip", content)(t, dir)
		}
		r, problems := resource.DecodeQuestion(typ, typetest.Value(typetest.Properties{"name": dir + "/a.zip"}), model.Position{})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		provider, err := typ.Select(nil, r.Spec)
		check(t, err)
		state, err := typ.Status(t.Context(), resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t)}, provider, r.Spec)
		check(t, err)
		m := state.(*archive.State).Metadata
		if want := content != ""; m.ArchiveExists != want || (state.State().Ensure == "present") != want || (m.Checksum == sum(content)) != want || m.Provider != "http" || m.Name != dir+"/a.zip" {
			t.Errorf("%+v %+v", state, m)
		}
	}
}
