package resources_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/exec"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/manifest"
)

// hostile are values that break a command line when they are split with it, or
// that a shell would run.
var hostile = []string{
	"ann", "a b\tc", "x --force", "", " ", "a\nb\n", "it's", `say "hi`, `" --force "`, `\`, "$(id)`id`", `'; rm -rf "$HOME"`,
	"${ Data.other } {{ 1 + 1 }}", "# x", "* ?", "~", "é\u00a0x", "|", "&& id",
}

// show is a program that writes its arguments, each in brackets.
const show = `
-- show --
printf '[%s]' "$@" > $DIR/seen
-- from/f --
x
-- root.yaml --
data: {v: [], other: o}
`

// ways are those to write a value into a command line, with the argument that each
// of them makes of a value v.
var ways = [][2]string{{"%", "v"}, {"a%b", "avb"}, {`"% y"`, "v y"}, {"--f=%", "--f=v"}, {"'%'", "v"}, {"%%", "vv"}, {`\%"%"`, "vv"}}

// everyWay returns a command line with all values in all forms, and its expected arguments.
func everyWay(expression string, values ...string) (line, seen string) {
	line = "sh $DIR/show"
	for i, value := range values {
		for _, way := range ways {
			line += " " + strings.ReplaceAll(way[0], "%", fmt.Sprintf(expression, i))
			seen += "[" + strings.ReplaceAll(way[1], "v", value) + "]"
		}
	}

	return line, seen
}

// path matches what replaces {}.
var path = regexp.MustCompile(`\[[^]]*/[^]]*\]$`)

// TestValuesStayOneArgument has values in every place where a command line is
// split: each is part of the one argument that it is written in.
func TestValuesStayOneArgument(t *testing.T) {
	line, seen := everyWay("${ Data.v[%d] }", hostile...)
	for place, m := range map[string]string{
		"command":        "{exec: [x: {command: LINE}]}",
		"posix":          "{exec: [x: {provider: posix, command: LINE}]}",
		"braces":         "{exec: [x: {command: " + strings.NewReplacer("${", "{{", " }", " }}").Replace(strconv.Quote(line)) + "}]}",
		"the name":       "{exec: {name: LINE}}",
		"a default":      "{exec: [{defaults: {command: LINE}}, x: {}]}",
		"a refresh":      "{exec: [y: {command: 'true'}]}, {exec: [x: {refreshonly: true, command: LINE, subscribe: [exec#y]}]}",
		"onlyif":         "{exec: [x: {command: 'true', onlyif: LINE}]}",
		"unless":         "{exec: [x: {command: 'true', unless: LINE}]}",
		"a health check": "{exec: [x: {command: 'true', health_checks: [{command: LINE}]}]}",
		"of a shell":     "{exec: [x: {command: 'true', provider: shell, health_checks: [{command: LINE}]}]}",
		"of a file":      "{file: [$DIR/f: {content: x, validate: PATH}]}",
		"of a scaffold":  "{scaffold: [$DIR/out: { source: $DIR/from, validate: PATH}]}",
		"post":           "{scaffold: [$DIR/out: { source: $DIR/from, post: [{'*': PATH}]}]}",
		"a late one":     "{exec: [y: {command: 'true'}]}, {exec: [x: {cwd: \"${ outputs('exec#y').exit_code == 0 ? '/' : '' }\", command: LINE}]}",
	} {
		t.Run(place, func(t *testing.T) {
			m = strings.NewReplacer("LINE", strconv.Quote(line), "PATH", strconv.Quote(line+" {}")).Replace(m)
			w := newWorld(t, show+"muster: {resources: ["+m+"]}\n")
			w.in.Data = map[string]any{"v": hostile}
			w.opts.Checker = engine.NewChecker(w.host)
			w.run()
			got := w.read("seen")
			if strings.Contains(m, "{}") {
				got = path.ReplaceAllString(got, "")
			}
			if got != seen {
				t.Errorf("got  %q\nwant %q\nlog\n%s", got, seen, w.log.String())
			}
		})
	}
}

// TestLateValuesStayOneArgument uses values that are known only during the run.
func TestLateValuesStayOneArgument(t *testing.T) {
	const value = "a b 'c \"d \\e $(id) `id`\n;"
	line, seen := everyWay("${ outputs('exec#y').stdout ?? '%d' }", value)
	w := newWorld(t, show+"muster: {resources: [{exec: [y: {argv: [printf, '%s', \"${ Data.v[0] }\"]}]}, {exec: [x: {command: "+strconv.Quote(line)+"}]}]}\n")
	w.in.Data = map[string]any{"v": []string{value}}
	w.wants(w.run(), "exec#y changed", "exec#x changed")
	if got := w.read("seen"); got != seen {
		t.Errorf("got  %q\nwant %q", got, seen)
	}
}

