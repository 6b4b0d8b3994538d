package resource

import (
	"errors"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/model"
)

// Provider implements a type on a platform. The provider interface of each type
// embeds it.
type Provider interface {
	// Name is the value of the provider property.
	Name() string
	// IsManageable reports whether the provider can manage a resource on a node with
	// these facts, and its priority: the lowest wins. The error is why it cannot.
	IsManageable(facts model.Facts, spec Spec) (bool, int, error)
}

// Select returns the provider of a resource: the named one, or the manageable
// one with the lowest priority number. Its errors wrap model.ErrProviderNotFound
// and model.ErrNoSuitableProvider.
func Select[P Provider](providers []P, facts model.Facts, spec Spec) (P, error) {
	var best P
	named := spec.Meta().Provider
	lowest, found, reasons := 0, false, []error{}
	for _, p := range providers {
		if named != "" && p.Name() != named {
			continue
		}
		ok, priority, err := p.IsManageable(facts, spec)
		switch {
		case err != nil:
			reasons = append(reasons, fmt.Errorf("%s: %w", p.Name(), err))
		case !ok:
			reasons = append(reasons, errors.New(p.Name()+": cannot manage it here"))
		case !found || priority < lowest:
			best, lowest, found = p, priority, true
		}
	}
	switch {
	case found:
		return best, nil
	case len(reasons) == 0 && named != "":
		return best, fmt.Errorf("%w: %q, there is %s", model.ErrProviderNotFound, named, strings.Join(names(providers), ", "))
	default:
		return best, unsuitable(reasons)
	}
}

// unsuitable wraps the reasons: one may be a PrerequisiteError.
func unsuitable(reasons []error) error {
	err := model.ErrNoSuitableProvider
	for i, reason := range reasons {
		err = fmt.Errorf([...]string{"%w: %w", "%w; %w"}[min(i, 1)], err, reason)
	}

	return err
}

func names[P Provider](providers []P) []string {
	var out []string
	for _, p := range providers {
		out = append(out, p.Name())
	}

	return out
}
