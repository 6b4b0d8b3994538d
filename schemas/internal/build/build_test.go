package build_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/schemas"
	"github.com/musterfleet/muster/schemas/internal/build"
)

// types are the registered types and two types of these tests.
func types() resource.Types {
	return append(resources.All(),
		resource.Of(kinds{name: "gadget"}, kindsProvider{}),
		resource.Of(kinds{name: "daemon", ensures: []string{"running", "stopped"}}, kindsProvider{}))
}

// compile returns a validator for a schema of types.
func compile(t *testing.T, name string, types resource.Types) *jsonschema.Schema {
	t.Helper()
	all, err := build.All(types)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(all[name]))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(schemas.URL(name), doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(schemas.URL(name))
	if err != nil {
		t.Fatal(err)
	}

	return s
}

// decoded converts YAML to the input of a validator.
func decoded(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}

	return doc
}

// list returns a manifest with one block of items. Each line is indented by its position.
func list(typ string, items ...string) string {
	text := "muster:\n  resources:\n    - " + typ + ":\n"
	for _, item := range items {
		text += "        - " + item + "\n"
	}

	return text
}

func single(typ, properties string) string {
	return "muster:\n  resources:\n    - " + typ + ": {" + properties + "}\n"
}

const fileRest = "owner: root, group: root, mode: '0644'"