// TestJetFileValuesStayOneArgument uses values of a template. It prints nothing for an empty value, which is
// an argument only in quotes.
func TestJetFileValuesStayOneArgument(t *testing.T) {
	values := slices.DeleteFunc(slices.Clone(hostile), func(v string) bool { return v == "" })
	line, seen := everyWay("[[ Data.v[%d] ]]", values...)
	w := newWorld(t, strings.Replace(show, "-- root.yaml --", "-- list.jet --\n- exec: [x: {command: '"+strings.ReplaceAll(line, "'", "''")+" \"[[ Data.empty ]]\"'}]\n-- root.yaml --", 1)+"muster: {resources_jet_file: list.jet}\n")
	w.in.Data = map[string]any{"v": values, "empty": ""}
	w.wants(w.run(), "exec#x changed")
	if got := w.read("seen"); got != seen+"[]" {
		t.Errorf("got  %q\nwant %q", got, seen+"[]")
	}
}

// TestArgv has arguments that are taken as they are.
func TestArgv(t *testing.T) {
	w := newWorld(t, show+"muster: {resources: [{exec: [say it: {argv: [sh, $DIR/show, \"a${ Data.v[2] }b\", \"${ Data.v[3] }\", it's, $HOME, 1, yes, \"${ Data.n }\"]}]}]}\n")
	w.in.Data = map[string]any{"v": hostile, "n": 0.5}
	w.wants(w.run(), "exec#say it changed")
	if got := w.read("seen"); got != "[ax --forceb][][it's][$HOME][1][yes][0.5]" {
		t.Errorf("got %q", got)
	}
	w = newWorld(t, show+"muster: {resources: [{exec: [all: {argv: \"${ concat(['sh', '$DIR/show'], Data.v) }\"}]}]}\n")
	w.in.Data = map[string]any{"v": hostile}
	w.wants(w.run(), "exec#all changed")
	if got := w.read("seen"); got != "["+strings.Join(hostile, "][")+"]" {
		t.Errorf("got %q", got)
	}
}

// TestCommandsOfAShell: inserted text is shell code.
func TestCommandsOfAShell(t *testing.T) {
	w := newWorld(t, show+"muster: {resources: [{exec: [x: {provider: shell, onlyif: \"test ${ Data.v }\", command: \"sh $DIR/show ${ Data.v }\"}]}]}\n")
	w.in.Data = map[string]any{"v": "a = a && true"}
	w.wants(w.run(), "exec#x changed")
	if got := w.read("seen"); got != "[a][=][a]" {
		t.Errorf("got %q", got)
	}
}

// TestCommandsThatAreNotValid has a row for each problem of a command with values.
func TestCommandsThatAreNotValid(t *testing.T) {
	for name, c := range map[string]struct{ properties, problem string }{
		"NUL":                      {`command: "echo ${ Data.nul }"`, "root.yaml:2:43: command must not contain a NUL byte"},
		"NUL of argv":              {`argv: [echo, "${ Data.nul }"]`, "root.yaml:2:47: an item of argv must not contain a NUL byte"},
		"a quote of its own":       {`command: "echo \"${ Data.quote }"`, "root.yaml:2:43: command cannot be split into words: Unterminated double-quoted string (close the quote, or set provider: shell)"},
		"no program":               {`command: "${ Data.empty } x"`, "root.yaml:2:43: command names no program (write the program first)"},
		"no guard":                 {`onlyif: "${ Data.empty } x"`, "root.yaml:2:42: onlyif names no program (write the program first)"},
		"no argv":                  {`argv: []`, "root.yaml:2:40: argv names no program (write the program first)"},
		"an empty argv":            {`argv: ["${ Data.empty }", x]`, "root.yaml:2:40: argv names no program (write the program first)"},
		"both":                     {`command: a, argv: [a]`, "root.yaml:2:52: argv and command are both set (keep one of them)"},
		"argv of a shell":          {`provider: shell, argv: [a]`, "root.yaml:2:57: a shell takes no argv (leave out provider: shell, or write a command)"},
		"a list in a command":      {`command: "echo ${ Data.list }"`, "root.yaml:2:49: the expression gives a list, which is not allowed inside a text (use join() or toJSON(), or argv for the arguments of an exec)"},
		"a list as a command":      {`command: "${ Data.list }"`, "root.yaml:2:43: `command` must be a string, not a list (write a list as `argv`)"},
		"a list in an argument":    {`argv: [echo, "a${ Data.list }"]`, "root.yaml:2:49: the expression gives a list, which is not allowed inside a text (use join() or toJSON(), or argv for the arguments of an exec)"},
		"a list as an argument":    {`argv: [echo, "${ Data.list }"]`, "root.yaml:2:47: an item of `argv` is a list (make one list, in an expression with concat())"},
		"nothing as an argument":   {`argv: [echo, "${ Data.none }"]`, "root.yaml:2:47: `argv` must be a list without empty items, not nothing"},
		"a mapping as an argument": {`argv: [echo, {a: b}]`, "root.yaml:2:47: `argv.1` must be a string, not a mapping"},
		"a mapping as environment": {`environment: {A: b}`, "root.yaml:2:47: `environment` must be a list, not a mapping (write it as a list: [\"A=VALUE\"])"},
		"a text as argv":           {`argv: echo a`, "root.yaml:2:40: `argv` must be a list, not a string (write it as a list: [echo a])"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "-- root.yaml --\ndata: {nul: , quote: , empty: '', list: [a, b]}\nmuster: {resources: [{exec: [x: {"+c.properties+"}]}]}\n")
			w.in.Data = map[string]any{"nul": "a\x00b", "quote": `a" b`, "none": nil}
			if got := w.problems(); len(got) != 1 || got[0] != c.problem {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), c.problem)
			}
		})
	}
}

