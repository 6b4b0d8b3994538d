package assign_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/testing/tartest"
)

// revision returns a revision that assigns a bundle, and an opener of the bundle.
func bundleRevision(t *testing.T, archive []byte) (model.Entry, assign.OpenBundle) {
	t.Helper()
	packed := tartest.Zip(t, archive)
	value, err := json.Marshal(model.Assignment{Protocol: model.ProtocolAssignment, Name: "m", Bundle: model.DigestOf(packed), Digest: model.DigestOf(packed)})
	if err != nil {
		t.Fatal(err)
	}

	return model.Entry{Key: "node.a.m", Revision: 1, Value: value}, func(context.Context, string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed)), nil
	}
}

func of(t *testing.T, entries ...tartest.Entry) assign.Content {
	t.Helper()
	e, open := bundleRevision(t, tartest.Tar(t, entries...))
	c, err := assign.ReadContent(t.Context(), e, open)
	if err != nil {
		t.Fatal(err)
	}

	return c
}

// TestTextsAreBounded: a bundle of many does not fill the memory of who looks at it.
func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	mib := strings.Repeat(" ", 1<<20)
	entries := []tartest.Entry{tartest.File("a-binary", "\x00"+mib[:1000], 0o644), tartest.File("a-latin1", "\xe9", 0o644), tartest.File("a-long", mib+" ", 0o644)}
	for i := range 20 {
		entries = append(entries, tartest.File(fmt.Sprintf("spaces%02d", i), mib, 0o644))
	}
	total, omitted := 0, map[string]string{}
	for _, f := range of(t, entries...).Files() {
		total += len(f.Text)
		if f.Omitted != "" {
			omitted[f.Name] = f.Omitted
		}
		if f.Digest == "" || f.Omitted != "" && f.Text != "" {
			t.Errorf("%+v", f)
		}
	}
	if total != 8<<20 || len(omitted) != 3+12 || omitted["a-binary"] != "not a text" || omitted["a-latin1"] != "not a text" ||
		omitted["a-long"] != "longer than 1 MiB" || omitted["spaces08"] != "behind 8 MiB of other texts" {
		t.Errorf("%d bytes of texts, without %v", total, omitted)
	}
}

