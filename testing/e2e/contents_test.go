package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/testing/tartest"
)

// bundle stores the bundle of a tar with write access to the bucket, and returns its digest.
func (f *signFleet) bundle(archive []byte) string {
	f.t.Helper()
	packed := tartest.Zip(f.t, archive)
	js, err := jetstream.New(f.nc)
	if err != nil {
		f.t.Fatal(err)
	}
	store, err := js.ObjectStore(f.t.Context(), "MUSTER_BUNDLES")
	if err != nil {
		f.t.Fatal(err)
	}
	digest := model.DigestOf(packed)
	if _, err := store.PutBytes(f.t.Context(), digest, packed); err != nil {
		f.t.Fatal(err)
	}

	return digest
}

// assign stores an assignment of a bundle.
func (f *signFleet) assign(archive []byte, terms model.Assignment) {
	f.t.Helper()
	terms.Protocol, terms.Name, terms.Bundle = model.ProtocolAssignment, "motd", f.bundle(archive)
	terms.Digest = terms.Bundle
	value, err := json.Marshal(terms)
	if err != nil {
		f.t.Fatal(err)
	}
	f.put(value)
}

// TestSignShowsWhatNodesUnpack of a bundle: whatever kind an entry has, and however it
// changed.
func TestSignShowsWhatNodesUnpack(t *testing.T) {
	t.Parallel()
	f := newSignFleet(t)
	good := []tartest.Entry{tartest.File("manifest.yaml", manifestOf("good"), 0o644), tartest.File("files/run", "#!/bin/sh\n", 0o644)}
	f.assign(tartest.Tar(t, good...), model.Assignment{})
	f.good("fleet", "sign", signKey, "--yes", "--sign-key", f.key)
	sparse := "* * * * * root evil\n"
	for name, c := range map[string]struct {
		entries []tartest.Entry
		want    []string
	}{
		"an old sparse file": {append(good, tartest.OldSparse("files/cron-evil", sparse, 0o644, int64(len(sparse)))), []string{"- files/cron-evil, 20 bytes", "+* * * * * root evil"}},
		"a hard link":        {append(good, tartest.HardLink("files/hardlink", "files/run")), []string{"- files/hardlink, 10 bytes, hard link to files/run", "files/hardlink (hard link to files/run)"}},
		"an empty file":      {append(good, tartest.File("files/allow", "", 0o644)), []string{"- files/allow, 0 bytes", "files/allow (none)"}},
		"an empty directory": {append(good, tartest.Directory("files/conf.d", 0o755)), []string{"- files/conf.d/", "files/conf.d (directory)"}},
		"an executable bit":  {append(good[:1:1], tartest.File("files/run", "#!/bin/sh\n", 0o755)), []string{"- files/run, 10 bytes, mode 0755", "files/run (mode 0755)"}},
		"a link for a file":  {append(good[:1:1], tartest.Link("files/run", "../manifest.yaml")), []string{"- files/run -> ../manifest.yaml", "files/run (symbolic link)"}},
	} {
		f.assign(tartest.Tar(t, c.entries...), model.Assignment{})
		text := f.refuses("confirm with --yes", "fleet", "sign", signKey, "--sign-key", f.key)
		text += f.good("fleet", "show", signKey) + f.good("fleet", "show", signKey, "--diff", "--from", "2")
		for _, want := range c.want {
			if strings.Count(text, want) < 2 {
				t.Errorf("%s: not shown by both: %q\n%s", name, want, text)
			}
		}
	}
}

// TestFilesHideNoTerms, whatever their names are.
func TestFilesHideNoTerms(t *testing.T) {
	t.Parallel()
	f := newSignFleet(t)
	manifest := tartest.File("manifest.yaml", manifestOf("good"), 0o644)
	f.assign(tartest.Tar(t, manifest), model.Assignment{})
	f.assign(tartest.Tar(t, manifest, tartest.File("(terms)", "", 0o644), tartest.File("a\n  - harmless, 1 byte", "", 0o644)), model.Assignment{When: "Facts.evil"})
	diff := f.good("fleet", "show", signKey, "--diff")
	if !strings.Contains(diff, "+when: Facts.evil\n") || !strings.Contains(diff, `+++ `+signKey+`@2 "(terms)"`) {
		t.Errorf("the diff is\n%s", diff)
	}
	if list := f.good("fleet", "show", signKey); !strings.Contains(list, `- "(terms)", 0 bytes`) || strings.Contains(list, "\n  - harmless") {
		t.Errorf("the list is\n%s", list)
	}
}

// TestASecondSignerSeesTheContent of a bundle that this key never signed.
func TestASecondSignerSeesTheContent(t *testing.T) {
	t.Parallel()
	f := newSignFleet(t)
	long := strings.Repeat("# a comment\n", 100_000)
	f.assign(tartest.Tar(t, tartest.File("manifest.yaml", manifestOf("evil"), 0o644), tartest.File("long", long, 0o644), tartest.File("binary", "\x00\x01", 0o644),
		tartest.Link("link", "long")), model.Assignment{})
	text := f.refuses("confirm with --yes", "fleet", "sign", signKey, "--sign-key", f.key)
	for _, want := range []string{
		"  | " + manifestOf("evil"), "- link -> long", "- long, 1200000 bytes", "- binary, 2 bytes", model.DigestOf([]byte(long)),
		"muster fleet show " + signKey + " --revision 1 --file binary", "muster fleet show " + signKey + " --revision 1 --file long",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("not shown: %q\n%s", want, text)
		}
	}
	if got := f.good("fleet", "show", signKey, "--revision", "1", "--file", "long"); got != long {
		t.Errorf("the file has %d bytes", len(got))
	}
	if code, got := f.run("fleet", "show", signKey, "--file", "nope"); code == 0 || !strings.Contains(got, "no file nope") {
		t.Errorf("a file that is not there: %d, %s", code, got)
	}
}

// TestABombHangsNoCommand: nodes refuse decompression bombs, and report the reason and the limit.
func TestABombHangsNoCommand(t *testing.T) {
	t.Parallel()
	f := newSignFleet(t)
	f.put([]byte(manifestOf("good")))
	f.assign(tartest.Sparse(t, "bomb", 1<<50), model.Assignment{})
	const why = `nodes refuse this bundle: "bomb": file is too large: more than the 1073741824 bytes that are allowed would be unpacked`
	if text := f.good("fleet", "show", signKey); !strings.Contains(text, why) {
		t.Errorf("shown:\n%s", text)
	}
	f.refuses(why, "fleet", "show", signKey, "--diff")
	f.refuses(why, "fleet", "sign", signKey, "--yes", "--sign-key", f.key)
	f.put([]byte(manifestOf("better")))
	f.refuses(why, "fleet", "rollback", signKey, "--to", "2", "--yes")
	f.good("fleet", "push", "--group", "web", f.manifest("pushed"))
}
