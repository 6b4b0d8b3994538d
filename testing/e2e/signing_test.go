package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/testing/natstest"
	"github.com/musterfleet/muster/testing/signtest"
)

const signKey = "group.web.motd"

// signFleet is a fleet with an attacker who controls the bucket, and an operator with a key.
type signFleet struct {
	t        *testing.T
	url, dir string
	nc       *nats.Conn
	// key is the operator's key file, alice the signer with its seed.
	key   string
	alice *signed.Signer
}

func newSignFleet(t *testing.T) *signFleet {
	t.Helper()
	srv := natstest.Start(t)
	f := &signFleet{t: t, url: srv.URL(), dir: t.TempDir(), nc: srv.Connect(t)}
	f.key = filepath.Join(f.dir, "alice.nk")
	f.good("fleet", "init", "--yes")
	f.good("trust", "key", "new", f.key)
	seed, err := os.ReadFile(f.key)
	if err != nil {
		t.Fatal(err)
	}
	if f.alice, err = signed.NewSigner([]byte(strings.TrimSpace(string(seed)))); err != nil {
		t.Fatal(err)
	}

	return f
}

// run runs a command of the operator.
func (f *signFleet) run(args ...string) (int, string) {
	f.t.Helper()

	return start(f.t, filepath.Join(f.dir, "state"), append([]string{"--server", f.url}, args...)...).wait()
}

// good runs a command that succeeds.
func (f *signFleet) good(args ...string) string {
	f.t.Helper()
	code, text := f.run(args...)
	if code != 0 {
		f.t.Fatalf("%v: exit code %d\n%s", args, code, text)
	}

	return text
}

// refuses runs a command that fails with a text, and stores nothing.
func (f *signFleet) refuses(want string, args ...string) string {
	f.t.Helper()
	before := f.stored()
	code, text := f.run(args...)
	if code == 0 || !strings.Contains(text, want) {
		f.t.Errorf("%v: exit code %d, want an error with %q\n%s", args, code, want, text)
	}
	if after := f.stored(); string(after.Data) != string(before.Data) {
		f.t.Errorf("%v: stored %s", args, after.Data)
	}

	return text
}

// put stores what an attacker likes.
func (f *signFleet) put(value []byte, headers ...string) {
	f.t.Helper()
	m := nats.NewMsg("$KV.MUSTER_MANIFESTS." + signKey)
	m.Data = value
	for i := 0; i < len(headers); i += 2 {
		m.Header.Set(headers[i], headers[i+1])
	}
	if _, err := f.nc.RequestMsg(m, deadline); err != nil {
		f.t.Fatal(err)
	}
}

// stored returns the value of the key.
func (f *signFleet) stored() *nats.Msg {
	f.t.Helper()
	m, err := f.nc.Request("$JS.API.DIRECT.GET.KV_MUSTER_MANIFESTS.$KV.MUSTER_MANIFESTS."+signKey, nil, deadline)
	if err != nil {
		f.t.Fatal(err)
	}

	return m
}

// statement returns the signed statement of the stored value and its signer.
func (f *signFleet) statement() (signed.Statement, []signed.Key) {
	f.t.Helper()
	e, err := signed.Open(f.stored().Data)
	if err != nil {
		f.t.Fatal(err)
	}

	return e.Statement, e.Signers(f.t.Context())
}

// write writes a manifest.
func (f *signFleet) manifest(comment string) string {
	f.t.Helper()
	path := filepath.Join(f.dir, "motd.yaml")
	if err := os.WriteFile(path, []byte(manifestOf(comment)), 0o600); err != nil {
		f.t.Fatal(err)
	}

	return path
}

func manifestOf(comment string) string { return "muster: {resources: []} # " + comment + "\n" }

// unsign takes the signatures from an envelope.
func unsign(t *testing.T, value []byte) []byte {
	t.Helper()
	var e dsse.Envelope
	if err := json.Unmarshal(value, &e); err != nil {
		t.Fatal(err)
	}
	e.Signatures = []dsse.Signature{}
	out, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}

	return out
}

