package manifest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// TestTemplatesTakeOutputs checks that a template waits for the resources of its outputs, in any order.
func TestTemplatesTakeOutputs(t *testing.T) {
	for name, in := range map[string]string{
		"go":            `"${ template('{{ (outputs \"exec#a\").stdout }} {{ (outputs \"exec#b\").stdout }}') }"`,
		"go, piped":     `"${ template('{{ with outputs \"exec#a\" }}{{ .stdout }}{{ end }} {{ get (\"exec#b\" | outputs) \"stdout\" }}{{/* outputs \"exec#b\" */}}') }"`,
		"jet":           `"${ jet('[[ outputs(\"exec#a\").stdout ]] [[ outputs(\"exec#b\").stdout ]]') }"`,
		"with the rest": `"${ template('{{ (outputs \"exec#a\").stdout }}') } ${ outputs('exec#b').stdout }"`,
		"as a file":     `"${ jet('o.jet') }"`,
	} {
		t.Run(name, func(t *testing.T) {
			text := "muster:\n  resources:\n    - exec: [{a: }, {b: }]\n    - file:\n        - /f:\n            content: " + in + "\n"
			r := resolved(t, text, manifest.Inputs{Dir: beside(t, "o.jet", "[[ outputs(\"exec#a\").stdout ]] [[ include \"part.jet\" ]]", "part.jet", "[[ outputs(\"exec#b\").stdout ]]")})
			late := r.Resources[2]
			a, b := model.Ref{Type: "exec", Name: "a"}, model.Ref{Type: "exec", Name: "b"}
			if late.ResolveDeferred == nil || !slices.Contains(late.Meta().Require, a) || !slices.Contains(late.Meta().Require, b) {
				t.Fatalf("it does not wait for both: %+v", late.Meta().Require)
			}
			spec, secrets, err := late.ResolveDeferred(t.Context(), resource.Outputs{a: {"stdout": "x"}, b: {"stdout": model.NewSecret("hunter2")}})
			if err != nil {
				t.Fatal(err)
			}
			if got := spec.(*thingSpec).Content; got != "x hunter2" || len(secrets) == 0 {
				t.Errorf("got %q, %d secrets", got, len(secrets))
			}
			if _, _, err := late.ResolveDeferred(t.Context(), resource.Outputs{b: {"stdout": "x"}}); err == nil || !strings.Contains(err.Error(), "exec#a gave no outputs in this run") {
				t.Error(err)
			}
		})
	}
	for in, want := range map[string]string{
		content(`"${ template('{{ outputs \"package#a\" }}') }"`) + "    - package: [{a: }]\n":    "m.yaml:5:23: a package gives no outputs",
		content(`"${ template('{{ outputs \"exec#none\" }}') }"`):                                 "m.yaml:5:23: `outputs` names exec#none, which is not declared",
		content(`"${ jet('[[ outputs(\"none\") ]]') }"`):                                          "m.yaml:5:23: the expression fails: jet:1: ",
		"data: {a: \"${ template('{{ outputs \\\"exec#a\\\" }}') }\"}\nmuster: {resources: []}\n": "m.yaml:1:12: the expression fails: template:1: executing \"template\" at <outputs \"exec#a\">: error calling outputs: outputs are not known while the data are resolved (use them in the properties of a resource)",
		"muster: {resources_jet_file: r.jet}\n":                                                   "m.yaml:1:30: `resources_jet_file` must be known before the run: exec#a must run first",
	} {
		if got := outcome(t, in, options(), manifest.Inputs{Dir: beside(t, "r.jet", "[[ outputs(\"exec#a\") ]]")}); !strings.HasPrefix(got, want) {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
	names, _ := manifest.NewLoader(options()).Origin(nil).Names(t.Context(), nil, nil)
	if _, has := names["outputs"]; has {
		t.Error("what runs sees outputs")
	}
}
