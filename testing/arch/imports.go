package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// room is a folder and what the packages in and below it may import of this
// module, as patterns of the go command: resources is that package alone,
// resources/... all below it too. What is in a room may import the room itself
// and all below it.
type room struct {
	folder string
	may    []string
	// tests are further packages that its _test.go files may import. Every test
	// may import testing/...
	tests []string
	// alone means that what is below the folder is no part of the room.
	alone bool
}

// contract is what a type, the engine and the manifest may know of muster.
var contract = []string{"model/...", "resources/document", "resources/host/...", "resources/resource/...", "resources/template"}

// everywhere is what every room may import.
const everywhere = "model/times"

// types is the pattern of the resource types: each direct folder of resources
// that is no room of the table.
const types = "resources/*"

// commandRooms are the families of commands, which do not know each other, and what
// each may import besides what they share. The demo runs a node.
var commandRooms = map[string][]string{
	"agentcmd":             {"agent/..."},
	"demo":                 {"agent/...", "cmd/muster/agentcmd", "cmd/muster/fleetcmd/fleetcli", "cmd/muster/fleetcmd/simulatecmd"},
	"fleetcmd":             {"fleet/..."},
	"fleetcmd/accesscmd":   {"fleet/web/access"},
	"fleetcmd/assigncmd":   {"fleet/...", "cmd/muster/fleetcmd/fleetcli", "cmd/muster/fleetcmd/live", "cmd/muster/fleetcmd/previewcmd", "cmd/muster/fleetcmd/signatures", "cmd/muster/fleetcmd/waitcmd"},
	"fleetcmd/controlcmd":  {"fleet/...", "cmd/muster/fleetcmd/fleetcli", "cmd/muster/fleetcmd/pauses"},
	"fleetcmd/ensurecmd":   {"fleet/...", "cmd/muster/fleetcmd/fleetcli", "cmd/muster/fleetcmd/live"},
	"fleetcmd/fleetcli":    {"fleet/..."},
	"fleetcmd/historycmd":  {"fleet/...", "cmd/muster/fleetcmd/fleetcli", "cmd/muster/fleetcmd/signatures"},
	"fleetcmd/live":        {"fleet/...", "cmd/muster/fleetcmd/fleetcli"},
	"fleetcmd/pauses":      {"fleet/signing"},
	"fleetcmd/pingcmd":     {"fleet/...", "cmd/muster/fleetcmd/fleetcli"},
	"fleetcmd/previewcmd":  {"fleet/...", "cmd/muster/fleetcmd/fleetcli", "cmd/muster/fleetcmd/live"},
	"fleetcmd/reportcmd":   {"fleet/...", "cmd/muster/fleetcmd/fleetcli"},
	"fleetcmd/runcmd":      {"fleet/...", "cmd/muster/fleetcmd/fleetcli", "cmd/muster/fleetcmd/live"},
	"fleetcmd/servecmd":    {"fleet/...", "cmd/muster/fleetcmd/accesscmd", "cmd/muster/fleetcmd/fleetcli", "cmd/muster/fleetcmd/live", "cmd/muster/fleetcmd/pauses", "cmd/muster/fleetcmd/previewcmd"},
	"fleetcmd/simulatecmd": {"agent/simulate", "cmd/muster/fleetcmd/fleetcli"},
	"fleetcmd/statuscmd":   {"fleet/...", "cmd/muster/fleetcmd/fleetcli"},
	"fleetcmd/waitcmd":     {"fleet/...", "cmd/muster/fleetcmd/fleetcli"},
	"fleetcmd/signatures":  {"fleet/...", "cmd/muster/fleetcmd/fleetcli"},
	"localcmd":             {"agent/config"},
	"provisioncmd":         nil,
	"registrationcmd":      nil,
	"trustcmd":             {"agent/config", "fleet/signing"},
}

