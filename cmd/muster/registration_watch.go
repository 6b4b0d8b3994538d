package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"github.com/musterfleet/muster/kvstore/registrations"
	"github.com/musterfleet/muster/model"
)

func (a *app) registrationWatch(ctx context.Context, c *registrationCommand) error {
	store, err := a.store(ctx)
	if err != nil {
		return err
	}
	write, end := a.keepTargets(ctx, c.prometheus)
	defer end()
	standing, complete := map[string]registrations.Registered{}, false
	for r, err := range store.WatchRegistrations(ctx, c.filter) {
		switch {
		case err != nil && errors.Is(context.Cause(ctx), errInterrupted):
			return nil
		case errors.Is(err, model.ErrInvalidName):
			return usagef("%w", err)
		case errors.Is(err, registrations.ErrInvalidRegistration):
			a.log.Warn("a registration cannot be read", "error", err)
			continue
		case errors.Is(err, registrations.ErrNotCurrent):
			a.log.Warn(err.Error())
			continue
		case err != nil:
			return err
		}
		change := note(standing, r)
		complete = complete || r.Node == ""
		switch {
		case c.prometheus != "" && complete && (change || r.Node == ""):
			err = write(slices.Collect(maps.Values(standing)))
		case c.prometheus == "" && r.Node != "" && change:
			err = a.printRegistration(r, c.format)
		}
		if errors.Is(err, syscall.EPIPE) {
			return nil // the reader left, it has what it wanted
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// note takes over what became of a registration, and says whether that is more
// than that it was told again.
func note(standing map[string]registrations.Registered, r registrations.Registered) bool {
	key := registrationWords(r)
	old, known := standing[key]
	if r.Gone {
		delete(standing, key)
		return known
	}
	if r.Node == "" {
		return false
	}
	standing[key] = r

	return !known || old.Priority != r.Priority || !maps.Equal(old.Annotations, r.Annotations)
}

func (a *app) printRegistration(r registrations.Registered, f format) error {
	switch {
	case f.json:
		return a.printJSONLine(r)
	case f.yaml:
		_, err := fmt.Fprintln(a.stdout, "---")
		return errors.Join(err, a.printDocument(r, true))
	}
	word := "+"
	if r.Gone {
		word = "-"
	}
	_, err := fmt.Fprintf(a.stdout, "%s %s priority %d\n", word, registrationWords(r), r.Priority)

	return err
}
