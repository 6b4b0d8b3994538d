package status

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/watch"
)

const status = `Package: zlib1g
Status: install ok installed
Architecture: amd64
Version: 1:1.2.13.dfsg-1
Description: compression library
 Version: 9 is text of the description
Conffiles:
 /etc/zlib 1234

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1.0

Package: broken
Status: install ok half-configured
Version: 2.0
Architecture: all

Package: adduser
Architecture: all
Version: 3.134
Status: install ok installed
`

// TestRead reads the database of dpkg, and runs rpm only if that has one.
func TestRead(t *testing.T) {
	root := t.TempDir()
	ran := 0
	bin := t.TempDir()
	write(t, filepath.Join(bin, "rpm"), "#!/bin/sh\n[ \"$1\" = -qa ] && printf 'bash\\t5.1.8-9.el9\\tx86_64\\ngpg-pubkey\\t1-2\\t(none)\\nopenssl\\t1:3.0.7-27.el9\\tx86_64\\n'\n")
	if err := os.Chmod(filepath.Join(bin, "rpm"), 0o755); err != nil {
		t.Fatal(err)
	}
	runner := command.New(nil)
	m := Machine{Root: root, Run: func(ctx context.Context, c command.Command) (command.Result, error) {
		ran++
		c.Path = bin
		return runner.Run(ctx, c)
	}}
	if all, err := m.Read(t.Context()); err != nil || len(all) != 0 || ran != 0 {
		t.Errorf("a machine without packages: %v, %v", all, err)
	}
	write(t, filepath.Join(root, dpkgStatus), status)
	all, err := m.Read(t.Context())
	want := []model.Package{{Name: "adduser", Version: "3.134", Arch: "all", Manager: "deb"}, {Name: "broken", Version: "2.0", Arch: "all", Manager: "deb"}, {Name: "zlib1g", Version: "1:1.2.13.dfsg-1", Arch: "amd64", Manager: "deb"}}
	if err != nil || !slices.Equal(all, want) || ran != 0 {
		t.Errorf("%+v, %v, %d commands", all, err, ran)
	}
	write(t, filepath.Join(root, rpmDir, "rpmdb.sqlite"), "")
	all, err = m.Read(t.Context())
	if err != nil || len(all) != 5 || ran != 1 || all[1].Name != "bash" || all[3] != (model.Package{Name: "openssl", Version: "1:3.0.7-27.el9", Arch: "x86_64", Manager: "rpm"}) {
		t.Errorf("%+v, %v, %d commands", all, err, ran)
	}
	if _, err := parseRPM("error: something"); err == nil {
		t.Error("an error of rpm is a package")
	}
	tooMany := strings.Repeat("Package: a\nStatus: install ok installed\n\n", model.MaxPackages+1)
	if all, err := parseDpkg(strings.NewReader(tooMany)); all != nil || !errors.Is(err, errTooMany) || err.Error() != errTooMany.Error() {
		t.Errorf("too many packages: %d packages, %v", len(all), err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// machine is a source with packages that a test changes.
type machine struct {
	mu   *sync.Mutex
	all  []model.Package
	wake func()
}

func (m *machine) Read(context.Context) ([]model.Package, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	return slices.Clone(m.all), nil
}

func (m *machine) Points() []watch.Point { return []watch.Point{{Kind: watch.Path, Name: "/db"}} }

func (m *machine) arm(_ watch.Point, wake func()) (watch.Watch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake = wake
	return armed{}, nil
}

type armed struct{}

func (armed) Err() error    { return nil }
func (armed) Written() bool { return false }
func (armed) Close()        {}

// TestPublisher stores changes at most once in five minutes, and nothing while the inventory is off.
func TestPublisher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		mu.Lock()
		pass := func(d time.Duration) {
			mu.Unlock()
			<-time.After(d)
			synctest.Wait()
			mu.Lock()
		}
		var log bytes.Buffer
		m := &machine{mu: &mu, all: []model.Package{{Name: "a", Version: "1"}}}
		var stored []model.Inventory
		var failure error
		off := false
		p := &Publisher{
			Node: "n", Source: m, Arm: m.arm, Off: func() bool { mu.Lock(); defer mu.Unlock(); return off }, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Put: func(_ context.Context, i model.Inventory) error {
				mu.Lock()
				defer mu.Unlock()
				if failure == nil {
					stored = append(stored, i)
				}
				return failure
			},
		}
		failure = errors.New("away")
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		pass(time.Minute)
		if len(stored) != 0 || strings.Count(log.String(), "WARN") != 1 {
			t.Fatalf("stored %v, logged\n%s", stored, log.String())
		}
		failure = nil
		pass(6 * time.Minute)
		if len(stored) != 1 || stored[0].Node != "n" || stored[0].Packages[0].Version != "1" {
			t.Fatalf("stored %+v", stored)
		}
		m.wake() // nothing changed
		pass(7 * time.Minute)
		if len(stored) != 1 {
			t.Fatalf("stored %+v", stored)
		}
		for _, v := range []string{"2", "3", "4"} {
			m.all[0].Version = v
			m.wake()
			pass(time.Minute)
		}
		pass(7 * time.Minute)
		if len(stored) != 3 || stored[1].Packages[0].Version != "2" || stored[2].Packages[0].Version != "4" || stored[2].At.Sub(stored[1].At) < 4*time.Minute {
			t.Fatalf("stored %+v", stored)
		}
		off = true
		m.all[0].Version = "5"
		m.wake()
		pass(3 * time.Hour)
		if len(stored) != 3 {
			t.Errorf("stored %+v although it is off", stored)
		}
		mu.Unlock()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
