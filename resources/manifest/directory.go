package manifest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
)

// ErrNoManifest is the error of a directory without manifest.yaml.
var ErrNoManifest = errors.New("no " + model.BundleManifest + " at its root")

// maxRead limits how many files of a directory are searched for manifests.
const maxRead = 20

// NoManifestError is the error of a directory without manifest.yaml. It wraps ErrNoManifest.
type NoManifestError struct {
	Dir string
	// Others are the files in the directory that contain manifests.
	Others []string
}

// NoManifest returns the error of a directory without manifest.yaml.
func NoManifest(dir string) *NoManifestError {
	out := &NoManifestError{Dir: dir}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return out
	}
	read := 0
	for _, e := range entries {
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(e.Name()))) {
			continue
		}
		if read++; read > maxRead {
			break
		}
		text, err := files.Read(filepath.Join(dir, e.Name()), DefaultMaxBytes)
		if err != nil {
			continue
		}
		if doc, err := Parse(e.Name(), text); err == nil && doc.HasResources() {
			out.Others = append(out.Others, e.Name())
		}
	}

	return out
}

// Error suggests the other manifests.
func (e *NoManifestError) Error() string {
	text := fmt.Sprintf("%s: %s", e.Dir, ErrNoManifest)
	switch len(e.Others) {
	case 0:
		return text
	case 1:
		return fmt.Sprintf("%s, did you mean %s? (rename it to %s to include the other files)", text, filepath.Join(e.Dir, e.Others[0]), model.BundleManifest)
	default:
		return fmt.Sprintf("%s; its manifests are %s: name one of them", text, strings.Join(e.Others, ", "))
	}
}

// Unwrap returns ErrNoManifest.
func (e *NoManifestError) Unwrap() error { return ErrNoManifest }
