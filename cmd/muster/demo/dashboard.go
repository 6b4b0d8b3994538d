package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
)

// provision creates the buckets and streams of a fleet, and serves its dashboard until node ends.
func (d *demo) provision(ctx, node context.Context) ([]string, error) {
	if err := d.command(ctx, "fleet", "init", "--yes"); err != nil {
		return nil, err
	}
	if err := provision.New(d.store).Check(ctx); err != nil {
		return nil, err
	}
	if err := d.serve(ctx, node); err != nil {
		return nil, err
	}
	if _, err := d.shown(ctx); err != nil {
		return nil, err
	}

	open := "the dashboard answers: open " + d.dashboard + " in a browser"
	if d.once {
		open = "the dashboard answers on " + d.dashboard + " until the last step: without --once, on a terminal, it stays until ctrl-C"
	}

	return []string{"all buckets and streams are up to date", open}, nil
}

// serve begins to serve the dashboard on a free port of the loopback interface. Its log goes to
// a file.
func (d *demo) serve(ctx, node context.Context) error {
	log, err := os.Create(filepath.Join(d.dir, "serve.log"))
	if err != nil {
		return err
	}
	address, ended := make(firstLine, 1), make(chan error, 1)
	args := []string{"fleet", "serve", "--listen", "127.0.0.1:0"}
	d.show(args)
	d.running.Go(func() {
		err := d.run(node, cli.NewEnv(d.Types, bytes.NewReader(nil), address, log, d.Stop), args)
		if err = errors.Join(err, log.Close()); err != nil && node.Err() == nil {
			d.Log.Warn("the dashboard ended", "error", err)
		}
		ended <- err
	})
	select {
	case d.dashboard = <-address:
		d.Print.Printf("    %s\n", d.dashboard)
		return nil
	case err := <-ended:
		return fmt.Errorf("muster fleet serve ended: %w", err)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// shown returns how many nodes the dashboard shows.
func (d *demo) shown(ctx context.Context) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.dashboard+"api/v1/nodes?limit=1", nil)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var page struct{ Known int }
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil {
		return 0, fmt.Errorf("the dashboard answers %s: %w", response.Status, err)
	}

	return page.Known, nil
}

// awaitShown waits until the dashboard shows so many nodes.
func (d *demo) awaitShown(ctx context.Context, want int) error {
	const pause = 20 * time.Millisecond
	for {
		if got, err := d.shown(ctx); err != nil || got == want {
			return err
		}
		if err := kvstore.Pause(ctx, pause); err != nil {
			return err
		}
	}
}

// firstLine receives the first line that is written to it.
type firstLine chan string

// Write expects whole lines.
func (f firstLine) Write(b []byte) (int, error) {
	select {
	case f <- strings.TrimSpace(string(b)):
	default:
	}

	return len(b), nil
}
