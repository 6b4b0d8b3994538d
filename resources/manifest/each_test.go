package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// loops returns a manifest with data and these resources.
func loops(resources string) string {
	return `
data:
  users: {bob: {uid: 2, groups: []}, ann: {uid: 1, groups: [sudo]}}
  sites: [a, b]
  passwords: {ann: {hash: "${ secret('s3cret') }", uid: 7}}
  nothing: null
muster:
  resources:
` + strings.TrimPrefix(resources, "\n")
}

// TestEach covers the forms of each.
func TestEach(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"a mapping, by keys": {`
    - file:
        - "/home/${ each.key }": {each: "${ Data.users }", content: "${ each.value.uid }"}
`, lines(
			`file {"name":"/home/ann","ensure":"present","content":"1"}`,
			`file {"name":"/home/bob","ensure":"present","content":"2"}`)},
		"a list, written out": {`
    - file:
        - "/srv/${ each.value }": {each: [x, "${ Data.sites[0] }"], content: "${ each.key }"}
`, lines(
			`file {"name":"/srv/x","ensure":"present","content":"0"}`,
			`file {"name":"/srv/a","ensure":"present","content":"1"}`)},
		"an expression": {`
    - file:
        - "/srv/${ each.value }": {each: "${ filter(Data.sites, # != 'a') }"}
`, `file {"name":"/srv/b","ensure":"present"}`},
		"null": {`
    - file: [{"/srv/${ each.value }": {each: "${ Data.nothing }"}}]
`, ""},
		"empty": {`
    - file: [{"/srv/${ each.value }": {each: []}}]
`, ""},
		"one element needs no name of its own": {`
    - file: [{/srv/x: {each: [a], content: "${ each.value }"}}]
`, `file {"name":"/srv/x","ensure":"present","content":"a"}`},
		"a group, element by element": {`
    - each: "${ Data.sites }"
      resources:
        - file: [{"/srv/${ each.value }": {}}]
        - exec: [{"/bin/${ each.value }": {subscribe: ["file#/srv/${ each.value }"]}}]
`, lines(
			`file {"name":"/srv/a","ensure":"present"}`,
			`exec {"name":"/bin/a","ensure":"present","subscribe":["file#/srv/a"]}`,
			`file {"name":"/srv/b","ensure":"present"}`,
			`exec {"name":"/bin/b","ensure":"present","subscribe":["file#/srv/b"]}`)},
		"groups within groups": {`
    - each: "${ Data.sites }"
      resources:
        - each: "${ Data.users }"
          resources:
            - file: [{"/${ each.parent.value }/${ each.key }/${ each.value.uid }": {}}]
`, lines(`file {"name":"/a/ann/1","ensure":"present"}`, `file {"name":"/a/bob/2","ensure":"present"}`,
			`file {"name":"/b/ann/1","ensure":"present"}`, `file {"name":"/b/bob/2","ensure":"present"}`)},
		"each of an item by the element of its group": {`
    - each: "${ Data.users }"
      resources:
        - file: [{"/${ each.parent.key }/${ each.value }": {each: "${ each.value.groups }"}}]
`, `file {"name":"/ann/sudo","ensure":"present"}`},
		"control of an item": {`
    - file: [{"/${ each.key }": {each: "${ Data.users }", control: {if: "each.value.uid > 1"}}}]
`, lines(`file {"name":"/ann","ensure":"present","control":{"if":"each.value.uid \u003e 1"}} excluded: control.if is false: each.value.uid > 1`,
			`file {"name":"/bob","ensure":"present","control":{"if":"each.value.uid \u003e 1"}}`)},
		"control of a group guards names": {`
    - each: "${ Data.users }"
      control: {if: "len(each.value.groups) > 0"}
      resources:
        - file: [{"/${ each.value.groups[0] }": {}}]
`, `file {"name":"/sudo","ensure":"present"}`},
		"control of a group guards what is within it": {`
    - control: {if: "Data.nothing != nil"}
      resources:
        - each: "${ Data.nothing.list }"
          resources: [{file: [{"/${ each.value }": {}}]}]
        - {control: {if: "Data.nothing.x > 1"}, resources: [{file: [{/x: {}}]}]}
`, `file {"name":"/x","ensure":"present"} excluded: control.if is false: Data.nothing != nil`},
		"a group with a condition only": {`
    - control: {if: "Facts.os == 'rhel'"}
      resources:
        - file: [{/a: {}}, {/b: {control: {unless: "true"}}}]
    - control: {if: "Facts.os == 'debian'"}
      resources:
        - file: [{/c: {}}]
`, lines(`file {"name":"/a","ensure":"present"} excluded: control.if is false: Facts.os == 'rhel'`,
			`file {"name":"/b","ensure":"present","control":{"unless":"true"}} excluded: control.if is false: Facts.os == 'rhel'`,
			`file {"name":"/c","ensure":"present"}`)},
		"defaults": {`
    - file:
        - defaults: {content: "${ each.value }"}
        - "/${ each.value }": {each: "${ Data.sites }"}
`, lines(`file {"name":"/a","ensure":"present","content":"a"}`, `file {"name":"/b","ensure":"present","content":"b"}`)},
		"a template": {`
    - file: [{"/${ each.value }": {each: [x], content: "${ template('{{ .each.value }} {{ .each.key }}') }"}}]
`, `file {"name":"/x","ensure":"present","content":"x 0"}`},
		"a Jet template": {`
    - file: [{"/${ each.value }": {each: [x], content: "${ jet('[[ each.value ]] [[ each.key ]]') }"}}]
`, `file {"name":"/x","ensure":"present","content":"x 0"}`},
		"a template with a secret": {`
    - file: [{"/${ each.key }": {each: "${ Data.passwords }", content: "${ template('{{ .each.value.hash }}') }"}}]
`, `file {"name":"/ann","ensure":"present","sensitive":true,"content":"s3cret"} secret`},
		"$env with a secret": {`
    - file: [{"/${ each.key }": {each: "${ Data.passwords }", content: "${ toJSON($env.each) }"}}]
`, `file {"name":"/ann","ensure":"present","sensitive":true,"content":"{\n  \"key\": \"ann\",\n  \"value\": {\n    \"hash\": \"s3cret\",\n    \"uid\": 7\n  }\n}"} secret`},
		"outputs": {`
    - exec: [{/bin/true: {}}]
    - file: [{"/${ each.value }": {each: [x], content: "${ outputs('exec#/bin/true').stdout }"}}]
`, lines(`exec {"name":"/bin/true","ensure":"present"}`, `file {"name":"/x","ensure":"present","require":["exec#/bin/true"]} late`)},
		"a secret in an element": {`
    - file: [{"/${ each.key }/${ each.value.uid }": {each: "${ Data.passwords }", content: "${ each.value.hash }"}}]
`, `file {"name":"/ann/7","ensure":"present","sensitive":true,"content":"s3cret"} secret`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(t, loops(c.text), options(), manifest.Inputs{}); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestEachProblems covers what each refuses, with positions and elements.
func TestEachProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"no list": {`
    - file: [{"/${ each.value }": {each: "${ Data.users.ann.uid }"}}]
`, "m.yaml:9:42: `each` must be a list or a mapping, not a number (for example each: [a, b], or each: \"${ Data.users }\")"},
		"a text": {`
    - file: [{"/${ each.value }": {each: words}}]
`, "m.yaml:9:42: `each` must be a list or a mapping, not a string (for example each: [a, b], or each: \"${ Data.users }\")"},
		"unknown data": {`
    - file: [{"/${ each.value }": {each: "${ Data.user }"}}]
`, "m.yaml:9:43: the expression fails: `Data.user` is not set (did you mean `users`? or write `Data.user ?? nil` where it may be unset)"},
		"outputs": {`
    - exec: [{/bin/true: {}}]
    - file: [{"/${ each.value }": {each: "${ outputs('exec#/bin/true').stdout }"}}]
`, "m.yaml:10:42: `each` must be known before the run (take it from data or facts)"},
		"one name": {`
    - file: [{/x: {each: [a, b]}}]
`, "m.yaml:9:15: all 2 elements of `each` give one name (use `each.key` or `each.value` in the name)"},
		"equal names": {`
    - file: [{"/${ each.value }": {each: {a: x, b: x}}}]
`, "m.yaml:9:15: file#/x is declared twice, by the elements a and b of `each` (make the name depend on `each.key`)"},
		"a problem of one element": {`
    - file: [{"/${ each.key }": {each: {a: 1, b: [x]}, content: "${ each.value }"}}]
`, "m.yaml:9:65: `content` must be a string, not a list (each: b)"},
		"a problem of all elements": {`
    - file: [{"/${ each.value }": {each: [a, b, c], mood: good}}]
`, "m.yaml:9:53: unknown property `mood` of file (each: 0 and 2 more) (did you mean `noop`?)"},
		"a problem within groups": {`
    - each: {x: 1, y: 2}
      resources:
        - file: [{"/${ each.parent.key }/${ each.key }": {each: {a: {}}, content: "${ each.value.b }"}}]
`, "m.yaml:11:84: the expression fails: `each.value.b` is not set (each: x.a and 1 more) (write `each.value.b ?? nil` where it may be unset)"},
		"a secret name": {`
    - file: [{"/${ each.value.hash }": {each: "${ Data.passwords }"}}]
`, "m.yaml:9:15: `name` cannot be secret (each: ann) (names are shown in logs and reports)"},
		"outside": {`
    - file: [{/x: {content: "${ each.value }"}}]
`, "m.yaml:9:30: the expression is not valid: unknown name `each` (it is known in an item or a group with the key `each` or write `$${` for a literal `${`)"},
		"item": {`
    - file: [{"/${ item }": {each: [a]}}]
`, "m.yaml:9:17: the expression is not valid: unknown name `item` (each: 0) (write `each.value` or write `$${` for a literal `${`)"},
		"each in defaults": {`
    - file: [{defaults: {each: [a]}}, {/x: {}}]
`, "m.yaml:9:26: `each` cannot be a default: it belongs to one resource"},
		"in the form with a name": {`
    - file: {name: /x, each: [a]}
`, "m.yaml:9:24: `each` belongs to an item of a list or to a group (write `- file:` with an item `- <name>:` below)"},
		"a group without anything": {`
    - resources: [{file: [{/x: {}}]}]
`, "m.yaml:9:7: a group has neither `each` nor `control` (add `each` or `control`, or move its resources out of it)"},
		"a group with a type": {`
    - {each: [a], resources: [], file: [{/x: {}}]}
`, "m.yaml:9:34: unknown key `file` of a group (a group has `each`, `control` and `resources`)"},
		"a group that is no list": {`
    - {each: [a], resources: {file: [{/x: {}}]}}
`, "m.yaml:9:30: `resources` must be a list, not a mapping (write `- file:` with its resources below)"},
		"a control that is no mapping": {`
    - {control: x, resources: []}
`, "m.yaml:9:17: `control` must be a mapping, not a string (write `control: {if: …}`)"},
		"an unknown key of control": {`
    - {control: {when: x, if: [a]}, resources: []}
`, "m.yaml:9:18: unknown key `when` in `control`\nm.yaml:9:31: `control.if` must be an expression, not a list"},
		"too deep": {`
    - {each: [a], resources: [{each: [a], resources: [{each: [a], resources: [{each: [a], resources: [{each: [a], resources: [{each: [a], resources: []}]}]}]}]}]}
`, "m.yaml:9:127: groups are nested more than 5 levels deep"},
		"an unknown type in a group": {`
    - each: [a, b]
      resources: [{fil: [{/x: {}}]}]
`, "m.yaml:10:20: unknown resource type `fil` (did you mean `file`?)"},
		"too many": {`
    - file: [{"/${ each.value }": {each: "${ 0..10000 }"}}]
`, "m.yaml:9:42: `each` has 10001 elements, more than 10000 (split it)"},
		"secret keys": {`
    - file: [{"/${ each.key }": {each: "${ {(Data.passwords.ann.hash): 1} }"}}]
`, "m.yaml:9:40: the keys of `each` may be secret, and names and problems show them (use a path such as Data.users, or a list)"},
		"secret keys, written out": {`
    - file: [{"/${ each.key }": {each: {"${ Data.passwords.ann.hash }": 1}}}]
`, "m.yaml:9:41: a key cannot be secret, because it is shown (use it as a value)"},
		"a condition of a group": {`
    - {each: [a], control: {if: "1"}, resources: [{file: [{/x: {}}]}]}
`, "m.yaml:9:33: `control.if` must be true or false, not a number (each: 0) (write a comparison, for example Facts.host.info.os == 'linux')"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(t, loops(c.text), options(), manifest.Inputs{}); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestEachOfAnotherNode checks a manifest with elements that depend on the node.
func TestEachOfAnotherNode(t *testing.T) {
	t.Parallel()
	doc, err := manifest.Parse("m.yaml", []byte(loops(`
    - file:
        - "/${ each.value }": {each: "${ Facts.disks }", mood: x}
        - "/${ each.key }/x": {each: "${ Facts.disks }", content: "${ each.value.a }"}
    - exec: [{/bin/true: {require: ["file#/sda"]}}]
`)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = manifest.NewLoader(manifest.Options{Types: testTypes()}).Check(t.Context(), doc, manifest.Inputs{})
	const want = "m.yaml:10:58: unknown property `mood` of file (did you mean `noop`?)"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// TestEachOfAnotherNodeIsNoted: the elements were not checked.
func TestEachOfAnotherNodeIsNoted(t *testing.T) {
	t.Parallel()
	doc, err := manifest.Parse("m.yaml", []byte(loops(`
    - each: "${ Facts.disks }"
      resources: [{file: [{"/${ each.value }": {control: {if: "each.key > 0"}}}, {"/${ each.key }/${ each.parent.x }": {}}]}]
`)))
	if err != nil {
		t.Fatal(err)
	}
	checked, err := manifest.NewLoader(manifest.Options{Types: testTypes()}).Check(t.Context(), doc, manifest.Inputs{})
	const want = "m.yaml:9:13: the elements of `each` depend on the node: these resources were checked once, without an element (run `muster apply --noop` on a node to check each element)"
	if err != nil || len(checked.Warnings) != 1 || checked.Warnings[0].Error() != want {
		t.Errorf("got %v, %v", checked.Warnings, err)
	}
}

// TestEachDuringTheRun resolves a deferred property with its element.
func TestEachDuringTheRun(t *testing.T) {
	t.Parallel()
	r := resolved(t, loops(`
    - exec: [{/bin/true: {}}]
    - file: [{"/${ each.value }": {each: "${ Data.sites }", content: "${ outputs('exec#/bin/true').stdout } ${ each.value }"}}]
`), manifest.Inputs{})
	for i, want := range []string{"out a", "out b"} {
		spec, _, err := r.Resources[i+1].ResolveDeferred(t.Context(), resource.Outputs{model.Ref{Type: "exec", Name: "/bin/true"}: {"stdout": "out"}})
		if err != nil || spec.(*thingSpec).Content != want {
			t.Errorf("got %+v, %v, want %s", spec, err, want)
		}
	}
}

// TestManyElements resolves as many elements as are allowed.
func TestManyElements(t *testing.T) {
	t.Parallel()
	r := resolved(t, "muster: {resources: [{file: [{\"/${ each.value }\": {each: \"${ 0..9999 }\", content: \"${ each.key }\"}}]}]}", manifest.Inputs{})
	if last := r.Resources[len(r.Resources)-1].Spec.Meta().Name; len(r.Resources) != 10_000 || last != "/9999" {
		t.Errorf("%d resources, the last is %s", len(r.Resources), last)
	}
	groups := fmt.Sprintf("muster: {resources: [{each: %q, resources: [{file: [{\"/${ each.parent.value }/${ each.value }\": {each: %q}}]}]}]}", "${ 0..100 }", "${ 0..999 }")
	empty := fmt.Sprintf("muster: {resources: [{each: %q, resources: [{each: %q, resources: [{each: %q, resources: []}]}]}]}", "${ 0..999 }", "${ 0..999 }", "${ 0..999 }")
	large := fmt.Sprintf("data: {big: %q}\nmuster: {resources: [{file: [{\"/${ each.value }\": {each: %q, content: \"${ Data.big }${ each.key }\"}}]}]}", strings.Repeat("x", 1<<20), "${ 0..999 }")
	const want = "the loops of a manifest give at most 100000 resources, with 256 MiB of properties (split the manifest)"
	for _, text := range []string{groups, empty, large} {
		if got := outcome(t, text, options(), manifest.Inputs{}); !strings.HasSuffix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("got %.200s, want %s", got, want)
		}
	}
}
