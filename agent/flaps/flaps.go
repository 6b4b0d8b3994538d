// Package flaps keeps the resources of a node that something else changes again and
// again, and who that is: each is told once when it begins and once when it is over.
package flaps

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterfleet/muster/agent/drift"
	"github.com/musterfleet/muster/model"
)

// lookEvery is how often the writers of a resource are looked at until one is known, and
// longestLook for how long: the last write may have been the one before.
const (
	lookEvery   = time.Second
	longestLook = 10 * time.Second
)

// maxListeners bounds the resources of which the writers are looked for at a time.
const maxListeners = 8

// Writers notes who writes some files, until it is closed. Its texts are hints, safe to
// show and bounded.
type Writers interface {
	// Seen returns who was seen, the latest first.
	Seen() []string
	Close()
}

// Options are what Flaps are made from.
type Options struct {
	// Listen begins to note who writes the files at paths; nil notes nobody.
	Listen func(ctx context.Context, paths []string) (Writers, error)
	// Began and Ended tell of a resource. Ended is not called of one that Began was not
	// called of.
	Began, Ended func(f model.FlappingState)
}

// Flaps are the resources that flap. Its methods are for one goroutine. Make it with New.
type Flaps struct {
	o   Options
	all map[id]*flap
}

type id struct {
	key string
	ref model.Ref
}

type flap struct {
	state model.FlappingState
	// writers is nil where nobody is looked for, or not any more.
	writers Writers
	// tellBy is when Began is called at the latest; zero once it was. lookAt is when the
	// writers are looked at next: they are known a moment after their writes.
	tellBy, lookAt time.Time
}

// New returns none.
func New(o Options) *Flaps { return &Flaps{o: o, all: map[id]*flap{}} }

// Begin notes that a resource flaps from now on. It is told of as soon as its writer is
// known, at the latest after ten seconds.
func (s *Flaps) Begin(ctx context.Context, f drift.Flapping) {
	fresh := &flap{state: model.FlappingState{Manifest: f.Key, Resource: f.Ref, Since: f.Since.UTC()}, tellBy: f.Since.Add(longestLook)}
	if s.o.Listen != nil && len(f.Paths) > 0 && s.listening() < maxListeners {
		if w, err := s.o.Listen(ctx, f.Paths); err == nil {
			fresh.writers = w
		}
	}
	s.all[id{f.Key, f.Ref}] = fresh
}

func (s *Flaps) listening() (count int) {
	for _, f := range s.all {
		if f.writers != nil {
			count++
		}
	}

	return count
}

// Look tells of those whose writer is known by now, or was looked for for long enough.
func (s *Flaps) Look(now time.Time) {
	for _, f := range s.all {
		if f.tellBy.IsZero() {
			continue
		}
		var seen []string
		if f.writers != nil {
			seen = f.writers.Seen()
		}
		if len(seen) == 0 && now.Before(f.tellBy) {
			f.lookAt = now.Add(lookEvery)
			continue
		}
		f.state.Writer, f.tellBy = strings.Join(seen[:min(len(seen), 3)], ", "), time.Time{}
		f.close()
		s.o.Began(f.state)
	}
}

func (f *flap) close() {
	if f.writers != nil {
		f.writers.Close()
		f.writers = nil
	}
}

// End notes that a resource flaps no more.
func (s *Flaps) End(key string, ref model.Ref) {
	f := s.all[id{key, ref}]
	if f == nil {
		return
	}
	f.close()
	delete(s.all, id{key, ref})
	if f.tellBy.IsZero() {
		s.o.Ended(f.state)
	}
}

// Retain ends, without telling, those that are not among flapping any more: their
// manifest has changed, or is gone.
func (s *Flaps) Retain(flapping []drift.Flapping) {
	still := map[id]bool{}
	for _, f := range flapping {
		still[id{f.Key, f.Ref}] = true
	}
	for i, f := range s.all {
		if !still[i] {
			f.close()
			delete(s.all, i)
		}
	}
}

// Close forgets all.
func (s *Flaps) Close() { s.Retain(nil) }

// Next returns when Look has something to tell; zero is never.
func (s *Flaps) Next() (next time.Time) {
	for _, f := range s.all {
		if f.tellBy.IsZero() {
			continue
		}
		at := f.tellBy
		if f.writers != nil && f.lookAt.Before(at) {
			at = f.lookAt
		}
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}

	return next
}

// States returns all that were told of, in a fixed order.
func (s *Flaps) States() []model.FlappingState {
	var out []model.FlappingState
	for _, f := range s.all {
		if f.tellBy.IsZero() {
			out = append(out, f.state)
		}
	}
	slices.SortFunc(out, func(a, b model.FlappingState) int {
		return cmp.Or(cmp.Compare(a.Manifest, b.Manifest), cmp.Compare(a.Resource.String(), b.Resource.String()))
	})

	return out
}

// Text says that a resource flaps, for people.
func Text(f model.FlappingState) string {
	who := "who does it is not known"
	if f.Writer != "" {
		who = "probably by " + f.Writer
	}

	return fmt.Sprintf("%s of %s is changed again and again, %s; its repairs are held back more and more until that ends", f.Resource, f.Manifest, who)
}