// TestSignSignsWhatItShows has an attacker prepare values for the one who signs.
func TestSignSignsWhatItShows(t *testing.T) {
	t.Parallel()
	f, eve := newSignFleet(t), signtest.Signer(t)
	sign := []string{"fleet", "sign", signKey, "--yes", "--sign-key", f.key}
	evil := signed.Statement{Target: signKey, Content: manifestOf("evil")}
	removal := signed.Statement{Target: signKey, Action: signed.Remove}
	elsewhere := signed.Statement{Target: "group.db.motd", Content: manifestOf("evil")}
	for _, prepared := range [][]byte{signtest.Sign(t, evil, eve), unsign(t, signtest.Sign(t, evil, eve))} {
		f.put(prepared, "KV-Operation", "DEL")
		f.refuses("to assign, not to remove", sign...)
		f.refuses("to assign, not to remove", append(sign, "--renew")...)
	}
	f.put(signtest.Sign(t, removal, eve))
	f.refuses("to remove, not to assign", sign...)
	f.refuses("to remove, not to assign", append(sign, "--renew")...)
	f.put(unsign(t, signtest.Sign(t, elsewhere, eve)))
	f.refuses("for group.db.motd, not for group.web.motd", sign...)
	elsewhere.Target, elsewhere.Fleet = signKey, "prod"
	f.put(unsign(t, signtest.Sign(t, elsewhere, eve)))
	f.refuses(`for the fleet "prod"`, sign...)
}

// TestSignTakesNoTimesOfOthers: a signature is valid no longer than its signer wants.
func TestSignTakesNoTimesOfOthers(t *testing.T) {
	t.Parallel()
	f, eve := newSignFleet(t), signtest.Signer(t)
	sign := []string{"fleet", "sign", signKey, "--yes", "--sign-key", f.key, "--sign-expires", "24h"}
	s := signed.Statement{Target: signKey, Content: manifestOf("good"), Expires: time.Now().Add(240 * time.Hour)}
	f.put(signtest.Sign(t, s, eve))
	f.refuses("--renew", sign...)
	s.Issued, s.Expires = time.Now().Add(4*time.Minute), time.Now().Add(time.Hour)
	f.put(signtest.Sign(t, s, eve))
	f.refuses("--renew", sign...)
	// Without a valid signature there is no author to join.
	s.Issued, s.Expires = time.Now().Add(-time.Hour), time.Now().Add(240*time.Hour)
	f.put(unsign(t, signtest.Sign(t, s, eve)))
	f.good(sign...)
	got, by := f.statement()
	if len(by) != 1 || by[0] != f.alice.Key() || got.Expires.After(time.Now().Add(25*time.Hour)) || got.Issued.Before(time.Now().Add(-time.Minute)) {
		t.Errorf("signed by %v: %+v", by, got)
	}
	// What the signer signed already, with whatever times, stays so.
	s.Issued = time.Time{}
	f.put(signtest.Sign(t, s, f.alice, eve))
	f.good(sign...)
	if got, by := f.statement(); len(by) != 2 || got.Expires.Before(time.Now().Add(200*time.Hour)) {
		t.Errorf("signed by %v: %+v", by, got)
	}
	// Within the bounds a further person joins.
	s.Expires = time.Now().Add(time.Hour)
	f.put(signtest.Sign(t, s, eve))
	f.good(sign...)
	if _, by := f.statement(); len(by) != 2 {
		t.Errorf("signed by %v", by)
	}
}

// TestSignShowsAll that is signed: also the times, who signed, and what a bundle holds.
func TestSignShowsAll(t *testing.T) {
	t.Parallel()
	f := newSignFleet(t)
	f.good("fleet", "push", "--group", "web", "--bundle", f.manifest("bundled"), "--sign-key", f.key)
	_, bundle, _ := strings.Cut(f.good("fleet", "show", signKey), "bundle: ")
	bundle, _, _ = strings.Cut(bundle, "\n")
	bob := filepath.Join(f.dir, "bob.nk")
	f.good("trust", "key", "new", bob)
	text := f.refuses("confirm with --yes", "fleet", "sign", signKey, "--sign-key", bob)
	for _, want := range []string{"assign group.web.motd", bundle, "- manifest.yaml, ", "issued ", "valid until ", "signed by " + f.alice.Key().Short()} {
		if bundle == "" || !strings.Contains(text, want) {
			t.Errorf("not shown: %q\n%s", want, text)
		}
	}
	// Without the bundle the content is unknown.
	if _, err := f.nc.Request("$JS.API.STREAM.PURGE.OBJ_MUSTER_BUNDLES", nil, deadline); err != nil {
		t.Fatal(err)
	}
	f.refuses(bundle, "fleet", "sign", signKey, "--yes", "--sign-key", bob)
}

// TestSignRefusesWhatIsRefused by nodes, for its headers.
func TestSignRefusesWhatIsRefused(t *testing.T) {
	t.Parallel()
	f := newSignFleet(t)
	f.put([]byte(manifestOf("forged")), "Nats-Subject", "$KV.MUSTER_MANIFESTS.group.db.motd")
	f.refuses("cannot be used", "fleet", "sign", signKey, "--yes", "--sign-key", f.key)
	f.put([]byte(manifestOf("now")))
	f.refuses("no earlier revision", "fleet", "rollback", signKey, "--yes", "--sign-key", f.key)
	f.refuses("cannot be used", "fleet", "rollback", signKey, "--to", "1", "--yes", "--sign-key", f.key)
}

