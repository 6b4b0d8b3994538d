package control_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/agent/control"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/testing/hosttest"
)

// key is that of the pause of the node.
const key = "node.web01.pause"

// bucket has a pause of the node.
type bucket struct{}

func (bucket) Entries() (map[string]model.Entry, model.Sync) {
	at := time.Unix(1, 0)

	return map[string]model.Entry{key: {Key: key, Revision: 7, Time: at}}, model.Sync{At: at, Stream: at}
}

func (b bucket) Read(context.Context, string, uint64) (model.Entry, error) {
	all, _ := b.Entries()
	e := all[key]
	e.Value = []byte(`{"protocol": "io.muster.v1.pause", "by": "ann"}`)

	return e, nil
}

func (bucket) Removal(context.Context, string) (model.Entry, error) {
	return model.Entry{}, model.ErrNotFound
}

// open is a gate that demands no signatures.
type open struct{}

func (open) Demands() bool                                     { return false }
func (open) Pause(context.Context, model.Entry, string) error  { return nil }
func (open) Groups(context.Context, model.Entry, string) error { return nil }

// wall is the clock of this machine alone.
type wall struct{}

func (wall) Until(at time.Time, _ bool) time.Duration { return time.Until(at) }

// TestWhatCannotBeStoredIsStoredLater: a pause holds over a restart without NATS, also where it
// could not be written when it came and nothing has changed since.
func TestWhatCannotBeStoredIsStoredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		options := control.Options{
			Host: host.New(host.Options{StateDir: dir}), Path: filepath.Join(dir, "control.json"), Source: bucket{}, Gate: open{}, Clock: wall{},
			Families: func() []string { return []string{"node.web01"} }, Changed: func() {}, Rejected: func(why string) { t.Error(why) }, Log: hosttest.Log(t),
		}
		c, err := control.Open(options)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(options.Path, "in the way"), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		go func() { _ = c.Run(ctx) }()
		synctest.Wait()
		if c.Paused() == nil || !c.IsSettled() {
			t.Fatal("what cannot be stored does not hold")
		}
		if err := os.RemoveAll(options.Path); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		synctest.Wait()
		options.Source = nil
		if c, err = control.Open(options); err != nil || c.Paused() == nil {
			t.Errorf("after a restart without NATS the node is not paused (%v)", err)
		}
	})
}

// changing is a bucket with changing keys. The key unread cannot be read.
type changing struct {
	bucket
	keys   map[string]model.Entry
	unread string
}

func (b *changing) Entries() (map[string]model.Entry, model.Sync) {
	at := time.Unix(1, 0)

	return maps.Clone(b.keys), model.Sync{At: at, Stream: at, Known: []string{"node.web01", "group.web"}}
}

func (b *changing) Read(ctx context.Context, key string, revision uint64) (model.Entry, error) {
	if key == b.unread {
		return model.Entry{}, errors.New("no answer")
	}
	e, err := b.bucket.Read(ctx, key, revision)
	e.Key, e.Revision = key, revision

	return e, err
}

// TestNoRunBetweenTwoPauses: a resumed node stays paused until it has read its other pause.
func TestNoRunBetweenTwoPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const group = "group.web.pause"
		entry := func(key string, revision uint64) model.Entry {
			return model.Entry{Key: key, Revision: revision, Time: time.Unix(1, 0)}
		}
		b := &changing{keys: map[string]model.Entry{key: entry(key, 7)}, unread: group}
		dir := t.TempDir()
		c, err := control.Open(control.Options{
			Host: host.New(host.Options{StateDir: dir}), Path: filepath.Join(dir, "control.json"), Source: b, Gate: open{}, Clock: wall{},
			Families: func() []string { return []string{"node.web01", "group.web"} }, Changed: func() {}, Rejected: func(why string) { t.Error(why) }, Log: hosttest.Log(t),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer stop()
		go func() { _ = c.Run(ctx) }()
		synctest.Wait()
		is := func(want map[string]uint64) {
			t.Helper()
			if by := c.PausedBy(); !maps.Equal(by, want) {
				t.Errorf("paused by %v, want %v", by, want)
			}
		}
		is(map[string]uint64{key: 7})
		b.keys = map[string]model.Entry{group: entry(group, 8)}
		c.Wake()
		synctest.Wait()
		is(map[string]uint64{key: 7})
		b.unread = ""
		c.Wake()
		synctest.Wait()
		is(map[string]uint64{group: 8})
		b.keys = nil
		c.Wake()
		synctest.Wait()
		is(nil)
	})
}