// kvstoreRooms are the rooms below kvstore, which do not know each other.
var kvstoreRooms = []string{"assignments", "content", "control", "nodes", "permissions", "provision", "registrations", "reports", "requests", "watch"}

// agentRooms are the rooms below agent, which do not know each other. They share
// the waits of agent/tasks and the texts of agent/bounds.
var agentRooms = []string{"assignments", "control", "gate", "health", "registrar", "requests", "schedule"}

// rooms is the floor plan of docs/architecture.md as a table. The deepest folder that holds a file
// is its room.
func rooms() []room {
	all := []room{
		{folder: "model"},
		{folder: "resources", alone: true, may: []string{"resources/resource", types}, tests: []string{"model", "resources/..."}},
		{folder: "resources/document", may: []string{"model", "resources/document/tree", "resources/document/yamlread"}},
		{folder: "resources/document/tree", may: []string{"model"}},
		{folder: "resources/document/yamlread", may: []string{"model", "resources/document/tree"}},
		{folder: "resources/document/decode", may: []string{"model", "resources/document"}},
		{folder: "resources/document/assigned", may: []string{"model/...", "resources/document", "resources/document/decode"}},
		{folder: "resources/host"},
		{folder: "resources/host/trust"},
		{folder: "resources/host/paths", may: []string{"resources/host/trust"}},
		{folder: "resources/host/state", may: []string{"resources/host/trees", "resources/host/trust", "resources/host/paths"}},
		{folder: "resources/host/mounts", may: []string{"resources/host/paths"}},
		{folder: "resources/host/trees", may: []string{"resources/host/paths", "resources/host/mounts"}},
		{folder: "resources/host/files", may: []string{"resources/host/mounts", "resources/host/trust", "resources/host/paths", "resources/host/trees", "resources/host/state"}},
		{folder: "resources/host/command", may: []string{"resources/host/paths", "resources/host/files"}},
		{folder: "resources/host/accounts", may: []string{"resources/host/command"}},
		{folder: "resources/host/lock", may: []string{"resources/host/paths", "resources/host/state"}, tests: []string{"resources/host/command"}},
		{folder: "resources/host/archive", may: []string{"resources/host/trust", "resources/host/paths", "resources/host/files", "resources/host/mounts"}, tests: []string{"resources/host/..."}},
		{folder: "resources/host/facts", may: []string{"model", "resources/document", "resources/host/trust", "resources/host/files"}},
		{folder: "resources/host/systembus"},
		{folder: "resources/host/watch", may: []string{"resources/host/mounts", "resources/host/paths", "resources/host/systembus"}},
		{folder: "resources/host/writers", may: []string{"resources/host/paths"}},
		{folder: "resources/host/web", may: []string{"model/..."}},
		{folder: "resources/health", may: []string{"model", "resources/document", "resources/host/..."}, tests: []string{"resources/document/decode"}},
		{folder: "resources/resource", may: []string{"model/...", "resources/document/...", "resources/health", "resources/host/..."}},
		{folder: "resources/resource/hook", may: []string{"model", "resources/host/...", "resources/resource"}},
		{folder: "resources/resource/textdiff", may: []string{"resources/host/files"}},
		{folder: "resources/links", may: []string{"model", "resources/document", "resources/resource"}},
		{folder: "resources/template", may: []string{"model", "resources/document"}},
		{folder: "resources/template/bounded"},
		{folder: "resources/engine", may: contract},
		{folder: "resources/engine/graph", may: []string{"model", "resources/resource", "resources/links"}},
		{folder: "resources/engine/plan", may: []string{"model", "resources/resource", "resources/engine/graph"}},
		{folder: "resources/engine/observe", may: []string{"resources/resource", "resources/engine/graph", "resources/engine/plan"}},
		{folder: "resources/engine/apply", may: []string{"model", "resources/resource", "resources/engine/graph", "resources/engine/plan", "resources/engine/observe"}},
		{folder: "resources/engine/journal", may: []string{"model", "resources/host/...", "resources/engine/graph", "resources/engine/plan"}},
		{folder: "resources/engine/report", may: []string{"model/...", "resources/resource", "resources/engine/graph"}},
		{folder: "resources/engine/session", may: []string{"model", "resources/host/...", "resources/engine/plan"}},
		{folder: "resources/reconcile", may: []string{"model", "resources/host/...", "resources/engine/..."}},
		{folder: "resources/manifest", may: append([]string{"resources/links"}, contract...), tests: []string{"resources/..."}},
		{folder: "resources/manifest/syntax", may: []string{"model", "resources/document", "resources/resource"}},
		{folder: "resources/manifest/source", may: []string{"model", "resources/host/..."}},
		{folder: "resources/manifest/expression", may: []string{"model", "resources/document", "resources/resource"}},
		{folder: "resources/manifest/printed", may: []string{"model"}},
		{folder: "resources/manifest/eval", may: []string{"model/...", "resources/document", "resources/host/...", "resources/resource", "resources/template", "resources/manifest/syntax", "resources/manifest/source", "resources/manifest/expression", "resources/manifest/printed"}},
		{folder: "resources/manifest/hierarchy", may: []string{"model", "resources/document", "resources/template", "resources/manifest/syntax", "resources/manifest/expression", "resources/manifest/eval"}},
		{folder: "resources/manifest/render", may: []string{"model/...", "resources/document", "resources/resource", "resources/manifest/syntax", "resources/manifest/expression"}},
		{folder: "kvstore", alone: true, may: []string{"model", "kvstore/answer", "kvstore/connect", "kvstore/denial", "kvstore/jsapi"}, tests: []string{"kvstore/..."}},
		{folder: "kvstore/answer", may: []string{"model"}},
		{folder: "kvstore/connect", may: []string{"model/serverurl"}},
		{folder: "kvstore/denial", may: []string{"model"}},
		{folder: "kvstore/jsapi", may: []string{"kvstore/denial"}},
		{folder: "kvstore/newest", may: []string{"model"}},
		{folder: "kvstore/scan", may: []string{"kvstore", "kvstore/answer"}},
		{folder: "agent", alone: true, may: []string{"model/...", "agent/...", "resources/...", "schemas"}, tests: []string{"kvstore/..."}},
		{folder: "agent/assignments/bundles", may: []string{"model", "agent/tasks", "resources/host/..."}},
		{folder: "agent/tasks"},
		{folder: "agent/packages", may: []string{"model", "agent/tasks", "resources/host/command", "resources/host/watch", "resources/pkg/version"}},
		{folder: "agent/footprint", may: []string{"agent/tasks"}},
		{folder: "agent/clock", may: []string{"model"}},
		{folder: "agent/bounds", may: []string{"model"}},
		{folder: "agent/config", may: []string{"model/...", "agent/outbox", "resources/document/...", "resources/manifest"}},
		{folder: "agent/status", may: []string{"model", "model/sparse", "agent/tasks", "agent/bounds", "agent/clock", "agent/config"}},
		{folder: "agent/check", may: []string{"model/...", "agent/config", "agent/control", "agent/outbox", "agent/assignments", "agent/gate", "agent/requests", "resources/engine/journal", "resources/host/..."}},
		{folder: "agent/goal", may: []string{"model"}},
		{folder: "agent/local", may: []string{"resources/host/..."}},
		{folder: "agent/outbox", may: []string{"model", "agent/tasks"}},
		{folder: "agent/drift", may: []string{"model", "agent/tasks", "resources/resource", "resources/host/files", "resources/host/watch"}},
		{folder: "agent/lanes", may: []string{"model", "resources/engine/graph", "resources/resource", "resources/host/paths"}, tests: []string{"resources/..."}},
		{folder: "agent/previews", may: []string{"model/...", "agent/assignments/bundles", "agent/bounds", "agent/tasks", "resources/document", "resources/document/decode"}},
		{folder: "agent/manifests", may: []string{
			"model", "model/sparse", "agent/assignments", "agent/bounds", "agent/config", "agent/drift", "agent/health", "agent/lanes", "agent/pace", "agent/registrar",
			"agent/repairs", "agent/reporter", "agent/runs", "agent/schedule", "agent/status", "agent/tasks", "resources/...",
		}},
		{folder: "agent/runs", may: []string{"model", "agent/bounds", "agent/lanes", "agent/tasks", "resources/..."}},
		{folder: "agent/pace", may: []string{"model"}},
		{folder: "agent/repairs", may: []string{"model", "agent/drift", "resources/resource"}},
		{folder: "agent/metrics", may: []string{"model", "model/labels", "model/metric", "agent/outbox", "agent/requests", "agent/tasks"}},
		{folder: "agent/reporter", may: []string{"model", "agent/outbox", "agent/bounds"}},
		{folder: "agent/delivery", may: []string{"model", "agent/outbox", "agent/tasks", "schemas"}},
		{folder: "agent/simulate", may: []string{
			"model/...", "agent/bounds", "agent/clock", "agent/config", "agent/control", "agent/delivery", "agent/reporter", "agent/status", "agent/tasks",
			"resources/manifest", "resources/resource/textdiff",
		}, tests: []string{"resources/host/facts"}},
		{folder: "fleet/describe", may: []string{"model/..."}},
		{folder: "fleet/preview", may: []string{"model", "fleet/request"}},
		{folder: "fleet/request", may: []string{"model", "fleet"}, tests: []string{"fleet/describe"}},
		{folder: "fleet/pausestate", may: []string{"model/...", "fleet/request"}},
		{folder: "fleet/batch", may: []string{"model", "fleet/request"}},
		{folder: "fleet/actions", may: []string{"model/...", "fleet", "fleet/describe", "fleet/pausestate", "fleet/preview", "fleet/request"}, tests: []string{"fleet/target"}},
		{folder: "fleet/contents", may: []string{"model", "fleet", "resources/document/assigned", "resources/host/archive"}, tests: []string{"resources/host/files"}},
		{folder: "fleet/summary", may: []string{"model", "fleet"}},
		{folder: "fleet/query", may: []string{"model", "fleet", "fleet/describe", "fleet/summary", "fleet/target/...", "fleet/view", "resources/document"}},
		{folder: "fleet/view", may: []string{"model/...", "fleet", "fleet/summary", "fleet/view/activity", "fleet/view/attention", "fleet/view/compact", "fleet/view/inventory"}},
		{folder: "fleet/view/activity", may: []string{"model/...", "fleet/describe", "fleet/summary", "fleet/view/attention", "fleet/view/compact"}},
		{folder: "fleet/view/attention", may: []string{"fleet", "fleet/summary", "fleet/view/compact"}},
		{folder: "fleet/view/inventory", may: []string{"model/...", "fleet", "fleet/summary", "fleet/target", "fleet/view/compact"}},
		{folder: "fleet/view/compact"},
		{folder: "fleet/web", may: []string{"model/...", "fleet", "fleet/actions", "fleet/describe", "fleet/preview", "fleet/summary", "fleet/target", "fleet/view"}, tests: []string{"fleet/..."}},
		{folder: "fleet/web/assets"},
		{folder: "fleet/web/page/texts", may: []string{"model"}},
		{folder: "fleet/web/page", may: []string{"model/...", "fleet", "fleet/actions", "fleet/describe", "fleet/preview", "fleet/request", "fleet/summary", "fleet/target", "fleet/view"}},
		{folder: "fleet/web/access", may: []string{"model", "model/sparse", "resources/host/files", "resources/host/trust"}},
		{folder: "fleet/web/api", may: []string{"model/...", "fleet", "fleet/actions", "fleet/describe", "fleet/target", "fleet/view", "fleet/web/access", "resources/document"}, tests: []string{"fleet/summary"}},
		{folder: "fleet/web/metrics", may: []string{"model/...", "fleet", "fleet/summary", "fleet/view", "fleet/webhook"}},
		{folder: "fleet/webhook", may: []string{"model", "resources/document/...", "resources/host/files"}},
		{folder: "fleet/target/mentions", may: []string{"model", "resources/document"}},
		{folder: "fleet/target", may: []string{"model", "resources/document", "resources/pkg/version"}},
		{folder: "fleet/source", may: []string{"model", "resources/manifest"}},
		{folder: "fleet", may: []string{"model/...", "fleet/describe", "fleet/source", "fleet/target/...", "resources/...", "schemas"}, tests: []string{"fleet/contents", "kvstore/..."}},
		{folder: "schemas", may: []string{"model/...", "resources", "resources/document/...", "resources/resource"}, tests: []string{"resources/..."}},
		{folder: "examples", tests: []string{"model", "resources/...", "schemas"}},
		{folder: "docs", may: []string{"model/...", "fleet/web/api", "resources", "resources/resource", "schemas"}, tests: []string{"resources/..."}},
		{folder: "cmd/muster", alone: true, may: []string{"model", "resources/...", "cmd/muster/..."}},
		{folder: "cmd/muster/print", may: []string{"model", "model/safetext", "resources/document"}},
		{folder: "cmd/muster/cli", may: []string{"model/...", "resources/...", "kvstore/...", "cmd/muster/print"}},
		{folder: "testing", may: []string{"..."}},
	}
	for name, more := range commandRooms {
		all = append(all, room{folder: "cmd/muster/" + name, may: append([]string{"model/...", "resources/...", "kvstore/...", "schemas", "cmd/muster/cli", "cmd/muster/print"}, more...)})
	}
	for _, name := range kvstoreRooms {
		may := []string{"model/...", "kvstore", "kvstore/answer", "kvstore/denial", "kvstore/jsapi", "kvstore/newest", "kvstore/scan"}
		if name == "assignments" {
			may = append(may, "resources/document/assigned")
		}
		all = append(all, room{folder: "kvstore/" + name, may: may, tests: []string{"kvstore/..."}})
	}
	for _, name := range agentRooms {
		all = append(all, room{folder: "agent/" + name, may: []string{"model/...", "agent/tasks", "agent/bounds", "resources/..."}})
	}

	return all
}

