package arch_test

import (
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/arch"
)

// TestTree checks the tree that this test is part of.
func TestTree(t *testing.T) {
	tree, err := arch.Load("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range arch.Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			for _, b := range rule.Check(tree) {
				t.Error(b)
			}
		})
	}
	names, missing := arch.Documentation(tree)
	for _, b := range missing {
		t.Log(b)
	}
	t.Logf("%d of %d exported names are documented", names-len(missing), names)
}

func TestLoadReadsWhatTheGoCommandReads(t *testing.T) {
	tree, err := arch.Load("testdata/module")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range tree {
		paths = append(paths, f.Path)
	}
	if got, want := strings.Join(paths, " "), "a/a.go a/a_test.go a/tagged.go"; got != want {
		t.Errorf("it read %q, want %q", got, want)
	}
}

// source is a file of a planted tree.
type source struct{ path, text string }

// planted are breaches, one a row, and what must not be taken for one.
var planted = []struct {
	rule, name string
	files      []source
	// breach is part of the breach to be found; empty when there is none.
	breach string
}{
	{"imports go one way", "model imports host", imports("model/a.go", "resources/host"), "model must not import resources/host"},
	{"imports go one way", "model imports the root", imports("model/a.go", ""), "model must not import"},
	{"imports go one way", "model imports a library", []source{{"model/a.go", "package model\nimport _ \"fmt\"\n"}}, ""},
	{"imports go one way", "host imports resource", imports("resources/host/a.go", "resources/resource"), "resources/host must not import resources/resource"},
	{"imports go one way", "facts imports model", imports("resources/host/facts/a.go", "model"), ""},
	{"imports go one way", "resource imports engine", imports("resources/resource/a.go", "resources/engine"), "resources/resource must not import resources/engine"},
	{"imports go one way", "resource imports model and host", imports("resources/resource/a.go", "model", "resources/host"), ""},
	{"imports go one way", "a type imports another", imports("resources/exec/a.go", "resources/file"), "resources/exec must not import resources/file"},
	{"imports go one way", "a type imports engine", imports("resources/apply/a.go", "resources/engine"), "resources/apply must not import resources/engine"},
	{"imports go one way", "a provider imports its type", imports("resources/pkg/apt/a.go", "resources/pkg", "resources/resource", "model"), ""},
	{"imports go one way", "engine imports a type", imports("resources/engine/a.go", "resources/file"), "resources/engine must not import resources/file"},
	{"imports go one way", "engine imports all types", imports("resources/engine/a.go", "resources"), "resources/engine must not import resources"},
	{"imports go one way", "manifest imports a provider", imports("resources/manifest/a.go", "resources/pkg/apt"), "resources/manifest must not import resources/pkg/apt"},
	{"imports go one way", "resources imports engine", imports("resources/a.go", "resources/engine"), "resources must not import resources/engine"},
	{"imports go one way", "resources imports types", imports("resources/a.go", "resources/service/systemd", "resources/resource"), ""},
	{"imports go one way", "a test of resources runs its types", imports("resources/a_test.go", "model", "resources/engine"), ""},
	{"imports go one way", "kvstore imports manifest", imports("kvstore/a.go", "resources/manifest"), "kvstore must not import resources/manifest"},
	{"imports go one way", "agent imports fleet", imports("agent/a.go", "fleet"), "agent must not import fleet"},
	{"imports go one way", "a test of agent imports fleet", imports("agent/a_test.go", "fleet"), "agent must not import fleet"},
	{"imports go one way", "agent imports kvstore", imports("agent/reporting/a.go", "kvstore"), "agent/reporting must not import kvstore"},
	{"imports go one way", "fleet imports agent", imports("fleet/a.go", "agent/reporting"), "fleet must not import agent/reporting"},
	{"imports go one way", "fleet imports kvstore", imports("fleet/a.go", "kvstore"), "fleet must not import kvstore"},
	{"imports go one way", "agent imports what it runs", imports("agent/a.go", "agent/reporting", "resources/engine", "model", "schemas"), ""},
	{"imports go one way", "schemas imports types", imports("schemas/internal/gen/a.go", "schemas", "resources", "resources/resource", "model"), ""},
	{"imports go one way", "cmd imports testing", imports("cmd/muster/a.go", "testing/natstest"), "cmd/muster must not import testing/natstest"},
	{"imports go one way", "printing imports what commands share", imports("cmd/muster/print/a.go", "cmd/muster/cli"), "cmd/muster/print must not import cmd/muster/cli"},
	{"imports go one way", "a command imports what commands share", imports("cmd/muster/fleetcmd/a.go", "cmd/muster/cli", "cmd/muster/print", "fleet"), ""},
	{"imports go one way", "a test imports testing", imports("resources/file/a_test.go", "testing/typetest"), ""},
	{"imports go one way", "code imports testing", imports("resources/file/a.go", "testing/typetest"), "resources/file must not import testing/typetest"},
	{"imports go one way", "testing imports everything", imports("testing/e2e/a.go", "agent", "fleet", "kvstore"), ""},
	{"imports go one way", "a new type", imports("resources/user/posix/a.go", "model", "resources/user", "resources/resource", "resources/host/files"), ""},
	{"imports go one way", "a new type imports another", imports("resources/user/posix/a.go", "resources/file"), "resources/user/posix must not import resources/file"},
	{"imports go one way", "a new type imports its list", imports("resources/user/a.go", "resources"), "resources/user must not import resources"},
	{"imports go one way", "the list imports a new type", imports("resources/resources.go", "resources/user", "resources/user/posix"), ""},
	{"imports go one way", "the list imports what is no type", imports("resources/resources.go", "resources/engine/plan"), "resources must not import resources/engine/plan"},
	{"imports go one way", "the engine imports a new type", imports("resources/engine/a.go", "resources/user"), "resources/engine must not import resources/user"},
	{"imports go one way", "a folder whose name begins like another", imports("models/a.go", "model"), "no import rule covers models"},

	{"only kvstore speaks NATS", "agent", []source{{"agent/a.go", "package agent\nimport _ \"github.com/nats-io/nats.go\"\n"}}, "agent must not import github.com/nats-io/nats.go"},
	{"only kvstore speaks NATS", "model", []source{{"model/a.go", "package model\nimport _ \"github.com/nats-io/nkeys\"\n"}}, "github.com/nats-io/nkeys"},
	{"only kvstore speaks NATS", "kvstore", []source{{"kvstore/a.go", "package kvstore\nimport _ \"github.com/nats-io/jsm.go\"\n"}}, ""},
	{"only kvstore speaks NATS", "demo", []source{{"cmd/muster/a.go", "package main\nimport _ \"github.com/nats-io/nats-server/v2/server\"\n"}}, ""},

	{"imports go one way", "health imports resource", imports("resources/health/a.go", "resources/resource"), "resources/health must not import resources/resource"},
	{"imports go one way", "registration imports health", imports("model/registration/a.go", "resources/health"), "model/registration must not import resources/health"},
	{"imports go one way", "resource imports health", imports("resources/resource/a.go", "resources/health"), ""},

	{"only the program links goss", "health", []source{{"resources/health/a.go", "package health\nimport _ \"github.com/goss-org/goss\"\n"}}, "must not import github.com/goss-org/goss"},
	{"only the program links goss", "health by its room", imports("resources/health/a.go", "resources/health/goss"), "must not import github.com/musterfleet/muster/resources/health/goss"},
	{"only the program links goss", "agent", imports("agent/a.go", "resources/health/goss"), "agent must not import"},
	{"only the program links goss", "its room", []source{{"resources/health/goss/a.go", "package goss\nimport _ \"github.com/goss-org/goss/util\"\n"}}, ""},
	{"only the program links goss", "the command", imports("cmd/muster/a.go", "resources/health/goss"), ""},

	{"only the reader of documents parses YAML", "a text", []source{{"agent/requests/a.go", "package requests\nimport \"gopkg.in/yaml.v3\"\nvar parse = yaml.Unmarshal\n"}}, "agent/requests must not parse YAML"},
	{"only the reader of documents parses YAML", "a stream", []source{{"model/a.go", "package model\nimport y \"gopkg.in/yaml.v3\"\nfunc f() { y.NewDecoder(nil) }\n"}}, "model must not parse YAML"},
	{"only the reader of documents parses YAML", "a node", []source{{"resources/manifest/a.go", "package manifest\nimport \"gopkg.in/yaml.v3\"\nfunc f(n yaml.Node) { n.Decode(nil) }\n"}}, "resources/manifest must not parse YAML"},
	{"only the reader of documents parses YAML", "writing", []source{{"agent/config/a.go", "package config\nimport \"gopkg.in/yaml.v3\"\nvar write = yaml.Marshal\n"}}, ""},
	{"only the reader of documents parses YAML", "its room", []source{{"resources/document/a.go", "package document\nimport \"gopkg.in/yaml.v3\"\nvar parse = yaml.Unmarshal\n"}}, ""},
	{"only the scaffold renderer imports the library", "another type", []source{{"resources/file/a.go", "package file\nimport _ \"github.com/choria-io/scaffold\"\n"}}, "must not import github.com/choria-io/scaffold"},
	{"only the scaffold renderer imports the library", "a subpackage", []source{{"testing/e2e/a_test.go", "package e2e\nimport _ \"github.com/choria-io/scaffold/forms\"\n"}}, "must not import github.com/choria-io/scaffold/forms"},
	{"only the scaffold renderer imports the library", "the renderer", []source{{"resources/scaffold/a.go", "package scaffold\nimport _ \"github.com/choria-io/scaffold\"\n"}}, ""},

	{"only host starts processes", "a type", []source{{"resources/exec/a.go", "package exec\nimport _ \"os/exec\"\n"}}, "must not import os/exec"},
	{"only host starts processes", "a test", []source{{"resources/exec/a_test.go", "package exec_test\nimport _ \"os/exec\"\n"}}, "must not import os/exec"},
	{"only host starts processes", "without os/exec", []source{{"agent/a.go", "package agent\nimport \"os\"\nvar start = os.StartProcess\n"}}, "must not start processes"},
	{"only host starts processes", "by the kernel", []source{{"agent/a.go", "package agent\nimport sys \"syscall\"\nfunc f() { _ = sys.Exec(\"\", nil, nil) }\n"}}, "must not start processes"},
	{"only host starts processes", "host", []source{{"resources/host/command/a.go", "package command\nimport _ \"os/exec\"\n"}}, ""},
	{"only host starts processes", "the type of that name", imports("resources/a.go", "resources/exec"), ""},

	{"only host touches files", "a type", body("resources/file/a.go", "os", "os.ReadFile(\"\")"), "resources/file must not use files by os"},
	{"only host touches files", "a type that reads the environment", body("resources/file/a.go", "os", "os.Environ()"), ""},
	{"only host touches files", "host", body("resources/host/files/a.go", "os", "os.ReadFile(\"\")"), ""},
	{"removals stay on one file system", "a removal that crosses mounts", body("agent/a.go", "os", "os.RemoveAll(\"\")"), "os.RemoveAll crosses mounts"},
	{"removals stay on one file system", "a test", body("agent/a_test.go", "os", "os.RemoveAll(\"\")"), ""},
	{"deciding is pure", "the clock", body("resources/engine/plan/a.go", "time", "time.Now()"), "resources/engine/plan must not use the clock"},
	{"deciding is pure", "a duration", body("resources/engine/plan/a.go", "time", "time.Second"), ""},
	{"deciding is pure", "the log", body("resources/engine/plan/a.go", "log/slog", "slog.Default()"), "must not import log/slog, it is pure"},
	{"deciding is pure", "the network", body("resources/engine/plan/a.go", "net/http", "http.DefaultClient"), "must not import net/http"},
	{"deciding is pure", "elsewhere", body("resources/engine/a.go", "time", "time.Now()"), ""},
	{"callers pass the time", "the nouns", body("model/a.go", "time", "time.Since(time.Time{})"), "model must not use the clock"},
	{"callers pass the time", "a test", body("model/a_test.go", "time", "time.Now()"), ""},

	{"goroutines are awaited", "a go statement", []source{{"agent/a.go", "package agent\nfunc f() {\n\tgo f()\n}\n"}}, "agent/a.go:3: start it by WaitGroup.Go"},
	{"goroutines are awaited", "in a test", []source{{"agent/a_test.go", "package agent\nfunc f() { go f() }\n"}}, ""},

	{"no func init", "init", []source{{"model/a.go", "package model\nfunc init() {}\n"}}, "model/a.go:2: no func init"},
	{"no func init", "a method of that name", []source{{"model/a.go", "package model\ntype T struct{}\nfunc (T) init() {}\n"}}, ""},

	{"no mutable package variables", "set", variable("var v = 1\nfunc f() { v = 2 }"), "model/a.go:3: package variable v is set"},
	{"no mutable package variables", "counted", variable("var v = 1\nfunc f() { v++ }"), "v is set"},
	{"no mutable package variables", "added to", variable("var v = 1\nfunc f() { v += 1 }"), "v is set"},
	{"no mutable package variables", "set by a loop", variable("var v int\nfunc f() { for v = range 3 {} }"), "v is set"},
	{"no mutable package variables", "a key of it", variable("var v = map[string]int{}\nfunc f() { v[\"a\"] = 1 }"), "v is set"},
	{"no mutable package variables", "a field of it", variable("var v struct{ a []int }\nfunc f() { v.a[0] = 1 }"), "v is set"},
	{"no mutable package variables", "what it points to", variable("var v *int\nfunc f() { (*v) = 1 }"), "v is set"},
	{"no mutable package variables", "deleted from", variable("var v = map[string]int{}\nfunc f() { delete(v, \"a\") }"), "v is changed"},
	{"no mutable package variables", "pointed at", variable("var v int\nfunc f() *int { return &v }"), "v is pointed at"},
	{"no mutable package variables", "a mutex", variable("import \"sync\"\nvar v sync.Mutex"), "v holds state"},
	{"no mutable package variables", "a pool", variable("import \"sync\"\nvar v = &sync.Pool{}"), "v holds state"},
	{"no mutable package variables", "an atomic", variable("import \"sync/atomic\"\nvar v atomic.Pointer[int]"), "v holds state"},
	{"no mutable package variables", "a channel", variable("var v chan int"), "v holds state"},
	{"no mutable package variables", "in another file", []source{{"model/a.go", "package model\nvar v = 1\n"}, {"model/b.go", "package model\nfunc f() { v = 2 }\n"}}, "model/b.go:2: package variable v is set"},
	{"no mutable package variables", "of another package", []source{{"model/a.go", "package model\nimport \"net/http\"\nfunc f() { http.DefaultClient = nil }\n"}}, "http.DefaultClient is set"},
	{"no mutable package variables", "a local of the same name", variable("var v = 1\nfunc f() { v := 1; v = 2; _ = &v }"), ""},
	{"no mutable package variables", "a parameter of the same name", variable("var v = 1\nfunc f(v int) { v = 2 }"), ""},
	{"no mutable package variables", "a local, the variable in another file", []source{{"model/a.go", "package model\nvar v = 1\n"}, {"model/b.go", "package model\nfunc f() { v := 1; v = 2 }\n"}}, ""},
	{"no mutable package variables", "the same name in the test package", []source{{"model/a.go", "package model\nvar v = 1\n"}, {"model/a_test.go", "package model_test\nfunc f() { for v := range 3 { v = 2 } }\n"}}, ""},
	{"no mutable package variables", "read", variable("var v = []int{1}\nfunc f() int { w := v[0]; w++; return w }"), ""},
	{"no mutable package variables", "a check of an interface", variable("var _ any = (*int)(nil)"), ""},

	{"tests await conditions", "sleep", []source{{"model/a_test.go", "package model_test\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"}}, "no time.Sleep"},
	{"tests await conditions", "sleep under another name", []source{{"model/a_test.go", "package model_test\nimport clock \"time\"\nfunc f() { clock.Sleep(1) }\n"}}, "no time.Sleep"},
	{"tests await conditions", "a timer", []source{{"model/a_test.go", "package model_test\nimport \"time\"\nfunc f() { <-time.After(1) }\n"}}, ""},

	{"tests are never skipped", "skip", []source{{"model/a_test.go", "package model_test\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Skip(\"later\") }\n"}}, "no skipped tests"},
	{"tests are never skipped", "a helper skips", []source{{"testing/a/a.go", "package a\nimport \"testing\"\nfunc F(tb testing.TB) { tb.SkipNow() }\n"}}, "no skipped tests"},
	{"tests are never skipped", "another Skip", []source{{"model/a.go", "package model\nfunc f(d interface{ Skip() }) { d.Skip() }\n"}}, ""},

	{"exported names are documented", "a function", documented("func F() {}"), "F has no doc comment"},
	{"exported names are documented", "a method", documented("// T is.\ntype T[K any] struct{}\nfunc (*T[K]) F() {}"), "F has no doc comment"},
	{"exported names are documented", "a type in a group", documented("// Those are.\ntype (\n\tT struct{}\n)"), "T has no doc comment"},
	{"exported names are documented", "a constant", documented("const C = 1"), "C has no doc comment"},
	{"exported names are documented", "a package", []source{{"model/a.go", "package model\n"}}, "package model has no doc comment"},
	{"exported names are documented", "a group of constants", documented("// Those are.\nconst (\n\tA = 1\n\tB = 2\n)"), ""},
	{"exported names are documented", "what is not exported", documented("func f() {}\ntype t struct{}\nfunc (t) F() {}"), ""},
	{"exported names are documented", "one in twenty-five", documented("func F() {}\n" + strings.Repeat("// G does.\nfunc G() {}\n", 24)), ""},
}

