package manifest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model/registration"
	"github.com/musterfleet/muster/resources/manifest"
)

// TestWhatChangesIsNoSecret checks values that change with each evaluation. They are secret only if
// they depend on a secret.
func TestWhatChangesIsNoSecret(t *testing.T) {
	for name, tc := range map[string]struct {
		in     string
		secret bool
	}{
		"go, now":            {`"${ template('{{ now }}') }"`, false},
		"go, date":           {`"${ template('{{ now | date \"2006-01-02T15:04:05.999999\" }} {{ ago now }}') }"`, false},
		"go, uuid":           {`"${ template('{{ uuidv4 }} {{ uuidv4 }}') }"`, false},
		"go, random":         {`"${ template('{{ randAlphaNum 20 }} {{ randInt 0 1000000000 }} {{ shuffle \"abcdefghijklmnop\" }} {{ randBytes 20 }}') }"`, false},
		"go, keys":           {`"${ template('{{ keys .Data.many }} {{ values .Data.many }}') }"`, false},
		"go, hash":           {`"${ template('{{ htpasswd \"ann\" .Data.user }}') }"`, false},
		"go, hash of one":    {`"${ template('{{ htpasswd \"ann\" .Data.pw }}') }"`, true},
		"go, beside one":     {`"${ template('{{ uuidv4 }} {{ .Data.pw }}') }"`, true},
		"go, made there":     {`"${ template('{{ uuidv4 }} {{ secret \"x\" }}') }"`, true},
		"go, chosen by one":  {`"${ template('{{ if eq .Data.pw \"hunter2\" }}{{ uuidv4 }}{{ end }}') }"`, true},
		"jet, a mapping":     {`"${ jet('[[ range k, v := Data.many ]][[ k ]][[ v ]][[ end ]][[ range Data.many ]][[ . ]][[ end ]]') }"`, false},
		"jet, now":           {`"${ jet('[[ now() ]]') }"`, false},
		"now":                {`"${ now() }"`, false},
		"keys":               {`"${ join(keys(Data.many), ',') } ${ join(values(Data.many), ',') } ${ toJSON(toPairs(Data.many)) }"`, false},
		"keys, with a value": {`"${ keys(Data.many) | join(',') } ${ Data.pw }"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			in := "data:\n  pw: \"${ secret('hunter2') }\"\n  user: ann\n  many: {a: a, b: b, c: c, d: d, e: e, f: f, g: g, h: h, i: i, j: j, k: k, l: l}\n" + content(tc.in)
			if res := resolved(t, in, manifest.Inputs{}).Resources[0]; res.Sensitive() != tc.secret {
				t.Errorf("sensitive %v: %q", res.Sensitive(), res.Spec.(*thingSpec).Content)
			}
		})
	}
	name := "muster: {resources: [{exec: [{\"x-${ template('{{ uuidv4 }}') }\": }]}]}\n"
	if got := outcome(t, name, options(), manifest.Inputs{}); !strings.HasPrefix(got, `exec {"name":"x-`) {
		t.Error("a name:", got)
	}
	list := "data: {pw: \"${ secret('hunter2') }\"}\nmuster: {resources_jet_file: r.jet}\n"
	dir := beside(t, "r.jet", "- file: [{/f: {content: \"[[ now() ]]\"}}]")
	if r := resolved(t, list, manifest.Inputs{Dir: dir}); r.Resources[0].Sensitive() {
		t.Error("what a list renders is secret")
	}
}

// TestKeysAreInOrder checks that listing a mapping has the same order in every run.
func TestKeysAreInOrder(t *testing.T) {
	data := "data: {m: {c: 3, b: 2, a: 1, e: 5, d: 4}, none: {}}\n"
	for in, want := range map[string]string{
		`"${ join(keys(Data.m), '') } ${ Data.m | values() | sum() } ${ values(Data.m)[4] } ${ toPairs(Data.m)[1][0] }"`:                                                                           "abcde 15 5 b",
		`"${ jet('[[ range k, v := Data.m ]][[ k ]][[ v ]][[ end ]] [[ range Data.m ]][[ . ]][[ end ]] [[ range k := Data.m ]][[ k ]][[ end ]] [[ range Data.none ]]x[[ else ]]none[[ end ]]') }"`: "a1b2c3d4e5 12345 abcde none",
		`"${ template('{{ keys .Data.m | join \"\" }} {{ values .Data.m | join \"\" }}') }"`:                                                                                                       "abcde 12345",
	} {
		if got := one(t, data+content(in), options(), manifest.Inputs{}).Content; got != want {
			t.Errorf("%s gives %s, want %s", in, got, want)
		}
	}
	if got := outcome(t, content(`"${ keys(1) }"`), options(), manifest.Inputs{}); !strings.Contains(got, "keys takes a mapping, not a number") {
		t.Error(got)
	}
}

// TestTemplatesChangeNothingOfOthers checks templates that change their inputs.
func TestTemplatesChangeNothingOfOthers(t *testing.T) {
	for name, in := range map[string]string{
		"set":      `template('{{ $x := set .Data.app \"port\" 1 }}')`,
		"unset":    `template('{{ $x := unset .data.app \"port\" }}')`,
		"merge":    `template('{{ $x := mergeOverwrite .Data (dict \"app\" (dict \"port\" 1)) }}')`,
		"lookup":   `template('{{ $x := set (lookup \"data.app\") \"port\" 1 }}')`,
		"in lists": `template('{{ $x := set (first .Data.list) \"port\" 1 }}')`,
		"facts":    `template('{{ $x := set .Facts.host \"name\" \"other\" }}')`,
		"environ":  `template('{{ $x := set .Environ \"STAGE\" \"other\" }}')`,
		"jet":      `jet('[[ .Data.app.port = 1 ]]')`,
	} {
		t.Run(name, func(t *testing.T) {
			text := "data: {app: {port: 80}, list: [{port: 80}]}\nmuster:\n  resources:\n    - file:\n        - /a: {content: \"<${ " + in + " }>\"}\n" +
				"        - /b: {content: \"${ Data.app.port } ${ Data.list[0].port } ${ Facts.host.name } ${ Environ.STAGE } ${ lookup('data.app.port') } ${ template('{{ .Data.app.port }}') }\"}\n"
			r := resolved(t, text, manifest.Inputs{})
			if got := r.Resources[1].Spec.(*thingSpec).Content; got != "80 80 web01 prod 80 80" {
				t.Errorf("the next sees %s", got)
			}
			if got := fmt.Sprint(r.Data); got != "map[app:map[port:80] list:[map[port:80]]]" {
				t.Errorf("the data are %s", got)
			}
		})
	}
}

// TestRegistrationsInTemplates checks lists of backends in templates.
func TestRegistrationsInTemplates(t *testing.T) {
	o := options()
	o.Registrations = func(context.Context, string, string, string, string) ([]registration.Registration, error) {
		return []registration.Registration{{Address: "10.0.0.1", Port: 80, Annotations: map[string]string{"rack": "b4"}}, {Address: "10.0.0.2", Port: 8080}}, nil
	}
	const sd = `[
  {
    "targets": [
      "10.0.0.1:80"
    ],
    "labels": {
      "__meta_muster_annotation_rack": "b4",
      "__meta_muster_priority": "0",
      "cluster": "",
      "node": "",
      "protocol": "",
      "service": ""
    }
  },
  {
    "targets": [
      "10.0.0.2:8080"
    ],
    "labels": {
      "__meta_muster_priority": "0",
      "cluster": "",
      "node": "",
      "protocol": "",
      "service": ""
    }
  }
]`
	for in, want := range map[string]string{
		`"${ registrations('*', '*', '*', '*').PrometheusFileSD() }"`:                                        sd,
		`"${ let r = registrations('*', '*', '*', '*'); r.PrometheusFileSD() }"`:                             sd,
		`"${ template('{{ (registrations \"*\" \"*\" \"*\" \"*\").PrometheusFileSD }}') }"`:                  sd,
		`"${ template('{{ $r := registrations \"*\" \"*\" \"*\" \"*\" }}{{ $r.PrometheusFileSD }}') }"`:      sd,
		`"${ jet('[[ registrations(\"*\", \"*\", \"*\", \"*\").PrometheusFileSD() | raw ]]') }"`:             sd,
		`"${ jet('[[ r := registrations(\"*\", \"*\", \"*\", \"*\") ]][[ r.PrometheusFileSD() ]]') }"`:       sd,
		`"${ registrations('*', '*', '*', '*')[0].Address }:${ registrations('*', '*', '*', '*')[1].Port }"`: "10.0.0.1:8080",
		`"${ template('{{ range registrations \"*\" \"*\" \"*\" \"*\" }}{{ .Cluster }}{{ .Service }}{{ .Protocol }}{{ .Address }}:{{ .Port }} {{ .Priority }} {{ .TTL }} {{ get .Annotations \"rack\" | default \"-\" }};{{ end }}') }"`: "10.0.0.1:80 0 0s b4;10.0.0.2:8080 0 0s -;",
		`"${ jet('[[ range _, e := registrations(\"*\", \"*\", \"*\", \"*\") ]][[ e.Address ]]:[[ e.Port ]];[[ end ]]') }"`:                                                                                                              "10.0.0.1:80;10.0.0.2:8080;",
		`"${ template('{{ range registrations \"prod\" \"http\" \"shop\" \"*\" }}server {{ .address }}:{{ .port }};{{ end }}') }"`:                                                                                                       "server 10.0.0.1:80;server 10.0.0.2:8080;",
		`"${ jet('[[ range _, r := registrations(\"prod\", \"http\", \"shop\", \"*\") ]]server [[ r.address ]]:[[ r.port ]];[[ end ]]') }"`:                                                                                              "server 10.0.0.1:80;server 10.0.0.2:8080;",
	} {
		if got := one(t, content(in), o, manifest.Inputs{}).Content; got != want {
			t.Errorf("%s gives %s", in, got)
		}
	}
}
