package desired

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/host"
)

// sync applies the state of the bucket and stores it. The error is transient.
func (c *Control) sync(ctx context.Context) error {
	if c.o.Source == nil {
		return nil
	}
	entries, state := c.o.Source.Entries()
	families := c.o.Families()
	var failed []error
	changed, unread := false, false
	note := func(key string, took bool, err error) {
		changed = changed || took
		unread = unread || err != nil && isPause(key) && !errors.Is(err, model.ErrNotPermitted)
		failed = append(failed, err)
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if family, _, ok := model.SplitKey(key); ok && slices.Contains(families, family) && model.IsControlKey(key) {
			took, err := c.take(ctx, entries[key], family)
			if err == nil && c.isBehind(entries[key]) && !slices.Contains(state.Kept, key) {
				err = fmt.Errorf("%s: %w", key, errLags)
			}
			note(key, took, err)
		}
	}
	// End a pause after all other pauses are active, so that the node does not run in between.
	ending := c.ending(entries, state, families)
	if slices.ContainsFunc(ending, isPause) {
		for i, read := range c.readPauses(ctx, families) {
			took, err := c.takeNewest(ctx, read, families[i])
			note(read.Key, took, err)
		}
	}
	for _, key := range ending {
		if unread && isPause(key) {
			continue
		}
		ended, err := c.end(ctx, key, families)
		changed = changed || ended
		failed = append(failed, err)
	}
	err := errors.Join(failed...)

	return errors.Join(err, c.settle(ctx, state, changed, err == nil))
}

// ending returns the sorted keys to end: the bucket no longer has them, or the node has left their family.
func (c *Control) ending(entries map[string]model.Entry, state model.Sync, families []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.AppendSeq(slices.Collect(maps.Keys(c.documents)), maps.Keys(c.rejected))
	slices.Sort(all)

	return slices.DeleteFunc(slices.Compact(all), func(key string) bool {
		family, _, _ := model.SplitKey(key)
		_, there := entries[key]
		return slices.Contains(families, family) && (there || !state.Knows(family))
	})
}

func isPause(key string) bool {
	_, name, _ := model.SplitKey(key)
	return name == model.ControlPause
}

// known returns the active document of a key and its rejected revision, zero for none.
func (c *Control) known(key string) (d controlDocument, r controlRejection) {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.documents[key], c.rejected[key]
}

// isKnown reports whether a revision is the active or the rejected one.
func (c *Control) isKnown(e model.Entry) bool {
	d, r := c.known(e.Key)
	if r.why != "" {
		return r.revision == e.Revision && r.at.Equal(e.Time)
	}

	return d.isActive() && d.entry.Revision == e.Revision && d.entry.Time.Equal(e.Time)
}

// take reads a changed key and activates it. If it is rejected, the active document stays.
func (c *Control) take(ctx context.Context, known model.Entry, family string) (changed bool, err error) {
	if c.isKnown(known) {
		return false, nil
	}
	e, err := c.o.Source.Read(ctx, known.Key, known.Revision)
	if err != nil {
		return false, err
	}

	return c.accept(ctx, e, family)
}

// maxReads is the maximum number of pauses that are read at the same time.
const maxReads = 16

type newest struct {
	model.Entry
	err error
}

func (c *Control) readPauses(ctx context.Context, families []string) []newest {
	out := make([]newest, len(families))
	var reads errgroup.Group
	reads.SetLimit(maxReads)
	for i, family := range families {
		reads.Go(func() error {
			key := model.Key(family, model.ControlPause)
			out[i].Entry, out[i].err = c.o.Source.Read(ctx, key, 0)
			out[i].Key = key
			return nil
		})
	}
	_ = reads.Wait() // each result has its error

	return out
}

// takeNewest takes a key that may have changed before its announcement arrives.
func (c *Control) takeNewest(ctx context.Context, read newest, family string) (changed bool, err error) {
	switch {
	case errors.Is(read.err, model.ErrNotFound):
		return false, nil
	case read.err != nil || c.isKnown(read.Entry):
		return false, read.err
	}

	return c.accept(ctx, read.Entry, family)
}

// errLags means that the server returned an older revision of a key than the node has.
var errLags = errors.New("the NATS server answers with an older revision, it may lag behind the others")

// isOlder reports whether the server stored a revision before the active one. A recreated bucket counts from
// 1 again, at a later time.
func isOlder(e, inForce model.Entry) bool {
	return e.Revision < inForce.Revision && e.Time.Before(inForce.Time)
}