// TestSignRefusesWhatNodesReject, and shows why.
func TestSignRefusesWhatNodesReject(t *testing.T) {
	t.Parallel()
	f := newSignFleet(t)
	const two = `{"protocol": "io.muster.v1.assignment", "manifest": "muster: {}", "MANIFEST": "muster: {resources: []}"}`
	f.put([]byte(two))
	f.refuses("nodes reject this: "+signKey+":1:", "fleet", "sign", signKey, "--yes", "--sign-key", f.key)
	if shown := f.good("fleet", "show", signKey); !strings.Contains(shown, "# nodes reject this: ") || !strings.Contains(shown, two) {
		t.Errorf("shown:\n%s", shown)
	}
	f.put([]byte(manifestOf("now")))
	f.refuses("nodes reject this: ", "fleet", "rollback", signKey, "--to", "1", "--yes", "--sign-key", f.key)
	// To other parsers its comment ends, and a document follows.
	f.put([]byte("data: {} # \u2028protocol: io.muster.v1.assignment\u2028manifest: \"muster: {}\"\u2028\nmuster: {resources: [{exec: [{evil: {command: 'true'}}]}]}\n"))
	if text := f.refuses("nothing was signed", "fleet", "sign", signKey, "--sign-key", f.key); !strings.Contains(text, "evil") || strings.Contains(text, "manifest: 'muster") {
		t.Errorf("shown:\n%s", text)
	}
}

// TestRollbackSignsWhatItShows: everyone with write access to the bucket can change the history.
func TestRollbackSignsWhatItShows(t *testing.T) {
	t.Parallel()
	f, eve := newSignFleet(t), signtest.Signer(t)
	push := []string{"fleet", "push", "--group", "web", "--sign-key", f.key}
	rollback := []string{"fleet", "rollback", signKey, "--sign-key", f.key}
	f.good(append(push, f.manifest("good"))...)
	f.put(signtest.Sign(t, signed.Statement{Target: signKey, Content: manifestOf("evil")}, eve))
	f.good(append(push, f.manifest("bad"))...)
	text := f.refuses("nothing was signed", rollback...)
	if !strings.Contains(text, "-"+manifestOf("bad")) || !strings.Contains(text, "+"+manifestOf("good")) || strings.Contains(text, "evil") {
		t.Errorf("shown:\n%s", text)
	}
	// What no key of the operator signed is assigned on demand only, and named.
	if text := f.refuses("nothing was signed", append(rollback, "--to", "2")...); !strings.Contains(text, "+"+manifestOf("evil")) || !strings.Contains(text, "revision 2 has no valid signature from the given keys") {
		t.Errorf("shown:\n%s", text)
	}
	f.good(append(rollback, "--yes")...)
	if got, _ := f.statement(); got.Content != manifestOf("good") {
		t.Errorf("assigned again: %s", got.Content)
	}
	// A removal that looks like an assignment has no content.
	f.put(signtest.Sign(t, signed.Statement{Target: signKey, Action: signed.Remove}, eve))
	f.refuses("to remove, not to assign", append(rollback, "--yes", "--to", "5")...)
	history := f.good("fleet", "show", signKey, "--history")
	if !strings.Contains(history, f.alice.Key().Short()) || !strings.Contains(history, eve.Key().Short()) {
		t.Errorf("the history does not name who signed:\n%s", history)
	}
}

// TestPushIsNotUnchangedByAReplay: nodes do not accept an older signature again.
func TestPushIsNotUnchangedByAReplay(t *testing.T) {
	t.Parallel()
	f := newSignFleet(t)
	push := func(comment string) string {
		return f.good("fleet", "push", "--group", "web", "--sign-key", f.key, f.manifest(comment))
	}
	push("first")
	first := f.stored().Data
	push("second")
	f.put(first)
	if text := push("first"); strings.Contains(text, "unchanged") {
		t.Errorf("after a replay: %s", text)
	}
	if text := push("first"); !strings.Contains(text, "unchanged") {
		t.Errorf("pushed again: %s", text)
	}
	// The newer revision may be deleted everywhere.
	first = f.stored().Data
	push("third")
	if _, err := f.nc.Request("$JS.API.STREAM.PURGE.KV_MUSTER_MANIFESTS", nil, deadline); err != nil {
		t.Fatal(err)
	}
	f.put(first)
	if text := push("first"); strings.Contains(text, "unchanged") {
		t.Errorf("after a replay into an empty bucket: %s", text)
	}
}

