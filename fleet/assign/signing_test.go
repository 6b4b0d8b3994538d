package assign_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/assign"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/testing/signtest"
)

const motd = "group.web.motd"

// keyFile makes a key in a new directory.
func keyFile(t *testing.T) *assign.KeyFile {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.nk")
	if _, err := assign.NewKey(path); err != nil {
		t.Fatal(err)
	}
	k, err := assign.OpenKey(path)
	if err != nil {
		t.Fatal(err)
	}

	return k
}

func signer(now *time.Time, keys ...*assign.KeyFile) *assign.Signing {
	return &assign.Signing{Fleet: "muster", Keys: keys, Valid: time.Hour, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return *now }}
}

func issued(t *testing.T, value []byte, err error) time.Time {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	e, err := signed.Open(value)
	if err != nil {
		t.Fatal(err)
	}

	return e.Statement.Issued
}

// TestKeyInANewDirectory: the directory of a key is made, for its owner only.
func TestKeyInANewDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "config", "muster")
	path := filepath.Join(dir, "alice.nk")
	if _, err := assign.NewKey(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := assign.OpenKey(path); err != nil {
		t.Error(err)
	}
}

// TestKeyFiles: only the owner may read a seed, and it is never replaced.
func TestKeyFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alice.nk")
	key, err := assign.NewKey(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	k, err := assign.OpenKey(path)
	if err != nil || k.Key() != key {
		t.Fatalf("%v is not %s: %v", k, key, err)
	}
	if _, err := assign.NewKey(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("it is replaced: %v", err)
	}
	for mode, want := range map[fs.FileMode]string{0o640: "chmod 600", 0o604: "chmod 600", 0o602: paths.ErrUntrusted.Error()} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := assign.OpenKey(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("SUxyz\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := assign.OpenKey(path); !errors.Is(err, signed.ErrKey) || !strings.Contains(err.Error(), path) {
		t.Errorf("no seed: %v", err)
	}
}

// TestIssuedGrows: per key, whatever the clock does, also in another process.
func TestIssuedGrows(t *testing.T) {
	k := keyFile(t)
	now := time.Now()
	var all []time.Time
	for _, step := range []time.Duration{0, 0, -time.Second, -time.Minute, time.Hour, -signed.MaxSkew} {
		now = now.Add(step)
		value, err := signer(&now, k).Sign(t.Context(), signed.Assign, motd, []byte("x"), nil)
		all = append(all, issued(t, value, err))
		again, err := assign.OpenKey(k.Path)
		if err != nil {
			t.Fatal(err)
		}
		k = again
	}
	if !slices.IsSortedFunc(all, func(a, b time.Time) int {
		if a.Before(b) {
			return -1
		}
		return 1
	}) {
		t.Errorf("%v", all)
	}
	now = now.Add(-24 * time.Hour)
	if _, err := signer(&now, k).Sign(t.Context(), signed.Assign, motd, []byte("x"), nil); err == nil || !strings.Contains(err.Error(), "set the clock") {
		t.Errorf("a clock that is a day late: %v", err)
	}
}

// TestIssuedAfterTheCurrent accepts a time of an operator with a fast clock, and refuses an attacker's far
// future.
func TestIssuedAfterTheCurrent(t *testing.T) {
	now := time.Now().UTC()
	other := signtest.Signer(t)
	for ahead, counts := range map[time.Duration]bool{time.Second: true, time.Minute: true, 4 * time.Minute: false, 1000 * time.Hour: false} {
		current := signtest.Sign(t, signed.Statement{Target: motd, Content: "y", Issued: now.Add(ahead)}, other)
		value, err := signer(&now, keyFile(t)).Sign(t.Context(), signed.Assign, motd, []byte("x"), current)
		if at := issued(t, value, err); at.After(now.Add(ahead)) != counts {
			t.Errorf("%s ahead: issued %s later", ahead, at.Sub(now))
		}
	}
}

// TestDamagedRecord: a key with an unknown last signature does not sign.
func TestDamagedRecord(t *testing.T) {
	k := keyFile(t)
	now := time.Now()
	if err := os.WriteFile(k.Path+".last", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := signer(&now, k).Sign(t.Context(), signed.Assign, motd, []byte("x"), nil); err == nil {
		t.Error("a record that cannot be read is ignored")
	}
}

// revision returns a revision of the key.
func revision(number uint64, value []byte) model.Entry {
	return model.Entry{Key: motd, Revision: number, Value: value}
}

// add is what fleet sign does with a value.
func add(t *testing.T, s *assign.Signing, e model.Entry) ([]byte, error) {
	t.Helper()
	p, err := s.Propose(t.Context(), e, false)
	if err != nil {
		return nil, err
	}

	return s.SignProposal(t.Context(), p)
}

// hasSigned is what fleet push asks of the revisions of a key.
func hasSigned(t *testing.T, s *assign.Signing, values ...[]byte) bool {
	t.Helper()
	var all []model.Entry
	for i, v := range values {
		all = append(all, revision(uint64(i+1), v))
	}
	has, err := s.HasSigned(t.Context(), all)
	if err != nil {
		t.Error(err)
	}

	return has
}

// TestAddSignsNothingElse: everyone with write access can change the bucket, so a second person signs only
// statements for this key.
func TestAddSignsNothingElse(t *testing.T) {
	now := time.Now()
	alice, bob := keyFile(t), keyFile(t)
	value, err := signer(&now, alice).Sign(t.Context(), signed.Assign, motd, []byte("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	both, err := add(t, signer(&now, bob), revision(1, value))
	if err != nil {
		t.Fatal(err)
	}
	e, err := signed.Open(both)
	if err != nil || len(e.Signers(t.Context())) != 2 {
		t.Errorf("signed by %v, %v", e.Signers(t.Context()), err)
	}
	if !hasSigned(t, signer(&now, alice, bob), both) || hasSigned(t, signer(&now, alice, bob), value) {
		t.Error("it does not know what it signed")
	}
	removal := revision(1, signtest.Sign(t, signed.Statement{Target: motd, Content: "x"}, alice.Signer))
	removal.Deleted = true
	refused := revision(1, []byte("x"))
	refused.Refused = "for its headers"
	for name, bad := range map[string]model.Entry{
		"another key":                 revision(1, signtest.Sign(t, signed.Statement{Target: "node.db1.root", Content: "x"}, alice.Signer)),
		"another fleet":               revision(1, signtest.Sign(t, signed.Statement{Target: motd, Content: "x", Fleet: "prod"}, alice.Signer)),
		"expired":                     revision(1, signtest.Sign(t, signed.Statement{Target: motd, Content: "x", Issued: now.Add(-time.Hour), Expires: now}, alice.Signer)),
		"of the future":               revision(1, signtest.Sign(t, signed.Statement{Target: motd, Content: "x", Issued: now.Add(time.Hour)}, alice.Signer)),
		"an assignment, as a removal": removal,
		"a removal":                   revision(1, signtest.Sign(t, signed.Statement{Target: motd, Action: signed.Remove}, alice.Signer)),
		"valid for longer":            revision(1, signtest.Sign(t, signed.Statement{Target: motd, Content: "x", Expires: now.Add(2 * time.Hour)}, alice.Signer)),
		"older than bob's last":       revision(1, signtest.Sign(t, signed.Statement{Target: motd, Content: "x", Issued: now.Add(-time.Minute)}, alice.Signer)),
		"truncated":                   revision(1, value[:len(value)/2]),
		"refused by nodes":            refused,
	} {
		if _, err := add(t, signer(&now, bob), bad); err == nil {
			t.Errorf("%s: it is signed", name)
		}
	}
	now = now.Add(40 * time.Minute)
	if hasSigned(t, signer(&now, alice, bob), both) {
		t.Error("what expires soon is not signed again")
	}
}

// TestProposalIsWhatIsSigned: it has the times of the first signature if they are within the signer's limits,
// otherwise the signer's.
func TestProposalIsWhatIsSigned(t *testing.T) {
	now := time.Now().UTC()
	bob, eve := keyFile(t), signtest.Signer(t)
	foreign := signtest.Sign(t, signed.Statement{Target: motd, Content: "x", Issued: now.Add(-time.Minute), Expires: now.Add(30 * time.Minute)}, eve)
	gone := revision(7, nil)
	gone.Deleted = true
	for name, c := range map[string]struct {
		e      model.Entry
		renew  bool
		joined bool
	}{
		"unsigned":       {revision(7, []byte("x")), false, false},
		"a removal":      {gone, false, false},
		"signed":         {revision(7, foreign), false, true},
		"signed, as new": {revision(7, foreign), true, false},
		"not by its key": {revision(7, bytes.Replace(foreign, []byte(eve.Key()), []byte(bob.Key()), 1)), false, false},
	} {
		s := signer(&now, keyFile(t))
		p, err := s.Propose(t.Context(), c.e, c.renew)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		value, err := s.SignProposal(t.Context(), p)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		e, err := signed.Open(value)
		if err != nil {
			t.Fatal(err)
		}
		got := e.Statement
		if joined := len(e.Signers(t.Context())) == 2; joined != c.joined || joined != (len(p.By) == 1) {
			t.Errorf("%s: signed by %v, shown %v", name, e.Signers(t.Context()), p.By)
		}
		if !c.joined {
			if got.Issued.Before(now) || !got.Expires.Equal(now.Add(time.Hour)) {
				t.Errorf("%s: times %s to %s", name, got.Issued, got.Expires)
			}
			got.Issued = time.Time{}
		}
		if got.Protocol = p.Statement.Protocol; got != p.Statement {
			t.Errorf("%s: shown %+v, signed %+v", name, p.Statement, got)
		}
	}
}

// TestReplayIsNotSigned: nodes require newer statements.
func TestReplayIsNotSigned(t *testing.T) {
	now := time.Now()
	alice, bob := keyFile(t), keyFile(t)
	s := signer(&now, alice)
	first, err := s.Sign(t.Context(), signed.Assign, motd, []byte("first"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !hasSigned(t, s, first) {
		t.Error("it does not know what it signed")
	}
	if other, err := s.Sign(t.Context(), signed.Assign, "group.web.other", []byte("x"), nil); err != nil || !hasSigned(t, s, first) {
		t.Errorf("that it signed something else, too, counts: %s, %v", other, err)
	}
	now = now.Add(time.Second)
	second, err := signer(&now, bob).Sign(t.Context(), signed.Assign, motd, []byte("second"), first)
	if err != nil {
		t.Fatal(err)
	}
	if hasSigned(t, s, first, second, first) {
		t.Error("what another one signed later does not count")
	}
	if _, err := s.Sign(t.Context(), signed.Remove, motd, nil, nil); err != nil || hasSigned(t, s, first) {
		t.Errorf("what the key signed later, and is gone, does not count: %v", err)
	}
}

// TestRecordIsBounded: a key keeps its newest targets.
func TestRecordIsBounded(t *testing.T) {
	now := time.Now()
	k := keyFile(t)
	targets := map[string]time.Time{}
	for i := range 1000 {
		targets[fmt.Sprintf("muster/group.web.m%d", i)] = now.Add(time.Duration(i-2000) * time.Second)
	}
	data, err := json.Marshal(map[string]any{"issued": now.Add(-time.Minute), "targets": targets})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(k.Path+".last", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := signer(&now, k).Sign(t.Context(), signed.Assign, motd, []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	var kept struct{ Targets map[string]time.Time }
	data, err = os.ReadFile(k.Path + ".last")
	if err := errors.Join(err, json.Unmarshal(data, &kept)); err != nil {
		t.Fatal(err)
	}
	_, oldest := kept.Targets["muster/group.web.m0"]
	if len(kept.Targets) != 1000 || oldest || !kept.Targets["muster/"+motd].Equal(now) {
		t.Errorf("%d targets, the oldest %v, the newest at %s", len(kept.Targets), oldest, kept.Targets["muster/"+motd])
	}
}

// TestRequests are valid as long as nodes remember them.
func TestRequests(t *testing.T) {
	now := time.Now()
	s := signer(&now, keyFile(t))
	if _, err := s.SignRequest(t.Context(), signed.Ensure, "node.web01", []byte("{}"), now.Add(25*time.Hour)); err == nil {
		t.Error("it is valid for longer")
	}
	value, err := s.SignRequest(t.Context(), signed.Ensure, "node.web01", []byte("{}"), now.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	e, err := signed.Open(value)
	if err != nil || e.Statement.Action != signed.Ensure || !e.Statement.Expires.Equal(now.Add(time.Minute)) {
		t.Errorf("%+v, %v", e.Statement, err)
	}
	if removal, err := s.Sign(t.Context(), signed.Remove, motd, nil, nil); err != nil || !signed.IsEnvelope(removal) {
		t.Errorf("%s, %v", removal, err)
	}
}
