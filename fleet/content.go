package fleet

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document/assigned"
)

// Content is what a revision assigns, as files: the manifest, the files of a bundle,
// and the terms.
type Content struct {
	label string
	files map[string]file
}

// file is a file of a content. What is not a text, or is too long to be shown, is
// its digest.
type file struct {
	size int64
	text string
}

// termsName is the name of the terms among files.
const termsName = "(terms)"

// maxShown is how long a file may be whose text is compared.
const maxShown = 1 << 20

// ContentOf reads what a revision assigns; open opens a bundle by its digest.
func ContentOf(e model.Entry, open func(digest string) (io.ReadCloser, error)) (Content, error) {
	c := Content{label: fmt.Sprintf("%s@%d", e.Key, e.Revision), files: map[string]file{}}
	if e.Deleted {
		return c, nil
	}
	a, problems := assigned.Decode(e.Key, e.Value)
	if problems != nil {
		a.Manifest = Readable(e.Key, e.Value)
	}
	only := a.Assignment
	only.Protocol, only.Name, only.Digest, only.Issued, only.Manifest, only.Bundle = "", "", "", time.Time{}, "", ""
	if !reflect.ValueOf(only).IsZero() {
		only.Protocol = model.ProtocolAssignment
		readable, err := terms(only)
		if err != nil {
			return c, err
		}
		text := strings.TrimPrefix(string(readable), "protocol: "+model.ProtocolAssignment+"\n")
		c.files[termsName] = file{int64(len(text)), text}
	}
	if a.Bundle == "" {
		c.files[model.BundleManifest] = file{int64(len(a.Manifest)), a.Manifest}
		return c, nil
	}
	r, err := open(a.Bundle)
	if err == nil {
		err = errors.Join(c.readBundle(r), r.Close())
	}

	return c, err
}

func (c *Content) readBundle(r io.Reader) error {
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	archive := tar.NewReader(unzipped)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			// The digest of a bundle is checked at the end of its bytes.
			_, err = io.Copy(io.Discard, r)
			return err
		}
		if err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeSymlink:
			c.files[h.Name] = file{0, "-> " + h.Linkname + "\n"}
		case tar.TypeReg:
			if c.files[h.Name], err = readFile(archive, h.Size); err != nil {
				return err
			}
		}
	}
}

func readFile(r io.Reader, size int64) (file, error) {
	sum := sha256.New()
	text, err := io.ReadAll(io.LimitReader(io.TeeReader(r, sum), maxShown))
	if err == nil {
		_, err = io.Copy(sum, r)
	}
	if size > maxShown || !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		text = []byte(model.DigestFrom(sum) + "\n")
	}

	return file{size, string(text)}, err
}

// Files returns the sizes of its files by name, without the terms.
func (c Content) Files() map[string]int64 {
	out := map[string]int64{}
	for name, f := range c.files {
		if name != termsName {
			out[name] = f.size
		}
	}

	return out
}

// Diff returns a unified diff of each file that differs, empty when none does.
func (c Content) Diff(to Content) string {
	names := slices.Concat(slices.Collect(maps.Keys(c.files)), slices.Collect(maps.Keys(to.files)))
	slices.Sort(names)
	var out strings.Builder
	for _, name := range slices.Compact(names) {
		out.WriteString(udiff.Unified(c.label+" "+name, to.label+" "+name, c.files[name].text, to.files[name].text))
	}

	return out.String()
}
