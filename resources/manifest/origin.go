package manifest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// origin is a manifest as its resources see it when they run.
type origin struct {
	loader *Loader
	dir    string
	data   map[string]any
}

// Origin gives what the resources of a manifest may ask of it when they run:
// the names of templates, and what is elsewhere. Without a manifest, for an
// ensure request, r is nil.
func (l *Loader) Origin(r *Resolved) resource.Origin {
	o := origin{loader: l}
	if r != nil {
		o.dir, o.data = r.dir, r.Data
	}

	return o
}

// Names makes the names anew every time, so that a run sees what the machine
// and the buckets say then.
func (o origin) Names(ctx context.Context, facts model.Facts, masked bool) map[string]any {
	s := o.loader.session(&Document{}, Inputs{Dir: o.dir, Facts: facts})
	text := model.Secret.Reveal
	if masked {
		text = model.Secret.String
	}
	t := s.scopeWith(ctx, inResources, o.data, resource.Outputs{}, text).templates()
	// Facts that were given are always there.
	out, _ := t.seen(ctx, "")
	delete(out, nameOutputs) // what they take must be known when they are looked at

	return out
}

// Tree fetches a tar.gz and unpacks it.
func (o origin) Tree(ctx context.Context, source string) (dir string, cleanup func() error, err error) {
	if !strings.HasPrefix(source, "obj://") && !strings.HasPrefix(source, "http://") && !strings.HasPrefix(source, "https://") {
		return "", nil, fmt.Errorf("%w: a tree is fetched from http(s):// or obj://", ErrSource)
	}
	opened, err := o.loader.open(ctx, source)
	if err != nil {
		return "", nil, err
	}
	dir, cleanup, _, err = o.loader.unpack(ctx, opened.name, bufio.NewReader(opened))
	err = errors.Join(err, opened.Close())
	if err != nil && cleanup != nil {
		err = errors.Join(err, cleanup())
		cleanup = nil
	}

	return dir, cleanup, err
}