// TestNamesAreLines that nothing in them can imitate.
func TestNamesAreLines(t *testing.T) {
	t.Parallel()
	var got []string
	for _, f := range of(t,
		tartest.File("plain", "x", 0o644), tartest.File("a b", "", 0o600), tartest.File("(terms)", "", 0o644), tartest.File("x\n  - y, 1 byte", "", 0o644),
		tartest.File("\xff", "", 0o644), tartest.Link("l -> m", "n\n"), tartest.HardLink("h", "plain"), tartest.Directory("d", 0o700), tartest.File("e/f", "ü\n", 0o755),
	).Files() {
		got = append(got, f.String())
	}
	want := []string{
		`"(terms)", 0 bytes`, `"a b", 0 bytes, mode 0600`, "d/, mode 0700", "e/", "e/f, 3 bytes, mode 0755", "h, 1 byte, hard link to plain", `"l -> m" -> "n\n"`, "plain, 1 byte",
		`"x\n  - y, 1 byte", 0 bytes`, `"\xff", 0 bytes`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	for name, want := range map[string]string{"a/b.c": "a/b.c", "-x": "./-x", "a b": "'a b'", "$(evil)": "'$(evil)'", "a'b": `'a'\''b'`} {
		if got := (assign.File{Name: name}).Argument(); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestDiffShowsEachChange, also those that leave a text as it is.
func TestDiffShowsEachChange(t *testing.T) {
	t.Parallel()
	binary := "\x00"
	file, name := tartest.File, "f"
	for what, c := range map[string]struct {
		before, after []tartest.Entry
		want          string
	}{
		"nothing":              {[]tartest.Entry{file(name, "x\n", 0o755)}, []tartest.Entry{file("./f", "x\n", 0o755)}, ""},
		"an empty file":        {nil, []tartest.Entry{file(name, "", 0o644)}, "--- f (none)\n+++ f\n"},
		"an empty file less":   {[]tartest.Entry{file(name, "", 0o644)}, nil, "--- f\n+++ f (none)\n"},
		"a mode":               {[]tartest.Entry{file(name, "x", 0o644)}, []tartest.Entry{file(name, "x", 0o755)}, "--- f\n+++ f (mode 0755)\n"},
		"a directory":          {nil, []tartest.Entry{tartest.Directory(name, 0o755)}, "--- f (none)\n+++ f (directory)\n"},
		"a mode of one":        {[]tartest.Entry{tartest.Directory(name, 0o755)}, []tartest.Entry{tartest.Directory(name, 0o777)}, "--- f (directory)\n+++ f (directory, mode 0777)\n"},
		"a target":             {[]tartest.Entry{tartest.Link(name, "a")}, []tartest.Entry{tartest.Link(name, "b")}, "--- f\n+++ f\n@@ -1 +1 @@\n--> a\n+-> b\n"},
		"a link like a text":   {[]tartest.Entry{file(name, "-> a\n", 0o644)}, []tartest.Entry{tartest.Link(name, "a")}, "--- f\n+++ f (symbolic link)\n"},
		"a text like a digest": {[]tartest.Entry{file(name, binary, 0o644)}, []tartest.Entry{file(name, model.DigestOf([]byte(binary))+", 1 byte\n", 0o644)}, "--- f (not a text)\n+++ f\n"},
		"a hard link": {[]tartest.Entry{file("a", "x", 0o644), file(name, "x", 0o644)}, []tartest.Entry{file("a", "x", 0o644), tartest.HardLink(name, "a")},
			"--- f\n+++ f (hard link to a)\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+" + model.DigestOf([]byte("x")) + ", 1 byte\n"},
	} {
		got, err := of(t, c.before...).Diff(t.Context(), of(t, c.after...))
		if got = strings.ReplaceAll(got, "node.a.m@1 ", ""); got != c.want || err != nil {
			t.Errorf("%s: %v\n%s", what, err, got)
		}
	}
	stopped := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, err := of(t).Diff(ctx, of(t, file(name, "x", 0o644))); !errors.Is(err, stopped) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestRefusedBundle: it lists the files before the first refused one.
func TestRefusedBundle(t *testing.T) {
	t.Parallel()
	e, open := bundleRevision(t, tartest.Tar(t, tartest.File("a", "x", 0o644), tartest.File("../b", "x", 0o644)))
	c, err := assign.ReadContent(t.Context(), e, open)
	if !errors.Is(err, assign.ErrRefused) || !strings.Contains(err.Error(), `nodes refuse this bundle: "../b"`) || len(c.Files()) != 1 {
		t.Errorf("%v, %v", c.Files(), err)
	}
	e, open = bundleRevision(t, tartest.Sparse(t, "bomb", 1<<50))
	if _, err := assign.ReadContent(t.Context(), e, open); !errors.Is(err, assign.ErrRefused) || !errors.Is(err, files.ErrTooLarge) {
		t.Errorf("a bomb: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("interrupted")
	cancel(stopped)
	if _, err := assign.ReadContent(ctx, e, open); !errors.Is(err, stopped) || errors.Is(err, assign.ErrRefused) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	e, open := bundleRevision(t, tartest.Tar(t, tartest.File("d/f", "\x00binary", 0o644), tartest.HardLink("h", "d/f"), tartest.Link("l", "h")))
	bare := model.Entry{Key: "node.a.m", Revision: 2, Value: []byte("muster: {}\n")}
	for _, c := range []struct {
		e                model.Entry
		name, want, fail string
	}{
		{e, "d/f", "\x00binary", ""}, {e, "./d//f", "\x00binary", ""}, {e, "g", "", "has no file g"}, {e, "h", "", "hard link to d/f"}, {e, "l", "", "l -> h"}, {e, "d", "", "d/"},
		{bare, "manifest.yaml", "muster: {}\n", ""}, {bare, "x", "", "has no file x"}, {model.Entry{Deleted: true}, "x", "", "has no file x"},
	} {
		var out bytes.Buffer
		err := assign.WriteContent(t.Context(), c.e, open, c.name, &out)
		if out.String() != c.want || (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) {
			t.Errorf("%s: %q, %v", c.name, out.String(), err)
		}
	}
	refused, open := bundleRevision(t, tartest.Tar(t, tartest.File("a", "x", 0o644), tartest.File("a", "y", 0o644)))
	if err := assign.WriteContent(t.Context(), refused, open, "a", io.Discard); !errors.Is(err, assign.ErrRefused) {
		t.Errorf("of a refused bundle: %v", err)
	}
}
