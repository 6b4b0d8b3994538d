package manifest_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// resolvedData returns the data of a document as JSON, or its problems.
func resolvedData(t *testing.T, text string, external map[string]any) string {
	t.Helper()
	doc, err := manifest.Parse("m.yaml", []byte(text))
	if err != nil {
		return err.Error()
	}
	data, err := manifest.NewLoader(options()).ResolveData(t.Context(), doc, manifest.Inputs{Data: external})
	if err != nil {
		return err.Error()
	}
	out, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}

	return string(out)
}

const layered = `
data:
  name: httpd
  list: [a, b]
  app: {port: 80, tls: {on: false, name: x}}
hierarchy:
  order: ["host:${ Facts.host.name }", "os:${ lookup('facts.os') }", "none:${ Facts.os }", common]
  merge: MERGE
overrides:
  os:debian: {name: apache2, app: {port: 8080, tls: {on: true}}}
  os:redhat: {name: httpd24}
  common: {extra: 1, name: never, list: [c]}
  host:web01: {app: {port: 9090}}
`

// TestHierarchy checks how data, overrides and external data are combined.
func TestHierarchy(t *testing.T) {
	for name, tc := range map[string]struct {
		in       string
		external map[string]any
		want     string
	}{
		"first":            {in: strings.Replace(layered, "MERGE", "first", 1), want: `{"app":{"port":9090},"list":["a","b"],"name":"httpd"}`},
		"deep":             {in: strings.Replace(layered, "MERGE", "deep", 1), want: `{"app":{"port":8080,"tls":{"name":"x","on":true}},"extra":1,"list":["a","b","c"],"name":"never"}`},
		"first is default": {in: "data: {a: 1}\nhierarchy: {order: [x, y]}\noverrides: {y: {a: 2}, x: {a: 3}}\n", want: `{"a":3}`},
		"no match":         {in: "data: {a: 1}\nhierarchy: {order: [z]}\noverrides: {y: {a: 2}}\n", want: `{"a":1}`},
		"no hierarchy":     {in: "data: {a: 1}\noverrides: {y: {a: 2}}\n", want: `{"a":1}`},
		"no data":          {in: "hierarchy: {order: [y]}\noverrides: {y: {a: 2}}\n", want: `{"a":2}`},
		"empty":            {in: "data:\nhierarchy:\noverrides:\n", want: `{}`},
		"empty override":   {in: "data: {a: 1}\nhierarchy: {order: [y]}\noverrides: {y: }\n", want: `{"a":1}`},
		"twice in order":   {in: "data: {a: 1}\nhierarchy: {order: [y, y], merge: deep}\noverrides: {y: {a: 2}}\n", want: `{"a":2}`},
		"external": {in: strings.Replace(layered, "MERGE", "first", 1), external: map[string]any{"name": "mine", "app": map[string]any{"port": 1, "more": true}},
			want: `{"app":{"more":true,"port":1},"list":["a","b"],"name":"mine"}`},
		"external in order": {in: "data: {env: dev}\nhierarchy: {order: [\"env:${ Data.env }\"]}\noverrides: {\"env:prod\": {a: 1}}\n",
			external: map[string]any{"env": "prod"}, want: `{"a":1,"env":"prod"}`},
		"data in order":   {in: "data: {env: dev}\nhierarchy: {order: [\"env:${ lookup('data.env') }\"]}\noverrides: {\"env:dev\": {a: 1}}\n", want: `{"a":1,"env":"dev"}`},
		"null override":   {in: "data: {a: 1}\nhierarchy: {order: [y], merge: deep}\noverrides: {y: {a: null}}\n", want: `{"a":null}`},
		"expressions":     {in: "data:\n  a: \"${ Facts.cores * 2 }\"\n  b: [\"${ Environ.STAGE }\"]\n  \"${ Facts.os }\": {x: \"{{ Facts.host }}\"}\n", want: `{"a":8,"b":["prod"],"debian":{"x":{"name":"web01","tags":["a","b"]}}}`},
		"numbers":         {in: "data: {a: 1, b: -2, c: 1.5, d: 1.10, e: 0644, f: 0x1f, g: 1e3, h: .5, i: 123456789012345678901234567890, j: 1_000, k: +1, l: 0}\n", want: `{"a":1,"b":-2,"c":1.5,"d":"1.10","e":"0644","f":"0x1f","g":"1e3","h":".5","i":"123456789012345678901234567890","j":"1_000","k":"+1","l":0}`},
		"whole fraction":  {in: "data: {a: 1.0}\n", want: `{"a":"1.0"}`},
		"scalars":         {in: "data: {a: yes, b: true, c: False, d: ~, e: 2001-01-01, f: '1'}\n", want: `{"a":"yes","b":true,"c":false,"d":null,"e":"2001-01-01","f":"1"}`},
		"secret":          {in: "data: {a: \"${ secret('hunter2') }\", b: \"x${ secret('hunter2') }\"}\n", want: `{"a":"[redacted]","b":"[redacted]"}`},
		"override only":   {in: "data: {}\nhierarchy: {order: [y]}\noverrides: {y: {a: \"${ Facts.os }\"}}\n", want: `{"a":"debian"}`},
		"unused override": {in: "data: {}\noverrides: {y: {a: \"${ Facts.nope }\"}}\n", want: `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := resolvedData(t, tc.in, tc.external); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestMerge checks how lists, mappings and texts of several sources are combined.
func TestMerge(t *testing.T) {
	const order = "hierarchy: {order: [one, two], merge: deep}\n"
	for name, tc := range map[string]struct {
		in       string
		external map[string]any
		want     string
	}{
		"last wins":                {in: "data: {a: 0}\n" + order + "overrides: {two: {a: 2}, one: {a: 1}}\n", want: `{"a":2}`},
		"lists":                    {in: "data: {l: [a]}\n" + order + "overrides: {two: {l: [c, a]}, one: {l: [b]}}\n", want: `{"l":["a","b","c","a"]}`},
		"nested lists":             {in: "data: {m: {l: [a], k: 1}}\n" + order + "overrides: {one: {m: {l: [b]}}}\n", want: `{"m":{"k":1,"l":["a","b"]}}`},
		"list of mappings":         {in: "data: {l: [{a: 1}]}\n" + order + "overrides: {one: {l: [{a: 2}]}}\n", want: `{"l":[{"a":1},{"a":2}]}`},
		"empty lists":              {in: "data: {l: []}\n" + order + "overrides: {one: {l: []}}\n", want: `{"l":[]}`},
		"list over text":           {in: "data: {l: a}\n" + order + "overrides: {one: {l: [b]}, two: {l: [c]}}\n", want: `{"l":["b","c"]}`},
		"text over list":           {in: "data: {l: [a]}\n" + order + "overrides: {one: {l: b}}\n", want: `{"l":"b"}`},
		"null over list":           {in: "data: {l: [a]}\n" + order + "overrides: {one: {l: null}, two: {l: [b]}}\n", want: `{"l":["b"]}`},
		"first replaces":           {in: "data: {l: [a]}\nhierarchy: {order: [one, two], merge: first}\noverrides: {one: {l: [b]}, two: {l: [c]}}\n", want: `{"l":["b"]}`},
		"external list":            {in: "data: {l: [a], m: {l: [b]}}\n", external: map[string]any{"l": []any{"x"}, "m": map[string]any{"l": []any{"y"}}}, want: `{"l":["a","x"],"m":{"l":["b","y"]}}`},
		"external after overrides": {in: "data: {l: [a]}\n" + order + "overrides: {one: {l: [b]}}\n", external: map[string]any{"l": []any{"x"}}, want: `{"l":["a","b","x"]}`},
		"external over text":       {in: "data: {l: a}\n", external: map[string]any{"l": []any{"x"}}, want: `{"l":["x"]}`},
		"merge in capitals":        {in: "data: {a: 0}\nhierarchy: {order: [one, two], merge: DEEP}\noverrides: {two: {b: 2}, one: {a: 1}}\n", want: `{"a":1,"b":2}`},
		"first in capitals":        {in: "data: {a: 0}\nhierarchy: {order: [one, two], merge: First}\noverrides: {two: {b: 2}, one: {a: 1}}\n", want: `{"a":1}`},
		"checks in appended items": {
			in:   "data:\n  l:\n    - {a: 1}\n" + order + "overrides:\n  one:\n    l:\n      - b: 1\n        # @require\n        a:\n",
			want: "m.yaml:10:9: `l.1.a` is required and has no value (set it in data, an override or with --data)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := resolvedData(t, tc.in, tc.external); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestDefaultOrder checks hierarchies without an order: its only entry is default.
func TestDefaultOrder(t *testing.T) {
	const base = "data: {a: 0, l: [a]}\noverrides: {default: {a: 1, l: [b]}}\n"
	for name, tc := range map[string]struct{ in, want string }{
		"no hierarchy":   {base, `{"a":1,"l":["b"]}`},
		"null hierarchy": {base + "hierarchy:\n", `{"a":1,"l":["b"]}`},
		"merge alone":    {base + "hierarchy: {merge: deep}\n", `{"a":1,"l":["a","b"]}`},
		"empty order":    {base + "hierarchy: {order: []}\n", `{"a":1,"l":["b"]}`},
		"null order":     {base + "hierarchy: {order: }\n", `{"a":1,"l":["b"]}`},
		"another order":  {base + "hierarchy: {order: [x]}\n", `{"a":0,"l":["a"]}`},
		"other override": {"data: {a: 0}\noverrides: {x: {a: 1}}\n", `{"a":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := resolvedData(t, tc.in, nil); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestMissingFactsInOrder checks entries of an order with a missing fact: the next entry is used.
func TestMissingFactsInOrder(t *testing.T) {
	for entry, want := range map[string]string{
		"role:${ lookup('facts.role') }":                  "common",
		"role:{{ lookup('facts.role') }}":                 "common",
		"role:${ lookup('facts.site.role') }":             "common",
		"role:${ lookup('facts.host.tags.7') }":           "common",
		"role:${ lookup('facts.host.*x') }":               "common",
		"role:${ Facts.role }":                            "common",
		"role:${ Facts.site.role }":                       "common",
		"role:${ Facts.host.role }":                       "common",
		"role:${ Facts['role'] }":                         "common",
		"role:${ Facts?.role }":                           "common",
		"role:${ Facts.site?.role }":                      "common",
		"role:${ get(Facts, 'role') }":                    "common",
		"role:${ upper(Facts.role) }":                     "common",
		"${ 'role:' + Facts.role }":                       "common",
		"${ Facts.role }":                                 "common",
		"role:${ Facts.empty }":                           "common",
		"role:${ lookup('facts.empty') }":                 "common",
		"${ Facts.os }:${ Facts.role }":                   "common",
		"role:${ lookup('facts.role', 'none') }":          "none",
		"role:${ lookup('facts.empty', 'none') }":         "none",
		"role:${ Facts.role ?? 'none' }":                  "none",
		"role:${ Facts.site?.role ?? 'none' }":            "none",
		"role:${ lookup('facts.role', Facts.os) }":        "debian",
		"role:${ Facts.role ?? lookup('facts.os') }":      "debian",
		"role:${ lookup('facts.role', Facts.site.role) }": "common",
	} {
		o := options()
		o.Facts = func(ctx context.Context) (model.Facts, error) {
			facts, err := node(ctx)
			facts["empty"] = nil
			return facts, err
		}
		text := "hierarchy: {order: [\"" + entry + "\", common]}\noverrides: {common: {a: common}, \"role:\": {a: wrong}, \"role:none\": {a: none}, \"role:debian\": {a: debian}}\n"
		doc, err := manifest.Parse("m.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		data, err := manifest.NewLoader(o).ResolveData(t.Context(), doc, manifest.Inputs{})
		if err != nil || data["a"] != want {
			t.Errorf("%s gives %v, %v, want %s", entry, data, err, want)
		}
	}
}

// TestUnnamedOverrides checks warnings about overrides that no entry of the order can name.
func TestUnnamedOverrides(t *testing.T) {
	const text = "muster: {resources: []}\noverrides: {a: {}, \"os:x\": {}, default: {}, \"a:x:b\": {}}\n"
	warn := func(at, name string) string {
		return "warning: m.yaml:2:" + at + ": no entry of `order` names the override `" + name + "`, so it is never used (add it to `hierarchy.order`, or remove it)"
	}
	for hierarchy, want := range map[string]string{
		"": lines(warn("13", "a"), warn("20", "os:x"), warn("45", "a:x:b")),
		"hierarchy: {order: [a, \"os:${ Facts.nope }\"]}\n":                 lines(warn("32", "default"), warn("45", "a:x:b")),
		"hierarchy: {order: [\"a:${ Facts.os }:b\", \"{{ Facts.os }}\"]}\n": "",
		"hierarchy: {order: [\"a:{{ Facts.os }}:b\", a]}\n":                 lines(warn("20", "os:x"), warn("32", "default")),
	} {
		if got := outcome(t, text+hierarchy, options(), manifest.Inputs{}); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", hierarchy, got, want)
		}
	}
	var got []string
	o := options()
	o.Warn = func(w model.Problem) { got = append(got, "warning: "+w.Error()) }
	doc, err := manifest.ParseData("m.yaml", []byte("data: {}\noverrides: {a: {}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.NewLoader(o).ResolveData(t.Context(), doc, manifest.Inputs{}); err != nil || strings.Join(got, "\n") != warn("13", "a") {
		t.Errorf("%v, %v", got, err)
	}
}

// TestDataProblems checks the problems of data.
func TestDataProblems(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"Data":            {"data:\n  a: 1\n  b: \"${ Data.a }\"\n", "m.yaml:3:7: the expression fails: `Data` is not known while the data are resolved (values of data take Facts and Environ; combine data where they are used)"},
		"lookup of data":  {"data:\n  b: \"${ lookup('data.a') }\"\n", "m.yaml:2:7: the expression fails: `Data` is not known while the data are resolved (values of data take Facts and Environ; combine data where they are used)"},
		"outputs":         {"data:\n  b: \"${ outputs('exec#a') }\"\n", "m.yaml:2:7: the expression fails: outputs are not known while the data are resolved (use them in the properties of a resource)"},
		"data list":       {"data: [a]\n", "m.yaml:1:7: `data` must be a mapping, not a list"},
		"hierarchy":       {"hierarchy: a\n", "m.yaml:1:12: `hierarchy` must be a mapping, not a string"},
		"hierarchy key":   {"hierarchy: {oder: [a]}\n", "m.yaml:1:13: unknown key `oder` in `hierarchy` (did you mean `order`?)"},
		"order":           {"hierarchy: {order: a}\n", "m.yaml:1:20: `order` must be a list, not a string"},
		"order entry":     {"hierarchy: {order: [[a]]}\n", "m.yaml:1:21: an entry of `order` must be text, not a list"},
		"order nothing":   {"hierarchy: {order: [\"${ nil }\"]}\n", "m.yaml:1:21: an entry of `order` must be text, not nothing"},
		"order data":      {"hierarchy: {order: [\"${ Data.none.x }\"]}\n", "m.yaml:1:22: the expression fails: `Data.none` is not set (write `Data.none?.x` where it may be unset)"},
		"order lookup":    {"hierarchy: {order: [\"${ lookup('data.none') }\"]}\n", "m.yaml:1:22: the expression fails: `data.none` is not known (give lookup a default as its second argument where it may be missing)"},
		"merge null":      {"hierarchy: {merge: null}\n", "m.yaml:1:20: `merge` cannot be nothing (one of first, deep)"},
		"merge list":      {"hierarchy: {merge: [first]}\n", "m.yaml:1:20: `merge` cannot be a list (one of first, deep)"},
		"merge":           {"hierarchy: {merge: shallow}\n", "m.yaml:1:20: `merge` cannot be \"shallow\" (one of first, deep)"},
		"overrides":       {"overrides: [a]\n", "m.yaml:1:12: `overrides` must be a mapping, not a list"},
		"override":        {"overrides: {a: b}\n", "m.yaml:1:16: `a` must be a mapping, not a string"},
		"override list":   {"overrides: {a: [b]}\n", "m.yaml:1:16: `a` must be a mapping, not a list"},
		"missing fact":    {"data:\n  b: \"${ Facts.nope }\"\n  c: \"x${ Facts.nope }\"\n  d: \"${ lookup('facts.nope') }\"\n", "m.yaml:2:7: the expression fails: `Facts.nope` is not set (write `Facts.nope ?? nil` where it may be unset)\nm.yaml:3:8: the expression fails: `Facts.nope` is not set (write `Facts.nope ?? nil` where it may be unset)\nm.yaml:4:7: the expression fails: `facts.nope` is not known (give lookup a default as its second argument where it may be missing)"},
		"default of data": {"data:\n  b: \"${ lookup('data.a', 7) }\"\n", "m.yaml:2:7: the expression fails: `Data` is not known while the data are resolved (values of data take Facts and Environ; combine data where they are used)"},
		"key":             {"data:\n  \"${ Facts.cores + [] }\": 1\n", "m.yaml:2:4: the expression is not valid: invalid operation: + (mismatched types any and list) (write `$${` for a literal `${`)"},
		"secret key":      {"data:\n  \"${ secret('a') }\": 1\n", "m.yaml:2:3: a key cannot be secret, because it is shown (use it as a value)"},
		"list key":        {"data:\n  \"${ [1] }\": 1\n", "m.yaml:2:3: the expression gives a list for a key, which must be text"},
		"key twice":       {"data:\n  debian: 1\n  \"${ Facts.os }\": 2\n", "m.yaml:3:3: duplicate key `debian`, first at m.yaml:2:3 (keep one of them)"},
		"unused override": {"overrides:\n  a:\n    b: \"${ nope }\"\n    c: [\"${ x\"]\n", "m.yaml:3:9: the expression is not valid: unknown name `nope` (write `$${` for a literal `${`)\nm.yaml:4:10: the expression that begins here does not end (close it with `}`, or write `$${` for a literal `${`)"},
		"unused key":      {"overrides:\n  a:\n    \"${ nope }\": 1\n", "m.yaml:3:6: the expression is not valid: unknown name `nope` (write `$${` for a literal `${`)"},
		"unknown key":     {"dta: {}\n", "m.yaml:1:1: unknown key `dta` (did you mean `data`?)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := resolvedData(t, tc.in, nil); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestAnnotations checks the comments that check data.
func TestAnnotations(t *testing.T) {
	required := func(at, name string) string {
		return "m.yaml:" + at + ": `" + name + "` is required and has no value (set it in data, an override or with --data)"
	}
	for name, tc := range map[string]struct {
		in       string
		external map[string]any
		want     string
	}{
		"set":            {in: "data:\n  # @require\n  a: x\n", want: `{"a":"x"}`},
		"zero is set":    {in: "data:\n  # @require\n  a: 0\n  # @require\n  b: false\n", want: `{"a":0,"b":false}`},
		"null":           {in: "data:\n  # @require\n  a:\n", want: required("3:3", "a")},
		"empty text":     {in: "data:\n  # @require\n  a: \"\"\n", want: required("3:3", "a")},
		"empty list":     {in: "data:\n  # @require\n  a: []\n", want: `{"a":[]}`},
		"empty mapping":  {in: "data:\n  # @require\n  a: {}\n", want: `{"a":{}}`},
		"empty secret":   {in: "data:\n  # @require\n  a: \"${ secret(Environ.NOPE ?? '') }\"\n", want: required("3:3", "a")},
		"deep":           {in: "data:\n  x:\n    y:\n      # the port\n      # @require\n      a:\n", want: required("6:7", "x.y.a")},
		"in a list":      {in: "data:\n  l:\n    - x: 1\n      # @require\n      a:\n    - b\n", want: required("5:7", "l.0.a")},
		"list replaced":  {in: "data:\n  l:\n    - x: 1\n      # @require\n      a:\n", external: map[string]any{"l": nil}, want: `{"l":null}`},
		"list in a list": {in: "data:\n  l: \n    - [a]\n    -\n      - x:\n        # @validate value > 1\n        a: 1\n", want: "m.yaml:7:9: the value 1 of `l.1.0.a` is not valid: `value > 1` is false"},
		"list is a text": {in: "data:\n  l:\n    - x: 1\n      # @require\n      a:\n", external: map[string]any{"l": "x"}, want: `{"l":"x"}`},
		"first key":      {in: "# head\n\n# @require\ndata:\n  # @require\n\n  a:\n", want: required("7:3", "a")},
		"no blank":       {in: "data:\n  #@require\n  a:\n", want: required("3:3", "a")},
		"with words":     {in: "data:\n  # @require because of the port\n  a:\n", want: required("3:3", "a")},
		"other words":    {in: "data:\n  # @alice wrote this\n  # see @require\n  # @todo\n  a: # @bob\n", want: `{"a":null}`},
		"near words": {
			in: "data:\n  # @requires\n  # @REQUIRE\n  # @Validate: value > 3\n  a:\n",
			want: "m.yaml:2:3: the comment `@requires` checks nothing (did you mean `@require`?)\nm.yaml:3:3: the comment `@REQUIRE` checks nothing (did you mean `@require`?)\n" +
				"m.yaml:4:3: the comment `@Validate:` checks nothing (did you mean `@validate`?)",
		},
		"near word in an override that is not taken": {in: "data: {}\noverrides:\n  o:\n    # @requird\n    a:\n", want: "m.yaml:4:5: the comment `@requird` checks nothing (did you mean `@require`?)"},
		"both on a line": {in: "data:\n  # @require @validate value > 3\n  a: 2\n  # @require @validate value > 3\n  b: 4\n", want: "m.yaml:3:3: the value 2 of `a` is not valid: `value > 3` is false"},
		"both, unset":    {in: "data:\n  # @require @validate value != 'x'\n  a: ''\n", want: required("3:3", "a")},
		"behind the key": {in: "data:\n  a: \"\" # @require\n  b: # @requires\n    c: 1\n", want: required("2:3", "a") + "\nm.yaml:3:6: the comment `@requires` checks nothing (did you mean `@require`?)"},
		"required":       {in: "data:\n  # @required\n  a:\n  b: '' # @required\n", want: required("3:3", "a") + "\n" + required("4:3", "b")},
		"required, both": {in: "data:\n  # @required @validate value > 3\n  a: 2\n", want: "m.yaml:3:3: the value 2 of `a` is not valid: `value > 3` is false"},
		"requiried":      {in: "data:\n  # @requiried\n  a: 1\n", want: "m.yaml:2:3: the comment `@requiried` checks nothing (did you mean `@required`?)"},
		"spaces":         {in: "data:\n  # @require\n  a: \" \"\n", want: `{"a":" "}`},
		"in an override that is not taken, behind": {in: "data: {}\noverrides:\n  o:\n    a: 1 # @requird\n", want: "m.yaml:4:10: the comment `@requird` checks nothing (did you mean `@require`?)"},

		"behind, set":           {in: "data:\n  a: 80 # @require\n  b: 80 # @validate isInt(value)\n", want: `{"a":80,"b":80}`},
		"behind, not valid":     {in: "data:\n  a: 80   #@validate value > 100\n", want: "m.yaml:2:3: the value 80 of `a` is not valid: `value > 100` is false"},
		"behind, both":          {in: "data:\n  a: 80 # @require @validate value > 100\n  b: # the port # @require\n", want: "m.yaml:2:3: the value 80 of `a` is not valid: `value > 100` is false\n" + required("3:3", "b")},
		"behind and above":      {in: "data:\n  # @validate value > 100\n  a: 80 # @validate value > 90\n", want: "m.yaml:3:3: the value 80 of `a` is not valid: `value > 100` is false\nm.yaml:3:3: the value 80 of `a` is not valid: `value > 90` is false"},
		"behind a mapping":      {in: "data:\n  a: # @require\n    b: 1\n", want: `{"a":{"b":1}}`},
		"behind a flow":         {in: "data:\n  a: {b: 1, c: {d: 2}} # @validate value.b == 2\n", want: "m.yaml:2:3: the value of `a` is not valid: `value.b == 2` is false"},
		"behind a flow list":    {in: "data:\n  a: [b, c] # @validate len(value) == 1\n", want: "m.yaml:2:3: the value of `a` is not valid: `len(value) == 1` is false"},
		"behind in a list":      {in: "data:\n  l:\n    - x: 1 # @validate value > 1\n", want: "m.yaml:3:7: the value 1 of `l.0.x` is not valid: `value > 1` is false"},
		"behind lines":          {in: "data:\n  a: \"b\n    # c\" # @validate len(value) > 9\n  d: [1,\n    2] # @validate len(value) > 9\n  e: {x: 1,\n    y: 2} # @validate value.x > 1\n  f: 1 # @validate value > 1\n", want: "m.yaml:2:3: the value b # c of `a` is not valid: `len(value) > 9` is false\nm.yaml:4:3: the value of `d` is not valid: `len(value) > 9` is false\nm.yaml:6:3: the value of `e` is not valid: `value.x > 1` is false\nm.yaml:8:3: the value 1 of `f` is not valid: `value > 1` is false"},
		"behind an override":    {in: "data: {}\nhierarchy: {order: [o]}\noverrides:\n  o: {a: null} # @require\n", want: "m.yaml:4:16: the comment `@require` checks nothing, because its line does not begin with a key (put it on a separate line above the key)"},
		"within lines":          {in: "data:\n  d: [1, # @require\n    2]\n", want: "m.yaml:2:10: the comment `@require` checks nothing within the value of `d` (put it on a separate line above the key)"},
		"behind plain texts":    {in: "data:\n  a: x, 'y # @validate value == ''\n  b: x [1 # @validate value == 1\n  c: say \"x # @validate value == 1\n  d: &e 'x' # @validate value == 1\n  f: *e # @validate value == 2\n", want: "m.yaml:2:3: the value x, 'y of `a` is not valid: `value == ''` is false\nm.yaml:3:3: the value x [1 of `b` is not valid: `value == 1` is false\nm.yaml:4:3: the value say \"x of `c` is not valid: `value == 1` is false\nm.yaml:5:3: the value x of `d` is not valid: `value == 1` is false\nm.yaml:6:3: the value x of `f` is not valid: `value == 2` is false"},
		"overrides before data": {in: "hierarchy: {order: [p, o]}\noverrides:\n  o: {a: 1}\n  p:\n    b: # @require\ndata:\n  a: # @require\n", want: required("5:5", "b") + "\n" + required("7:3", "a")},
		"behind a block":        {in: "data:\n  a: | # @validate len(value) > 10\n    x\n", want: "m.yaml:2:3: the value x  of `a` is not valid: `len(value) > 10` is false"},
		"behind a text":         {in: "data:\n  a: \"x # @require\" # @validate len(value) > 99\n  'b # @require': 1\n", want: "m.yaml:2:3: the value x # @require of `a` is not valid: `len(value) > 99` is false"},
		"behind an apostrophe":  {in: "data:\n  a: it's # @validate len(value) > 9\n", want: "m.yaml:2:3: the value it's of `a` is not valid: `len(value) > 9` is false"},
		"behind an item":        {in: "data:\n  l:\n    - a # @require\n", want: "m.yaml:3:9: the comment `@require` checks nothing after an item of a list (put it above the key of the list)"},
		"behind a flow item":    {in: "data:\n  l:\n    - {x: 1, y: 2} # @require\n", want: "m.yaml:3:20: the comment `@require` checks nothing, because its line does not begin with a key (put it on a separate line above the key)"},
		"behind in an override": {in: "data: {}\nhierarchy: {order: [o]}\noverrides:\n  o:\n    a: # @require\n", want: required("5:5", "a")},
		"in a text behind":      {in: "data:\n  a: \"x # @require\"\n  b: {c: 'x # @validate'}\n", want: `{"a":"x # @require","b":{"c":"x # @validate"}}`},
		"not indented":          {in: "data:\n# @require\n  a:\n", want: "m.yaml:2:1: the comment `@require` checks nothing, because it is not indented as `a` below it (begin it in the column of the key)"},
		"flow":                  {in: "data:\n  # @require\n  a: {b: 1, c: {d: 2}}\n", want: `{"a":{"b":1,"c":{"d":2}}}`},
		"in a text":             {in: "data:\n  t: |\n    # @require\n  a:\n", want: `{"a":null,"t":"# @require\n"}`},
		"by external":           {in: "data:\n  # @require\n  a:\n", external: map[string]any{"a": "x"}, want: `{"a":"x"}`},
		"by override":           {in: "data:\n  # @require\n  a:\nhierarchy: {order: [o]}\noverrides: {o: {a: 1}}\n", want: `{"a":1}`},
		"lost by override":      {in: "data:\n  x:\n    # @require\n    a: 1\nhierarchy: {order: [o]}\noverrides: {o: {x: {b: 1}}}\n", want: required("4:5", "x.a")},
		"in an override":        {in: "data: {}\nhierarchy: {order: [o]}\noverrides:\n  o:\n    # @require\n    a:\n", want: required("6:5", "a")},
		"unused override":       {in: "data: {}\noverrides:\n  o:\n    # @require\n    a:\n", want: `{}`},
		"valid":                 {in: "data:\n  # @validate value > 0 && value < 65536\n  a: 80\n", want: `{"a":80}`},
		"not valid":             {in: "data:\n  # @validate value > 0 && value < 65536\n  a: 70000\n", want: "m.yaml:3:3: the value 70000 of `a` is not valid: `value > 0 && value < 65536` is false"},
		"external checked":      {in: "data:\n  # @validate value > 0\n  a: 1\n", external: map[string]any{"a": -1.0}, want: "m.yaml:3:3: the value -1 of `a` is not valid: `value > 0` is false"},
		"override checked":      {in: "data:\n  # @validate value in ['a', 'b']\n  a: a\nhierarchy: {order: [o]}\noverrides: {o: {a: c}}\n", want: "m.yaml:3:3: the value c of `a` is not valid: `value in ['a', 'b']` is false"},
		"several":               {in: "data:\n  # @require\n  # @validate value != 'x'\n  # @validate len(value) > 3\n  a: x\n", want: "m.yaml:5:3: the value x of `a` is not valid: `value != 'x'` is false\nm.yaml:5:3: the value x of `a` is not valid: `len(value) > 3` is false"},
		"with facts":            {in: "data:\n  # @validate value <= Facts.cores && Environ.STAGE == 'prod' && Data.b == 1\n  a: 4\n  b: 1\n", want: `{"a":4,"b":1}`},
		"with lookup":           {in: "data:\n  # @validate value == lookup('data.b')\n  a: 4\n  b: 1\n", want: "m.yaml:3:3: the value 4 of `a` is not valid: `value == lookup('data.b')` is false"},
		"mapping":               {in: "data:\n  # @validate value.x == 1\n  a: {x: 2}\n", want: "m.yaml:3:3: the value of `a` is not valid: `value.x == 1` is false"},
		"not boolean":           {in: "data:\n  # @validate value + 1\n  a: 2\n", want: "m.yaml:3:3: the expression of @validate gives a number, not true or false (write a comparison, for example value > 0)"},
		"fails":                 {in: "data:\n  # @validate value > 0\n  a: x\n", want: "m.yaml:3:3: the value of `a` cannot be checked by `value > 0`: invalid operation: string > int"},
		"does not compile":      {in: "data:\n  # @validate valu > 0\n  a: x\n", want: "m.yaml:3:3: the expression of @validate is not valid: unknown name `valu` (did you mean `value`?)"},
		"nothing":               {in: "data:\n  # @validate\n  a: x\n", want: "m.yaml:3:3: the expression of @validate is not valid: the expression is empty"},
		"secret":                {in: "data:\n  # @validate len(value) > 10\n  a: \"${ secret('hunter2') }\"\n", want: "m.yaml:3:3: the value of `a` is not valid: `len(value) > 10` is false"},
		"secret fails":          {in: "data:\n  # @validate int(value) > 10\n  a: \"${ secret('hunter2') }\"\n", want: "m.yaml:3:3: the value of `a` cannot be checked by `int(value) > 10`"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := resolvedData(t, tc.in, tc.external); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestCheckFunctions checks the functions of @validate.
func TestCheckFunctions(t *testing.T) {
	for function, values := range map[string]struct{ valid, invalid []string }{
		"IP":        {[]string{"10.0.0.1", "::1", "fe80::1"}, []string{"10.0.0", "10.0.0.256", "x", "''", "10.0.0.1/8", "fe80::1%eth0", "7"}},
		"IPv4":      {[]string{"10.0.0.1", "0.0.0.0"}, []string{"'::1'", "10.0.0.1.2", "010.1.1.1"}},
		"IPv6":      {[]string{"'::1'", "2001:db8::1"}, []string{"10.0.0.1", "2001:db8::1::2"}},
		"Int":       {[]string{"8080", "'42'", "-3", "'+3'", "0"}, []string{"4.2", "abc", "''", "true", "' 42'", "1e3", "99999999999999999999"}},
		"Float":     {[]string{"4.2", "'42'", "8080", "-0.5", "1e3", "'.5'"}, []string{"abc", "''", "1.2.3", "'NaN'", "'inf'", "0x1f"}},
		"Duration":  {[]string{"30s", "1h30m", "1.5h", "2d", "1w", "100ms", "0"}, []string{"30", "s", "''", "1 h", "1x"}},
		"ShellSafe": {[]string{"hello world", "a-b_c/d.e", "80", "''"}, []string{"'a; b'", "'a | b'", "'$HOME'", "'`id`'", "'a && b'", "'a > b'", "'< b'", "\"a\\nb\""}},
		"Hostname":  {[]string{"web01", "web01.example.com", "a-b", "7"}, []string{"'-a'", "a_b", "''", "'a..b'", "a b", strings.Repeat("a", 64)}},
		"FQDN":      {[]string{"web01.example.com", "example.com.", "a.b-c"}, []string{"web01", "10.0.0.1", "''", "'.example.com'", "a_b.example.com"}},
	} {
		snake := map[string]string{"IP": "is_ip", "IPv4": "is_ipv4", "IPv6": "is_ipv6", "Int": "is_int", "Float": "is_float", "Duration": "is_duration", "ShellSafe": "is_shellsafe", "Hostname": "is_hostname", "FQDN": "is_fqdn"}[function]
		for _, name := range []string{"is" + function, snake} {
			check := func(value string, valid bool) {
				got := resolvedData(t, "data:\n  # @validate "+name+"(value)\n  a: "+value+"\n", nil)
				if ok := !strings.Contains(got, "is not valid"); ok != valid || !ok && !strings.Contains(got, "is false") {
					t.Errorf("%s of %s: %s", name, value, got)
				}
			}
			for _, value := range values.valid {
				check(value, true)
			}
			for _, value := range values.invalid {
				check(value, false)
			}
		}
	}
}

// TestCheckFunctionsCombined checks expressions that combine functions, and values that the
// functions ignore.
func TestCheckFunctionsCombined(t *testing.T) {
	invalid := func(value, expression string) string {
		return "m.yaml:3:3: the value " + value + " of `a` is not valid: `" + expression + "` is false"
	}
	for name, tc := range map[string]struct{ check, value, want string }{
		"or":               {"isIP(value) or isHostname(value)", "web01", `{"a":"web01"}`},
		"or, neither":      {"isIP(value) or is_int(value)", "web01", invalid("web01", "isIP(value) or is_int(value)")},
		"and":              {"isInt(value) and int(value) > 10", "'42'", `{"a":"42"}`},
		"not":              {"not isInt(value)", "x", `{"a":"x"}`},
		"pipe":             {"value | isInt()", "x", invalid("x", "value | isInt()")},
		"regex":            {`isRegex(value, "^[a-z]+$")`, "abc", `{"a":"abc"}`},
		"regex, snake":     {`is_regex(value, "^[a-z]+$")`, "Abc", invalid("Abc", `is_regex(value, "^[a-z]+$")`)},
		"regex of number":  {`isRegex(value, '^80')`, "8080", `{"a":8080}`},
		"bad regex":        {`isRegex(value, '(')`, "a", "m.yaml:3:3: the value of `a` cannot be checked by `isRegex(value, '(')`: isRegex: error parsing regexp: missing closing ): `(`"},
		"null":             {"isInt(value)", "null", `{"a":null}`},
		"list":             {"isInt(value)", "[a]", `{"a":["a"]}`},
		"mapping":          {"isInt(value)", "{b: 1}", `{"a":{"b":1}}`},
		"null and more":    {"isInt(value) && value > 0", "", `{"a":null}`},
		"items":            {"all(value, isIPv4(#))", "[10.0.0.1]", `{"a":["10.0.0.1"]}`},
		"wrong item":       {"all(value, isIPv4(#))", "[10.0.0.1, x]", "m.yaml:3:3: the value of `a` is not valid: `all(value, isIPv4(#))` is false"},
		"null, comparison": {"value > 0", "null", "m.yaml:3:3: the value of `a` cannot be checked by `value > 0`: invalid operation: <nil> > int"},
		"near name":        {"isIPV4(value)", "x", "m.yaml:3:3: the expression of @validate is not valid: unknown name `isIPV4` (did you mean `isIPv4`?)"},
		"elsewhere":        {"true", "\"${ isInt('4') }\"", "m.yaml:3:7: the expression is not valid: unknown name `isInt` (write `$${` for a literal `${`)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := resolvedData(t, "data:\n  # @validate "+tc.check+"\n  a: "+tc.value+"\n", nil); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestLoadData checks the forms of a source of data.
func TestLoadData(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "word"), []byte("w"), 0o600); err != nil {
		t.Fatal(err)
	}
	if doc, err := manifest.ParseData("d", []byte("a: 1\n")); err != nil || doc.Name() != "d" || doc.HasResources() {
		t.Error(doc, err)
	}
	path := filepath.Join(dir, "data.yaml")
	for name, tc := range map[string]struct{ in, want string }{
		"plain":      {"a: 1\nb: \"${ Facts.os }\"\n", `{"a":1,"b":"debian"}`},
		"json":       {`{"a": {"b": "\ud83d\ude00"}}`, `{"a":{"b":"😀"}}`},
		"document":   {"data: {a: 1}\nhierarchy: {order: [\"os:${ Facts.os }\"]}\noverrides: {\"os:debian\": {a: 2}}\n", `{"a":2}`},
		"annotated":  {"# @require\na:\n", path + ":2:1: `a` is required and has no value (set it in data, an override or with --data)"},
		"readFile":   {"a: \"${ readFile('word') }\"\n", `{"a":"w"}`},
		"section":    {"data: {a: 1}\nmuster: {}\n", path + ":2:1: a source of data has no section `muster` (put it under `data:`, or remove it)"},
		"ccm":        {"ccm: {}\n", path + ":1:1: a source of data has no section `ccm` (put it under `data:`, or remove it)"},
		"list":       {"- a\n", path + ":1:1: data must be a mapping, not a list (write key: value)"},
		"unknown":    {"data: {a: 1}\nb: 2\n", path + ":2:1: unknown key `b` (values are below `data:`; the resources of a manifest are items of `resources:` below `muster:`)"},
		"unreadable": {"a: [", path + ":1:1: invalid YAML: did not find expected node content (a brace or bracket before this place is not closed; quote an expression that begins with a brace)"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(tc.in), 0o600); err != nil {
				t.Fatal(err)
			}
			data, err := manifest.NewLoader(options()).LoadData(t.Context(), path, manifest.Inputs{})
			got := ""
			if err != nil {
				got = err.Error()
			} else if out, err := json.Marshal(data.Values); err == nil {
				got = string(out)
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
