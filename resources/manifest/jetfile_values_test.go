package manifest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources/manifest"
)

// TestValuesInJetFilesAreText checks that a printed value stays text, although it looks like an
// expression or YAML.
func TestValuesInJetFilesAreText(t *testing.T) {
	const structure = "x\n- exec: [evil: {}]\n#"
	for name, c := range map[string]struct{ value, in, want string }{
		"an expression":        {"${ Data.other }", "content: \"[[ Data.v ]]\"", `"content":"${ Data.other }"`},
		"braces":               {"{{ 1 + 1 }}", "content: [[ Data.v ]]", `"content":"{{ 1 + 1 }}"`},
		"half of one":          {"{ 1 + 1 }", "content: \"$[[ Data.v ]]\"", `"content":"${ 1 + 1 }"`},
		"half before one":      {"cost$", "content: \"[[ Data.v ]]${ 1 + 1 }\"", `"content":"cost$2"`},
		"beside one":           {"${ 1 }", "content: \"[[ Data.v ]] ${ 1 + 1 }\"", `"content":"${ 1 } 2"`},
		"escaped":              {"$${ 1 }", "content: \"[[ Data.v ]] ${ 1 + 1 }\"", `"content":"$${ 1 } 2"`},
		"structure":            {structure, "content: [[ Data.v ]]", `"content":"` + "x\\n- exec: [evil: {}]\\n#" + `"`},
		"structure, quoted":    {`a", mode: "0777`, "content: \"[[ Data.v ]]\"", `"content":"a\", mode: \"0777"`},
		"structure, flow":      {`a, mode: "0777"`, "content: [[ Data.v ]]", `"content":"a, mode: \"0777\""`},
		"a mapping":            {`{a: b}`, "content: [[ Data.v ]]", `"content":"{a: b}"`},
		"an alias":             {`*a`, "content: [[ Data.v ]]", `"content":"*a"`},
		"a tag":                {`!!binary aGk=`, "content: [[ Data.v ]]", `"content":"!!binary aGk="`},
		"a comment":            {`# x`, "content: [[ Data.v ]]", `"content":"# x"`},
		"nothing":              {`null`, "content: [[ Data.v ]]", `"content":"null"`},
		"an empty one":         {``, "content: [[ Data.v ]]", `"ensure":"present"}`},
		"raw":                  {structure, "content: [[ Data.v | raw ]]", `"content":"` + "x\\n- exec: [evil: {}]\\n#" + `"`},
		"unsafe":               {"${ 1 }", "content: [[ Data.v | unsafe ]]", `"content":"${ 1 }"`},
		"for HTML":             {"<${ 1 }", "content: [[ Data.v | safeHtml ]]", `"content":"\u0026lt;${ 1 }"`},
		"for scripts":          {"'${ 1 }", "content: [[ Data.v | safeJs ]]", `"content":"\\'${ 1 }"`},
		"JSON":                 {"${ 1 }", "content: [[ writeJson(Data.v) ]]", `"content":"\"${ 1 }\""`},
		"JSON of a library":    {"${ 1 }", "content: [[ json(Data.v) ]]", `"content":"\"${ 1 }\""`},
		"joined":               {"${ 1 }", "content: \"[[ \"<\" + Data.v + \">\" ]]\"", `"content":"\u003c${ 1 }\u003e"`},
		"in an expression":     {`' + Data.other + '`, "content: \"${ 'a[[ Data.v ]]b' }\"", `"content":"a' + Data.other + 'b"`},
		"a name in one":        {`other`, "content: \"${ Data.[[ Data.v ]] }\"", `"content":"o"`},
		"code in one":          {`Data.other`, "content: \"${ [[ Data.v ]] }\"", `"content":"Data.other"`},
		"a key in one":         {`other`, "content: \"${ lookup('data.[[ Data.v ]]') }\"", `"content":"o"`},
		"a list":               {`${ 1 }`, "content: \"[[ Data.list ]]\"", `"content":"[a ${ 1 } - b]"`},
		"a key of a mapping":   {`${ 1 }: x`, "env: {\"[[ Data.v ]]\": y}", `"env":{"${ 1 }: x":"y"}`},
		"a fact":               {``, "content: \"[[ Facts.evil ]]\"", `"content":"${ Data.other }"`},
		"of the environment":   {``, "content: \"[[ Environ.EVIL ]]\"", `"content":"${ Data.other }"`},
		"of a registration":    {``, "content: \"[[ range _, r := registrations(`*`, `*`, `*`, `*`) ]][[ r.annotations.note ]][[ end ]]\"", `"content":"${ Data.other }"`},
		"a number":             {``, "count: [[ 40 + 2 ]]", `"count":42`},
		"a number for any":     {``, "data: {port: [[ 8080 ]], yes: [[ true ]]}", `"data":{"port":8080,"yes":true}`},
		"many lines":           {"a\nb\n", "content: |\n          [[ Data.v ]]\n          c", `"content":"a\nb\n\nc\n"`},
		"in a comment":         {structure, "content: x # [[ Data.v ]]", `"content":"x"`},
		"in a list":            {"a\n- b", "args: [ [[ Data.v ]], \"[[ Data.v ]]\"]", `"args":["a\n- b","a\n- b"]`},
		"in a condition":       {"x' == 'x", "content: x\n        control: {unless: \"'a' == '[[ Data.v ]]'\"}", `"content":"x"`},
		"decided by the other": {"a", "[[ if Data.v == \"a\" ]]content: yes[[ else ]]content: no[[ end ]]", `"content":"yes"`},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.Facts = func(context.Context) (model.Facts, error) { return model.Facts{"evil": "${ Data.other }"}, nil }
			o.Environ = map[string]string{"EVIL": "${ Data.other }"}
			o.Registrations = func(context.Context, string, string, string, string) ([]registration.Registration, error) {
				return []registration.Registration{{Annotations: map[string]string{"note": "${ Data.other }"}}}, nil
			}
			v, err := json.Marshal(c.value)
			if err != nil {
				t.Fatal(err)
			}
			text := "data: {v: " + strings.ReplaceAll(string(v), "${", "$${") + ", other: o, list: [a, \"$${ 1 }\", \"- b\"]}\nmuster: {resources_jet_file: r.jet}\n"
			if strings.Contains(c.value, "{{") || strings.HasPrefix(c.value, "$$") {
				text = "data: {v: , other: o}\nmuster: {resources_jet_file: r.jet}\n"
			}
			in := manifest.Inputs{Dir: beside(t, "r.jet", "- file:\n    - /f:\n        "+c.in+"\n")}
			if strings.Contains(text, "v: ,") {
				in.Data = map[string]any{"v": c.value}
			}
			got := outcome(t, text, o, in)
			if !strings.Contains(got, c.want) || strings.Contains(got, "\n") || !strings.HasPrefix(got, `file {"name":"/f"`) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			r, err := resolve(t, text, o, in)
			if err != nil {
				t.Fatal(err)
			}
			again, err := r.Render()
			if err != nil {
				t.Fatal(err)
			}
			if twice := outcome(t, string(again), o, manifest.Inputs{}); !strings.Contains(twice, c.want) {
				t.Errorf("rendered, it comes to\n%s\nnot to\n%s", twice, got)
			}
		})
	}
}