// manifests are documents that the decoder and the schema must judge equally.
var manifests = []struct {
	name, text string
	valid      bool
}{
	{"all of spec/formats.md", everything, true},
	{"the same as a CCM manifest", strings.Replace(everything, "muster:", "ccm:", 1), true},
	{"list form", list("file", "/etc/motd: {ensure: absent}"), true},
	{"single form", single("file", "name: /etc/motd, ensure: absent"), true},
	{"a name alone", list("gadget", "zsh:"), true},
	{"defaults", list("file", "defaults: {"+fileRest+"}", "/etc/motd: {content: x}"), true},
	{"empty defaults", list("gadget", "defaults:", "zsh:"), true},
	{"two types in one entry", "muster:\n  resources:\n    - gadget: [{zsh: }]\n      daemon: [{cron: {ensure: running}}]\n", true},
	{"no resources", "muster:\n  resources: []\n", true},
	{"empty sections", "data:\nhierarchy:\noverrides:\nmuster:\n", true},
	{"settings", "muster:\n  fail_on_error: true\n  pre_message: 1\n  post_message: x\n  resources_jet_file: ''\n", true},
	{"a limit", "muster:\n  limit: 30\n", true},
	{"a setting by expression", "muster:\n  fail_on_error: ${ 1 == 1 }\n", true},
	{"a mode without quotes", list("file", "/etc/motd: {owner: 0, group: 0, mode: 0644}"), true},
	{"a number for a text", list("gadget", "zsh: {ensure: 1.10, text: 5}"), true},
	{"an alias", list("file", "/etc/motd: {contents: x, "+fileRest+"}"), true},
	{"booleans of older manifests", list("gadget", "zsh: {enable: yes, sensitive: 'No'}"), true},
	{"a boolean by expression", list("gadget", `zsh: {enable: "${ 1 == 1 }"}`), true},
	{"a number in quotes", list("gadget", "zsh: {count: '5', retry: 2}"), true},
	{"a number by expression", list("gadget", `zsh: {count: "{{ 2 + 3 }}"}`), true},
	{"a list by expression", list("gadget", `zsh: {args: "${ ['a', 'b'] }"}`), true},
	{"a mapping by expression", list("gadget", `zsh: {env: "${ {'A': 'b'} }"}`), true},
	{"ensure by expression", list("daemon", `cron: {ensure: "${ 'running' }"}`), true},
	{"a name by expression", list("gadget", `"${ 'z' + 'sh' }": {ensure: present}`), true},
	{"a reference by expression", list("gadget", "zsh:", `bash: {require: ["gadget#${ 'zsh' }"]}`), true},
	{"lists and mappings", list("gadget", "zsh: {args: [a, 1, true], codes: [0, 1], env: {A: b, C: 1}, any: {x: [1, {y: z}]}}"), true},
	{"durations", list("gadget", "zsh: {delay: 1m30s, timeout: 1.5h, poll: 0}"), true},
	{"nothing is not set", list("gadget", "zsh: {ensure: , count: , args: , control: , delay: }"), true},
	{"control", list("gadget", "zsh: {control: {if: 'Facts.x == 1', unless: false}}"), true},
	{"each, a list", list("gadget", `"${ each.value }": {each: [zsh, bash], text: "${ each.key }"}`), true},
	{"each, a mapping", list("gadget", `"${ each.key }": {each: {zsh: 1}}`), true},
	{"each by expression", list("gadget", `"${ each.value }": {each: "${ ['zsh'] }"}`), true},
	{"each of nothing", list("gadget", `"${ each.value }": {each: }`), true},
	{"a group", "muster:\n  resources:\n    - each: [zsh]\n      control: {if: 'true', unless: false}\n      resources: [{gadget: [{'${ each.value }': }]}, {each: {a: b}, resources: [{file: [{'/${ each.key }': {ensure: absent}}]}]}]\n", true},
	{"a group with a condition", "muster:\n  resources:\n    - {control: {if: 'Facts.x == 1'}, resources: [{gadget: [{zsh: }]}]}\n", true},
	{"a group of nothing", "muster:\n  resources:\n    - {each: [a], resources: }\n", true},
	{"data of any shape", "data: {a: [1, {b: c}], d: }\nmuster:\n  resources: []\n", true},

	{"an unknown key", "muster:\n  resources: []\nmuter: {}\n", false},
	{"an unknown key of the section", "muster:\n  resource: []\n", false},
	{"an unknown key of the hierarchy", "hierarchy: {orders: []}\nmuster:\n", false},
	{"an unknown merge", "hierarchy: {merge: all}\nmuster:\n", false},
	{"both sections", "muster:\nccm:\n", false},
	{"an unknown type", list("fiel", "/etc/motd:"), false},
	{"an unknown property", list("file", "/etc/motd: {ownr: root, "+fileRest+"}"), false},
	{"an unknown property in the single form", single("file", "name: /etc/motd, ownr: x, "+fileRest), false},
	{"an unknown property in defaults", list("file", "defaults: {ownr: root}"), false},
	{"each, a text", list("gadget", `"${ each.value }": {each: zsh}`), false},
	{"each, a number", list("gadget", `"${ each.value }": {each: 3}`), false},
	{"each in defaults", list("gadget", "defaults: {each: [a]}"), false},
	{"each in the single form", single("file", "name: /etc/motd, each: [a], "+fileRest), false},
	{"a group without each and control", "muster: {resources: [{resources: []}]}\n", false},
	{"a group with a type", "muster: {resources: [{each: [a], resources: [], gadget: [{zsh: }]}]}\n", false},
	{"a group with an unknown key of control", "muster: {resources: [{control: {when: 'true'}, resources: []}]}\n", false},
	{"a group with an unknown type", "muster: {resources: [{each: [a], resources: [{fiel: [{x: }]}]}]}\n", false},
	{"each without resources", "muster: {resources: [{each: [a]}]}\n", false},
	{"an unknown key of control", list("gadget", "zsh: {control: {when: 'true'}}"), false},
	{"a property of another type", list("file", "/etc/motd: {command: x, "+fileRest+"}"), false},
	{"a name in the list form", list("gadget", "zsh: {name: bash}"), false},
	{"a name in defaults", list("gadget", "defaults: {name: bash}"), false},
	{"an alias in defaults", list("gadget", "defaults: {alias: bash}"), false},
	{"the single form without a name", single("file", "ensure: absent"), false},
	{"a property and its alias", list("file", "/etc/motd: {content: x, contents: x, "+fileRest+"}"), false},
	{"two names in an item", list("gadget", "{zsh: {}, bash: {}}"), false},
	{"an empty item", list("gadget", "{}"), false},
	{"an item that is only a name", list("gadget", "zsh"), false},
	{"properties that are none", list("gadget", "zsh: latest"), false},
	{"resources that are no list", "muster:\n  resources: {}\n", false},
	{"an entry that is no mapping", "muster:\n  resources: [file]\n", false},
	{"a block that is a text", "muster:\n  resources: [{file: /etc/motd}]\n", false},
	{"an ensure that there is not", list("daemon", "cron: {ensure: runing}"), false},
	{"a provider that there is not", list("file", "/etc/motd: {provider: windows, "+fileRest+"}"), false},
	{"a drift that there is not", list("gadget", "zsh: {drift: fix}"), false},
	{"a word of another list", list("gadget", "zsh: {colour: blue}"), false},
	{"a boolean that is none", list("gadget", "zsh: {enable: maybe}"), false},
	{"a number that is none", list("gadget", "zsh: {count: many}"), false},
	{"a broken number", list("gadget", "zsh: {count: 1.5}"), false},
	{"a text for a list", list("gadget", "zsh: {args: a}"), false},
	{"an empty item of a list", list("gadget", "zsh: {args: [a, ]}", "bash: {args: [~]}"), false},
	{"a list for a text", list("gadget", "zsh: {text: [a]}"), false},
	{"a list for a mapping", list("gadget", "zsh: {env: [a]}"), false},
	{"a mapping for a text of a mapping", list("gadget", "zsh: {env: {A: {b: c}}}"), false},
	{"a duration without a unit", list("gadget", "zsh: {delay: 30}"), false},
	{"a reference without a type", list("gadget", "zsh: {require: [bash]}"), false},
	{"data that are a list", "data: []\nmuster:\n", false},
	{"an override that is a text", "overrides: {a: b}\nmuster:\n", false},
	{"order that is a text", "hierarchy: {order: a}\nmuster:\n", false},
	{"an order of mappings", "hierarchy: {order: [{a: b}]}\nmuster:\n", false},
	{"a Jet file that is a list", "muster:\n  resources_jet_file: [x.jet]\n", false},
	{"a message that is a list", "muster:\n  pre_message: [a]\n", false},
	{"a negative limit", "muster:\n  limit: -1\n", false},
	{"a setting that is none", "muster:\n  fail_on_error: {}\n", false},
}

