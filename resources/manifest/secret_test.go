package manifest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// TestSecrets checks expressions with secrets: the result is secret, and the property has the real
// value.
func TestSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		in, want string
		secret   bool
	}{
		"whole":             {`"${ Data.pw }"`, "hunter2", true},
		"lookup":            {`"${ lookup('data.pw') }"`, "hunter2", true},
		"lookup deep":       {`"${ lookup('data.db').pw }"`, "deep-pw", true},
		"lookup query":      {`"${ lookup('data.users.#(name==\"ann\").pw') }"`, "ann-pw", true},
		"mixed":             {`"pw=${ Data.pw } user=${ Data.user }"`, "pw=hunter2 user=joe", true},
		"joined":            {`"${ 'pw=' + Data.pw }"`, "pw=hunter2", true},
		"encoded":           {`"${ toBase64(Data.pw) }"`, "aHVudGVyMg==", true},
		"cut":               {`"${ Data.pw[0:3] }"`, "hun", true},
		"upper":             {`"${ upper(Data.pw) }"`, "HUNTER2", true},
		"length":            {`"${ len(Data.pw) }"`, "7", true},
		"as JSON":           {`"${ toJSON(Data.db) }"`, "{\n  \"pw\": \"deep-pw\",\n  \"user\": \"app\"\n}", true},
		"in place":          {`"${ secret('here') }"`, "here", true},
		"in place, mixed":   {`"${ 'x' + secret('here') }"`, "xhere", true},
		"of a number":       {`"${ secret(12345) }"`, "12345", true},
		"parsed":            {`"${ int(Data.pin) + 1 }"`, "1235", true},
		"chosen by":         {`"${ Data.pw == 'hunter2' ? 'a' : 'b' }"`, "a", true},
		"external":          {`"${ Data.external }"`, "external-pw", true},
		"not secret":        {`"${ Data.user }"`, "joe", false},
		"beside":            {`"${ Data.db.user }"`, "app", false},
		"is set":            {`"${ Data.pw != '' }"`, "true", true},
		"first of the list": {`"${ Data.words[0] }"`, "plain", false},
		"last of the list":  {`"${ last(Data.words) }"`, "word-pw", true},
		"text without":      {`plain`, "plain", false},
	} {
		t.Run(name, func(t *testing.T) {
			in := `data:
  pw: "${ secret('hunter2') }"
  pin: "${ secret(1234) }"
  user: joe
  db: {user: app, pw: "${ secret('deep-pw') }"}
  words: [plain, "${ secret('word-pw') }"]
  users: [{name: ann, pw: "${ secret('ann-pw') }"}, {name: bob, pw: x}]
` + content(tc.in)
			r := resolved(t, in, manifest.Inputs{Data: map[string]any{"external": model.NewSecret("external-pw")}})
			res := r.Resources[0]
			if got := res.Spec.(*thingSpec).Content; got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if res.Sensitive() != tc.secret || tc.secret && (len(res.Secrets) != 1 || res.Secrets[0].Reveal() != tc.want) {
				t.Errorf("sensitive %v, %d secrets", res.Sensitive(), len(res.Secrets))
			}
			shown, err := json.Marshal(r.Data)
			if err != nil {
				t.Fatal(err)
			}
			for _, pw := range []string{"hunter2", "1234", "deep-pw", "word-pw", "ann-pw", "external-pw"} {
				if strings.Contains(string(shown)+fmt.Sprintf("%v %+v", r.Data, r.Data), pw) {
					t.Errorf("data show %s: %s", pw, shown)
				}
			}
		})
	}
}

// TestSecretsInside checks secrets within lists and mappings of a property.
func TestSecretsInside(t *testing.T) {
	in := "data: {pw: \"${ secret('hunter2') }\"}\nmuster: {resources: [{file: [/f: {env: {A: \"x${ Data.pw }\", B: b}, args: [\"${ Data.pw }\", c], data: \"${ {'k': Data.pw, 'l': 1} }\"}]}]}"
	r := resolved(t, in, manifest.Inputs{})
	res := r.Resources[0]
	spec := res.Spec.(*thingSpec)
	if spec.Env["A"] != "xhunter2" || spec.Args[0] != "hunter2" || spec.Data["k"] != "hunter2" || spec.Data["l"] != 1 {
		t.Errorf("got %+v", spec)
	}
	var found []string
	for _, s := range res.Secrets {
		found = append(found, s.Reveal())
	}
	if got := strings.Join(found, " "); got != "xhunter2 hunter2 hunter2" {
		t.Errorf("secrets %s", got)
	}
}

