// Package build makes the Go code of the templates of the pages.
package build

import (
	"bytes"
	"fmt"
	"go/format"
	"path/filepath"
	"strings"

	"github.com/a-h/templ/generator"
	"github.com/a-h/templ/parser/v2"
)

// All returns the Go code of each template in a folder, by the path of its file. The error is
// about what is wrong with a template.
func All(dir string) (map[string][]byte, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.templ"))
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, path := range paths {
		code, err := file(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out[strings.TrimSuffix(path, ".templ")+"_templ.go"] = code
	}

	return out, nil
}

func file(path string) ([]byte, error) {
	template, err := parser.Parse(path)
	if err != nil {
		return nil, err
	}
	var code bytes.Buffer
	if _, err := generator.Generate(template, &code, generator.WithFileName(filepath.Base(path))); err != nil {
		return nil, err
	}

	return format.Source(code.Bytes())
}