// TestWarningsOfArguments names each value that would be split if it were written
// in its place.
func TestWarningsOfArguments(t *testing.T) {
	const one = "a value in this command has blanks or quotes, or is empty; it stays one argument"
	inArgv, quoted := one+" (list the arguments in `argv`, or quote the value)", one+" (quote the value, or use one expression per argument)"
	for properties, want := range map[string]string{
		`x: {creates: /x, command: "a ${ Data.two }"}`:                                                    "root.yaml:2:56: " + inArgv,
		`x: {creates: /x, command: "${ Data.two }"}`:                                                      "root.yaml:2:56: " + inArgv,
		`x: {creates: /x, command: "a ${ Data.empty }"}`:                                                  "root.yaml:2:56: " + inArgv,
		`x: {creates: /x, command: "a b${ Data.quote }"}`:                                                 "root.yaml:2:56: " + inArgv,
		`x: {creates: /x, command: "a \"${ Data.quote }\""}`:                                              "root.yaml:2:56: " + inArgv,
		`"x ${ Data.two }": {creates: /x}`:                                                                "root.yaml:2:30: " + inArgv,
		`x: {onlyif: "a ${ Data.two }"}`:                                                                  "root.yaml:2:42: " + quoted,
		`x: {creates: /x, health_checks: [{command: "a ${ Data.two }"}]}`:                                 "root.yaml:2:73: " + quoted,
		`x: {creates: /x, command: "a ${ Data.pw }"}`:                                                     "root.yaml:2:56: " + inArgv,
		`x: {creates: /x, command: "a \"${ Data.two }\" '${ Data.two }' ${ Data.one } a${ Data.empty }"}`: "",
		`x: {creates: /x, argv: [a, "${ Data.two }"]}`:                                                    "",
		`x: {creates: /x, provider: shell, command: "a ${ Data.two }"}`:                                   "",
		`x: {creates: /x, command: "a ${ Data.two }", control: {if: "false"}}`:                            "",
		`"x ${ Data.two }": {creates: /x, argv: [a]}`:                                                     "",
		`"x ${ Data.two }": {creates: /x, command: a}`:                                                    "",
		`"x ${ Data.two }": {creates: /x, provider: shell}`:                                               "",
	} {
		w := newWorld(t, "-- root.yaml --\ndata: {two: a b, one: a, empty: '', quote: '\"', pw: \"${ secret('a b') }\"}\nmuster: {resources: [{exec: ["+properties+"]}]}\n")
		resolved, err := w.resolve()
		if err != nil {
			t.Fatal(properties, err)
		}
		if got := w.short(resolved.Warnings.Error()); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", properties, got, want)
		}
		checked, _, err := w.check(w.dir)
		if err != nil || w.short(checked.Warnings.Error()) != want {
			t.Errorf("%s, pushed: %v, %v", properties, checked, err)
		}
	}
}

