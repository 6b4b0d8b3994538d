package print

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"
)

// Query writes a JSON document, or what a GJSON path finds in it: a single value bare, for
// scripts, unless a format is asked for. What is the word for a value in the error of a path that
// finds nothing.
func (p Printer) Query(f Format, text []byte, path, what string) error {
	if path == "" {
		return p.Document(json.RawMessage(text), f.YAML)
	}
	found := gjson.GetBytes(text, path)
	if !found.Exists() {
		return fmt.Errorf("no such %s: %s", what, path)
	}
	if !found.IsObject() && !found.IsArray() && !f.IsDocument() {
		p.Printf("%s", Lines(found.String()+"\n"))
		return nil
	}

	return p.Document(json.RawMessage(found.Raw), f.YAML)
}
