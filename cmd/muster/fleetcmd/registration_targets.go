package fleetcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources/host/files"
)

// retryAfter is the wait before a failed write is retried.
const retryAfter = time.Second

// keepTargets writes the file, and retries until it succeeds or ctx ends. New changes wait in the
// subscription.
func (c *registrationCommand) keepTargets(ctx context.Context, all []kvstore.Registered) {
	for try := 0; ; try++ {
		err := c.writeTargets(ctx, all)
		switch {
		case err == nil && try > 0:
			c.Log.Info("Prometheus file written again", "file", c.prometheus)
			return
		case err == nil:
			return
		case try == 0:
			c.Log.Warn("cannot write the Prometheus file, will retry", "error", err)
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return
		}
	}
}

// writeTargets writes registrations for Prometheus file discovery. It does not touch an unchanged file.
func (c *registrationCommand) writeTargets(ctx context.Context, all []kvstore.Registered) error {
	plain := make([]registration.Registration, len(all))
	for i, r := range all {
		plain[i] = r.Registration
	}
	text, err := json.MarshalIndent(registration.Targets(plain), "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	file, err := filepath.Abs(c.prometheus)
	if err != nil {
		return err
	}
	switch old, err := files.Read(file, int64(len(text))); {
	case err == nil && bytes.Equal(old, text):
		return nil
	case errors.Is(err, files.ErrNotRegular):
		return fmt.Errorf("--prometheus: %w", err)
	}
	if err := c.Host().Write(ctx, file, bytes.NewReader(text), files.OwnAttrs(0o644)); err != nil {
		return fmt.Errorf("--prometheus: %w", err)
	}
	for _, r := range all {
		for label, keys := range r.AnnotationsByLabel() {
			if len(keys) > 1 {
				c.Log.Warn("annotations with the same Prometheus label, only the first is written", "label", label, "annotations", strings.Join(keys, ", "), "address", r.Address, "port", r.Port)
			}
		}
	}

	return nil
}
