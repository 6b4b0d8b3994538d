package desired_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/testing/signtest"
)

const motd = "group.web.motd"

// watch is a clock that tests set, and how far the server's is ahead.
type watch struct {
	now    time.Time
	server time.Duration
}

func open(t *testing.T, path string, clock *watch, keys ...*signed.Signer) *desired.Gate {
	t.Helper()
	policy := signed.Policy{Fleet: "muster", Threshold: 1}
	for _, k := range keys {
		policy.Keys = append(policy.Keys, signed.Trusted{Key: k.Key()})
	}
	g, err := desired.OpenGate(desired.GateOptions{
		Host: host.New(host.Options{StateDir: filepath.Dir(path)}), Path: path,
		Policy: func() signed.Policy { return policy }, Times: func() (own, server time.Time) { return clock.now, clock.now.Add(clock.server) },
	})
	if err != nil {
		t.Fatal(err)
	}

	return g
}

func entry(t *testing.T, key string, issued, expires time.Time, by *signed.Signer) model.Entry {
	t.Helper()

	return model.Entry{Key: key, Value: signtest.Sign(t, signed.Statement{Target: key, Content: "muster: {}\n", Issued: issued, Expires: expires}, by)}
}

// TestClockGoesBack: an expired assignment stays expired, also after a restart.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
	alice, path := signtest.Signer(t), filepath.Join(t.TempDir(), "trust.json")
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := &watch{now: noon}
	g := open(t, path, clock, alice)
	old := entry(t, motd, noon.Add(-24*time.Hour), noon.Add(-time.Hour), alice)
	if err := g.Assignment(t.Context(), old, false); !errors.Is(err, signed.ErrExpired) {
		t.Fatalf("the expired one: %v", err)
	}
	if err := g.Assignment(t.Context(), entry(t, "group.web.other", noon, noon.Add(time.Hour), alice), false); err != nil {
		t.Fatal(err)
	}
	clock.now = noon.Add(-12 * time.Hour)
	for range 2 {
		if err := g.Assignment(t.Context(), old, false); !errors.Is(err, signed.ErrExpired) {
			t.Errorf("with the clock back: %v", err)
		}
		g = open(t, path, clock, alice)
	}
	// New signatures are still accepted, because operators have the right time.
	if err := g.Assignment(t.Context(), entry(t, motd, noon.Add(-time.Minute), noon.Add(time.Hour), alice), false); err != nil {
		t.Error(err)
	}
}

// TestServersClock: the server's time ends signed assignments, and revives none.
func TestServersClock(t *testing.T) {
	t.Parallel()
	alice := signtest.Signer(t)
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := &watch{now: noon}
	g := open(t, filepath.Join(t.TempDir(), "trust.json"), clock, alice)
	current, old := entry(t, motd, noon, noon.Add(time.Hour), alice), entry(t, motd, noon.Add(-time.Hour), noon, alice)
	for _, c := range []struct {
		server time.Duration
		value  model.Entry
		want   error
		named  bool
	}{
		{2 * time.Hour, current, signed.ErrExpired, true},
		{-2 * time.Hour, current, signed.ErrFuture, true},
		{-2 * time.Hour, old, signed.ErrExpired, false},
		{2 * time.Hour, old, signed.ErrExpired, false},
		{time.Minute, current, nil, false},
	} {
		clock.server = c.server
		err := g.Assignment(t.Context(), c.value, false)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("with the server %s ahead: %v", c.server, err)
		}
		if named := err != nil && strings.Contains(err.Error(), "by the clock of the NATS server: "); named != c.named {
			t.Errorf("with the server %s ahead: %v", c.server, err)
		}
	}
}

// TestAcceptedOnceItIsOnDisk: without a record, an older version could return.
func TestAcceptedOnceItIsOnDisk(t *testing.T) {
	t.Parallel()
	alice, dir := signtest.Signer(t), t.TempDir()
	now := time.Now()
	clock := &watch{now: now}
	path := filepath.Join(dir, "trust.json")
	g := open(t, path, clock, alice)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	e := entry(t, motd, now, now.Add(time.Hour), alice)
	err := g.Assignment(t.Context(), e, false)
	if _, never := model.FindProblems(err); err == nil || never {
		t.Errorf("without a record it is accepted, or refused permanently: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := g.Assignment(t.Context(), e, false); err != nil {
		t.Fatal(err)
	}
	older := entry(t, motd, now.Add(-1), now.Add(time.Hour), alice)
	if err := open(t, path, clock, alice).Assignment(t.Context(), older, false); !errors.Is(err, signed.ErrOlder) {
		t.Errorf("after a restart: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record has %v, %v", info, err)
	}
}

// TestRefusalsArePermanent: but for those that pass, each is a problem with a remedy.
func TestRefusalsArePermanent(t *testing.T) {
	t.Parallel()
	alice := signtest.Signer(t)
	now := time.Now()
	g := open(t, filepath.Join(t.TempDir(), "trust.json"), &watch{now: now}, alice)
	for name, e := range map[string]model.Entry{
		"unsigned":  {Key: motd, Value: []byte("muster: {}\n")},
		"nothing":   {Key: motd},
		"broken":    {Key: motd, Value: []byte(`{"payloadType":`)},
		"wrong key": entry(t, motd, now, now.Add(time.Hour), signtest.Signer(t)),
		"expired":   entry(t, motd, now.Add(-time.Hour), now, alice),
	} {
		problems, never := model.FindProblems(g.Assignment(t.Context(), e, false))
		if !never || problems[0].Hint == "" || problems[0].Pos.File != motd {
			t.Errorf("%s: %+v", name, problems)
		}
		if err := g.Removal(t.Context(), e); err == nil || !strings.Contains(err.Error(), "the removal is not accepted: ") {
			t.Errorf("%s removes it: %v", name, err)
		}
	}
	if _, never := model.FindProblems(g.Assignment(t.Context(), entry(t, motd, now.Add(time.Hour), now.Add(2*time.Hour), alice), false)); never {
		t.Error("what is signed in the future is never accepted")
	}
}