// TestWarningsOfShellSyntax names what only a shell acts on where none runs.
func TestWarningsOfShellSyntax(t *testing.T) {
	const passed = "` is passed to the program as an argument: no shell runs this command "
	provider, sh := passed+"(set `provider: shell`, or put it in single quotes)", passed+"(run it with `sh -c`, or put it in single quotes)"
	for resource, want := range map[string]string{
		`exec: [x: {creates: /x, command: ls | wc}]`:                                  "root.yaml:2:56: `|" + provider,
		`exec: [x: {creates: /x, command: "echo ${ Data.two } > x"}]`:                 "root.yaml:2:56: `>" + provider,
		`exec: [{defaults: {command: "a && b"}}, x: {creates: /x}]`:                   "root.yaml:2:51: `&&" + provider,
		`exec: [x: {onlyif: test $HOME = /}]`:                                         "root.yaml:2:42: `$HOME" + provider,
		`exec: [x: {unless: a 2>&1}]`:                                                 "root.yaml:2:42: `2>&1" + provider,
		`exec: [a ; b: {creates: /x}]`:                                                "root.yaml:2:30: `;" + provider,
		`exec: [x: {creates: /x, health_checks: [{command: a | b}]}]`:                 "root.yaml:2:73: `|" + sh,
		`exec: [x: {creates: /x, provider: shell, health_checks: [{command: $A}]}]`:   "root.yaml:2:90: `$A" + sh,
		`file: [{defaults: {validate: "a {} >/dev/null"}}, /x: {content: $HOME | a}]`: "root.yaml:2:52: `>/dev/null" + sh,
		`exec: [x: {creates: /x, command: rm -f /x/*.log}]`:                           "root.yaml:2:56: `*" + provider,
		`exec: [x: {creates: /x, command: "mkdir -p /x/{a,b}"}]`:                      "root.yaml:2:56: `{a,b}" + provider,
		`exec: [x: {unless: test -e ~/x}]`:                                            "root.yaml:2:42: `~/" + provider,
		`exec: [x: {creates: /x, provider: shell, command: "a | b"}]`:                 "",
		`exec: [x: {creates: /x, argv: [a, "|", $HOME]}]`:                             "",
		`exec: [a | b: {creates: /x, argv: [a]}]`:                                     "",
		`exec: [a | b: {creates: /x, command: a}]`:                                    "",
		`exec: [a | b: {creates: /x, provider: shell}]`:                               "",
		`exec: [x: {creates: /x, command: "a '|' '$HOME'"}]`:                          "",
		`exec: [x: {creates: /x, command: "a '${ Data.two }' ${ Data.pipe }"}]`:       "",
		`exec: [x: {creates: /x, command: "rm ${ Data.glob } ${ Data.home }"}]`:       "",
		`exec: [x: {creates: /x, command: a | b, control: {if: "false"}}]`:            "",
	} {
		w := newWorld(t, "-- root.yaml --\ndata: {two: a, pipe: '|', glob: '*', home: '~/x'}\nmuster: {resources: [{"+resource+"}]}\n")
		resolved, err := w.resolve()
		if err != nil {
			t.Fatal(resource, err)
		}
		if got := w.short(resolved.Warnings.Error()); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", resource, got, want)
		}
	}
}

// TestWarningsOfTemplateNumbers prints an index in place of an account.
func TestWarningsOfTemplateNumbers(t *testing.T) {
	const warning = " is a number that a template printed (in Jet, `range x := list` sets x to the index; write `range _, x := list`)"
	for files, want := range map[string]string{
		"-- root.yaml --\ndata: {l: [root]}\nmuster: {resources_jet_file: l.jet}\n-- l.jet --\n- file:\n[[ range x := Data.l ]]\n    - /x: {ensure: present, content: a, owner: root, group: [[ x ]], mode: 644}\n[[ end ]]\n":    "l.jet (rendered):3:61: the group 0" + warning,
		"-- root.yaml --\ndata: {l: [root]}\nmuster: {resources_jet_file: l.jet}\n-- l.jet --\n- file:\n[[ range _, x := Data.l ]]\n    - /x: {ensure: present, content: a, owner: root, group: [[ x ]], mode: 644}\n[[ end ]]\n": "",
		"-- root.yaml --\ndata: {l: [root]}\nmuster: {resources: [{file: [/x: {ensure: present, content: a, owner: \"${ jet('[[ range x := Data.l ]][[ x ]][[ end ]]') }\", group: root, mode: 644}]}]}\n":                        "root.yaml:2:71: the owner 0" + warning,
		"-- root.yaml --\ndata: {l: [root]}\nmuster: {resources: [{file: [/x: {ensure: present, content: a, owner: 0, group: \"${ len(Data.l) }\", mode: 644}]}]}\n":                                                              "",
	} {
		w := newWorld(t, files)
		resolved, err := w.resolve()
		if err != nil {
			t.Fatal(files, err)
		}
		if got := w.short(resolved.Warnings.Error()); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", files, got, want)
		}
	}
}

