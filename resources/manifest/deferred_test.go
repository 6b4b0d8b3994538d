package manifest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/resource"
)

// TestOutputs resolves properties that use outputs.
func TestOutputs(t *testing.T) {
	r := resolved(t, `
data: {prefix: p}
muster:
  resources:
    - file:
        - /motd:
            mode: 0644
            require: [package#x]
            content: "${ Data.prefix } ${ outputs('exec#up').stdout } ${ outputs('exec#uptime').code }"
            args: "${ outputs('exec#uptime').list }"
    - exec:
        - uptime: {alias: up}
    - package: [x: ]
`, manifest.Inputs{})
	res := r.Resources[0]
	if res.ResolveDeferred == nil || r.Resources[1].ResolveDeferred != nil {
		t.Fatal("the wrong one is late")
	}
	if got := res.Meta().Require; len(got) != 3 || got[0].String() != "package#x" || got[1].String() != "exec#up" || got[2].String() != "exec#uptime" {
		t.Errorf("requires %v", got)
	}
	uptime := model.Ref{Type: "exec", Name: "uptime"}
	spec, secrets, err := res.ResolveDeferred(t.Context(), resource.Outputs{uptime: {"stdout": "3 days", "code": 0, "list": []string{"a", "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	got := spec.(*thingSpec)
	if got.Content != "p 3 days 0" || strings.Join(got.Args, ",") != "a,b" || got.Mode != "0644" || len(secrets) != 0 || len(got.Require) != 3 {
		t.Errorf("got %+v, %d secrets", got, len(secrets))
	}
	// Resolving again, now with a secret, returns the new value.
	spec, secrets, err = res.ResolveDeferred(t.Context(), resource.Outputs{uptime: {"stdout": model.NewSecret("hunter2"), "code": 1, "list": nil}})
	if err != nil {
		t.Fatal(err)
	}
	if got := spec.(*thingSpec); got.Content != "p hunter2 1" || len(secrets) != 2 || secrets[0].Reveal() != "p hunter2 1" || secrets[1].Reveal() != "hunter2" {
		t.Errorf("got %+v, %d secrets", got, len(secrets))
	}
}

// TestOutputProblemsAtItsTurn checks problems that occur only during a run.
func TestOutputProblemsAtItsTurn(t *testing.T) {
	uptime := model.Ref{Type: "exec", Name: "uptime"}
	for name, tc := range map[string]struct {
		property string
		outputs  resource.Outputs
		want     string
	}{
		"no outputs":    {"content", nil, "m.yaml:5:32: the expression fails: exec#uptime gave no outputs in this run"},
		"nothing there": {"content", resource.Outputs{uptime: {}}, ""},
		"wrong value":   {"mode", resource.Outputs{uptime: {"stdout": "rw"}}, "m.yaml:5:28: invalid mode \"rw\" (four octal digits)"},
		"wrong type":    {"count", resource.Outputs{uptime: {"stdout": "many"}}, "m.yaml:5:29: `count` must be a whole number, not \"many\""},
		"secret":        {"count", resource.Outputs{uptime: {"stdout": model.NewSecret("hunter2")}}, "m.yaml:5:29: `count` must be a whole number, not \"[redacted]\""},
	} {
		t.Run(name, func(t *testing.T) {
			r := resolved(t, "muster:\n  resources:\n    - exec: [uptime: ]\n    - file:\n        - /motd: {"+tc.property+":    \"${ outputs('exec#uptime').stdout }\"}\n", manifest.Inputs{})
			_, _, err := r.Resources[1].ResolveDeferred(t.Context(), tc.outputs)
			got := ""
			if err != nil {
				got = strings.ReplaceAll(err.Error(), "   ", "")
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestOutputProblems checks the problems of outputs before a run.
func TestOutputProblems(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"unknown":        {`content: "${ outputs('exec#uptim').stdout }"`, "m.yaml:5:33: `outputs` names exec#uptim, which is not declared (did you mean `exec#uptime`?)"},
		"unknown inside": {`content: "a ${ outputs('exec#uptim').stdout }"`, "m.yaml:5:35: `outputs` names exec#uptim, which is not declared (did you mean `exec#uptime`?)"},
		"no reference":   {`content: "${ outputs('uptime') }"`, "m.yaml:5:33: the expression is not valid: invalid resource reference: \"uptime\", write it as type#name, for example file#/etc/motd"},
		"not literal":    {`content: "${ outputs('exec#' + 'x') + outputs(Facts.os) }"`, "m.yaml:5:33: the expression is not valid: `outputs` needs its reference as literal text (for example outputs('exec#/usr/bin/uptime'))"},
		"itself":         {`content: "${ outputs('file#/motd').x }"`, lines("m.yaml:5:33: a file gives no outputs", "m.yaml:5:33: file#/motd waits for itself by `outputs` (remove the reference)")},
		"by its alias":   {`alias: me, content: "${ outputs('file#me').x }"`, lines("m.yaml:5:44: a file gives no outputs", "m.yaml:5:44: file#/motd waits for itself by `outputs` (remove the reference)")},
		"no outputs":     {`content: "${ outputs('file#/other').x }"`, "m.yaml:5:33: a file gives no outputs"},
		"no such field":  {`content: "a ${ outputs('exec#uptime').stdut }"`, "m.yaml:5:35: `stdut` is no output of exec#uptime (did you mean `stdout`?)"},
		"far from any":   {`content: "${ outputs('exec#uptime')['version'] }"`, "m.yaml:5:33: `version` is no output of exec#uptime (it has stdout, list, code)"},
		"by a default":   {`content: "${ outputs('exec#uptime')?.stdut ?? 'none' }"`, "m.yaml:5:33: `stdut` is no output of exec#uptime (did you mean `stdout`?)"},
		"of a variable":  {`content: "${ let up = outputs('exec#uptime'); up.stdut }"`, "m.yaml:5:33: `stdut` is no output of exec#uptime (did you mean `stdout`?)"},
		"one of two":     {`content: "${ outputs('exec#uptime').stdout + outputs('exec#uptime').cod }"`, "m.yaml:5:33: `cod` is no output of exec#uptime (did you mean `code`?)"},
		"with a file":    {`content: "${ outputs('exec#uptime').stdut + readFile('/other') }"`, "m.yaml:5:33: `stdut` is no output of exec#uptime (did you mean `stdout`?)"},
		"unknown both":   {`content: "${ outputs('exec#uptim').stdut }"`, lines("m.yaml:5:33: `stdut` is no output of exec#uptim (did you mean `stdout`?)", "m.yaml:5:33: `outputs` names exec#uptim, which is not declared (did you mean `exec#uptime`?)")},
		"common":         {`ensure: "${ outputs('exec#uptime').stdout }"`, "m.yaml:5:31: `ensure` must be known before the run (use outputs in the type's own properties)"},
	} {
		t.Run(name, func(t *testing.T) {
			in := "muster:\n  resources:\n    - exec: [uptime: ]\n    - file:\n        - /motd: {    " + tc.in + "}\n        - /other:\n"
			if got := outcome(t, in, options(), manifest.Inputs{}); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestReadFileThatIsMissingAtItsTurn checks that the error names a provider, unless there are other
// problems.
func TestReadFileThatIsMissingAtItsTurn(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		property string
		needs    []string
	}{
		"a file":           {`content: "${ outputs('exec#x').stdout + readFile('a/b/c') }"`, []string{"path:" + dir + "/a/b/c", "path:" + dir + "/a/b", "path:" + dir + "/a"}},
		"more than that":   {`content: "${ outputs('exec#x').stdout + readFile('a') }", mode: "${ outputs('exec#x').list.y.z }"`, nil},
		"something else":   {`content: "${ outputs('exec#x').list.y.z }"`, nil},
		"a wrong value":    {`mode: "${ outputs('exec#x').stdout }"`, nil},
		"two of them":      {`content: "${ outputs('exec#x').stdout + readFile('a') }", owner: "${ outputs('exec#x').stdout + readFile('b') }"`, []string{"path:" + dir + "/a"}},
		"of secret values": {`content: "${ secret(outputs('exec#x').stdout) + readFile('a') }"`, []string{"path:" + dir + "/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := resolved(t, "muster:\n  resources:\n    - exec: [x: ]\n    - file: [/f: {"+tc.property+"}]\n", manifest.Inputs{Dir: dir})
			_, _, err := r.Resources[1].ResolveDeferred(t.Context(), resource.Outputs{{Type: "exec", Name: "x"}: {"stdout": "x", "list": 1}})
			if got := resource.Prerequisites(err); err == nil || !slices.Equal(got, tc.needs) {
				t.Errorf("%v: needs %v, want %v", err, got, tc.needs)
			}
		})
	}
}

// TestReadFileOfAnother waits for the resource that creates the file.
func TestReadFileOfAnother(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "made")
	in := `
muster:
  resources:
    - file:
        - ` + path + `: {content: new}
        - /copy: {content: "${ readFile('made') }"}
        - /next: {content: "${ readFile('later') }"}
        - ` + dir + `/later:
`
	if err := os.WriteFile(filepath.Join(dir, "later"), []byte("now"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := resolved(t, in, manifest.Inputs{Dir: dir})
	if got := r.Resources[2]; got.ResolveDeferred != nil || got.Spec.(*thingSpec).Content != "now" {
		t.Errorf("got %+v", got.Spec)
	}
	res := r.Resources[1]
	if res.ResolveDeferred == nil || len(res.Meta().Require) != 1 || res.Meta().Require[0].Name != path || r.Static {
		t.Fatalf("got %+v", res)
	}
	_, _, err := res.ResolveDeferred(t.Context(), nil)
	if err == nil || !strings.HasPrefix(err.Error(), "m.yaml:6:29: the expression fails: open "+path) || !slices.Equal(resource.Prerequisites(err), []string{"path:" + path}) {
		t.Errorf("got %v, needs %v", err, resource.Prerequisites(err))
	}
	for _, text := range []string{"one", "two"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		spec, _, err := res.ResolveDeferred(t.Context(), resource.Outputs{})
		if err != nil || spec.(*thingSpec).Content != text {
			t.Errorf("got %+v, %v", spec, err)
		}
	}
}