// typeOf returns the folder of the resource type that a folder is part of, empty
// for any other folder.
func typeOf(folder string) string {
	name, below := strings.CutPrefix(folder, "resources/")
	name, _, _ = strings.Cut(name, "/")
	root := "resources/" + name
	if !below || slices.ContainsFunc(rooms(), func(r room) bool { return r.folder == root }) {
		return ""
	}

	return root
}

// roomOf finds the room of a folder.
func roomOf(folder string) (room, bool) {
	var best room
	found := false
	for _, r := range rooms() {
		if (folder == r.folder || !r.alone && within(folder, r.folder)) && len(r.folder) > len(best.folder) {
			best, found = r, true
		}
	}

	if root := typeOf(folder); !found && root != "" {
		return room{folder: root, may: contract}, true
	}

	return best, found
}

func within(folder, root string) bool { return folder == root || strings.HasPrefix(folder, root+"/") }

func matches(pattern, folder string) bool {
	if pattern == types {
		return typeOf(folder) != ""
	}
	root, below := strings.CutSuffix(pattern, "...")
	if !below {
		return folder == pattern
	}
	root = strings.TrimSuffix(root, "/")

	return root == "" || within(folder, root)
}

func checkRooms(f *File) []Breach {
	r, ok := roomOf(f.Folder)
	if !ok {
		return []Breach{f.breach(f.syntax.Package, "%s is in no room of the design", f.Folder)}
	}
	may := append(slices.Clone(r.may), everywhere)
	if !r.alone {
		may = append(may, r.folder+"/...")
	}
	if f.Test {
		may = append(append(may, r.folder, "testing/..."), r.tests...)
	}
	var out []Breach
	for _, spec := range f.syntax.Imports {
		imported, ours := strings.CutPrefix(importPath(spec), Module)
		imported = strings.TrimPrefix(imported, "/")
		if ours && !slices.ContainsFunc(may, func(p string) bool { return matches(p, imported) }) {
			out = append(out, f.breach(spec.Pos(), "%s must not import %s", r.folder, imported))
		}
	}

	return out
}