// TestRenderedArguments renders lines that mean the same when they are read again.
func TestRenderedArguments(t *testing.T) {
	line, seen := everyWay("${ Data.v[%d] }", hostile...)
	w := newWorld(t, show+"muster: {resources: [{exec: {name: "+strconv.Quote(line)+", onlyif: "+strconv.Quote(line)+"}}]}\n")
	w.in.Data = map[string]any{"v": hostile}
	resolved, err := w.resolve()
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := resolved.Render()
	if err != nil {
		t.Fatal(err)
	}
	w.write("root.yaml", string(rendered))
	w.in.Data = nil
	w.run()
	if got := w.read("seen"); got != seen {
		t.Errorf("got  %q\nwant %q\nof\n%s", got, seen, rendered)
	}
}

// TestSecretArguments shows no secret that is an argument, or part of one.
func TestSecretArguments(t *testing.T) {
	for _, properties := range []string{`argv: [sh, -c, 'echo "$1" >&2; exit 1', sh, "${ Data.pw }"]`, `argv: [sh, -c, 'echo "$1" >&2; exit 1', sh, "p=${ Data.pw };"]`, `command: "sh -c 'echo $1 >&2; exit 1' sh p=${ Data.pw }"`, `argv: ["/none/${ Data.pw }"]`, `command: "/none/${ Data.pw }"`} {
		w := newWorld(t, "-- root.yaml --\ndata: {pw: \"${ secret('hunter 22\\\"x') }\"}\nmuster: {resources: [{exec: [x: {"+properties+"}]}]}\n")
		w.wants(w.run(), "exec#x failed")
		if said := fmt.Sprintf("%+v %s", w.txs["exec#x"], w.log.String()); strings.Contains(said, "hunter") || !strings.Contains(said, model.Redacted) {
			t.Errorf("%s: %s", properties, said)
		}
	}
}

// TestIdenticalArguments declares a resource in two documents: an inserted value is identical to the same
// literal.
func TestIdenticalArguments(t *testing.T) {
	w := newWorld(t, "-- root.yaml --\ndata: {name: x}\nmuster: {resources: [{apply: [a.yaml: {}]}, {exec: [t: {command: \"true ${ Data.name }\"}]}]}\n-- a.yaml --\nmuster: {resources: [{exec: [t: {command: true x}]}]}\n")
	w.wants(w.run(), "exec#t changed", "apply#a.yaml changed")
}

// FuzzArguments has any value in any command of a manifest: how many arguments it
// has depends on its text alone.
func FuzzArguments(f *testing.F) {
	for _, line := range []string{"a %", "%", "a%b", `a "% y" '%'`, `a \%`, "a\\\n%", `"%`, "''%", "% %"} {
		for _, value := range append(hostile, "a\x00b", "\xff '") {
			f.Add(line, value)
		}
	}
	loader := manifest.NewLoader(manifest.Options{Types: resources.All()})
	f.Fuzz(func(t *testing.T, line, value string) {
		if !utf8.ValidString(line) || strings.ContainsAny(line, "{}\x00") || strings.Contains(line, "$%") {
			return
		}
		doc := func(inserted string) string {
			text, err := json.Marshal(strings.ReplaceAll(line, "%", inserted))
			if err != nil {
				t.Fatal(err)
			}
			return `{"data": {"x": ""}, "muster": {"resources": [{"exec": {"name": "x", "command": ` + string(text) + `}}]}}`
		}
		words := func(text string) ([]string, error) {
			parsed, err := manifest.Parse("m.json", []byte(text))
			if err != nil {
				return nil, err
			}
			resolved, err := loader.Resolve(t.Context(), parsed, manifest.Inputs{Data: map[string]any{"x": value}})
			if err != nil {
				return nil, err
			}
			return command.Split(resolved.Resources[0].Spec.(*exec.Spec).Command)
		}
		got, err := words(doc("${ Data.x }"))
		plain, plainErr := words(doc("v"))
		switch {
		case strings.Contains(line, "%") && strings.Contains(value, "\x00"):
			if err == nil {
				t.Fatalf("%q with %q: NUL is accepted", line, value)
			}
		case err == nil && len(got) != len(plain), err == nil && plainErr != nil:
			t.Fatalf("%q with %q is %q, %v; with v %q, %v", line, value, got, err, plain, plainErr)
		case err != nil && plainErr == nil && value != "":
			t.Fatalf("%q with %q: %v", line, value, err)
		}
	})
}
