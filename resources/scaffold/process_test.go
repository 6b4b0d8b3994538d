package scaffold_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/racing"
)

// asked is a manifest with the functions of a test.
type asked map[string]any

func (a asked) Names(_ context.Context, facts model.Facts, _ map[string]any) (map[string]any, resource.Secrets) {
	out := map[string]any{"Facts": map[string]any(facts), "Data": map[string]any{}, "Environ": map[string]any{"STAGE": "prod"}}
	for name, fn := range a {
		out[name] = fn
	}

	return out, resource.Secrets{}
}

func (asked) Tree(context.Context, string) (string, func() error, error) {
	return "", nil, os.ErrNotExist
}

// failsWith looks at a scaffold of templates, and gives the error.
func (s *subject) failsWith() error {
	s.t.Helper()
	_, err := s.typ.Status(s.t.Context(), s.env, scaffold.Choria{}, s.spec)
	if err == nil {
		s.t.Fatal("no error")
	}
	if left := renderedIn(s.t); len(left) > 0 {
		s.t.Error("it left", left)
	}

	return err
}

// Nothing that templates do ends more than their own rendering.
func TestHostileTemplates(t *testing.T) {
	const endless = "f: the templates render one another without end, or nest too deep"
	const memory = "f: the templates need more than 1024 MiB of memory"
	const included = "f:1: template /f could not be found"
	deep := strings.Repeat("(", 1_000_000)
	for name, tc := range map[string]struct {
		engine string
		files  []string
		want   string
	}{
		"jet, renders itself":            {"jet", []string{"src/f", `[[ render("f", .) ]]`}, endless},
		"jet, tries to":                  {"jet", []string{"src/f", `[[ try ]][[ render("f", .) ]][[ end ]]`}, endless},
		"jet, render one another":        {"jet", []string{"src/f", `[[ render("d/_partials/p", .) ]]`, "src/d/_partials/p", `[[ render("f", .) ]]`}, endless},
		"jet, includes itself":           {"jet", []string{"src/f", `[[ include "f" ]]`}, included},
		"jet, yields itself":             {"jet", []string{"src/f", "[[ block a() ]][[ yield a() ]][[ end ]]"}, endless},
		"jet, yields its content":        {"jet", []string{"src/f", "[[ block a() ]][[ yield a() content ]][[ yield a() ]][[ end ]][[ end ]]"}, endless},
		"jet, extends itself":            {"jet", []string{"src/f", `[[ extends "f" ]]`}, included},
		"jet, parentheses":               {"jet", []string{"src/f", "[[ " + deep}, endless},
		"jet, a mapping in itself":       {"jet", []string{"src/f", `[[ m := map("a", 1) ]][[ m.a = m ]][[ m ]]`}, endless},
		"jet, given a mapping in itself": {"jet", []string{"src/f", `[[ m := map("a", 1) ]][[ m.a = m ]][[ lookup(m) ]]`}, endless},
		"jet, doubles a text":            {"jet", []string{"src/f", `[[ x := "x" ]][[ range ints(0, 60) ]][[ x = x + x ]][[ end ]]`}, memory},
		"jet, writes too much":           {"jet", []string{"src/f", `[[ x := repeat("x", 9000000) ]][[ range i := ints(0, 20) ]][[ try ]][[ write("w" + i, x) ]][[ end ]][[ end ]]`}, "f: the templates yield more than 134217728 bytes in all files"},
		"go, renders itself":             {"go", []string{"src/f", `{{ render "f" . }}`}, endless},
		"go, render one another":         {"go", []string{"src/f", `{{ render "_partials/p" . }}`, "src/_partials/p", `{{ render "f" . }}`}, endless},
		"go, calls itself":               {"go", []string{"src/f", `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`}, endless},
		"go, calls itself, in block":     {"go", []string{"src/f", `{{ block "a" . }}{{ range list 1 }}{{ template "a" . }}{{ end }}{{ end }}`}, endless},
		"go, doubles a text":             {"go", []string{"src/f", `{{ $x := "x" }}{{ range until 60 }}{{ $x = print $x $x }}{{ end }}`}, memory},
		"go, far too much":               {"go", []string{"src/f", `{{ repeat 2000000000 "x" }}`}, "f:1: <repeat 2000000000 \"x\">: error calling repeat: it would make more than is allowed"},
		"the second":                     {"go", []string{"src/a", "x", "src/b/f", `{{ render "b/f" . }}`}, "b/" + endless},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, put(tc.files...), "engine", tc.engine)
			s.env.Scope.Origin = asked{"lookup": func(v any) any { return v }}
			err := s.failsWith()
			// Where there is less memory, as with the race detector, that ends first.
			if scarce := strings.Replace(tc.want, endless, memory, 1); !strings.HasPrefix(err.Error(), tc.want) && !strings.HasPrefix(err.Error(), scarce) {
				t.Errorf("got  %.300s\nwant %s", err, tc.want)
			}
		})
	}
}

