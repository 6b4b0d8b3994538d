// Package assets has the style sheets and scripts of the dashboard, which are embedded: browsers
// need nothing from the internet.
package assets

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed files
var files embed.FS

// Prefix begins the path of every asset.
const Prefix = "/assets/"

// Assets are the embedded files, each at a path with a hash of its content: it may be kept for ever.
type Assets struct {
	paths   map[string]string
	content map[string][]byte
}

// New reads the embedded files.
func New() *Assets {
	a := &Assets{paths: map[string]string{}, content: map[string][]byte{}}
	// It is part of the program: no error can come.
	all, _ := fs.ReadDir(files, "files")
	for _, f := range all {
		content, _ := files.ReadFile("files/" + f.Name())
		sum := sha256.Sum256(content)
		ext := path.Ext(f.Name())
		at := Prefix + strings.TrimSuffix(f.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext
		a.paths[f.Name()], a.content[at] = at, content
	}

	return a
}

// Path returns where a file is served, empty for one that there is not.
func (a *Assets) Path(name string) string { return a.paths[name] }

// ServeHTTP serves the asset at the path of the request.
func (a *Assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, ok := a.content[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.URL.Path)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}
