package edits_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/edits"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/typetest"
)

// batch is parts of a directory that are observed and changed together.
type batch struct {
	t     *testing.T
	dir   string
	env   resource.Env
	typ   *resource.Type
	specs []resource.Spec
}

func newBatch(t *testing.T) *batch {
	return &batch{t: t, dir: t.TempDir(), typ: lineType(), env: resource.Env{Host: hosttest.New(t), Log: hosttest.Log(t)}}
}

// add adds a part named name of the file f, unless its path is set to another name.
func (b *batch) add(typ *resource.Type, name string, p properties) {
	b.t.Helper()
	all := properties{"name": name, "path": "f"}
	for key, value := range p {
		all[key] = value
	}
	all["path"] = b.path(fmt.Sprint(all["path"]))
	r, problems := resource.Decode(typ, typetest.Value(all), model.Position{})
	check(b.t, problems.Err())
	b.specs = append(b.specs, r.Spec)
}

func (b *batch) path(name string) string { return filepath.Join(b.dir, name) }

func (b *batch) write(name, content string) {
	b.t.Helper()
	check(b.t, os.WriteFile(b.path(name), []byte(content), 0o600))
}

func (b *batch) read(name string) string {
	b.t.Helper()
	content, err := os.ReadFile(b.path(name))
	check(b.t, err)

	return string(content)
}

// plan returns the plans of the parts, and the errors.
func (b *batch) plan() ([]resource.Plan, []error) {
	b.t.Helper()
	states, errs := b.typ.StatusAll(b.t.Context(), b.env, edits.Posix{}, b.specs)
	plans := make([]resource.Plan, len(states))
	for i := range states {
		if errs[i] == nil {
			plans[i], errs[i] = b.typ.Plan(b.specs[i], states[i], false)
		}
	}

	return plans, errs
}

// apply makes the due changes, and returns the error of each part, nil for a part that was not due.
func (b *batch) apply() []error {
	b.t.Helper()
	plans, errs := b.plan()
	var due []int
	var specs []resource.Spec
	var duePlans []resource.Plan
	for i := range plans {
		if errs[i] == nil && !plans[i].Empty() {
			due, specs, duePlans = append(due, i), append(specs, b.specs[i]), append(duePlans, plans[i])
		}
	}
	outcomes, err := b.typ.ApplyAll(b.t.Context(), b.env, edits.Posix{}, specs, duePlans)
	if len(outcomes) != len(specs) {
		b.t.Fatalf("%d outcomes of %d changes: %v", len(outcomes), len(specs), err)
	}
	if batch, is := errors.AsType[resource.BatchError](err); is {
		for i, at := range due {
			errs[at] = batch[i]
		}
	} else {
		check(b.t, err)
	}

	return errs
}

// stable checks that nothing is due.
func (b *batch) stable() {
	b.t.Helper()
	plans, errs := b.plan()
	for i := range plans {
		if errs[i] != nil || !plans[i].Empty() {
			b.t.Errorf("%s is not stable: %s, %v", b.specs[i].Meta().Name, plans[i].Message(), errs[i])
		}
	}
}

func (b *batch) succeeds(errs []error) {
	b.t.Helper()
	check(b.t, errors.Join(errs...))
}

// counted runs f and returns how often the file was opened, and how often a file got its name.
func counted(t *testing.T, path string, f func()) (opened, renamed int) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	check(t, err)
	defer unix.Close(fd)
	_, err = unix.InotifyAddWatch(fd, filepath.Dir(path), unix.IN_OPEN|unix.IN_CLOSE|unix.IN_MOVED_TO) // closes keep opens from being merged
	check(t, err)
	f()
	buffer := make([]byte, 1<<20)
	for {
		n, err := unix.Read(fd, buffer)
		if err != nil {
			return opened, renamed
		}
		for event := buffer[:n]; len(event) > 0; {
			mask, length := binary.NativeEndian.Uint32(event[4:]), binary.NativeEndian.Uint32(event[12:])
			name := strings.TrimRight(string(event[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+length]), "\x00")
			event = event[unix.SizeofInotifyEvent+length:]
			switch {
			case name != filepath.Base(path):
			case mask&unix.IN_OPEN != 0:
				opened++
			case mask&unix.IN_MOVED_TO != 0:
				renamed++
			}
		}
	}
}

