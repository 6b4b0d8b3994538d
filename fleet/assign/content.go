package assign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/archive"
)

// ErrRefused means that nodes refuse a bundle.
var ErrRefused = errors.New("nodes refuse this bundle")

// OpenBundle opens a bundle by its digest. The reader returns an error at the end if the digest
// does not match.
type OpenBundle func(ctx context.Context, digest string) (io.ReadCloser, error)

// Content is the content of a revision: the terms, and the manifest or the files of a bundle.
type Content struct {
	label, terms string
	files        []File
}

// Files returns its files by name: a manifest without a bundle is manifest.yaml.
func (c Content) Files() []File { return c.files }

// As returns the content with another name in diffs.
func (c Content) As(label string) Content {
	c.label = label

	return c
}

// ReadContent reads the content of a revision. The error wraps ErrRefused for a bundle that nodes refuse. The
// content then lists the files before the refused entry.
func ReadContent(ctx context.Context, e model.Entry, open OpenBundle) (Content, error) {
	c := Content{label: fmt.Sprintf("%s@%d", e.Key, e.Revision)}
	if e.Deleted {
		return c, nil
	}
	a := assignment(e)
	var err error
	if c.terms, err = termsOf(a); err != nil {
		return c, err
	}
	if a.Bundle == "" {
		c.files = []File{manifestFile(a.Manifest)}
		return c, nil
	}
	var t texts
	tree, err := list(ctx, a.Bundle, open, t.open)
	if err != nil {
		return c, err
	}
	t.end()
	for _, f := range tree.Files {
		c.files = append(c.files, newFile(f, t.kept))
	}

	return c, refusal(tree)
}

// WriteContent writes one file of a revision. The error wraps model.ErrNotFound for a missing file,
// and ErrRefused as in ReadContent.
func WriteContent(ctx context.Context, e model.Entry, open OpenBundle, name string, w io.Writer) error {
	name = path.Clean(name)
	missing := fmt.Errorf("%s revision %d has no file %s: %w", e.Key, e.Revision, quoted(name), model.ErrNotFound)
	if e.Deleted {
		return missing
	}
	a := assignment(e)
	if a.Bundle == "" {
		if name != model.BundleManifest {
			return missing
		}
		_, err := io.WriteString(w, a.Manifest)
		return err
	}
	tree, err := list(ctx, a.Bundle, open, func(file string) io.Writer {
		if file != name {
			return nil
		}
		return w
	})
	if err != nil {
		return err
	}
	if err := refusal(tree); err != nil {
		return err
	}
	for _, f := range tree.Files {
		switch {
		case f.Name != name:
		case f.Kind == archive.KindFile:
			return nil
		default:
			return fmt.Errorf("%s, which has no content of its own", newFile(f, nil))
		}
	}

	return missing
}

// assignment decodes a revision like nodes. A bare manifest has no terms. A rejected value has no terms, and
// its text is the manifest to show.
func assignment(e model.Entry) model.Assignment {
	a, problems := document.DecodeAssigned(e.Key, e.Value)
	if problems != nil {
		a.Manifest = Readable(e.Key, e.Value)
	}

	return a.Assignment
}

// termsOf describes the terms of an assignment, empty for none.
func termsOf(a model.Assignment) (string, error) {
	a.Protocol, a.Name, a.Digest, a.Issued, a.Manifest, a.Bundle = "", "", "", time.Time{}, "", ""
	if reflect.ValueOf(a).IsZero() {
		return "", nil
	}
	a.Protocol = model.ProtocolAssignment
	text, err := AssignmentYAML(a)

	return strings.TrimPrefix(string(text), "protocol: "+model.ProtocolAssignment+"\n"), err
}

// list lists a bundle with the limits of nodes.
func list(ctx context.Context, digest string, open OpenBundle, each func(name string) io.Writer) (archive.Tree, error) {
	r, err := open(ctx, digest)
	if err != nil {
		return archive.Tree{}, err
	}
	tree, err := archive.List(ctx, r, archive.Limits{}, each)

	return tree, errors.Join(err, r.Close())
}

// refusal returns the reason why nodes refuse a bundle.
func refusal(tree archive.Tree) error {
	if tree.Refused == nil {
		return nil
	}

	return fmt.Errorf("%w: %w", ErrRefused, tree.Refused)
}