// TestShowNamesWhatIsSignedForSomethingElse: a signature for another key does not count.
func TestShowNamesWhatIsSignedForSomethingElse(t *testing.T) {
	t.Parallel()
	f := newSignFleet(t)
	f.put(signtest.Sign(t, signed.Statement{Target: "group.db.motd", Content: manifestOf("x")}, f.alice))
	for _, args := range [][]string{{}, {"--json"}, {"--history"}} {
		if text := f.good(append([]string{"fleet", "show", signKey}, args...)...); !strings.Contains(text, "signed for something else: for group.db.motd, not for group.web.motd") {
			t.Errorf("%v: %s", args, text)
		}
	}
	f.put(signtest.Sign(t, signed.Statement{Target: signKey, Content: manifestOf("x")}, f.alice), "KV-Operation", "DEL")
	if text := f.good("fleet", "show", signKey, "--revision", "2"); !strings.Contains(text, "signed for something else: to assign, not to remove") {
		t.Error(text)
	}
}

// TestSignAddsNothingTwice: what the key has signed is neither stored nor asked about again,
// unless it is signed as new.
func TestSignAddsNothingTwice(t *testing.T) {
	t.Parallel()
	f := newSignFleet(t)
	f.put([]byte(manifestOf("x")))
	f.good("fleet", "sign", signKey, "--yes", "--sign-key", f.key)
	before := f.stored().Header.Get("Nats-Sequence")
	if text := f.good("fleet", "sign", signKey, "--sign-key", f.key); !strings.Contains(text, "unchanged: nothing to add") || f.stored().Header.Get("Nats-Sequence") != before {
		t.Errorf("%s\nrevision %s after %s", text, f.stored().Header.Get("Nats-Sequence"), before)
	}
	f.refuses("not the given digest", "fleet", "sign", signKey, "--sign-key", f.key, "--digest", "sha256-other")
	f.good("fleet", "sign", signKey, "--yes", "--renew", "--sign-key", f.key)
	if now := f.stored().Header.Get("Nats-Sequence"); now == before {
		t.Errorf("it was not renewed: revision %s", now)
	}
}

// TestShowNamesInvalidSignatures: show names invalid signatures instead of a blank.
func TestShowNamesInvalidSignatures(t *testing.T) {
	t.Parallel()
	f := newSignFleet(t)
	f.put([]byte(manifestOf("bare")))
	f.put(unsign(t, signtest.Sign(t, signed.Statement{Target: signKey, Content: manifestOf("x")}, f.alice)))
	f.put(unsign(t, signtest.Sign(t, signed.Statement{Target: "group.db.motd", Content: manifestOf("x")}, f.alice)))
	text := f.good("fleet", "show", signKey, "--history")
	for _, want := range []string{`(?m)^1 .* -$`, `(?m)^2 .* no valid signature$`, `(?m)^3 .* no valid signature \(signed for something else: `} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
}

// TestSignRevertsNoNewerPush: sign does not overwrite a value that was stored after its preview.
func TestSignRevertsNoNewerPush(t *testing.T) {
	t.Parallel()
	f := newSignFleet(t)
	f.put([]byte(manifestOf("old")))
	for _, args := range [][]string{{"sign", signKey}, {"rollback", signKey}} {
		f.put([]byte(manifestOf("seen")))
		key, err := os.Open(f.key)
		if err == nil {
			err = syscall.Flock(int(key.Fd()), syscall.LOCK_EX)
		}
		if err != nil {
			t.Fatal(err)
		}
		// It has read the assignment when it waits for the key.
		p := start(t, filepath.Join(f.dir, "state"), "--server", f.url, "fleet", args[0], args[1], "--yes", "--sign-key", f.key)
		waits := regexp.MustCompile(fmt.Sprintf(`-> FLOCK +ADVISORY +WRITE +%d `, p.cmd.Process.Pid))
		await(t, "the command waits for the key", func() bool {
			locks, err := os.ReadFile("/proc/locks")
			return err == nil && waits.Match(locks)
		})
		f.put([]byte(manifestOf("newer")))
		if err := key.Close(); err != nil {
			t.Fatal(err)
		}
		if code, text := p.wait(); code == 0 || !strings.Contains(text, "another user has changed it") {
			t.Errorf("%v: exit code %d\n%s", args, code, text)
		}
		if now := string(f.stored().Data); now != manifestOf("newer") {
			t.Errorf("%v: stored %s", args, now)
		}
	}
}
