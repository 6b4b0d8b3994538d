package e2e

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/musterfleet/muster/testing/markdown"
	"github.com/musterfleet/muster/testing/natstest"
)

// TestDifferencesFromCCM runs an example of each row of the page for users of Choria CCM.
func TestDifferencesFromCCM(t *testing.T) {
	examples := map[string]string{}
	for example := range strings.SplitSeq(ccmExamples, "\n=== ") {
		row, archive, _ := strings.Cut(example, "\n")
		row = strings.ReplaceAll(row, "…", "`")
		if row != "" {
			examples[row] = archive
		}
	}
	rows := differences(docsPage(t, "coming-from/choria-ccm.md"))
	if len(rows) < 40 {
		t.Errorf("the page has %d rows", len(rows))
	}
	for _, row := range rows {
		archive, has := examples[row]
		if !has {
			t.Errorf("the row %q has no example", row)
		}
		delete(examples, row)
		t.Run(row, func(t *testing.T) {
			t.Parallel()
			runExample(t, archive)
		})
	}
	for _, row := range slices.Sorted(maps.Keys(examples)) {
		t.Errorf("the page has no row %q", row)
	}
}

// differences returns the first cells of the tables that compare CCM and muster.
func differences(page string) []string {
	var out []string
	compares := false
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		switch {
		case !strings.HasPrefix(line, "|"):
			compares = false
		case len(cells) == 3 && strings.TrimSpace(cells[1]) == "CCM":
			compares = true
		case compares && !strings.HasPrefix(line, "|--"):
			out = append(out, strings.TrimSpace(cells[0]))
		}
	}

	return out
}

// runExample runs the script of an archive beside its files, and compares the output with the file want.
func runExample(t *testing.T, archive string) {
	t.Helper()
	s := newShow(t, "nats://127.0.0.1:1")
	files := httptest.NewServer(http.FileServer(http.Dir(s.dir)))
	t.Cleanup(files.Close)
	parsed := txtar.Parse([]byte(strings.ReplaceAll(archive, "$URL", files.URL)))
	if strings.Contains(string(parsed.Comment), "registration") {
		s.url = natstest.Start(t).URL()
	}
	var want string
	for _, f := range parsed.Files {
		if f.Name == "want" {
			want = string(f.Data)
			continue
		}
		write(t, filepath.Join(s.dir, f.Name), s.rewrite(string(f.Data)))
	}
	s.compare(markdown.Block{Text: want}, s.run(markdown.Block{Text: string(parsed.Comment)}))
}