// checkNATS leaves NATS to kvstore, to the command line, which embeds a server
// for the demo and makes the connection, and to tests.
func checkNATS(f *File) []Breach {
	if within(f.Folder, "kvstore") || within(f.Folder, "testing") || within(f.Folder, "cmd/muster") {
		return nil
	}
	if f.Test && (within(f.Folder, "agent") || within(f.Folder, "fleet")) {
		return nil
	}
	// The kind of a key is no connection.
	signs := within(f.Folder, "model/signed")

	return f.mustNotImport("only kvstore does", func(p string) bool {
		return strings.HasPrefix(p, "github.com/nats-io/") && (!signs || p != "github.com/nats-io/nkeys")
	})
}

func (f *File) mustNotImport(because string, what func(path string) bool) []Breach {
	var out []Breach
	for _, spec := range f.syntax.Imports {
		if p := importPath(spec); what(p) {
			out = append(out, f.breach(spec.Pos(), "%s must not import %s, %s", f.Folder, p, because))
		}
	}

	return out
}

// checkGoss keeps goss out of everything but the program that is started to
// evaluate its rules.
func checkGoss(f *File) []Breach {
	const room = "resources/health/goss"
	if within(f.Folder, room) {
		return nil
	}

	return f.mustNotImport("muster starts itself to evaluate goss", func(p string) bool {
		return strings.HasPrefix(p, "github.com/goss-org/") || p == Module+"/"+room && !within(f.Folder, "cmd")
	})
}