// TestManyParts checks that many parts of a file cost one read and one write.
func TestManyParts(t *testing.T) {
	for _, count := range []int{100, 500} {
		b := newBatch(t)
		b.write("f", "first\n")
		want := "first\n"
		for i := range count {
			line := fmt.Sprintf("key%03d=1", i)
			want += line + "\n"
			b.add(lineType(), line, properties{"line": line, "match": "^key" + line[3:6] + "="})
		}
		var errs []error
		opened, renamed := counted(t, b.path("f"), func() { errs = b.apply() })
		b.succeeds(errs)
		if opened != 2 || renamed != 1 || b.read("f") != want {
			t.Errorf("%d parts: opened %d times, replaced %d times: %.300s", count, opened, renamed, b.read("f"))
		}
		opened, renamed = counted(t, b.path("f"), b.stable)
		if opened != 1 || renamed != 0 {
			t.Errorf("%d stable parts: opened %d times, replaced %d times", count, opened, renamed)
		}
	}
}

// TestLargeFile checks the limit of 16 MiB, before and after an edit.
func TestLargeFile(t *testing.T) {
	const size, line = 16 << 20, "0123456789abcde\n"
	full := strings.Repeat(line, size/len(line))
	for _, c := range []struct{ content, want string }{
		{full[len(line):], ""}, {full, "would have more than 16 MiB"}, {full + "\n", "file is too large"},
	} {
		b := newBatch(t)
		b.write("f", c.content)
		b.add(lineType(), "a", properties{"line": "a", "at": "start"})
		err := b.apply()[0]
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) || b.read("f") != c.content {
				t.Errorf("%d bytes: %v", len(c.content), err)
			}
		case err != nil || b.read("f") != "a\n"+c.content:
			t.Errorf("%d bytes: %v", len(c.content), err)
		}
	}
}

// Messages name the lines of the file before the run, and the first changed part has the diff.
func TestMessagesOfSeveralParts(t *testing.T) {
	b := newBatch(t)
	b.write("f", "a\nb 1\nc\n")
	b.write("g", "x\n")
	b.add(lineType(), "stable", properties{"line": "a"})
	b.add(lineType(), "new", properties{"line": "n", "after": "^a"})
	b.add(lineType(), "other file", properties{"line": "y", "path": "g"})
	b.add(lineType(), "changed", properties{"line": "b 2", "match": "^b"})
	b.add(lineType(), "after the new one", properties{"line": "m", "after": "^n"})
	b.add(lineType(), "gone", properties{"ensure": "absent", "line": "c"})
	plans, errs := b.plan()
	b.succeeds(errs)
	for i, want := range []string{"", "Would have added a line after line 1", "Would have added a line after line 1", "Would have changed line 2", "Would have added a line after line 1", "Would have removed line 3"} {
		if got := plans[i].Message(); got != want {
			t.Errorf("part %d: %q, not %q", i, got, want)
		}
		if !plans[i].Empty() && (plans[i].Changes[0].Diff != "") != (i == 1 || i == 2) {
			t.Errorf("part %d has the diff %q", i, plans[i].Changes[0].Diff)
		}
	}
	if diff := plans[1].Changes[0].Diff; !strings.Contains(diff, "-b 1\n-c\n+n\n+m\n+b 2\n") {
		t.Errorf("the diff of the file is %s", diff)
	}
	b.succeeds(b.apply())
	if got := b.read("f") + b.read("g"); got != "a\nn\nm\nb 2\nx\ny\n" {
		t.Errorf("%q", got)
	}
	b.stable()
}

func TestSensitivePartHidesTheDiff(t *testing.T) {
	b := newBatch(t)
	b.write("f", "password=old\n")
	b.add(lineType(), "open", properties{"line": "a"})
	b.add(lineType(), "secret", properties{"line": "password=new", "match": "^password=", "sensitive": true})
	plans, errs := b.plan()
	b.succeeds(errs)
	if plans[0].Changes[0].Diff != "" || plans[1].Changes[0].Diff != "" {
		t.Errorf("a diff shows the secret: %+v", plans)
	}
}

// A file with one part that has create gets all parts.
func TestCreateWithSeveralParts(t *testing.T) {
	user, group := hosttest.Owner(t)
	b := newBatch(t)
	b.add(lineType(), "a", properties{"line": "a"})
	b.add(lineType(), "b", properties{"line": "b", "create": true, "owner": user, "group": group, "mode": "0640"})
	b.add(lineType(), "c", properties{"ensure": "absent", "line": "c"})
	plans, errs := b.plan()
	b.succeeds(errs)
	if plans[0].Message() != "Would have created the file" || plans[1].Message() != "Would have added a line" || !plans[2].Empty() {
		t.Errorf("%q, %q, %q", plans[0].Message(), plans[1].Message(), plans[2].Message())
	}
	b.succeeds(b.apply())
	info, err := os.Stat(b.path("f"))
	check(t, err)
	if b.read("f") != "a\nb\n" || info.Mode() != 0o640 {
		t.Errorf("%q with mode %v", b.read("f"), info.Mode())
	}
	b.stable()
}

