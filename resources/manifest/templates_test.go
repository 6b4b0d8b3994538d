package manifest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// beside writes files to a directory, given as names and contents.
func beside(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	return dir
}

func templateFiles(t *testing.T) string {
	t.Helper()

	return beside(t, "go.tmpl", "go {{ .Data.name }} on {{ .facts.os }}\n", "t/main.jet", "jet [[ Data.name ]][[ include \"part.jet\" ]]\n", "t/part.jet", " part [[ Facts.os ]]",
		"bad.tmpl", "one\n  {{ .Data.no }}\n", "bad.jet", "one\n  [[ Nope ]]\n", "broken.jet", "one\n  [[ if ]]\n", "t/own.jet", "own << Data.name >><< include \"opart.jet\" >> [[ x ]]\n", "t/opart.jet", " part << Facts.os >>",
		"x.templ", "${ Data.name } {{ Facts.os }} ${ 1 + 2 } $${x} {{ '{{' }}\n", "null.tmpl", "a\n{{ .Data.proxy }}\n", "left.txt", "${lookup('data.name')}\n", "broken.templ", "\n${ nope }", "open.templ", "\n${ 1",
		"fails.templ", "${ Data.nam }", "list.templ", "x {{ [1] }}", "outer.templ", "out <${ template('x.templ') }> {{ jet('[[ Data.name ]]') }}", "self.templ", "${ template('self.templ') }", "t/includes.jet", "[[ include \"../bad.jet\" ]]", "motd", "hi")
}

const templateData = `data:
  name: app
  proxy: null
  inner: "${ template('{{ .Environ.STAGE }}') }"
  pw: "${ secret('hunter2') }"
`