// checkProcesses leaves starting processes to the commands of host: nothing else would kill
// whole process groups and keep secrets out of environments.
func checkProcesses(f *File) []Breach {
	if within(f.Folder, "resources/host/command") || within(f.Folder, "testing") {
		return nil
	}
	out := f.mustNotImport("resources/host/command runs commands", func(p string) bool { return p == "os/exec" })
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if ok && (f.selects(e, "os", "StartProcess") || f.selects(e, "syscall", "StartProcess", "ForkExec", "Exec") || f.selects(e, "golang.org/x/sys/unix", "Exec")) {
			out = append(out, f.breach(n.Pos(), "%s must not start processes, resources/host/command does", f.Folder))
		}
		return true
	})

	return out
}

// checkScaffold keeps the library choria-io/scaffold in the room of the process
// that renders by it: it renders without any bound.
func checkScaffold(f *File) []Breach {
	if within(f.Folder, "resources/scaffold/choria/render") {
		return nil
	}

	return f.mustNotImport("a process of its own renders scaffolds", func(p string) bool {
		return p == "github.com/choria-io/scaffold" || strings.HasPrefix(p, "github.com/choria-io/scaffold/")
	})
}

// checkYAML keeps the parser of YAML in one room: it panics on input that it did not
// foresee, and ends lines at other characters than documents do.
func checkYAML(f *File) []Breach {
	const parser = "gopkg.in/yaml.v3"
	uses := slices.ContainsFunc(f.syntax.Imports, func(spec *ast.ImportSpec) bool { return importPath(spec) == parser })
	if !uses || f.Test || within(f.Folder, "resources/document/yamlread") || within(f.Folder, "testing") {
		return nil
	}
	var out []Breach
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if ok && (f.selects(s, parser, "Unmarshal", "NewDecoder") || s.Sel.Name == "Decode") {
			out = append(out, f.breach(n.Pos(), "%s must not parse YAML, resources/document does", f.Folder))
		}
		return true
	})

	return out
}