// ccmExamples are examples by the first cell of their row.
const ccmExamples = `
=== One resource declared twice, in one manifest or in two children
muster apply one.yaml || echo code $?
muster apply two.yaml || echo code $?
muster apply alike.yaml
-- one.yaml --
ccm: {resources: [{exec: [{a: {command: echo 1}}, {a: {command: echo 2}}]}]}
-- two.yaml --
ccm: {resources: [{apply: [first.yaml: {}, second.yaml: {}]}]}
-- alike.yaml --
ccm: {resources: [{apply: [first.yaml: {}, alike-first.yaml: {}]}]}
-- first.yaml --
ccm: {resources: [{exec: [{a: {command: echo 1}}]}]}
-- second.yaml --
ccm: {resources: [{exec: [{a: {command: echo 2}}]}]}
-- alike-first.yaml --
ccm: {resources: [{exec: [{a: {command: echo 1}}]}]}
-- want --
exec#a is declared twice, first at one.yaml:1:28
code 1
exec#a is declared twice, first at …first.yaml:1:28
code 1
outcome=changed total=3
=== A …file… with content, or with …ensure: absent…, and an …archive… for one path
muster apply content.yaml || echo code $?
muster apply absent.yaml || echo code $?
-- content.yaml --
ccm: {resources: [{file: [{/x/a.tgz: {content: x, owner: root, group: root, mode: "0644"}}]}, {archive: [{/x/a.tgz: {url: "https://example.com/a.tgz", owner: root, group: root}}]}]}
-- absent.yaml --
ccm: {resources: [{file: [{/x/a.tgz: {ensure: absent}}]}, {archive: [{/x/a.tgz: {url: "https://example.com/a.tgz", owner: root, group: root}}]}]}
-- want --
archive#/x/a.tgz and file#/x/a.tgz, at content.yaml:1:28, manage the same path
code 1
archive#/x/a.tgz and file#/x/a.tgz, at absent.yaml:1:28, manage the same path
code 1

=== An unknown property or key
muster apply property.yaml || echo code $?
muster apply key.yaml || echo code $?
-- property.yaml --
ccm: {resources: [{exec: [{a: {comand: echo}}]}]}
-- key.yaml --
ccm: {resource: []}
-- want --
unknown property …comand… (did you mean …command…?)
code 1
unknown key …resource… (did you mean …resources…?)
code 1
=== …require… or …subscribe… of a later resource
muster apply m.yaml
-- m.yaml --
ccm: {resources: [{exec: [{a: {command: echo 1, require: [exec#b]}}, {c: {command: echo 3, refresh_only: true, subscribe: [exec#b]}}, {b: {command: echo 2}}]}]}
-- want --
exec#b changed
exec#a changed
exec#c refreshed
=== A file, package or exec without …ensure…
muster apply m.yaml
-- m.yaml --
ccm: {resources: [{exec: [{a: {command: echo 1}}]}, {file: [{"/etc/f": {content: x, owner: root, group: root, mode: "0644"}}]}]}
-- want --
exec#a changed ensure=present
file#/etc/f changed ensure=present
=== A resource fails
muster apply m.yaml || echo code $?
-- m.yaml --
ccm: {resources: [{exec: [{a: {command: "false"}}]}]}
-- want --
exec#a failed
code 1
=== A health check warns or is unknown
muster apply m.yaml
-- m.yaml --
ccm: {resources: [{exec: [{a: {command: echo 1, health_checks: [{command: sh -c 'exit 1'}]}}, {b: {command: echo 2, health_checks: [{command: sh -c 'exit 3'}]}}, {c: {command: echo 3, require: [exec#a, exec#b]}}]}]}
-- want --
exec#a changed
exec#b changed
exec#c changed
=== …register_when_stable… without …priority…
muster registration init
muster apply m.yaml
muster registration query --json
-- m.yaml --
ccm: {resources: [{exec: [{a: {command: echo 1, register_when_stable: [{cluster: c, service: s, protocol: http, address: 10.0.0.1, port: 80}]}}]}]}
-- want --
"priority": 1,
=== …port… of …register_when_stable… as a text or an expression
muster registration init
muster apply m.yaml
muster registration query
-- m.yaml --
data: {port: 8081}
ccm: {resources: [{exec: [{a: {command: echo 1, register_when_stable: [{cluster: c, service: s, protocol: http, address: 10.0.0.1, port: "8080"}, {cluster: c, service: t, protocol: http, address: 10.0.0.1, port: "${ Data.port }"}]}}]}]}
-- want --
10.0.0.1  8080
10.0.0.1  8081
=== A host name as …address… of …register_when_stable…
muster registration init
muster apply m.yaml
muster registration query
-- m.yaml --
ccm: {resources: [{exec: [{a: {command: echo 1, register_when_stable: [{cluster: c, service: s, protocol: http, address: web01.example.net, port: 80}]}}]}]}
-- want --
web01.example.net  80
=== The child reads a name that only the data of the parent have
muster apply m.yaml
-- m.yaml --
data: {port: 1}
ccm: {resources: [{apply: [child.yaml: {}]}]}
-- child.yaml --
ccm: {resources: [{exec: [{"port ${ lookup('data.port', 80) }": {command: echo}}]}]}
-- want --
WARN …data.port… is set in m.yaml only
exec#port 80 changed
=== The parent and the child have the same name in …data…
muster apply m.yaml
-- m.yaml --
data: {port: 1}
ccm: {resources: [{apply: [child.yaml: {}]}]}
-- child.yaml --
data: {port: 2}
ccm: {resources: [{exec: [{"port ${ lookup('data.port', 80) }": {command: echo}}]}]}
-- want --
exec#port 2 changed
=== …--data… and …data… of the resource set one name
muster apply m.yaml --data data.yaml
-- m.yaml --
ccm: {resources: [{apply: [child.yaml: {data: {port: 1}}]}]}
-- child.yaml --
ccm: {resources: [{exec: [{"port ${ Data.port }": {command: echo}}]}]}
-- data.yaml --
port: 3
-- want --
exec#port 3 changed
=== More than 10 levels of children
for i in 1 2 3 4 5 6 7 8 9 10 11; do echo "ccm: {resources: [{apply: [m$((i+1)).yaml: {}]}]}" >m$i.yaml; done
echo 'ccm: {resources: []}' >m12.yaml
muster apply m1.yaml || echo code $?
muster apply m2.yaml
-- want --
manifests are nested more than 10 levels deep
code 1
outcome=stable total=10
=== …allow_apply: false… for a child that has children
muster apply m.yaml || echo code $?
-- m.yaml --
ccm: {resources: [{exec: [{a: {command: echo 1}}]}, {apply: [child.yaml: {allow_apply: false}]}]}
-- child.yaml --
ccm: {resources: [{apply: [other.yaml: {}]}]}
-- other.yaml --
ccm: {resources: []}
-- want --
a manifest that is included with …allow_apply: false… cannot include another
no changes made
code 1
=== A missing or invalid child
muster apply m.yaml || echo code $?
-- m.yaml --
ccm: {resources: [{file: [{"/etc/f": {content: x, owner: root, group: root, mode: "0644"}}]}, {apply: [missing.yaml: {}, invalid.yaml: {}]}]}
-- invalid.yaml --
ccm: {resources: [{exec: [{a: {comand: echo}}]}]}
-- want --
invalid.yaml:1:32: unknown property …comand…
cannot include missing.yaml
no changes made
code 1
=== An override that is a text or a list
muster data resolve m.yaml || echo code $?
-- m.yaml --
data: {a: 1}
overrides: {default: text}
-- want --
must be a mapping, not a string
code 1
=== An expression in …data… names a missing fact, without a default
muster data resolve m.yaml || echo code $?
muster data resolve order.yaml
-- m.yaml --
data: {a: "${ lookup('facts.nosuch') }"}
-- order.yaml --
hierarchy: {order: ["role:${ lookup('facts.nosuch') }", default]}
data: {a: 1}
overrides: {default: {a: 2}}
-- want --
facts.nosuch… is not known
code 1
"a": 2
=== …lookup('data.x', 7)… within …data…
muster data resolve m.yaml || echo code $?
-- m.yaml --
data: {a: "${ lookup('data.x', 7) }"}
-- want --
is not known while the data are resolved
code 1
=== An expression in a key of …data…
muster data resolve m.yaml --fact role=web
-- m.yaml --
data: {"${ Facts.role }": 1}
-- want --
"web": 1
=== …1.0… in …data…
muster data resolve m.yaml --json
-- m.yaml --
data: {version: 1.0}
-- want --
"version": "1.0"
=== …readFile()… in …data…
chmod go-w . m.yaml text
muster data resolve m.yaml
-- m.yaml --
data: {a: "${ readFile('text') }"}
-- text --
hello
-- want --
"a": "hello
=== A misspelled check, …# @requiried…
muster data resolve m.yaml || echo code $?
-- m.yaml --
data:
  # @requiried
  a: 1
-- want --
the comment …@requiried… checks nothing (did you mean …@required…?)
code 1
=== A check in …overrides…
muster data resolve m.yaml || echo code $?
muster data resolve m.yaml --fact role=db
-- m.yaml --
hierarchy: {order: ["role:${ lookup('facts.role', 'web') }"]}
data:
  a: 1
overrides:
  role:web:
    # @validate value > 5
    a: 2
-- want --
m.yaml:7:
code 1
"a": 1
=== …# @validate value > 0… on null, a list or a mapping
muster data resolve m.yaml || echo code $?
muster data resolve skipped.yaml
-- m.yaml --
data:
  # @validate value > 0
  a: null
-- skipped.yaml --
data:
  # @validate isInt(value)
  a: null
-- want --
m.yaml:3:
code 1
"a": null
=== Null, a list or a mapping within a text, …x${ Data.none }y…
muster apply m.yaml || echo code $?
-- m.yaml --
data: {none: null, list: [1], map: {a: 1}}
ccm: {resources: [{exec: [{a: {command: "echo x${ Data.none }y"}}, {b: {command: "echo x${ Data.list }y"}}, {c: {command: "echo x${ Data.map }y"}}]}]}
-- want --
which is not allowed inside a text
which is not allowed inside a text
which is not allowed inside a text
code 1
=== A null value printed by a template
muster apply m.yaml || echo code $?
-- m.yaml --
data: {none: null}
muster: {resources: [{exec: [{a: {command: "${ template('echo {{ .Data.none }}') }"}}]}]}
-- want --
.Data.none… is null
code 1
=== …lookup('data.n', 'd')… where …n… is null
muster apply m.yaml
-- m.yaml --
data: {n: null}
ccm: {resources: [{exec: [{"n ${ lookup('data.n', 'd') }": {command: echo}}]}]}
-- want --
exec#n d changed
=== …lookup('a', 'none')…, without …data.…
muster apply m.yaml || echo code $?
-- m.yaml --
data: {a: 1}
ccm: {resources: [{exec: [{"a ${ lookup('a', 'none') }": {command: echo}}]}]}
-- want --
lookup takes a path under facts., data. or environ., not …a…
code 1
=== …--facts FILE --fact role=web…
muster facts role --facts facts.yaml --fact role=web
-- facts.yaml --
role: db
-- want --
web
=== …Facts.host.info.os…
muster apply m.yaml
-- m.yaml --
ccm: {resources: [{exec: [{"os ${ Facts.host.info.os }": {command: echo}}]}]}
-- want --
exec#os linux changed
=== …refresh_only: true… of an …exec…
muster apply m.yaml
-- m.yaml --
ccm: {resources: [{exec: [{a: {command: "false", refresh_only: true}}]}]}
-- want --
exec#a stable
=== The environment of an …exec…
FROM_MUSTER=inherited muster apply m.yaml
cat out
-- m.yaml --
ccm: {resources: [{exec: [{a: {command: "echo $FROM_MUSTER >out", provider: shell}}]}]}
-- want --
inherited
=== An …exec… without …cwd…
mkdir sub
mv m.yaml sub
muster apply sub/m.yaml
ls
-- m.yaml --
ccm: {resources: [{exec: [{a: {command: touch here}}]}]}
-- want --
here
=== …path… of an …exec…
mkdir bin
mv tool bin
chmod 755 bin/tool
muster apply m.yaml
-- m.yaml --
ccm: {resources: [{exec: [{a: {command: tool, path: "${ Environ.PWD }/bin:/usr/bin:/bin"}}]}]}
-- tool --
#!/bin/sh
exit 0
-- want --
exec#a changed
=== The mode of the files of a scaffold
mkdir templates
mv tool templates
chmod 755 templates templates/tool
muster ensure scaffold "$PWD/out" --source templates
stat -c %a out/tool
-- tool --
x
-- want --
755
=== A scaffold with …engine: go…
mkdir templates
mv app.conf templates
muster apply m.yaml
cat "$PWD/out/app.conf"
-- m.yaml --
data: {name: web, ports: [80, 443]}
ccm: {resources: [{scaffold: [{"${ Environ.PWD }/out": {source: templates, engine: go}}]}]}
-- app.conf --
{{ range .Data.ports }}{{ $.Data.name }}:{{ . }} {{ end }}
-- want --
web:80 web:443
=== The mode of an archive
muster ensure archive "$PWD/b.tar.gz" $URL/a.tar.gz --owner root --group root
stat -c %a b.tar.gz
-- a.tar.gz --
x
-- want --
640
=== …content… of a directory
muster apply m.yaml || echo code $?
-- m.yaml --
ccm: {resources: [{file: [{"/etc/d": {ensure: directory, content: x, owner: root, group: root, mode: "0755"}}]}]}
-- want --
a directory has no …content…
code 1
=== The modes …0o640…, …644…, and …0644… without quotes
muster apply m.yaml
cd etc
stat -c '%n %a' a b c
-- m.yaml --
ccm:
  resources:
    - file:
        - defaults: {content: x, owner: root, group: root}
        - "/etc/a": {mode: "0o640"}
        - "/etc/b": {mode: "644"}
        - "/etc/c": {mode: 0644}
-- want --
a 640
b 644
c 644
=== An absent archive without …url…
touch b.tar.gz
muster ensure archive "$PWD/b.tar.gz" --ensure absent
ls
-- want --
b.tar.gz changed
=== …status TYPE NAME --json…
echo x >f
muster status file "$PWD/f" --json
-- want --
"protocol": "io.choria.ccm.v1.resource.file.state"
"metadata": {
=== The line of a resource with …--noop…
muster ensure --noop exec 'echo 1'
-- want --
exec#echo 1 would change … noop=
=== …ensure api pipe… with an invalid request or a failed resource
echo '{"protocol": "nonsense"}' | muster ensure api pipe || echo code $?
echo '{"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": "exec", "properties": {"name": "false"}}' | muster ensure api pipe || echo code $?
-- want --
"error": 
code 1
"failed": true
code 1
=== …ensure api pipe… with an unknown property or field
echo '{"protocol": "io.choria.ccm.v1.resource.ensure.request", "type": "exec", "properties": {"name": "true", "comand": "x"}}' | muster ensure api pipe || echo code $?
echo '{"protocol": "io.choria.ccm.v1.resource.ensure.request", "typ": "exec", "properties": {"name": "true"}}' | muster ensure api pipe || echo code $?
-- want --
unknown property …comand…
code 1
unknown key …typ…
code 1
`