// What does not end is ended by the timeout of the resource, or with the run.
func TestRenderingEnds(t *testing.T) {
	for engine, text := range map[string]string{
		"jet": "[[ range ints(0, 1000000000000) ]][[ try ]][[ 1 ]][[ end ]][[ end ]]",
		"go":  "{{ range until 1000000 }}{{ range until 1000000 }}{{ end }}{{ end }}",
	} {
		s := newSubject(t, put("src/a", "", "src/f", text), "engine", engine, "timeout", "1s")
		if err := s.failsWith(); err.Error() != "f: the templates took longer than 1s" {
			t.Error(engine, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		cancel(enough)
		if _, err := s.typ.Status(ctx, s.env, scaffold.Choria{}, s.spec); !errors.Is(err, enough) {
			t.Error(engine, err)
		}
	}
}

// children are the processes that this one has started.
func children(t *testing.T) (pids []int) {
	t.Helper()
	lists, err := filepath.Glob("/proc/self/task/*/children")
	check(t, err)
	for _, path := range lists {
		text, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue
		}
		check(t, err)
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			check(t, err)
			pids = append(pids, pid)
		}
	}

	return pids
}

// A process that is killed fails its scaffold.
func TestRendererIsKilled(t *testing.T) {
	s := newSubject(t, put("src/f", "[[ range ints(0, 1000000000000) ]][[ end ]]"))
	rendered := make(chan error)
	go func() {
		_, err := s.typ.Status(t.Context(), s.env, scaffold.Choria{}, s.spec)
		rendered <- err
	}()
	var started []int
	for len(started) == 0 {
		started = children(t)
	}
	for _, pid := range started {
		check(t, unix.Kill(pid, unix.SIGKILL))
	}
	if err := <-rendered; err == nil || !strings.HasPrefix(err.Error(), "f: the process that renders was ended by signal 9") {
		t.Error(err)
	}
}

// A call may depend on the results of other calls. Each different call is made once.
func TestCallsOfCalls(t *testing.T) {
	for engine, text := range map[string]string{
		"jet": `[[ x := next(next("a")) ]][[ if x == "aaa" ]][[ next(x) ]][[ end ]] [[ try ]][[ fails("no") ]][[ catch e ]]caught[[ end ]] [[ range i := ints(0, 3) ]][[ next("" + i) ]] [[ end ]]`,
		"go":  `{{ $x := next (next "a") }}{{ if eq $x "aaa" }}{{ next $x }}{{ end }} caught {{ range until 3 }}{{ next (toString .) }} {{ end }}`,
	} {
		s := newSubject(t, put("src/f", text, "src/g", text), "engine", engine)
		calls := map[string]int{}
		s.env.Scope.Origin = asked{
			"next":  func(text string) string { calls[text]++; return text + text[:1] },
			"fails": func(string) (any, error) { return nil, errNoAnswer },
		}
		check(t, s.apply())
		for _, name := range []string{"out/f", "out/g"} {
			content, err := os.ReadFile(filepath.Join(s.dir, name))
			if check(t, err); string(content) != "aaaa caught 00 11 22 " {
				t.Errorf("%s: %q", engine, content)
			}
		}
		// The engine observed three times.
		for _, call := range []string{"a", "aa", "aaa", "0"} {
			if calls[call] != 3 {
				t.Errorf("%s: next(%q) was called %d times, not 3", engine, call, calls[call])
			}
		}
	}
}

// Calls with other arguments each time have no result.
func TestUnstableCalls(t *testing.T) {
	s := newSubject(t, put("src/f", `{{ lookup uuidv4 }}`), "engine", "go")
	s.env.Scope.Origin = asked{"lookup": func(path string) string { return path }}
	if err := s.failsWith(); err.Error() != "the templates call functions of the manifest with other arguments each time, so they have no result" {
		t.Error(err)
	}
}

var errNoAnswer = errors.New("no answer: hunter2")

