package signing_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/fleet/signing"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/host/trust"
	"github.com/musterfleet/muster/testing/signtest"
)

const motd = "group.web.motd"

// keyFile makes a key, in a directory of its own.
func keyFile(t *testing.T) *signing.KeyFile {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.nk")
	if _, err := signing.NewKey(path); err != nil {
		t.Fatal(err)
	}
	k, err := signing.OpenKey(path)
	if err != nil {
		t.Fatal(err)
	}

	return k
}

func signer(now *time.Time, keys ...*signing.KeyFile) *signing.Signing {
	return &signing.Signing{Fleet: "muster", Keys: keys, Valid: time.Hour, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return *now }}
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
	if _, err := signing.NewKey(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := signing.OpenKey(path); err != nil {
		t.Error(err)
	}
}

// TestKeyFiles: only the owner may read a seed, and nobody replaces it.
func TestKeyFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "alice.nk")
	key, err := signing.NewKey(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	k, err := signing.OpenKey(path)
	if err != nil || k.Key() != key {
		t.Fatalf("%v is not %s: %v", k, key, err)
	}
	if _, err := signing.NewKey(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("it is replaced: %v", err)
	}
	for mode, want := range map[fs.FileMode]string{0o640: "chmod 600", 0o604: "chmod 600", 0o602: trust.ErrUntrusted.Error()} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := signing.OpenKey(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("SUxyz\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := signing.OpenKey(path); !errors.Is(err, signed.ErrKey) || !strings.Contains(err.Error(), path) {
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
		value, err := signer(&now, k).Assignment(t.Context(), motd, []byte("x"), nil)
		all = append(all, issued(t, value, err))
		again, err := signing.OpenKey(k.Path)
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
	if _, err := signer(&now, k).Assignment(t.Context(), motd, []byte("x"), nil); err == nil || !strings.Contains(err.Error(), "set the clock") {
		t.Errorf("a clock that is a day late: %v", err)
	}
}

// TestIssuedAfterTheCurrent: that of an operator whose clock is ahead, but not that of
// an attacker who puts it far ahead.
func TestIssuedAfterTheCurrent(t *testing.T) {
	now := time.Now().UTC()
	other := signtest.Signer(t)
	for ahead, counts := range map[time.Duration]bool{time.Second: true, time.Minute: true, 4 * time.Minute: false, 1000 * time.Hour: false} {
		current := signtest.Sign(t, signed.Statement{Target: motd, Content: "y", Issued: now.Add(ahead)}, other)
		value, err := signer(&now, keyFile(t)).Assignment(t.Context(), motd, []byte("x"), current)
		if at := issued(t, value, err); at.After(now.Add(ahead)) != counts {
			t.Errorf("%s ahead: issued %s later", ahead, at.Sub(now))
		}
	}
}

// TestDamagedRecord: a key whose last signature is not known does not sign.
func TestDamagedRecord(t *testing.T) {
	k := keyFile(t)
	now := time.Now()
	if err := os.WriteFile(k.Path+".last", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := signer(&now, k).Assignment(t.Context(), motd, []byte("x"), nil); err == nil {
		t.Error("a record that cannot be read is ignored")
	}
}

// TestAddSignsNothingElse: the bucket is anybody's who may write there, so a second
// person signs nothing that is for something else.
func TestAddSignsNothingElse(t *testing.T) {
	now := time.Now()
	alice, bob := keyFile(t), keyFile(t)
	value, err := signer(&now, alice).Assignment(t.Context(), motd, []byte("x"), nil)
	if err != nil {
		t.Fatal(err)
	}
	both, err := signer(&now, bob).Add(t.Context(), motd, value)
	if err != nil {
		t.Fatal(err)
	}
	e, err := signed.Open(both)
	if err != nil || len(e.Signers(t.Context())) != 2 {
		t.Errorf("signed by %v, %v", e.Signers(t.Context()), err)
	}
	if !signer(&now, alice, bob).HasSigned(t.Context(), motd, both) || signer(&now, alice, bob).HasSigned(t.Context(), motd, value) {
		t.Error("it does not know what it signed")
	}
	for name, bad := range map[string][]byte{
		"another key":   signtest.Sign(t, signed.Statement{Target: "node.db1.root", Content: "x"}, alice.Signer),
		"another fleet": signtest.Sign(t, signed.Statement{Target: motd, Content: "x", Fleet: "prod"}, alice.Signer),
		"expired":       signtest.Sign(t, signed.Statement{Target: motd, Content: "x", Issued: now.Add(-time.Hour), Expires: now}, alice.Signer),
		"of the future": signtest.Sign(t, signed.Statement{Target: motd, Content: "x", Issued: now.Add(time.Hour)}, alice.Signer),
		"unsigned":      []byte("muster: {}"),
	} {
		if _, err := signer(&now, bob).Add(t.Context(), motd, bad); err == nil {
			t.Errorf("%s: it is signed", name)
		}
	}
	now = now.Add(40 * time.Minute)
	if signer(&now, alice, bob).HasSigned(t.Context(), motd, both) {
		t.Error("what expires soon is not signed again")
	}
}

// TestRequests are valid as long as nodes remember them.
func TestRequests(t *testing.T) {
	now := time.Now()
	s := signer(&now, keyFile(t))
	if _, err := s.Request(t.Context(), "node.web01", []byte("{}"), now.Add(25*time.Hour)); err == nil {
		t.Error("it is valid for longer")
	}
	value, err := s.Request(t.Context(), "node.web01", []byte("{}"), now.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	e, err := signed.Open(value)
	if err != nil || e.Statement.Action != signed.Ensure || !e.Statement.Expires.Equal(now.Add(time.Minute)) {
		t.Errorf("%+v, %v", e.Statement, err)
	}
	if removal, err := s.Removal(t.Context(), motd, nil); err != nil || !signed.IsEnvelope(removal) {
		t.Errorf("%s, %v", removal, err)
	}
}