// TestTemplates checks the results of templates in the content of a file, and their problems.
func TestTemplates(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"go, file":        {`"${ template('go.tmpl') }"`, "go app on debian\n"},
		"go, text":        {`"${ template('{{ .Data.name }}') }"`, "app"},
		"go, in braces":   {`"{{ template('{{ .Data.name }}') }}"`, "app"},
		"go, lines":       {`"${ template('a\\nb') }"`, "a\nb"},
		"go, empty":       {`"<${ template('') }>"`, "<>"},
		"go, functions":   {`"${ template('{{ lookup \"data.name\" }} {{ readFile \"motd\" }} {{ kvGet \"config\" \"app/greeting\" }} {{ lookup \"data.x\" \"d\" }}') }"`, "app hi hello d"},
		"jet, file":       {`"${ jet('t/main.jet') }"`, "jet app part debian\n"},
		"jet, text":       {`"${ jet('[[ Data.name ]] [[ .facts.os ]] [[ environ.STAGE ]]') }"`, "app debian prod"},
		"jet, functions":  {`"${ jet('[[ lookup(\"data.name\") ]] [[ file(\"motd\") ]] [[ kvGet(\"config\", \"app/greeting\") ]]') }"`, "app hi hello"},
		"within data":     {`"${ Data.inner }"`, "prod"},
		"of a value":      {`"${ jet('<[[ \"' + Data.name + '\" ]]>') }"`, "<app>"},
		"beside the rest": {`"x ${ template('{{ 1 }}') } y"`, "x 1 y"},

		"go fails":         {`"a ${ template('bad.tmpl') }"`, "m.yaml:10:25: the expression fails: bad.tmpl:2: executing \"bad.tmpl\" at <.Data.no>: map has no entry for key \"no\" (write {{ lookup \"data.name\" \"default\" }}, or {{ get .Data \"no\" }}, where it may be missing)"},
		"go text fails":    {`"${ template('{{ .Data.no }}') }"`, "m.yaml:10:23: the expression fails: template:1: executing \"template\" at <.Data.no>: map has no entry for key \"no\" (write {{ lookup \"data.name\" \"default\" }}, or {{ get .Data \"no\" }}, where it may be missing)"},
		"go is not valid":  {`"${ template('{{ if }}') }"`, "m.yaml:10:23: the expression fails: template:1: missing value for if"},
		"jet fails":        {`"${ jet('bad.jet') }"`, "m.yaml:10:23: the expression fails: bad.jet:2: unknown name `Nope`"},
		"jet is not valid": {`"${ jet('broken.jet') }"`, "m.yaml:10:23: the expression fails: broken.jet:2: parsing if: unexpected token ']]' (expected term)"},
		"included fails":   {`"${ jet('t/includes.jet') }"`, "m.yaml:10:23: the expression fails: bad.jet:2: unknown name `Nope`"},
		"function fails":   {`"${ jet('[[ lookup(\"data.nam\") ]]') }"`, "m.yaml:10:23: the expression fails: jet:1: `data.nam` is not known (did you mean `data.name`?)"},
		"no file":          {`"${ jet('no.jet') }"`, "m.yaml:10:23: the expression fails: open DIR/no.jet: no such file or directory (a text without an action or a line break is the path of a template)"},
		"no template":      {`"${ template('plain') }"`, "m.yaml:10:23: the expression fails: open DIR/plain: no such file or directory (a text without an action or a line break is the path of a template)"},
		"one delimiter":    {`"${ jet('a', 'b') }"`, "m.yaml:10:23: the expression fails: jet takes two different delimiters (for example jet('motd.jet', '<<', '>>'))"},
		"equal delimiters": {`"${ jet('a', '%', '%') }"`, "m.yaml:10:23: the expression fails: jet takes two different delimiters (for example jet('motd.jet', '<<', '>>'))"},
		"blank delimiter":  {`"${ jet('a', '%', ' ') }"`, "m.yaml:10:23: the expression fails: jet takes two different delimiters (for example jet('motd.jet', '<<', '>>'))"},
		"too many":         {`"${ jet('a', 'b', 'c', 'd') }"`, "m.yaml:10:23: the expression fails: jet takes two different delimiters (for example jet('motd.jet', '<<', '>>'))"},

		"jet, own delimiters":          {`"${ jet('a=<% Data.name %> [[ x ]]', '<%', '%>') }"`, "a=app [[ x ]]"},
		"jet, file, own delimiters":    {`"${ jet('t/own.jet', '<<', '>>') }"`, "own app part debian [[ x ]]\n"},
		"jet, braces as delimiters":    {`"${ jet('{{ Data.name }}', '{{', '}}') }"`, "app"},
		"jet by its extension":         {`"${ template('t/main.jet') }"`, "jet app part debian\n"},
		"expressions by the extension": {`"${ template('x.templ') }"`, "app debian 3 ${x} {{\n"},

		"null, go":                   {`"${ template('{{ .Data.proxy }}') }"`, "m.yaml:10:23: the expression fails: template:1: `.Data.proxy` is null (give it a value, or write {{ .Data.proxy | default \"…\" }})"},
		"null, go, by a file":        {`"${ template('null.tmpl') }"`, "m.yaml:10:23: the expression fails: null.tmpl:2: `.Data.proxy` is null (give it a value, or write {{ .Data.proxy | default \"…\" }})"},
		"null, go, by lookup":        {`"${ template('{{ if true }}{{ lookup \"data.proxy\" }}{{ end }}') }"`, "m.yaml:10:23: the expression fails: template:1: `lookup \"data.proxy\"` is null (give it a value, or write {{ lookup \"data.proxy\" | default \"…\" }})"},
		"null, go, in a part":        {`"${ template('{{ define \"p\" }}{{ .proxy }}{{ end }}{{ template \"p\" (dict \"proxy\" .Data.proxy) }}') }"`, "m.yaml:10:23: the expression fails: template:1: `.proxy` is null (give it a value, or write {{ .proxy | default \"…\" }})"},
		"null, go, by a key":         {`"${ template('{{ index .Data \"none\" }}') }"`, "m.yaml:10:23: the expression fails: template:1: `index .Data \"none\"` is null (give it a value, or write {{ index .Data \"none\" | default \"…\" }})"},
		"null, go, by print":         {`"${ template('{{ print \"x\" .Data.proxy }}') }"`, "m.yaml:10:23: the expression fails: template:1: executing \"template\" at <print \"x\" .Data.proxy>: error calling print: argument 2 of print is null"},
		"null, go, by printf":        {`"${ template('{{ printf \"%v\" .Data.proxy }}') }"`, "m.yaml:10:23: the expression fails: template:1: executing \"template\" at <printf \"%v\" .Data.proxy>: error calling printf: argument 1 of printf is null"},
		"null, go, by toString":      {`"${ template('{{ .Data.proxy | toString }}') }"`, "m.yaml:10:23: the expression fails: template:1: executing \"template\" at <toString>: error calling toString: argument 1 of toString is null"},
		"null, go, allowed":          {`"${ template('{{ .Data.proxy | default \"d\" }}{{ with .Data.proxy }}x{{ end }}{{ $x := .Data.proxy }}{{ .Data.proxy | quote }}{{ .Data.proxy | toJson }}') }"`, "dnull"},
		"null, jet":                  {`"${ jet('a\\n[[ Data.proxy ]]') }"`, "m.yaml:10:23: the expression fails: jet:2: `Data.proxy` is null (give it a value, or write [[ isset(Data.proxy) ? Data.proxy : \"…\" ]])"},
		"null, jet, first of a line": {`"${ jet('[[ Data.proxy ]] [[ Data.name ]]') }"`, "m.yaml:10:23: the expression fails: jet:1: `Data.proxy` is null (give it a value, or write [[ isset(Data.proxy) ? Data.proxy : \"…\" ]])"},
		"null, jet, by a writer":     {`"${ jet('[[ Data.proxy | raw ]]') }"`, "m.yaml:10:23: the expression fails: jet:1: `Data.proxy` is null (give it a value, or write [[ isset(Data.proxy) ? Data.proxy : \"…\" ]])"},
		"null, jet, allowed":         {`"${ jet('[[ isset(Data.proxy) ? Data.proxy : \"d\" ]][[ Data.nope ]][[ x := Data.proxy ]][[ Data.proxy | writeJson ]]') }"`, "dnull\n"},

		"expression in go":          {`"${ template('a {{ 1 }}\\nb $${ Data.name }') }"`, "m.yaml:10:23: the expression fails: template:2: a Go template does not evaluate the expression that begins with `${ Data.` (write {{ .Data.name }}, rename the file to end in .templ, or write {{ \"${\" }} for a literal `${`)"},
		"expression in a file":      {`"${ template(readFile('left.txt')) }"`, "m.yaml:10:23: the expression fails: template:1: a Go template does not evaluate the expression that begins with `${lookup(` (write {{ .Data.name }}, rename the file to end in .templ, or write {{ \"${\" }} for a literal `${`)"},
		"shell in go":               {`"${ template('{{ 1 }}$' + '{HOME} $' + '{Data} $' + '{x:-y} {{ \"$' + '{\" }} Data.name }') }"`, "1${HOME} ${Data} ${x:-y} ${ Data.name }"},
		"name without a dot in go":  {`"${ template('{{ Data.name }}') }"`, "m.yaml:10:23: the expression fails: template:1: function \"Data\" not defined (write .Data in a Go template, or rename the file to end in .templ)"},
		"expression that is broken": {`"${ template('broken.templ') }"`, "m.yaml:10:23: the expression fails: broken.templ:2: the expression is not valid: unknown name `nope` (write `$${` for a literal `${`)"},
		"expression without an end": {`"${ template('open.templ') }"`, "m.yaml:10:23: the expression fails: open.templ:2: the expression that begins here does not end (close it with `}`, or write `$${` for a literal `${`)"},
		"expression that fails":     {`"${ template('fails.templ') }"`, "m.yaml:10:23: the expression fails: fails.templ:1: the expression fails: `Data.nam` is not set (did you mean `name`? or write `Data.nam ?? nil` where it may be unset)"},
		"expression of a list":      {`"${ template('list.templ') }"`, "m.yaml:10:23: the expression fails: list.templ:1: the expression gives a list, which is not allowed inside a text (use join() or toJSON(), or argv for the arguments of an exec)"},
		"text in a text":            {`"${ template('outer.templ') }"`, "out <app debian 3 ${x} {{\n> app"},
		"text in itself":            {`"${ template('self.templ') }"`, "m.yaml:10:23: the expression fails: self.templ: templates are nested more than 10 levels deep"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := templateFiles(t)
			o := options()
			o.KV = kv
			got := ""
			r, err := resolve(t, templateData+content(tc.in), o, manifest.Inputs{Dir: dir})
			if err != nil {
				got = strings.ReplaceAll(err.Error(), dir, "DIR")
			} else {
				got = r.Resources[0].Spec.(*thingSpec).Content
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestTemplatesWithinData(t *testing.T) {
	for in, want := range map[string]string{
		"data: {a: 1, b: \"${ template('{{ .Data.a }}') }\"}\nmuster: {resources: []}\n": "m.yaml:1:18: the expression fails: template:1: executing \"template\" at <.Data.a>: map has no entry for key \"Data\" (values of data take Facts and Environ; combine data where they are used)",
		"data: {a: 1, b: \"${ jet('[[ Data.a ]]') }\"}\nmuster: {resources: []}\n":       "m.yaml:1:18: the expression fails: jet:1: unknown name `Data` (values",
	} {
		if got := outcome(t, in, options(), manifest.Inputs{}); !strings.HasPrefix(got, want) {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
}

// Missing facts fail only the templates that use them.
func TestTemplatesWithoutFacts(t *testing.T) {
	o := options()
	o.Facts = nil
	if got := outcome(t, content(`"${ template('{{ 1 }}') }${ jet('[[ 2 ]]') }"`), o, manifest.Inputs{}); !strings.Contains(got, `"content":"12"`) {
		t.Error("got", got)
	}
	want := "m.yaml:5:23: the expression fails: not available here"
	if got := outcome(t, content(`"${ template('{{ .Facts.os }}') }"`), o, manifest.Inputs{}); got != want {
		t.Error("got", got)
	}
}

// TestSecretsInTemplates checks that results that depend on a secret are secret.
func TestSecretsInTemplates(t *testing.T) {
	for name, tc := range map[string]struct {
		in, want string
		secret   bool
	}{
		"go":                 {`"${ template('pw={{ .Data.pw }}') }"`, "pw=hunter2", true},
		"go, encoded":        {`"${ template('{{ b64enc .Data.pw }}') }"`, "aHVudGVyMg==", true},
		"go, looked up":      {`"${ template('{{ lookup \"data.pw\" | upper }}') }"`, "HUNTER2", true},
		"go, made there":     {`"${ template('{{ secret \"x\" }}') }"`, "x", true},
		"jet":                {`"${ jet('pw=[[ Data.pw ]]') }"`, "pw=hunter2", true},
		"jet, cut":           {`"${ jet('[[ Data.pw[0:3] ]]') }"`, "hun", true},
		"jet, made there":    {`"${ jet('[[ secret(\"x\") ]]') }"`, "x", true},
		"jet, chosen by":     {`"${ jet('[[ if Data.pw == \"hunter2\" ]]a[[ else ]]b[[ end ]]') }"`, "a", true},
		"not secret":         {`"${ template('{{ .Data.name }}') }"`, "app", false},
		"jet and not secret": {`"${ jet('[[ Data.name ]]') }"`, "app", false},
	} {
		t.Run(name, func(t *testing.T) {
			res := resolved(t, templateData+content(tc.in), manifest.Inputs{}).Resources[0]
			if got := res.Spec.(*thingSpec).Content; got != tc.want || res.Sensitive() != tc.secret {
				t.Errorf("got %q, sensitive %v", got, res.Sensitive())
			}
		})
	}
	for name, in := range map[string]string{"go": `"${ template('{{ fail .Data.pw }}') }"`, "jet": `"${ jet('[[ lookup(Data.pw) ]]') }"`} {
		if got := outcome(t, templateData+content(in), options(), manifest.Inputs{}); strings.Contains(got, "hunter2") || !strings.Contains(got, "m.yaml:10:23: ") {
			t.Errorf("%s: the error shows the secret: %s", name, got)
		}
	}
}

// TestTemplatesWaitForFiles checks that a template waits for a file of another resource, also if it
// can continue without it.
func TestTemplatesWaitForFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made")
	for name, in := range map[string]string{
		"as a file":   `"${ template('` + path + `') }"`,
		"read":        `"${ template('{{ readFile \"` + path + `\" }}') }"`,
		"read, jet":   `"${ jet('[[ readFile(\"` + path + `\") ]]') }"`,
		"read, tried": `"${ jet('[[ try ]][[ readFile(\"` + path + `\") ]][[ catch ]]none[[ end ]]') }"`,
	} {
		t.Run(name, func(t *testing.T) {
			r := resolved(t, "muster:\n  resources:\n    - file:\n        - "+path+":\n            content: x\n        - /f:\n            content: "+in+"\n", manifest.Inputs{})
			late := r.Resources[1]
			if late.ResolveDeferred == nil || !slices.Contains(late.Meta().Require, model.Ref{Type: "file", Name: path}) {
				t.Fatalf("it does not wait: %+v", late.Spec)
			}
			if err := os.WriteFile(path, []byte("made {{ 1 }}"), 0o600); err != nil {
				t.Fatal(err)
			}
			spec, _, err := late.ResolveDeferred(t.Context(), resource.Outputs{})
			if err != nil {
				t.Fatal(err)
			}
			if got := spec.(*thingSpec).Content; !strings.HasPrefix(got, "made ") {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestCheckTemplates checks templates without their node.
func TestCheckTemplates(t *testing.T) {
	dir := templateFiles(t)
	for in, want := range map[string]string{
		content(`"${ jet('t/main.jet') }${ template('go.tmpl') }"`):        "t/main.jet t/part.jet go.tmpl",
		content(`"${ jet('broken.jet') }"`):                                "m.yaml:5:23: the expression fails: broken.jet:2: parsing if: unexpected token ']]' (expected term)",
		content(`"${ jet('bad.jet') }"`):                                   "bad.jet",
		"muster: {resources_jet_file: t/main.jet}\n":                       "t/main.jet t/part.jet",
		"muster: {resources_jet_file: broken.jet}\n":                       "broken.jet:2: parsing if: unexpected token ']]' (expected term)",
		"muster: {resources_jet_file: \"${ Facts.os }.jet\"}\n":            "",
		"data: {l: \"${ Facts.os }\"}\nmuster: {resources_jet_file: motd}": "motd",
	} {
		c, err := checked(t, in, dir, nil)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			var paths []string
			for _, f := range c.Files {
				paths = append(paths, f.Path)
			}
			got = strings.Join(paths, " ")
		}
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
}

// TestJetFile checks the result of resources_jet_file, and its problems.
func TestJetFile(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"list":       {"[[ range i, n := Data.users ]]- file:\n    - /home/[[ n ]]:\n        content: \"[[ Facts.os ]]\"\n[[ end ]]", lines(`file {"name":"/home/ann","ensure":"present","content":"debian"}`, `file {"name":"/home/bob","ensure":"present","content":"debian"}`)},
		"nothing":    {"[[ if false ]]- file: []\n[[ end ]]", ""},
		"an empty":   {"[]", ""},
		"expression": {"- file:\n    - /f: {content: \"${ Data.users | join('+') } [[ 1 ]]\"}\n", `file {"name":"/f","ensure":"present","content":"ann+bob 1"}`},
		"defaults":   {"- file:\n    - defaults: {mode: 0644}\n    - /f:\n", `file {"name":"/f","ensure":"present","mode":"0644"}`},
		"functions":  {"- file: [{/f: {content: \"[[ lookup(\"data.users.0\") ]]\"}}]", `file {"name":"/f","ensure":"present","content":"ann"}`},

		"fails":         {"- file:\n    - /f: {content: [[ Nope ]]}\n", "r.jet:2: unknown name `Nope`"},
		"not valid":     {"- file:\n  [[ if ]]", "r.jet:2: parsing if: unexpected token ']]' (expected term)"},
		"hint":          {"\n[[ lookup(\"data.usrs\") ]]", "r.jet:2: `data.usrs` is not known (did you mean `data.users`?)"},
		"a mapping":     {"\nfile: []\n", "r.jet (rendered):2:1: r.jet must render a list of resources, not a mapping (begin it with `- file:`)"},
		"not YAML":      {"- file: [\n", "r.jet (rendered):1:1: invalid YAML"},
		"unknown type":  {"[[ x := 1 ]]\n- fil: []\n", "r.jet (rendered):2:3: unknown resource type `fil` (did you mean `file`?)"},
		"unknown key":   {"- file:\n    - /f: {contnt: x}\n", "r.jet (rendered):2:12: unknown property `contnt` of file (did you mean `content`?)"},
		"in expression": {"- file:\n    - /f: {content: \"${ Data.no }\"}\n", "r.jet (rendered):2:21: the expression fails: `Data.no` is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			in := "data: {users: [ann, bob]}\nmuster: {resources_jet_file: r.jet}\n"
			if got := outcome(t, in, options(), manifest.Inputs{Dir: beside(t, "r.jet", tc.in)}); got != tc.want && (tc.want == "" || !strings.HasPrefix(got, tc.want)) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestJetFileSetting checks the problems of the setting.
func TestJetFileSetting(t *testing.T) {
	dir := beside(t, "debian.jet", "- file: [{/f: {content: x}}]")
	for in, want := range map[string]string{
		"muster: {resources_jet_file: \"${ Facts.os }.jet\"}\n":                                    `file {"name":"/f","ensure":"present","content":"x"}`,
		"muster: {resources_jet_file: debian.jet, resources: []}\n":                                `file {"name":"/f","ensure":"present","content":"x"}`,
		"muster: {resources_jet_file: debian.jet, resources: [{file: []}]}\n":                      "m.yaml:1:30: `resources` and `resources_jet_file` exclude each other (keep one of them)",
		"muster: {resources_jet_file: [a]}\n":                                                      "m.yaml:1:30: `resources_jet_file` must be text, not a list (for example resources_jet_file: resources.jet)",
		"muster: {resources_jet_file: no.jet}\n":                                                   "m.yaml:1:30: `resources_jet_file`: open " + dir + "/no.jet: no such file or directory",
		"muster: {resources_jet_file: \"${ Nope }\"}\n":                                            "m.yaml:1:31: the expression is not valid: unknown name `Nope`",
		"muster: {resources_jet_file: \"${ [1] }\"}\n":                                             "m.yaml:1:30: `resources_jet_file` must be the path of a template, known before the run",
		"muster: {resources_jet_file: \"${ outputs('exec#x').stdout }\"}\n":                        "m.yaml:1:30: `resources_jet_file` must be the path of a template, known before the run",
		"data: {a: \"${ Facts.no.such }\"}\nmuster: {resources_jet_file: no.jet}\n":                "m.yaml:1:12: ",
		"muster: {resources_jet_file: \"${ secret('debian.jet') }\"}\n":                            "m.yaml:1:30: `resources_jet_file` must be the path of a template, known before the run",
		"muster: {resources_jet_file: \"\", resources: [{file: [{/g: {content: \"${ 1 }\"}}]}]}\n": `file {"name":"/g","ensure":"present","content":"1"}`,
	} {
		if got := outcome(t, in, options(), manifest.Inputs{Dir: dir}); !strings.HasPrefix(got, want) {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
	if got := outcome(t, "muster: {resources_jet_file: r.jet}\n", options(), manifest.Inputs{}); !strings.Contains(got, "this manifest has no directory") {
		t.Error("got", got)
	}
}

// TestSecretsInJetFiles checks that only the properties with a printed secret are secret.
func TestSecretsInJetFiles(t *testing.T) {
	data := "data:\n  pw: \"${ secret('hunter2') }\"\n  odd: \"${ secret('$' + '{ 1 }') }\"\n  user: ann\n  quoted: \"${ secret('a\\\": [b') }\"\nmuster: {resources_jet_file: r.jet}\n"
	for name, tc := range map[string]struct {
		in, content string
		secret      bool
		problem     string
	}{
		"value":          {in: "- file: [{/f: {content: \"pw=[[ Data.pw ]]\"}}]", content: "pw=hunter2", secret: true},
		"none":           {in: "- file: [{/f: {content: \"[[ Data.user ]]\"}}]", content: "ann"},
		"made there":     {in: "- file: [{/f: {content: '[[ secret(\"x\") ]]'}}]", content: "x", secret: true},
		"an expression":  {in: "- file: [{/f: {content: \"[[ Data.pw ]] ${ 1 + 1 }\"}}]", content: "hunter2 2", secret: true},
		"a whole one":    {in: "- file: [{/f: {content: \"${ '[[ Data.pw ]]' }\"}}]", content: "hunter2", secret: true},
		"looks like one": {in: "- file: [{/f: {content: '[[ Data.odd ]]'}}]", content: "${ 1 }", secret: true},
		"a name":         {in: "- file: [{'/[[ Data.pw ]]': {content: x}}]", problem: "r.jet (rendered):1:11: the output of r.jet depends on a secret here, but names and keys are shown (print secrets as they are, in the values of properties)"},
		"a resource":     {in: "[[ if Data.pw == \"hunter2\" ]]- file: [{/f: {content: x}}][[ end ]]", problem: "r.jet (rendered):1:1: the output of r.jet depends on a secret here, but names and keys are shown (print secrets as they are, in the values of properties)"},
		"one more":       {in: "- file: [{/f: }][[ if Data.pw == \"hunter2\" ]]\n- file: [{/g: }][[ end ]]", problem: "r.jet (rendered):1:1: the output of r.jet depends on a secret here, but names and keys are shown (print secrets as they are, in the values of properties)"},
		"changed":        {in: "- file: [{/f: {content: \"[[ upper(Data.pw) ]]\"}}]", problem: "r.jet (rendered):1:1: the output of r.jet depends on a secret here, but names and keys are shown (print secrets as they are, in the values of properties)"},
		"a condition":    {in: "- file: [{/f: {content: \"[[ if Data.user == \"ann\" ]]x[[ end ]][[ Data.pw ]]\"}}]", content: "xhunter2", secret: true},
		"no query":       {in: "- file: [{/f: {content: \"[[ lookup(`data.user`) ]]\"}}]", content: "ann"},
		"no quotes":      {in: "- file: [{/f: {content: [[ Data.quoted ]]}}]", content: "a\": [b", secret: true},
		"fails masked":   {in: "- file: [{/f: {content: '[[ map(\"hunter2\", \"a\")[Data.pw].x.y ]]'}}]", problem: "r.jet:1:"},
		"not YAML":       {in: "- file: [{/f: {content: *[[ Data.pw ]]}}]", problem: "r.jet (rendered):1:"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := resolve(t, data, options(), manifest.Inputs{Dir: beside(t, "r.jet", tc.in)})
			if err != nil {
				if got := err.Error(); tc.problem == "" || !strings.HasPrefix(got, tc.problem) || strings.Contains(got, "hunter2") && name != "fails masked" {
					t.Fatalf("got  %s\nwant %s", got, tc.problem)
				}
				return
			}
			res := r.Resources[0]
			if got := res.Spec.(*thingSpec).Content; got != tc.content || res.Sensitive() != tc.secret || tc.problem != "" {
				t.Errorf("got %q, sensitive %v, want %q, %s", got, res.Sensitive(), tc.content, tc.problem)
			}
			text, err := r.Render()
			if err != nil || strings.Contains(string(text), "hunter2") {
				t.Errorf("%v:\n%s", err, text)
			}
		})
	}
}

// TestOrigin checks what resources see of their manifest during a run.
func TestOrigin(t *testing.T) {
	dir := beside(t, "motd", "hi")
	doc, err := manifest.Parse("m.yaml", []byte(templateData+"muster: {resources: []}\n"))
	if err != nil {
		t.Fatal(err)
	}
	l := manifest.NewLoader(options())
	r, err := l.Resolve(t.Context(), doc, manifest.Inputs{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	facts := model.Facts{"os": "fedora"}
	names, secrets := l.Origin(r).Names(t.Context(), facts, nil)
	data := names["Data"].(map[string]any)
	if data["pw"] != "hunter2" || data["name"] != "app" || names["Facts"].(map[string]any)["os"] != "fedora" || fmt.Sprint(names["environ"]) != "map[STAGE:prod]" {
		t.Errorf("%v", names)
	}
	if fmt.Sprint(secrets.Data["pw"]) != model.Redacted || secrets.Data["name"] != "app" {
		t.Error("secrets of", secrets.Data)
	}
	if text, err := names["readFile"].(func(string) (any, error))("motd"); err != nil || text != "hi" || secrets.Used() {
		t.Error(text, err)
	}
	if pw, err := names["lookup"].(func(string, ...any) (any, error))("data.pw"); err != nil || pw != "hunter2" || !secrets.Used() || secrets.Used() {
		t.Error(pw, err)
	}
	if names, _ := l.Origin(nil).Names(t.Context(), facts, nil); len(names["Data"].(map[string]any)) != 0 {
		t.Error("a request has data", names["Data"])
	}
	for _, source := range []string{"kv://a/b", "/etc", "ftp://x/y", "obj://b/n"} {
		if _, _, err := l.Origin(r).Tree(t.Context(), source); err == nil {
			t.Error(source, "was fetched")
		}
	}
}

// TestTemplatesOfCCM checks the function template in a manifest with the section ccm. Its argument
// is a text of expressions, or the path of a Jet or .templ file.
func TestTemplatesOfCCM(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"text":                {`"${ template('v={{ Data.name }}') }"`, "v=app"},
		"text in braces":      {`"{{ template('v={{ Data.name }} {{ Facts.os }}') }}"`, "v=app debian"},
		"text of a file":      {`"${ template(readFile('t.txt')) }"`, "app of prod"},
		"text of words":       {`"${ template(readFile('motd')) }"`, "hi"},
		"text of lines":       {`"${ template('a\\nb ${ Data.name } {{ Data.name }}') }"`, "a\nb app app"},
		"escape":              {`"${ template(readFile('escaped.txt')) }"`, "${x} {{ app"},
		"lookup":              {`"${ template('{{ lookup(\"data.none\", \"d\") }}') }"`, "d"},
		"number":              {`"${ template('{{ 1 + 2 }}') }"`, "3"},
		"empty":               {`"<${ template('') }>"`, "<>"},
		"jet":                 {`"${ template('t/main.jet') }"`, "jet app part debian\n"},
		"templ":               {`"${ template('x.templ') }"`, "app debian 3 ${x} {{\n"},
		"jet of a text":       {`"${ template('{{ jet(\"t/main.jet\") }}') }"`, "jet app part debian\n"},
		"null":                {`"${ template('v={{ Data.proxy }}') }"`, "m.yaml:10:23: the expression fails: template:1: the expression gives nothing, which is not allowed inside a text (give it a default with `??`)"},
		"go":                  {`"${ template('{{ .Data.name }}') }"`, "m.yaml:10:23: the expression fails: template:1: the expression is not valid: unexpected `.` (did you mean `Data.name`? or write `{{ '{{' }}` for a literal `{{`)"},
		"within the data":     {`"${ Data.expr }"`, "prod"},
		"data within data":    {`"${ Data.name }"`, "app"},
		"file that is absent": {`"${ template('no.templ') }"`, "m.yaml:10:23: the expression fails: open DIR/no.templ: no such file or directory (a text without an action or a line break is the path of a template)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := beside(t, "t.txt", "{{ Data.name }} of ${ Environ.STAGE }", "motd", "hi", "escaped.txt", "$${x} {{ '{{' }} {{ Data.name }}", "x.templ", "${ Data.name } {{ Facts.os }} ${ 1 + 2 } $${x} {{ '{{' }}\n",
				"t/main.jet", "jet [[ Data.name ]][[ include \"part.jet\" ]]\n", "t/part.jet", " part [[ Facts.os ]]")
			text := "data:\n  name: app\n  proxy: null\n  pw: \"${ secret('hunter2') }\"\n  expr: \"${ template('{{ Environ.STAGE }}') }\"\n" + strings.Replace(content(tc.in), "muster:", "ccm:", 1)
			r, err := resolve(t, text, options(), manifest.Inputs{Dir: dir})
			got := ""
			if err != nil {
				got = strings.ReplaceAll(err.Error(), dir, "DIR")
			} else {
				got = r.Resources[0].Spec.(*thingSpec).Content
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestTemplateOfAFileName checks the warning about a text in a section ccm that is the name of a
// file.
func TestTemplateOfAFileName(t *testing.T) {
	dir := beside(t, "t.txt", "{{ Data.name }}", "sub/t.txt", "x", "x.templ", "y")
	const warning = "m.yaml:4:29: `template('%[1]s')` gives this text and does not read the file (write `template(readFile('%[1]s'))`, or rename the file to end in .templ)"
	for in, named := range map[string]string{
		"template('t.txt')": "t.txt", "template('sub/t.txt')": "sub/t.txt", "template(Data.file)": "t.txt", "template('" + dir + "/t.txt')": dir + "/t.txt",
		"template('no.txt')": "", "template('sub')": "", "template('x.templ')": "", "template(readFile('t.txt'))": "", "template('')": "", "template('v={{ Data.name }}')": "",
	} {
		r, err := resolve(t, "data: {name: app, file: t.txt}\nccm:\n  resources:\n"+"    - file: [{/f: {content: \"${ "+in+" }\"}}]\n", options(), manifest.Inputs{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for _, w := range r.Warnings {
			got = append(got, w.Error())
		}
		if named != "" {
			want = append(want, fmt.Sprintf(warning, named))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %q, not %q", in, got, want)
		}
	}
}

// TestTextsOfExpressionsWait checks texts of expressions with outputs and secrets.
func TestTextsOfExpressionsWait(t *testing.T) {
	dir := beside(t, "x.templ", "${ outputs('exec#a').stdout } {{ outputs('exec#b').stdout }}\n", "secret.templ", "p=${ Data.pw }\n")
	const head = "data: {pw: \"${ secret('hunter2') }\"}\nmuster:\n  resources:\n    - exec: [a: {}, b: {}]\n    - file:\n        - /f: {content: \"${ template('"
	r, err := resolve(t, head+"x.templ') }\"}\n", options(), manifest.Inputs{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	late := r.Resources[2]
	if late.ResolveDeferred == nil || len(late.Spec.Meta().Require) != 2 {
		t.Fatalf("it requires %v", late.Spec.Meta().Require)
	}
	spec, _, err := late.ResolveDeferred(t.Context(), resource.Outputs{{Type: "exec", Name: "a"}: {"stdout": "1"}, {Type: "exec", Name: "b"}: {"stdout": "2"}})
	if err != nil || spec.(*thingSpec).Content != "1 2\n" {
		t.Errorf("%+v, %v", spec, err)
	}
	r, err = resolve(t, head+"secret.templ') }\"}\n", options(), manifest.Inputs{Dir: dir})
	if err != nil || len(r.Resources[2].Secrets) == 0 {
		t.Errorf("no secret, %v", err)
	}
}

// TestRenderKeepsTheSection checks that a deferred text of expressions resolves to the same after
// rendering.
func TestRenderKeepsTheSection(t *testing.T) {
	const text = "data: {a: 1}\nccm:\n  resources:\n    - exec: [a: {}]\n    - file:\n        - /f: {content: \"${ template('{{ Data.a }} {{ outputs(\\\"exec#a\\\").stdout }}') }\"}\n"
	{
		r, err := resolve(t, text, options(), manifest.Inputs{})
		if err != nil {
			t.Fatal(err)
		}
		rendered, err := r.Render()
		if err != nil {
			t.Fatal(err)
		}
		r, err = resolve(t, string(rendered), options(), manifest.Inputs{})
		if err != nil {
			t.Fatalf("%v\n%s", err, rendered)
		}
		spec, _, err := r.Resources[1].ResolveDeferred(t.Context(), resource.Outputs{{Type: "exec", Name: "a"}: {"stdout": "2"}})
		if err != nil || spec.(*thingSpec).Content != "1 2" {
			t.Errorf("%+v, %v\n%s", spec, err, rendered)
		}
	}
}
