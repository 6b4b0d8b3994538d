package resource_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/musterfleet/muster/resources/resource"
)

func TestWithoutOutput(t *testing.T) {
	said := func(what string) error { return resource.CommandError{Err: errors.New("it failed"), Output: what} }
	for want, err := range map[string]error{
		"it failed":                                       errors.New("it failed"),
		"it failed: [redacted]":                           said("secret one"),
		"start: it failed: [redacted]":                    fmt.Errorf("start: %w", said("secret one")),
		"it failed: [redacted]\nit failed: [redacted]":    errors.Join(said("secret one"), said("secret two")),
		"it failed: [redacted]\nx: it failed: [redacted]": resource.Concluded{Err: errors.Join(said("secret one"), fmt.Errorf("x: %w", said("secret two")))},
	} {
		if got := resource.WithoutOutput(err); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
