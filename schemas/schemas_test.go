package schemas_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/schemas"
	"github.com/musterfleet/muster/schemas/internal/build"
	"github.com/musterfleet/muster/testing/markdown"
)

func TestEmbeddedSchemasAreFresh(t *testing.T) {
	want, err := build.All(resources.All())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range schemas.Names() {
		got, err := schemas.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want[name]) {
			t.Errorf("v1/%s.json is old: run go generate ./schemas", name)
		}
	}
	there, err := filepath.Glob("v1/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range there {
		if !slices.Contains(schemas.Names(), strings.TrimSuffix(filepath.Base(path), ".json")) {
			t.Errorf("%s is no schema: run go generate ./schemas", path)
		}
	}
}

func TestGetRefusesUnknownNames(t *testing.T) {
	for _, name := range []string{"manifests", "", "../schemas", "v1/manifest"} {
		if _, err := schemas.Get(name); !errors.Is(err, schemas.ErrUnknown) || !strings.Contains(err.Error(), "manifest, ensure_request") {
			t.Errorf("%q gave %v", name, err)
		}
	}
}

func TestIDs(t *testing.T) {
	for protocol, want := range map[string]string{
		model.ProtocolTransaction:    "transaction",
		model.ProtocolEnsureRequest:  "ensure_request",
		model.ProtocolEnsureResponse: "ensure_response",
		model.ProtocolAssignment:     "assignment",
		model.ProtocolRunRequest:     "run_request",
		model.ProtocolRunResponse:    "run_response",
		model.ProtocolCancelRequest:  "cancel_request",
		model.ProtocolRun:            "run",
		model.ProtocolNode:           "node",
		model.ProtocolAgent:          "agent",
	} {
		want = "https://musterfleet.github.io/muster/schemas/v1/" + want + ".json"
		if got := schemas.ID(protocol); got != want {
			t.Errorf("%s has the schema %q, want %q", protocol, got, want)
		}
	}
	for _, protocol := range []string{"", "io.muster.v1.other"} {
		if got := schemas.ID(protocol); got != "" {
			t.Errorf("%q has the schema %q", protocol, got)
		}
	}
}

// compile returns a validator for an embedded schema, which must have its URL.
func compile(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	text, err := schemas.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	doc := parse(t, text)
	id, _ := doc.(map[string]any)["$id"].(string)
	if id != schemas.URL(name) {
		t.Errorf("the id of %s is %q", name, id)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(id, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(schemas.URL(name))
	if err != nil {
		t.Fatal(err)
	}

	return s
}

func parse(t *testing.T, text []byte) any {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}

	return doc
}

func TestEverySchemaCompiles(t *testing.T) {
	for _, name := range schemas.Names() {
		t.Run(name, func(t *testing.T) {
			s := compile(t, name)
			if s.DraftVersion != 2020 {
				t.Errorf("it is of draft %d", s.DraftVersion)
			}
			for _, wrong := range []any{nil, "text", []any{}, map[string]any{"unheard": "of"}} {
				if err := s.Validate(wrong); err == nil {
					t.Errorf("%v is taken for one", wrong)
				}
			}
		})
	}
}

// manifests returns the manifests in the examples and the fenced YAML in the documentation.
func manifests(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, root := range []string{"../examples", "../docs", "../README.md"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			switch filepath.Ext(path) {
			case ".yaml":
				out[path] = text
			case ".md":
				for _, b := range markdown.Blocks(string(text)) {
					if b.Language == "yaml" && b.Info == "" {
						out[fmt.Sprintf("%s:%d", path, b.Line)] = []byte(b.Text)
					}
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}

	return out
}

func TestShownManifestsAreValid(t *testing.T) {
	schema := compile(t, "manifest")
	checked := 0
	for name, text := range manifests(t) {
		var v map[string]any
		if err := yaml.Unmarshal(text, &v); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if v["muster"] == nil && v["ccm"] == nil {
			continue
		}
		checked++
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(parse(t, encoded)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if checked < 6 {
		t.Errorf("only %d manifests were found", checked)
	}
}