// Parts that undo each other fail and name each other. The other parts of the file are applied.
func TestPartsThatUndoEachOther(t *testing.T) {
	b := newBatch(t)
	b.write("f", "x\n")
	b.add(lineType(), "on", properties{"line": "debug=1", "match": "^debug="})
	b.add(lineType(), "other", properties{"line": "y"})
	b.add(lineType(), "off", properties{"ensure": "absent", "match": "^debug"})
	errs := b.apply()
	if errs[0] == nil || !strings.Contains(errs[0].Error(), b.path("f")+": it and line#off undo each other") ||
		errs[2] == nil || !strings.Contains(errs[2].Error(), "it and line#on undo each other") || errs[1] != nil {
		t.Error(errs)
	}
	if b.read("f") != "x\ny\n" {
		t.Errorf("%q", b.read("f"))
	}
}

// A part that fails does not stop the other parts of its file.
func TestPartThatFails(t *testing.T) {
	b := newBatch(t)
	b.write("f", "a\na\n")
	b.add(lineType(), "several", properties{"line": "a1", "match": "^a"})
	b.add(lineType(), "fine", properties{"line": "b"})
	errs := b.apply()
	if errs[0] == nil || errs[1] != nil || b.read("f") != "a\na\nb\n" {
		t.Errorf("%v: %q", errs, b.read("f"))
	}
}

// Validate judges the file with all parts, once for each distinct command.
func TestValidateJudgesAllParts(t *testing.T) {
	b := newBatch(t)
	b.write("f", "x\n")
	command := fmt.Sprintf(`sh -c 'echo $(wc -l <$1) >>%s/calls; test $(wc -l <$1) -lt 3' sh {}`, b.dir)
	b.add(lineType(), "a", properties{"line": "a", "validate": command})
	b.add(lineType(), "b", properties{"line": "b", "validate": command})
	b.add(lineType(), "c", properties{"line": "x"})
	errs := b.apply()
	for _, err := range errs[:2] {
		if err == nil || !strings.Contains(err.Error(), "validate: sh ended with exit code 1") || !errors.As(err, new(resource.Concluded)) {
			t.Errorf("%v", err)
		}
	}
	if b.read("f") != "x\n" || b.read("calls") != "3\n" || errs[2] != nil {
		t.Errorf("%q, validated: %q, %v", b.read("f"), b.read("calls"), errs[2])
	}
	b.specs = b.specs[1:]
	b.succeeds(b.apply())
	if b.read("f") != "x\nb\n" || b.read("calls") != "3\n2\n" {
		t.Errorf("%q, validated: %q", b.read("f"), b.read("calls"))
	}
}

// A change by another program between the read and the write is not lost.
func TestEditBetweenReadAndWrite(t *testing.T) {
	b := newBatch(t)
	b.write("f", "a\n")
	b.add(lineType(), "b", properties{"line": "b", "validate": fmt.Sprintf(`sh -c 'test -e %[1]s/done || echo c >>%[1]s/f; touch %[1]s/done' sh {}`, b.dir)})
	b.succeeds(b.apply())
	if b.read("f") != "a\nc\nb\n" {
		t.Errorf("%q", b.read("f"))
	}
	b.stable()

	b.add(lineType(), "d", properties{"line": "d", "validate": fmt.Sprintf(`sh -c 'echo e >>%s/f' sh {}`, b.dir)})
	if errs := b.apply(); !errors.Is(errs[1], files.ErrReplaced) {
		t.Errorf("a file that changes all the time: %v", errs)
	}
	if got := b.read("f"); got != "a\nc\nb\ne\ne\ne\n" {
		t.Errorf("%q", got)
	}
}

// A query needs no properties.
func TestQuery(t *testing.T) {
	b := newBatch(t)
	b.write("f", "a\nb\n")
	for _, p := range []properties{{"name": b.path("f")}, {"name": b.path("f"), "match": "b"}, {"name": b.path("g")}} {
		r, problems := resource.DecodeQuestion(lineType(), typetest.Value(p), model.Position{})
		check(t, problems.Err())
		b.specs = append(b.specs, r.Spec)
	}
	states, errs := b.typ.StatusAll(t.Context(), b.env, edits.Posix{}, b.specs)
	b.succeeds(errs)
	for i, want := range []string{"absent", "present", "absent"} {
		if got := states[i].State().Ensure; got != want {
			t.Errorf("%d: %s, not %s", i, got, want)
		}
	}
}
