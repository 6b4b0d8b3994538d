package manifest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
)

// SetDynamic notes that something other than the document and data went in.
func (w *evaluator) SetDynamic() {
	w.mu.Lock()
	w.Dynamic = true
	w.mu.Unlock()
}

// NoteInput records a file as an input of the document.
func (w *evaluator) NoteInput(path string) {
	for w.Outer != nil {
		w = w.Outer
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inputs == nil {
		w.inputs = map[string]struct{}{}
	}
	w.inputs[path] = struct{}{}
}

// Inputs returns the sorted paths of the input files of the document and of the documents that
// it includes.
func (w *evaluator) Inputs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()

	return slices.Sorted(maps.Keys(w.inputs))
}

// fileUse is what a file is read for.
type fileUse string

const (
	asData fileUse = "file:"
	// evaluated are templates, which the author of the document must have written.
	evaluated fileUse = "template:"
)

// readFile is the function readFile. A file that an earlier resource of the
// manifest makes has to wait for it, so while nothing is running it is late.
func (w *evaluator) readFile(path string, use fileUse, running bool) (string, error) {
	w.SetDynamic()
	if err := w.elsewhere(path); err != nil {
		return "", err
	}
	if !filepath.IsAbs(path) && w.Dir == "" {
		return "", expression.WithHint(fmt.Errorf("%q is relative, and this manifest has no directory", path), "deliver manifest and files as a bundle, or give an absolute path")
	}
	path = w.beside(path)
	read := func() (string, error) {
		text, untrusted := files.ReadTrusted(path, w.Opts.MaxBytes, w.Author)
		if untrusted == nil || use == evaluated {
			return string(text), untrusted
		}
		w.Distrust(untrusted)
		text, err := files.Read(path, w.Opts.MaxBytes)
		return string(text), err
	}
	if running {
		return read()
	}
	if ref, ok := w.Provided()[resource.PathNeed(path)]; ok {
		return "", late(expression.NameReadFile, ref)
	}
	w.NoteInput(path)

	return w.cached(string(use)+path, read)
}

// Distrust notes that others may change a part of the values of the document, and why.
func (w *evaluator) Distrust(reason error) { w.untrusted.CompareAndSwap(nil, &reason) }

// Distrusted returns why others may change a part of the values of the document, or of a document that includes it; nil if
// they may not.
func (w *evaluator) Distrusted() error {
	for ; w != nil; w = w.Outer {
		if reason := w.untrusted.Load(); reason != nil {
			return *reason
		}
	}

	return nil
}

// checkText refuses to evaluate a text that can have parts of a file that others may change:
// the document has read such a file, and the text is no literal of the expression.
func (sc *scope) checkText(text string) error {
	if sc.program.HasLiteral(text) {
		return nil
	}
	if reason := sc.Distrusted(); reason != nil {
		return fmt.Errorf("the text may have parts of a file that readFile returned: %w", reason)
	}

	return nil
}

// beside returns the whole path of a file.
func (w *evaluator) beside(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.Dir, path)
	}

	return filepath.Clean(path)
}

// cached reads the value of a key once, so that it is the same in the whole document.
func (w *evaluator) cached(key string, get func() (string, error)) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v, have := w.cache[key]; have {
		return v, nil
	}
	v, err := get()
	if err == nil {
		w.cache[key] = v
	}

	return v, err
}

// kvGet is the function kvGet.
func (w *evaluator) kvGet(ctx context.Context, bucket, key string) (string, error) {
	w.SetDynamic()
	if w.Opts.KV == nil {
		return "", expression.WithHint(fmt.Errorf("kvGet %w", errNoNATS), noNATSHint)
	}

	return w.cached("kv:"+bucket+"\x00"+key, func() (string, error) {
		v, err := w.Opts.KV(ctx, bucket, key)
		if err != nil {
			return "", fmt.Errorf("kvGet %s/%s: %w", bucket, key, err)
		}
		return string(v), nil
	})
}

// ErrElsewhere is a file that only the node has.
var errElsewhere = errors.New("it is the node's")

// elsewhere notes the files that expressions read beside the manifest, and
// keeps them from reading others of this machine when the manifest is for another.
func (w *evaluator) elsewhere(path string) error {
	switch {
	case !w.Absent:
		return nil
	case filepath.IsAbs(path):
		return errElsewhere
	}
	w.mu.Lock()
	w.Relative = append(w.Relative, path)
	w.mu.Unlock()

	return nil
}

// Tolerates reports whether a failure is left to the node: it can have what is missing
// here. From then on nothing that follows from it is sure.
func (w *evaluator) Tolerates() bool {
	w.Unsure = w.Unsure || w.Absent

	return w.Absent
}
