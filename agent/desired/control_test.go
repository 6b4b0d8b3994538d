package desired_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/testing/hosttest"
)

// key is the key of the node's pause.
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

// wall is the clock of this machine alone.
type wall struct{}

func (wall) Until(at time.Time, _ bool) time.Duration { return time.Until(at) }

// TestWhatCannotBeStoredIsStoredLater: a pause holds over a restart without NATS, also where it
// could not be written when it came and nothing has changed since.
func TestWhatCannotBeStoredIsStoredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		options := desired.ControlOptions{
			Host: host.New(host.Options{StateDir: dir}), Path: filepath.Join(dir, "control.json"), Source: bucket{}, Gate: desired.NoGate(), Clock: wall{},
			Families: func() []string { return []string{"node.web01"} }, Changed: func() {}, Rejected: func(why string) { t.Error(why) }, Log: hosttest.Log(t),
		}
		c, err := desired.OpenControl(options)
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
		if c, err = desired.OpenControl(options); err != nil || c.Paused() == nil {
			t.Errorf("after a restart without NATS the node is not paused (%v)", err)
		}
	})
}

// changing is a bucket with changing keys. One key cannot be read, and its servers may lag.
type changing struct {
	mu   sync.Mutex
	keys map[string]model.Entry
	// read are the keys as the server answers; nil answers keys.
	read   map[string]model.Entry
	unread string
	// groups are the groups of the node beside web.
	groups []string
	// delay is how long the servers take to answer. reads counts the reads that wait for them, most is the maximum.
	delay       time.Duration
	reads, most int
}

func (b *changing) families() []string {
	return model.Families("web01", append([]string{"web"}, b.groups...))
}

func (b *changing) Entries() (map[string]model.Entry, model.Sync) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := time.Unix(1, 0)

	return maps.Clone(b.keys), model.Sync{At: at, Stream: at, Known: b.families()}
}

// wait counts a read while it waits for the servers.
func (b *changing) wait() {
	count := func(by int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.reads += by
		b.most = max(b.most, b.reads)
	}
	count(1)
	defer count(-1)
	<-time.After(b.delay)
}

func (b *changing) Read(_ context.Context, key string, _ uint64) (model.Entry, error) {
	b.wait()
	e, err := b.Removal(context.Background(), key)
	if err == nil && e.Deleted {
		err = model.ErrNotFound
	}

	return e, err
}

func (b *changing) Removal(_ context.Context, key string) (model.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	answers := b.keys
	if b.read != nil {
		answers = b.read
	}
	e, ok := answers[key]
	switch {
	case key == b.unread:
		return model.Entry{}, errors.New("no answer")
	case !ok:
		return model.Entry{}, model.ErrNotFound
	}
	e.Value = []byte(`{"protocol": "io.muster.v1.pause", "by": "ann"}`)

	return e, nil
}

// answer has the server answer with other keys than the announced ones.
func (b *changing) answer(keys map[string]model.Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read = keys
}

// entry is a revision of a key, stored so many seconds after the first.
func controlEntry(key string, revision uint64) model.Entry {
	return model.Entry{Key: key, Revision: revision, Time: time.Unix(int64(revision), 0)}
}

// running runs the control documents of a node in the group web, and returns a check of the pauses in force.
func running(t *testing.T, b *changing) (wake func(), is func(want map[string]uint64)) {
	dir := t.TempDir()
	c, err := desired.OpenControl(desired.ControlOptions{
		Host: host.New(host.Options{StateDir: dir}), Path: filepath.Join(dir, "control.json"), Source: b, Gate: desired.NoGate(), Clock: wall{},
		Families: b.families, Changed: func() {}, Rejected: func(why string) { t.Error(why) }, Log: hosttest.Log(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() { stop(); synctest.Wait() })
	go func() { _ = c.Run(ctx) }()

	return c.Wake, func(want map[string]uint64) {
		t.Helper()
		synctest.Wait()
		c.Show(func(_ *model.Paused, by map[string]uint64, _, _ map[string]string, _ string) {
			if !maps.Equal(by, want) {
				t.Errorf("paused by %v, want %v", by, want)
			}
		})
	}
}

// group is the key of the pause of a group.
const group = "group.web.pause"

// TestNoRunBetweenTwoPauses: a resumed node stays paused until it has read its other pause.
func TestNoRunBetweenTwoPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &changing{keys: map[string]model.Entry{key: controlEntry(key, 7)}}
		wake, is := running(t, b)
		is(map[string]uint64{key: 7})
		b.unread = group
		b.keys = map[string]model.Entry{group: controlEntry(group, 8)}
		wake()
		is(map[string]uint64{key: 7})
		b.unread = ""
		wake()
		is(map[string]uint64{group: 8})
		b.keys = nil
		wake()
		is(nil)
	})
}

// TestTheNewestRevisionStays: a server that lags neither restores an older pause nor ends a newer one, and the
// node reads again until the server has caught up.
func TestTheNewestRevisionStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := func(e model.Entry) map[string]model.Entry { return map[string]model.Entry{e.Key: e} }
		removal := func(revision uint64) map[string]model.Entry {
			e := controlEntry(key, revision)
			e.Deleted = true
			return keys(e)
		}
		b := &changing{keys: keys(controlEntry(key, 7))}
		wake, is := running(t, b)
		answers := func(with map[string]model.Entry, want map[string]uint64) {
			t.Helper()
			b.answer(with)
			<-time.After(10 * time.Minute) // longer than the wait between two tries
			is(want)
		}
		is(map[string]uint64{key: 7})
		b.keys, b.read = keys(controlEntry(key, 9)), keys(controlEntry(key, 5))
		wake()
		is(map[string]uint64{key: 7})
		answers(keys(controlEntry(key, 8)), map[string]uint64{key: 8})
		answers(keys(controlEntry(key, 9)), map[string]uint64{key: 9})
		b.keys, b.read = nil, removal(6)
		wake()
		is(map[string]uint64{key: 9})
		answers(keys(controlEntry(key, 10)), map[string]uint64{key: 10}) // not announced yet
		answers(removal(11), nil)
	})
}

// TestPausesAreReadTogether: a resume of a node in many groups does not wait for the answer about each group in turn.
func TestPausesAreReadTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &changing{keys: map[string]model.Entry{key: controlEntry(key, 7)}, delay: 2 * time.Second}
		for i := range 40 {
			b.groups = append(b.groups, fmt.Sprint("g", i))
		}
		wake, is := running(t, b)
		<-time.After(time.Minute)
		is(map[string]uint64{key: 7})
		b.most, b.keys = 0, nil
		wake()
		<-time.After(time.Minute)
		is(nil)
		if b.most != 16 {
			t.Errorf("%d pauses were read at the same time, want 16", b.most)
		}
	})
}