// imports makes a file that imports packages of the module.
func imports(path string, packages ...string) []source {
	text := "package p\n"
	for _, p := range packages {
		text += "import _ \"" + strings.TrimSuffix(arch.Module+"/"+p, "/") + "\"\n"
	}

	return []source{{path, text}}
}

func variable(text string) []source { return []source{{"model/a.go", "package model\n" + text + "\n"}} }

// body is a file with one function, which has an expression of an imported package.
func body(path, imported, expression string) []source {
	return []source{{path, "package p\nimport \"" + imported + "\"\nfunc f() { _ = " + expression + " }\n"}}
}

func documented(text string) []source {
	return []source{{"model/a.go", "// Package model is.\npackage model\n\n" + text + "\n"}}
}

func TestPlantedBreaches(t *testing.T) {
	caught := map[string]bool{}
	checks := map[string]func(arch.Tree) []arch.Breach{}
	for _, rule := range arch.Rules() {
		checks[rule.Name] = rule.Check
	}
	for _, p := range planted {
		t.Run(p.rule+"/"+p.name, func(t *testing.T) {
			sources := map[string]string{}
			for _, s := range p.files {
				sources[s.path] = s.text
			}
			tree, err := arch.Parse(sources)
			if err != nil {
				t.Fatal(err)
			}
			got := checks[p.rule](tree)
			switch {
			case p.breach == "" && len(got) > 0:
				t.Errorf("it was taken for a breach: %v", got)
			case p.breach != "" && (len(got) != 1 || !strings.Contains(got[0].String(), p.breach)):
				t.Errorf("got %v, want one breach with %q", got, p.breach)
			}
			caught[p.rule] = caught[p.rule] || p.breach != ""
		})
	}
	for name := range checks {
		if !caught[name] {
			t.Errorf("no planted breach shows that %q works", name)
		}
	}
}

func TestParseRefusesWhatIsNotGo(t *testing.T) {
	if _, err := arch.Parse(map[string]string{"a.go": "pakage a"}); err == nil {
		t.Error("no error")
	}
}
