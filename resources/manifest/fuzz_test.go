package manifest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// seeds are the documents in testdata and some invalid ones.
func seeds(f *testing.F) {
	f.Helper()
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatal("no documents to begin with", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, s := range []string{"", "a: &a [*a]\n", "data: {<<: {a: 1}}\n", "\ta", "a: |2\n x\n", "- [}", "? ? ? x", "a: \"\\x", "---\n---\n", "{\"muster\": {\"resources\": [{\"file\": {\"name\": \"${ 1 }\"}}]}}", "data:\n  # @validate value\n  a: \"{{ Facts }}\"\n", "%YAML 1.1\n---\na: !!binary x\n", "a: &x 1\n&x : *x\n", "data:\n # @require\r  a: # @validat\n   {b: 1}\n"} {
		f.Add([]byte(s))
	}
}

// FuzzParse parses and resolves any text. Nothing panics, every problem has a position in the
// document, and a rendered document resolves again.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := manifest.Parse("m.yaml", data)
		if err != nil {
			placed(t, data, err)
			return
		}
		l := manifest.NewLoader(manifest.Options{Types: testTypes(), Facts: node})
		r, err := l.Resolve(t.Context(), doc, manifest.Inputs{})
		if err != nil {
			placed(t, data, err)
			return
		}
		text, err := r.Render()
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range r.Resources {
			if res.Sensitive() || res.ResolveDeferred != nil || res.Excluded != "" {
				return
			}
		}
		again, err := manifest.Parse("again.yaml", text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		second, err := l.Resolve(t.Context(), again, manifest.Inputs{})
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if a, b := describe(t, r), describe(t, second); stripPlaces(a) != stripPlaces(b) {
			t.Fatalf("first  %s\nsecond %s\n%s", a, b, text)
		}
	})
}

// stripPlaces omits warnings, because their positions differ.
func stripPlaces(s string) string {
	s, _, _ = strings.Cut(s, "warning: ")

	return strings.TrimSpace(s)
}

// placed checks the problems of a document.
func placed(t *testing.T, data []byte, err error) {
	t.Helper()
	problems := model.AsProblems(err)
	if len(problems) == 0 {
		t.Fatal("an error without a problem")
	}
	lines := strings.Count(strings.ReplaceAll(strings.ReplaceAll(string(data), "\r\n", "\n"), "\r", "\n"), "\n") + 1
	for _, p := range problems {
		if p.Message == "" || strings.Contains(p.Message, "\n") {
			t.Errorf("message %q", p.Message)
		}
		if p.Pos.File != "m.yaml" || p.Pos.Line < 1 || p.Pos.Column < 1 || p.Pos.Line > lines+1 {
			t.Errorf("place %+v of %q in %d lines", p.Pos, p.Message, lines)
		}
	}
}

// FuzzExpression resolves any text as a property.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{"${ Data.a }", "{{ Data.a }}", "$${", "{{ '{{' }}", "${ {\"a\":1}.a }", "${ '}' }", "${", "{{", "${}", "x${ 1 }y{{ 2 }}", "${ lookup('data.a') }", "${ lookup('data.#(a>1)#|@reverse') }", "${ /* } */ 1 }", "${ `}` }", "${ secret('a') + 'b' }", "${ let a = 1; a }", "${ outputs('exec#a') }", "${ map(1..3, # * 2) }", "{{ {'a':{'b':1}}}}", "$$${x}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "..") && len(s) > 60 {
			return
		}
		doc, err := manifest.Parse("m.yaml", []byte(`{"muster": {"resources": [{"file": [{"/f": {"content": "${ Data.s }"}}]}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		l := manifest.NewLoader(manifest.Options{Types: testTypes(), Facts: node})
		r, err := l.Resolve(t.Context(), doc, manifest.Inputs{Data: map[string]any{"s": s}})
		if err != nil || r.Resources[0].Spec.(*thingSpec).Content != s {
			t.Fatalf("the value of an expression was resolved again: %v", err)
		}
		text := strings.ToValidUTF8(s, "")
		doc, err = manifest.Parse("m.yaml", append(append([]byte(`{"data": {"a": "x", "b": [1, 2]}, "muster": {"resources": [{"exec": {"name": "a"}}, {"file": [{"/f": {"content": `), quoted(t, text)...), []byte(`}}]}]}}`)...))
		if err != nil {
			t.Fatal(err)
		}
		r, err = l.Resolve(t.Context(), doc, manifest.Inputs{})
		if err != nil {
			placed(t, nil, err)
			return
		}
		if !strings.Contains(text, "${") && !strings.Contains(text, "{{") && r.Resources[1].Spec.(*thingSpec).Content != text {
			t.Errorf("got %q", r.Resources[1].Spec)
		}
	})
}

// FuzzParseRequest parses and decodes anything.
func FuzzParseRequest(f *testing.F) {
	for _, s := range []string{"", "{}", `{"protocol":"io.choria.ccm.v1.resource.ensure.request","type":"file","properties":{"name":"/a","mode":"0644"}}`, "protocol: io.choria.ccm.v1.resource.ensure.request\ntype: exec\nproperties: {name: x, env: {A: b}}\nexpires: 2030-01-31T12:00:00Z\nnoop: true\nid: x\n", "type: [\n", `{"properties": {"name": {"a": []}}}`, "\"", "protocol: &a x\ntype: *a\n"} {
		f.Add([]byte(s))
	}
	l := manifest.NewLoader(options())
	f.Fuzz(func(t *testing.T, data []byte) {
		request, properties, err := manifest.ParseRequest("m.yaml", data)
		if err != nil {
			placed(t, data, err)
			return
		}
		if _, again, err := manifest.ParseRequest("m.yaml", append(append([]byte(`{"protocol":"`+request.Protocol+`","type":"file","properties":`), request.Properties...), '}')); err != nil && properties.Kind != 0 {
			t.Fatalf("%v in %s", err, request.Properties)
		} else if len(again.Entries) != len(properties.Entries) {
			t.Fatalf("%d of %d properties in %s", len(again.Entries), len(properties.Entries), request.Properties)
		}
		if _, err := l.DecodeOne(request.Type, properties); err != nil && len(model.AsProblems(err)) == 0 {
			t.Error(err)
		}
	})
}

func quoted(t *testing.T, s string) []byte {
	t.Helper()
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}

	return out
}