// TestSecretsInProblems checks that errors do not show the secrets that cause them.
func TestSecretsInProblems(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"number":   {`"${ int(Data.pw) }"`, "m.yaml:6:23: the expression fails: it uses a secret, so its error is not shown"},
		"file":     {`"${ readFile('/' + Data.pw) }"`, "m.yaml:6:23: the expression fails: it uses a secret, so its error is not shown"},
		"only one": {`"${ Data.pw == 'hunter2' ? Data.none.x : 1 }"`, "m.yaml:6:23: the expression fails: it uses a secret, so its error is not shown"},
		"property": {"x\n            count: \"${ Data.pw }\"", "m.yaml:7:20: `count` must be a whole number, not \"[redacted]\""},
	} {
		t.Run(name, func(t *testing.T) {
			in := "data: {pw: \"${ secret('hunter2') }\", none: }\n" + content(tc.in)
			got := outcome(t, in, options(), manifest.Inputs{Dir: "/"})
			if tc.want != "" && got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
			if !strings.HasPrefix(got, "m.yaml:") || strings.Contains(got, "hunter2") {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestSecretsDecide checks values that depend on a secret: they are secret.
func TestSecretsDecide(t *testing.T) {
	for name, expr := range map[string]string{
		"kind":   "Data.pw == 'hunter2' ? ['aaaa', {'k': 'bbbb'}] : 'x'",
		"length": "Data.pw == 'hunter2' ? ['aaaa', {'k': 'bbbb'}] : []",
		"keys":   "Data.pw == 'hunter2' ? {'k': 'aaaa', 'l': ['bbbb']} : {'m': 'aaaa', 'l': ['bbbb']}",
		"fails":  "['aaaa', {'k': 'bbbb'}, Data.pw == 'hunter2' ? 1 : int('x')]",
	} {
		t.Run(name, func(t *testing.T) {
			in := "data: {pw: \"${ secret('hunter2') }\"}\nmuster: {resources: [{file: [/f: {data: {all: \"${ " + expr + " }\"}}]}]}"
			r := resolved(t, in, manifest.Inputs{})
			var found []string
			for _, s := range r.Resources[0].Secrets {
				found = append(found, s.Reveal())
			}
			if got := strings.Join(found, " "); !strings.HasPrefix(got, "aaaa bbbb") {
				t.Errorf("secrets %q", got)
			}
		})
	}
}

// TestPropertiesWithoutSecrets checks which properties stay visible in a manifest with secrets.
func TestPropertiesWithoutSecrets(t *testing.T) {
	for in, secret := range map[string]bool{
		`"${ Data.user }-${ Data.db.user } ${ Data?.db?.user } ${ Data['db']['user'] } ${ Data.words[0] }"`: false,
		`"${ lookup('data.db.user') } ${ lookup('data.hosts.#') } ${ lookup('data.none', 'x') }"`:           false,
		`"${ Data.hosts | map(upper(#)) | join(',') } ${ toJSON(Data.hosts) } ${ Facts.os } ${ now() }"`:    false,
		`"${ template('{{ .Data.user }}{{ range .Data.hosts }}{{ . }}{{ end }}{{ uuidv4 }}') }"`:            false,
		`"${ template('{{ lookup \"data.db.user\" }}{{ with .Facts }}{{ .os }}{{ end }}') }"`:               false,
		`"${ jet('[[ Data.db.user ]][[ range Data.hosts ]][[ . ]][[ end ]][[ include \"part.jet\" ]]') }"`:  false,
		`"${ {'a': Data.pw, 'b': 'x'}.b }"`:                        true,
		`"${ $env.Data.pw }"`:                                      true,
		`"${ $env['Data'].user }"`:                                 true,
		`"${ let d = Data; d.pw }"`:                                true,
		`"${ Data[Environ.STAGE == 'x' ? 'user' : 'pw'] }"`:        true,
		`"${ Data.words[-1] }"`:                                    true,
		`"${ map(Data.words, #) | first() }"`:                      true,
		`"${ len(Data.db) }"`:                                      true,
		`"${ toJSON(lookup('data')) }"`:                            true,
		`"${ lookup('data.' + 'pw') }"`:                            true,
		`"${ lookup('data.wor' + 'ds.#') }"`:                       true,
		`"${ template('{{ toJson .Data }}') }"`:                    true,
		`"${ template('{{ . }}') }"`:                               true,
		`"${ template('{{ $d := .Data.db }}{{ $d.user }}') }"`:     true,
		`"${ template('{{ lookup (print \"data.\" \"pw\") }}') }"`: true,
		`"${ jet('[[ dump() ]]') }"`:                               true,
		`"${ jet('[[ include \"secret.jet\" ]]') }"`:               true,
	} {
		text := `data:
  user: joe
  pw: "${ secret('hunter2') }"
  db: {user: app, pw: "${ secret('deep-pw') }"}
  words: [plain, "${ secret('word-pw') }"]
  hosts: [a, b]
` + content(in)
		dir := beside(t, "part.jet", "[[ Data.user ]]", "secret.jet", "[[ Data.pw ]]")
		if res := resolved(t, text, manifest.Inputs{Dir: dir}).Resources[0]; res.Sensitive() != secret {
			t.Errorf("%s: sensitive %v: %q", in, res.Sensitive(), res.Spec.(*thingSpec).Content)
		}
	}
}

// TestPartsOfData checks a mapping from an expression: values beside a secret keep their type and
// diffs.
func TestPartsOfData(t *testing.T) {
	text := "data: {db: \"${ {'port': 5432, 'pw': secret('hunter2')} }\"}\n"
	for in, want := range map[string]string{`"${ Data.db.port + 1 }"`: "5433 false", `"${ Data.db.pw }"`: "hunter2 true"} {
		res := resolved(t, text+content(in), manifest.Inputs{}).Resources[0]
		if got := fmt.Sprint(res.Spec.(*thingSpec).Content, " ", res.Sensitive()); got != want {
			t.Errorf("%s gives %s, want %s", in, got, want)
		}
	}
}