// The results and the errors of functions arrive unchanged.
func TestFunctions(t *testing.T) {
	functions := asked{
		"fails":  func(string) (any, error) { return nil, fmt.Errorf("asking: %w", errNoAnswer) },
		"panics": func() any { panic("so") },
		"lookup": func(path string, def ...any) (any, error) {
			if len(def) > 0 {
				return def[0], nil
			}
			return path, nil
		},
		"repeat": func(text string, n int) (string, error) { return strings.Repeat(text, n), nil },
		"number": func(n int) int { return n + 1 },
		"long":   func() string { return strings.Repeat("x\r\n", 100_000) },
		"given":  func(v any) (any, error) { return fmt.Sprintf("%T %v", v, v), nil },
	}
	for name, tc := range map[string]struct {
		engine, text, want string
		is                 error
	}{
		"jet, values":          {"jet", `[[ lookup("a") ]] [[ lookup("a", 2) + 1 ]] [[ repeat("x", 3) ]] [[ len(lookup("a", slice(1, "b"))) ]] [[ lookup("a", map("k", "v")).k ]]`, "a 3 xxx 2 v", nil},
		"jet, nothing":         {"jet", `<[[ lookup("a", nil) ]]>`, "<>", nil},
		"jet, long":            {"jet", `[[ len(long()) ]]`, "300000", nil},
		"jet, fails":           {"jet", "\n é [[ fails(\"x\") ]]", "f:2: fails: asking: no answer: hunter2", errNoAnswer},
		"jet, fails in a part": {"jet", `[[ render("_partials/p", .) ]]`, "f:1: render: _partials/p:2: fails: asking: no answer: hunter2", errNoAnswer},
		"jet, panics":          {"jet", `[[ panics() ]]`, "f:1: panics: so", nil},
		"jet, arguments":       {"jet", `[[ number("x") ]]`, "f:1: number: wrong arguments: number takes a int as number 1, not a string", nil},
		"go, values":           {"go", `{{ lookup "a" }} {{ add (lookup "a" 2) 1 }} {{ "x" | repeat 3 }} {{ (lookup "a" (dict "k" "v")).k }} {{ number 1 }}`, "a 3 xxx v 2", nil},
		"go, types":            {"go", `{{ given 1 }} {{ given 1.0 }} {{ given "s" }} {{ given true }} {{ given (list 1 "a") }} {{ given nil }}`, "int 1 float64 1 string s bool true []interface {} [1 a] <nil> <nil>", nil},
		"go, fails":            {"go", "\n é {{ fails \"x\" }}", "f:2: <fails \"x\">: error calling fails: asking: no answer: hunter2", errNoAnswer},
		"go, fails in a part":  {"go", "\n{{ render \"_partials/p\" . }}", "f:2: <render \"_partials/p\" .>: error calling render: _partials/p:2: <fails \"x\">: error calling fails: asking: no answer: hunter2", errNoAnswer},
		"go, panics":           {"go", "{{ panics }}", "f:1: <panics>: error calling panics: so", nil},
		"go, unknown":          {"go", "\n  {{ nope }}", "f:2: function \"nope\" not defined", nil},
		"go, environment":      {"go", `{{ env "STAGE" }}{{ env "SECRET_OF_MUSTER" }}{{ expandenv "$STAGE$SECRET_OF_MUSTER" }}`, "prodprod", nil},
		"go, no other service": {"go", `{{ getHostByName "x" }}`, "f:1: <getHostByName \"x\">: error calling getHostByName: templates have no access to the network", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SECRET_OF_MUSTER", "x")
			part := "\n[[ fails(\"x\") ]]"
			if tc.engine == "go" {
				part = "\n{{ fails \"x\" }}"
			}
			s := newSubject(t, put("src/f", tc.text, "src/_partials/p", part), "engine", tc.engine)
			s.env.Scope.Origin = functions
			_, err := s.typ.Status(t.Context(), s.env, scaffold.Choria{}, s.spec)
			if err == nil {
				check(t, s.apply())
				has("out", "f", tc.want)(t, s.dir)
				return
			}
			if err.Error() != tc.want || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

// The data arrive unchanged, whatever their bytes.
func TestValues(t *testing.T) {
	data := map[string]any{"i": 3, "f": 1.0, "b": true, "t": "a\xff\x00", "l": []any{1, nil}, "m": map[string]any{"k": 2.5}, "n": nil}
	for engine, tc := range map[string]struct{ text, want string }{
		"go":  {`{{ range $k, $v := .Data }}{{ $k }}:{{ printf "%T" $v }} {{ end }}{{ .Data.t }}{{ .Data.l | toJson }}`, "b:bool f:float64 i:int l:[]interface {} m:map[string]interface {} n:<nil> t:string a\xff\x00[1,null]"},
		"jet": {`[[ Data.i / 2 ]] [[ Data.f / 2 ]] [[ Data.b ]] [[ Data.t ]] [[ len(Data.l) ]] [[ Data.m.k ]]`, "1.5 0.5 true a\xff\x00 2 2.5"},
	} {
		s := newSubject(t, put("src/f", tc.text), "engine", engine)
		s.spec.Data = data
		check(t, s.apply())
		has("out", "f", tc.want)(t, s.dir)
	}
}

// Templates see mappings in the order of their keys.
func TestMappings(t *testing.T) {
	data, want := map[string]any{}, ""
	for i := range 50 {
		key := fmt.Sprintf("k%02d", i)
		data[key], want = i, want+fmt.Sprintf("%s=%d ", key, i)
	}
	for engine, text := range map[string]string{
		"jet": `[[ range k, v := Data.m ]][[ k ]]=[[ v ]] [[ end ]][[ range Data.m ]][[ range Data.m ]][[ end ]][[ end ]]`,
		"go":  `{{ range $k, $v := .Data.m }}{{ $k }}={{ $v }} {{ end }}{{ if ne (keys .Data.m | first) "k00" }}no order{{ end }}`,
	} {
		s := newSubject(t, put("src/f", text), "engine", engine, "data", map[string]any{"m": data})
		check(t, s.apply())
		has("out", "f", want)(t, s.dir)
	}
}

// An error names the template, the line, and then the template that this renders.
func TestPlaces(t *testing.T) {
	for name, tc := range map[string]struct {
		files []string
		want  string
	}{
		"of the same name":     {[]string{"src/a/f", "x", "src/b/f", "\n[[ Nope ]]"}, "b/f:2: unknown name `Nope`"},
		"partials":             {[]string{"src/a/_partials/p", "x", "src/b/_partials/p", "[[ Nope ]]", "src/f", `[[ render("b/_partials/p", .) ]]`}, "f:1: render: b/_partials/p:1: unknown name `Nope`"},
		"an absolute path":     {[]string{"src/_partials/p", "\n[[ Nope ]]", "src/f", `[[ render("/_partials/p", .) ]]`}, "f:1: render: _partials/p:2: unknown name `Nope`"},
		"a part not valid":     {[]string{"src/_partials/p", "\n [[ if ]]", "src/f", `[[ render("_partials/p", .) ]]`}, "f:1: render: _partials/p:2: parsing if: unexpected token ']]' (expected term)"},
		"in a part, far":       {[]string{"src/_partials/p", `[[ render("_partials/no", .) ]]`, "src/f", "\n" + `[[ render("_partials/p", .) ]]`}, `f:2: render: _partials/p:1: render: there is no template "_partials/no" in the source`},
		"one of two calls":     {[]string{"src/f", `[[ render("f2", 1) ]]` + "\n" + `[[ render("no", .) ]]`, "src/f2", "x"}, `f: render: there is no template "no" in the source`},
		"a directory":          {[]string{"src/d/g", "x", "src/f", `[[ render("d", .) ]]`}, `f:1: render: there is no template "d" in the source`},
		"the source":           {[]string{"src/g", "x", "src/f", ` [[ render("", .) ]]`}, `f:1: render: there is no template "" in the source`},
		"the target":           {[]string{"src/g", "x", "src/f", ` [[ write("", "x") ]]`}, "f:1: write: DIR/out is not in target directory DIR/out"},
		"a dot with values":    {[]string{"src/f", "\n [[ .Facts.os ]]"}, "f:2: can't use os as field name in struct type reflect.Value"},
		"a range of nothing":   {[]string{"src/f", "\n[[ range ]][[ end ]]"}, "f:2: parsing range"},
		"a range of no list":   {[]string{"src/f", "\n[[ range 1 ]][[ end ]]"}, "f:2: value 1 (type float64) is not rangeable"},
		"go, the source":       {[]string{"src/f", ` {{ render "/" . }}`}, `f:1: <render "/" .>: error calling render: there is no template "/" in the source`},
		"go, a directory":      {[]string{"src/d/g", "x", "src/f", ` {{ render "d" . }}`}, `f:1: <render "d" .>: error calling render: there is no template "d" in the source`},
		"go, the target":       {[]string{"src/f", ` {{ write "" "x" }}`}, `f:1: <write "" "x">: error calling write: DIR/out is not in target directory DIR/out`},
		"go, above a template": {[]string{"src/d/g", "x", "src/f", ` {{ write "d/.." "x" }}`}, `f:1: <write "d/.." "x">: error calling write: DIR/out is not in target directory DIR/out`},
	} {
		t.Run(name, func(t *testing.T) {
			engine := "jet"
			if strings.HasPrefix(name, "go, ") {
				engine = "go"
			}
			s := newSubject(t, put(tc.files...), "engine", engine)
			s.env.Scope.Origin = origin{host: s.env.Host}
			if err, want := s.failsWith(), strings.ReplaceAll(tc.want, "DIR", s.dir); !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// Templates may write into missing directories, in any order.
func TestWriteMakesDirectories(t *testing.T) {
	for engine, text := range map[string]string{
		"jet": `[[ range i, n := slice("a", "b/c", "z") ]][[ write(n + "/w", n) ]][[ end ]]`,
		"go":  `{{ range list "a" "b/c" "z" }}{{ write (print . "/w") . }}{{ end }}`,
	} {
		s := newSubject(t, put("src/f", text, "src/z/keep", ""), "engine", engine)
		check(t, s.apply())
		has("out", "a/", "", "a/w", "a", "b/", "", "b/c/", "", "b/c/w", "b/c", "f", "", "z/", "", "z/keep", "", "z/w", "z")(t, s.dir)
	}
}

// TestWriteAgain checks that a file that a template writes again counts once for the limits.
func TestWriteAgain(t *testing.T) {
	times := racing.Less(20, 2)
	for engine, text := range map[string]string{
		"jet": fmt.Sprintf(`[[ x := repeat("x", 9000000) ]][[ range i := ints(0, %d) ]][[ write("w", x) ]][[ end ]][[ write("w", "last") ]]`, times),
		"go":  fmt.Sprintf(`{{ $x := repeat 9000000 "x" }}{{ range until %d }}{{ write "w" $x }}{{ end }}{{ write "w" "last" }}`, times),
	} {
		s := newSubject(t, put("src/f", text), "engine", engine)
		check(t, s.apply())
		has("out", "f", "", "w", "last")(t, s.dir)
	}
}

func TestThousandTemplates(t *testing.T) {
	many := racing.Less(1000, 100)
	for engine, text := range map[string]string{"jet": "[[ Data.name ]] [[ lookup(\"x\") ]]", "go": `{{ .Data.name }} {{ lookup "x" }}`} {
		s := newSubject(t, func(t *testing.T, dir string) {
			for i := range many {
				put(fmt.Sprintf("src/d%d/f%03d", i%10, i), text)(t, dir)
			}
		}, "engine", engine)
		s.env.Scope.Origin = asked{"lookup": func(path string) (any, error) { return path, nil }}
		if state := s.status(); len(state.Due) != many {
			t.Errorf("%s: %d files", engine, len(state.Due))
		}
		check(t, s.apply())
		if text, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("out/d9/f%03d", many-1))); string(text) != "app x" {
			t.Error(string(text), err)
		}
	}
}

// A run renders for each observation, and not again for the change that follows. Functions of the
// manifest need a second start of the child.
func TestProcesses(t *testing.T) {
	lookup := func(path string) (any, error) { return path, nil }
	for name, tc := range map[string]struct {
		text   string
		origin resource.Origin
		want   int
	}{
		"plain":  {"[[ Data.name ]]", asked{}, 2},
		"asks":   {`[[ lookup("data.x") ]]`, asked{"lookup": lookup}, 4},
		"secret": {"[[ Data.pw ]]", origin{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, put("src/f", tc.text))
			s.env.Scope.Origin, s.env.RunID = tc.origin, "run"
			var commands func() []string
			s.env.Host, commands = hosttest.Traced(t)
			provider := scaffold.NewChoria()
			state, err := s.typ.Status(t.Context(), s.env, provider, s.spec)
			check(t, err)
			plan, err := s.typ.Plan(s.spec, state, false)
			check(t, err)
			outcome, err := s.typ.Apply(t.Context(), s.env, provider, s.spec, plan)
			check(t, err)
			state, err = s.typ.Status(t.Context(), s.env, provider, s.spec)
			check(t, err)
			check(t, s.typ.Verify(s.spec, outcome, state))
			if got := commands(); len(got) != tc.want || slices.ContainsFunc(got, func(c string) bool { return !strings.HasSuffix(c, " render-scaffold") }) {
				t.Errorf("%d processes, not %d: %q", len(got), tc.want, got)
			}
		})
	}
}
