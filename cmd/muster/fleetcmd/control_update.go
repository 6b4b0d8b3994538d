package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model"
)

// edit is a change of the labels or the groups of nodes.
type edit struct {
	// set maps names to values; groups have no values.
	set    map[string]string
	remove []string
	// order replaces the order of groups if setsOrder is true; an empty order resets it.
	order     []string
	setsOrder bool
}

// syntax describes how an edit is written.
type syntax struct {
	// noun names the edited thing; usage shows the syntax.
	noun, usage string
	// set parses an argument that sets a name. It reports false for other arguments.
	set func(arg string) (name, value string, ok bool)
	// conflict is the error text after a name that is both set and removed.
	conflict string
}

// isChange reports whether an argument is a change rather than a node.
func (s syntax) isChange(arg string) bool {
	_, _, sets := s.set(arg)

	return sets || strings.HasSuffix(arg, "-")
}

// parse splits the arguments into nodes and an edit.
func (a *aim) parse(args []string, s syntax) (nodes []string, e edit, err error) {
	if len(args) > 0 && !a.Given("on") && !a.Given("node") {
		nodes, args = []string{cli.NodeID(args[0])}, args[1:]
		for len(args) > 1 && !s.isChange(args[0]) {
			nodes, args = append(nodes, cli.NodeID(args[0])), args[1:]
		}
	}
	e.set = map[string]string{}
	for _, arg := range args {
		if name, value, ok := s.set(arg); ok {
			e.set[name] = value
			continue
		}
		name, removes := strings.CutSuffix(arg, "-")
		if !removes || name == "" {
			return nil, e, cli.Usagef("%q: write %s", arg, s.usage)
		}
		e.remove = append(e.remove, name)
	}
	for _, name := range e.remove {
		if _, both := e.set[name]; both {
			return nil, e, cli.Usagef("%s %s %s", s.noun, name, s.conflict)
		}
	}
	if len(e.set)+len(e.remove) == 0 {
		return nil, e, cli.Usagef("no %s: write %s", s.noun, s.usage)
	}

	return nodes, e, nil
}

// isIdle reports whether an edit only removes names that are not there.
func (e edit) isIdle(has func(name string) bool) bool {
	return len(e.set) == 0 && !slices.ContainsFunc(e.remove, has)
}

// names returns the sorted names that the edit sets.
func (e edit) names() []string { return slices.Sorted(maps.Keys(e.set)) }

// eachTarget calls write for each target and continues after an error. It returns the results of the
// successful writes and the joined errors.
func eachTarget[W any](targets []fleet.Target, write func(fleet.Target) (W, error)) (done []W, err error) {
	var failed []error
	for _, t := range targets {
		w, err := write(t)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		done = append(done, w)
	}

	return done, errors.Join(failed...)
}

// controlDocument is the value of a control key.
type controlDocument interface{ Check() error }

// bucket stores control documents.
type bucket interface {
	// Get returns a document. For a deleted document it returns the revision and an error that wraps
	// model.ErrNotFound.
	Get(ctx context.Context, key string) (model.Entry, error)
	// Current is Get, but reads from the stream leader to avoid stale replicas.
	Current(ctx context.Context, key string) (model.Entry, error)
	// Replace stores a value if revision is still the newest; otherwise the error wraps control.ErrChanged.
	Replace(ctx context.Context, key string, revision uint64, value []byte) (uint64, error)
}

// updater reads, changes and replaces control documents.
type updater[D controlDocument] struct {
	bucket bucket
	// name is the last part of the keys.
	name   string
	decode func(value []byte) (D, error)
	// change returns the new document. It receives the zero value if there is no document.
	change func(D) D
	// idle reports whether the change would remove only missing names; then update writes nothing. Nil means
	// never.
	idle func(D) bool
	// sign signs the new value; current is the value that it replaces. Nil means unsigned.
	sign func(family string, now D, value, current []byte) ([]byte, error)
}

// updated is the result of an update.
type updated[D controlDocument] struct {
	writeSummary
	before, now D
	// idle: update wrote nothing because the document already had this content.
	idle bool
}

// maxTries is how often an update starts again after another user changed the key.
const maxTries = 5

// update replaces the document of a family. The error wraps control.ErrChanged if other users changed the key
// during each try.
func (u updater[D]) update(ctx context.Context, family string) (out updated[D], err error) {
	read, isCurrent := u.bucket.Get, false
	for range maxTries {
		out, err = u.updateOnce(ctx, family, read)
		isIdle := err == nil && out.idle
		if !isIdle && !errors.Is(err, kvstore.ErrControlChanged) || isIdle && isCurrent {
			break
		}
		// The read may have come from a stale replica.
		read, isCurrent = u.bucket.Current, true
	}

	return out, err
}

func (u updater[D]) updateOnce(ctx context.Context, family string, read func(ctx context.Context, key string) (model.Entry, error)) (out updated[D], err error) {
	key := model.Key(family, u.name)
	current, err := read(ctx, key)
	switch {
	case err == nil:
		if out.before, err = u.decode(current.Value); err != nil {
			return out, fmt.Errorf("%s: %w (remove it: nats kv del)", key, err)
		}
	case !errors.Is(err, model.ErrNotFound) && !errors.Is(err, model.ErrUnusable):
		return out, err
	}
	out.now = u.change(out.before)
	if u.idle != nil && u.idle(out.before) {
		out.Key, out.Revision, out.idle = key, current.Revision, true
		return out, nil
	}
	if err := out.now.Check(); err != nil {
		return out, fmt.Errorf("%s: %w", key, err)
	}
	value, err := model.EncodeJSON(out.now)
	if err == nil && u.sign != nil {
		value, err = u.sign(family, out.now, value, current.Value)
	}
	if err != nil {
		return out, err
	}
	out.Key = key
	out.Revision, err = u.bucket.Replace(ctx, key, current.Revision, value)

	return out, err
}