// TestJetFileValuesInLinks checks values in names, in references and in deferred properties.
func TestJetFileValuesInLinks(t *testing.T) {
	data := "data: {n: \"it's ${'$'}{ 1 } [x]: y\", kind: file}\nmuster: {resources_jet_file: r.jet}\n"
	dir := beside(t, "r.jet", "- exec:\n    - \"[[ Data.n ]]\": {}\n- [[ Data.kind ]]:\n    - /g: {content: \"${ outputs('exec#[[ Data.n ]]').stdout } $[[ Data.n ]]\", require: [\"exec#[[ Data.n ]]\"]}\n")
	r := resolved(t, data, manifest.Inputs{Dir: dir})
	if len(r.Resources) != 2 || r.Resources[0].Meta().Name != "it's ${ 1 } [x]: y" || r.Resources[1].ResolveDeferred == nil {
		t.Fatalf("%+v", r.Resources)
	}
	again, err := r.Render()
	if err != nil {
		t.Fatal(err)
	}
	twice := resolved(t, string(again), manifest.Inputs{})
	for _, of := range []*manifest.Resolved{r, twice} {
		late := of.Resources[1]
		spec, _, err := late.ResolveDeferred(t.Context(), map[model.Ref]map[string]any{of.Resources[0].Ref(): {"stdout": "out"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := spec.(*thingSpec).Content; got != "out $it's ${ 1 } [x]: y" {
			t.Errorf("got %q of\n%s", got, again)
		}
	}
}

// TestProblemsOfJetFilesAfterValues checks positions after printed values, and messages that quote
// them. Tokens are never shown.
func TestProblemsOfJetFilesAfterValues(t *testing.T) {
	data := "data: {v: abc, pw: \"${ secret('hunter2') }\"}\nmuster: {resources_jet_file: r.jet}\n"
	for in, want := range map[string]string{
		"- file: [{/f: {content: [[ Data.v ]], contnt: x}}]":                             "r.jet (rendered):1:30: unknown property `contnt` of file (did you mean `content`?)",
		"- file: [{/f: {content: [[ Data.pw ]], contnt: x}}]":                            "r.jet (rendered):1:37: unknown property `contnt` of file (did you mean `content`?)",
		"- file: [{/f: {content: [[ Data.pw ]], count: [[ Data.v ]]}}]":                  "r.jet (rendered):1:44: `count` must be a whole number, not \"abc\"",
		"- file: [{/f: {count: [[ Data.pw ]]}}]":                                         "r.jet (rendered):1:23: `count` must be a whole number, not \"[redacted]\"",
		"- file: [{/f: {content: x}, /g-[[ Data.v ]]: {}}]":                              "r.jet (rendered):1:10: an item of `file` must hold one name, not 2 keys (indent the properties further than the name)",
		"- [[ Data.v ]]: [{/f: {}}]":                                                     "r.jet (rendered):1:3: unknown resource type `abc` (one of file, package, exec)",
		"- file: [{/f: {[[ Data.v ]]: x}}]":                                              "r.jet (rendered):1:16: unknown property `abc` of file",
		"- file: [ [[ Data.v ]]]":                                                        "r.jet (rendered):1:11: an item of `file` must be a mapping of a name to its properties, not a string (write `- abc:` with its properties below, if it has any)",
		"- file: [{/f: {content: *[[ Data.v ]]}}]":                                       "r.jet (rendered):1:25: unknown alias `*abc` (name it before with `&abc`, or quote a text that begins with `*`)",
		"- file: [{/f: {content: *[[ Data.pw ]]}}]":                                      "r.jet (rendered):1:25: unknown alias `*[redacted]` (name it before with `&[redacted]`, or quote a text that begins with `*`)",
		"- file: [{/f: {content: \"${ Data.[[ Data.v ]] }\"}}]":                          "r.jet (rendered):1:25: the expression fails: `Data.abc` is not set",
		"- file: [{/f: {content: \"${ 1 [[ Data.v ]] }\"}}]":                             "r.jet (rendered):1:25: the expression is not valid: unexpected `abc`",
		"- file: [{/f: {content: \"[[ Data.v ]]${ 1\"}}]":                                "r.jet (rendered):1:25: the expression that begins here does not end",
		"- file: [{/f: {content: x, control: {if: \"'[[ Data.v ]]' + [[ Data.v ]]\"}}}]": "r.jet (rendered):1:",
	} {
		got := outcome(t, data, options(), manifest.Inputs{Dir: beside(t, "r.jet", in)})
		if !strings.HasPrefix(got, want) || strings.Contains(got, "hunter2") {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
}

// FuzzJetFileValue prints a value at several places of a list. Each place must contain the value.
func FuzzJetFileValue(f *testing.F) {
	for _, seed := range []string{"x\n- exec: [evil: {}]\n#", "${ Data.other }", `a", mode: "0777`, "{{ 1 }}$", "' + Data.other + '", "null", "- 1"} {
		f.Add(seed)
	}
	dir := beside(f, "r.jet", "- file:\n    - /f:\n        content: [[ Data.v ]]\n        owner: \"<[[ Data.v ]]$[[ Data.v ]]-${ '[[ Data.v ]]' }>\"\n        env: {k: [[ Data.v ]]}\n")
	f.Fuzz(func(t *testing.T, v string) {
		r, err := resolve(t, "muster: {resources_jet_file: r.jet}\n", options(), manifest.Inputs{Dir: dir, Data: map[string]any{"v": v}})
		if err != nil {
			t.Fatal(err)
		}
		spec := r.Resources[0].Spec.(*thingSpec)
		if len(r.Resources) != 1 || spec.Content != v || spec.Owner != "<"+v+"$"+v+"-"+v+">" || spec.Env["k"] != v {
			t.Errorf("%q comes to %+v", v, spec)
		}
	})
}