// accept activates an entry unless it is rejected or older than the active one.
func (c *Control) accept(ctx context.Context, e model.Entry, family string) (changed bool, err error) {
	if before, _ := c.known(e.Key); before.isActive() && isOlder(e, before.entry) {
		return false, fmt.Errorf("%s: %w", e.Key, errLags)
	}
	d, err := decode(e)
	if err == nil {
		err = c.judge(ctx, e, family)
	}
	if err != nil {
		return false, c.reject(e, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.documents[e.Key] = d
	delete(c.rejected, e.Key)
	event := "control document in force"
	if d.pause != nil && c.left(d.pause) <= 0 {
		event = "control document accepted, the pause is over"
	}
	c.o.Log.InfoContext(ctx, event, "key", e.Key, "revision", e.Revision)

	return true, nil
}

func (c *Control) isBehind(announced model.Entry) bool {
	d, r := c.known(announced.Key)

	return d.isActive() && r.why == "" && isOlder(d.entry, announced)
}

// judge returns the reason why a document or its removal is rejected. Labels need no signature.
func (c *Control) judge(ctx context.Context, e model.Entry, family string) error {
	switch _, name, _ := model.SplitKey(e.Key); name {
	case model.ControlPause:
		return c.o.Gate.Pause(ctx, e, family)
	case model.ControlGroups:
		return c.o.Gate.Groups(ctx, e, family)
	default:
		return nil
	}
}

// end ends a key that ending returned. Where signatures are required, an unsigned message ends neither a pause nor
// groups.
func (c *Control) end(ctx context.Context, key string, families []string) (changed bool, err error) {
	family, name, _ := model.SplitKey(key)
	if before, _ := c.known(key); before.isActive() && slices.Contains(families, family) {
		e, err := c.o.Source.Removal(ctx, key)
		switch {
		case errors.Is(err, model.ErrNotFound):
			e = model.Entry{Key: key, Deleted: true}
		case err != nil:
			return false, err
		case !e.Deleted || isOlder(e, before.entry):
			return false, fmt.Errorf("%s: %w", key, errLags)
		}
		if name != model.ControlLabels && c.o.Gate.Demands() {
			if err := c.judge(ctx, e, family); err != nil {
				return false, c.reject(e, err)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.documents, key)
	delete(c.rejected, key)
	c.o.Log.InfoContext(ctx, "control document removed", "key", key)

	return true, nil
}

// reject records and reports a permanent error. It returns other errors.
func (c *Control) reject(e model.Entry, err error) error {
	if _, never := model.FindProblems(err); !never && !errors.Is(err, model.ErrInvalidControl) {
		return err
	}
	why := err.Error()
	if errors.Is(err, model.ErrInvalidControl) {
		why = e.Key + ": " + why
	}
	c.mu.Lock()
	before := c.rejected[e.Key]
	c.rejected[e.Key] = controlRejection{e.Revision, e.Time, why}
	c.mu.Unlock()
	if before.why != why || before.revision != e.Revision {
		c.o.Rejected(why)
	}

	return nil
}

// settle records the state of the bucket and stores changes. A failed store is repeated by the next call. It
// returns the error.
func (c *Control) settle(ctx context.Context, state model.Sync, changed, complete bool) error {
	c.mu.Lock()
	bucket := bucketRecord{Stream: state.Stream, Kept: slices.Clone(state.Kept)}
	// The state of the bucket is unknown before it is read.
	if !state.Stream.IsZero() && (!bucket.Stream.Equal(c.bucket.Stream) || !slices.Equal(bucket.Kept, c.bucket.Kept)) {
		c.bucket, changed = bucket, true
	}
	c.unread = state.Err
	c.settled = c.settled || complete && (state.Complete() || len(state.Kept) > 0) || state.Err != nil
	r := controlRecord{c.bucket, map[string]model.Entry{}}
	for key, d := range c.documents {
		r.Keys[key] = d.entry
	}
	c.mu.Unlock()
	if !changed && !c.unstored {
		return nil
	}
	err := c.store.write(ctx, r)
	if err != nil && !c.unstored {
		c.o.Log.ErrorContext(ctx, "cannot store control documents, will retry; until then they would be missing after a restart without NATS", "error", err)
	}
	c.unstored = err != nil

	return err
}

type controlRecord struct {
	bucketRecord
	Keys map[string]model.Entry `json:"keys"`
}

// controlStore stores a record in a file. Without a path it stores nothing.
type controlStore struct {
	host *host.Host
	path string
}

// read reads the record. It logs and ignores a damaged record, because the bucket is read anyway.
func (s controlStore) read(log *slog.Logger) (controlRecord, error) {
	if s.path == "" {
		return controlRecord{}, nil
	}
	out, err := host.ReadRecord[controlRecord](s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case errors.Is(err, host.ErrDamaged):
		log.Warn("stored control documents ignored, the bucket has them", "error", err)
		err = nil
	}

	return out, err
}

func (s controlStore) write(ctx context.Context, r controlRecord) error {
	if s.path == "" {
		return nil
	}

	return s.host.WriteRecord(ctx, s.path, r)
}

// CheckControl checks the stored documents at a path. It returns the reason why OpenControl would skip one.
func CheckControl(path string) error {
	r, err := host.ReadRecord[controlRecord](path)
	for key, e := range r.Keys {
		if _, failed := decode(e); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", key, failed))
		}
	}

	return err
}

type controlDocument struct {
	entry  model.Entry
	pause  *model.Pause
	labels map[string]string
	groups model.Groups
}

// isActive returns false for the zero value.
func (d controlDocument) isActive() bool { return d.entry.Key != "" }

// decode decodes the value of a key without verifying signatures. The error is permanent.
func decode(e model.Entry) (controlDocument, error) {
	_, name, ok := model.SplitKey(e.Key)
	if !ok || !model.IsControlKey(e.Key) {
		return controlDocument{}, fmt.Errorf("%w: %q is no control key", model.ErrInvalidControl, e.Key)
	}
	if e.Refused != "" {
		return controlDocument{}, fmt.Errorf("%w: %s", model.ErrInvalidControl, e.Refused)
	}
	content, err := signed.Content(e.Value)
	if err != nil {
		return controlDocument{}, fmt.Errorf("%w: %w", model.ErrInvalidControl, err)
	}
	out := controlDocument{entry: e}
	switch name {
	case model.ControlPause:
		p, err := model.DecodePause(content)
		out.pause = &p
		return out, err
	case model.ControlGroups:
		g, err := model.DecodeGroups(content)
		out.groups = g
		return out, err
	default:
		l, err := model.DecodeLabels(content)
		out.labels = l.Labels
		return out, err
	}
}
