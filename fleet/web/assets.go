package web

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

//go:embed assets/*.css assets/*.js assets/*.svg
var assetFiles embed.FS

// assetPrefix is the path of all assets.
const assetPrefix = "/assets/"

// assets are the embedded style sheets and scripts. Their paths contain a hash of the content, so browsers may cache
// them forever.
type assets struct {
	paths   map[string]string
	content map[string][]byte
}

// newAssets reads the embedded files.
func newAssets() *assets {
	a := &assets{paths: map[string]string{}, content: map[string][]byte{}}
	// Embedded files are always readable.
	all, _ := fs.ReadDir(assetFiles, "assets")
	for _, f := range all {
		content, _ := assetFiles.ReadFile("assets/" + f.Name())
		sum := sha256.Sum256(content)
		ext := path.Ext(f.Name())
		at := assetPrefix + strings.TrimSuffix(f.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext
		a.paths[f.Name()], a.content[at] = at, content
	}

	return a
}

// Path returns the path of a file, empty if there is no such file.
func (a *assets) Path(name string) string { return a.paths[name] }

// ServeHTTP serves the asset at the path of the request.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, ok := a.content[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(r.URL.Path)))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}