// everything has every part of a manifest that spec/formats.md names.
const everything = `
data:
  # @require
  package_name: httpd
hierarchy:
  order:
    - os:${ lookup('facts.host.info.platformFamily') }
  merge: first
overrides:
  os:debian:
    package_name: apache2
muster:
  fail_on_error: false
  pre_message: ""
  post_message: ""
  resources_jet_file: ""
  resources:
    - package:
        - "${ lookup('data.package_name') }":
            ensure: latest
    - file:
        - defaults: {owner: root, group: root, mode: "0644"}
        - /etc/motd:
            ensure: present
            content: "Managed\n"
    - service:
        name: apache2
        ensure: running
        enable: true
        subscribe: [file#/etc/motd]
`

func TestManifestSchemaAgreesWithTheDecoder(t *testing.T) {
	schema := compile(t, "manifest", types())
	loader := manifest.NewLoader(manifest.Options{Types: types()})
	facts := model.Facts{"x": 1, "host": map[string]any{"info": map[string]any{"platformFamily": "debian"}}}
	for _, m := range manifests {
		t.Run(m.name, func(t *testing.T) {
			doc, err := manifest.Parse("m.yaml", []byte(m.text))
			if err == nil {
				_, err = loader.Resolve(t.Context(), doc, manifest.Inputs{Facts: facts})
			}
			if (err == nil) != m.valid {
				t.Errorf("the decoder says %v", err)
			}
			if err := schema.Validate(decoded(t, m.text)); (err == nil) != m.valid {
				t.Errorf("the schema says %v", err)
			}
		})
	}
}

const requestHead = "protocol: io.choria.ccm.v1.resource.ensure.request\n"

// requests are documents that the decoder and the schema must judge equally.
var requests = []struct {
	name, text string
	valid      bool
}{
	{"a file", requestHead + "type: file\nproperties: {name: /etc/motd, content: x, " + fileRest + "}\n", true},
	{"all fields", requestHead + "type: exec\nproperties: {name: /bin/true}\nid: a1\nexpires: 2030-01-31T12:00:00Z\nnoop: true\n", true},
	{"braces are literal", requestHead + "type: file\nproperties: {name: /etc/motd, content: '${x}', " + fileRest + "}\n", true},
	{"every kind", requestHead + "type: gadget\nproperties: {name: zsh, enable: true, count: 5, args: [a], env: {A: b}, any: [1], delay: 1s, require: [file#/a]}\n", true},

	{"no protocol", "type: exec\nproperties: {name: /bin/true}\n", false},
	{"another protocol", "protocol: io.muster.v1.run\ntype: exec\nproperties: {name: /bin/true}\n", false},
	{"no type", requestHead + "properties: {name: /bin/true}\n", false},
	{"an unknown type", requestHead + "type: fiel\nproperties: {name: /etc/motd}\n", false},
	{"no properties", requestHead + "type: exec\n", false},
	{"properties that are none", requestHead + "type: exec\nproperties: [a]\n", false},
	{"no name", requestHead + "type: exec\nproperties: {command: /bin/true}\n", false},
	{"an unknown key", requestHead + "type: exec\nproperties: {name: /bin/true}\ndry: true\n", false},
	{"an unknown property", requestHead + "type: exec\nproperties: {name: /bin/true, comand: x}\n", false},
	{"a property of another type", requestHead + "type: exec\nproperties: {name: /bin/true, mode: '0644'}\n", false},
	{"control", requestHead + "type: exec\nproperties: {name: /bin/true, control: {if: 'true'}}\n", false},
	{"an expression for a boolean", requestHead + "type: exec\nproperties: {name: /bin/true, logoutput: '${ true }'}\n", false},
	{"an expiry that is none", requestHead + "type: exec\nproperties: {name: /bin/true}\nexpires: tomorrow\n", false},
	{"noop that is none", requestHead + "type: exec\nproperties: {name: /bin/true}\nnoop: 'yes'\n", false},
}

func TestRequestSchemaAgreesWithTheDecoder(t *testing.T) {
	schema := compile(t, "ensure_request", types())
	loader := manifest.NewLoader(manifest.Options{Types: types()})
	for _, r := range requests {
		t.Run(r.name, func(t *testing.T) {
			request, properties, err := manifest.ParseRequest("request", []byte(r.text))
			if err == nil {
				_, err = loader.DecodeOne(request.Type, properties)
			}
			if (err == nil) != r.valid {
				t.Errorf("the decoder says %v", err)
			}
			if err := schema.Validate(decoded(t, r.text)); (err == nil) != r.valid {
				t.Errorf("the schema says %v", err)
			}
		})
	}
}

func TestWhatASchemaTellsPeople(t *testing.T) {
	all, err := build.All(types())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"description": "Whether it starts with the machine"`, `"description": "Another name of enable"`, `"default": "running"`,
		`"description": "A daemon"`, `"description": "what it is called"`, `"default": "red"`,
	} {
		if !strings.Contains(string(all["manifest"]), want) {
			t.Errorf("the schema of a manifest does not have %s", want)
		}
	}
}
