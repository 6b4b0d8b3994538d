package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// pureRoom is pure: its results depend only on their arguments.
const pureRoom = "resources/engine/plan"

// impure are the packages through which code could look at the machine, the
// clock or chance, or write a log.
var impure = []string{"os", "io", "io/fs", "io/ioutil", "net", "log", "log/slog", "math/rand", "math/rand/v2", "crypto/rand", "syscall", "sync"}

// checkPure keeps the rooms that decide free of host, clock and log. They may
// name types of resource that have them, but neither call nor make any.
func checkPure(f *File) []Breach {
	if f.Test || f.Folder != pureRoom {
		return nil
	}
	out := f.mustNotImport("it is pure", func(p string) bool {
		root, _, _ := strings.Cut(p, "/")
		return slices.Contains(impure, p) || root == "net" || strings.HasPrefix(p, "golang.org/x/sys")
	})

	return append(out, f.mustNotRead("it is pure")...)
}

// mustNotRead finds readings of the clock.
func (f *File) mustNotRead(because string) []Breach {
	var out []Breach
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && f.selects(e, "time", "Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep") {
			out = append(out, f.breach(n.Pos(), "%s must not use the clock, %s", f.Folder, because))
		}
		return true
	})

	return out
}

// timeless are the rooms that never read the clock.
var timeless = []string{
	"model", "model/registration", "model/signed", "resources", "resources/document", "resources/resource", "schemas",
}

// checkClock refuses the clock in these rooms.
func checkClock(f *File) []Breach {
	if f.Test || !slices.Contains(timeless, f.Folder) {
		return nil
	}

	return f.mustNotRead("its callers know the time")
}

// diskUsers are the rooms that may read and write files with os: host, which does it for the others; rooms
// with files (agent state, operators' manifests, credentials); and the command line.
var diskUsers = []string{
	"resources/host", "resources/scaffold", "resources/service/systemd", "resources/manifest", "resources/health/goss",
	"resources/exec", "resources/pkg", // whether a provider's programs are there, and what a package manager left
	"agent", "fleet", "kvstore", "cmd", "testing", "schemas/internal", "docs/internal",
}

// onDisk are the functions of os that name a path.
var onDisk = []string{
	"Open", "OpenFile", "OpenRoot", "Create", "CreateTemp", "ReadFile", "WriteFile", "ReadDir", "Mkdir", "MkdirAll", "MkdirTemp", "Remove", "RemoveAll",
	"Rename", "Link", "Symlink", "Readlink", "Stat", "Lstat", "Chmod", "Chown", "Lchown", "Chtimes", "Truncate", "DirFS", "CopyFS", "Chdir",
}

// checkDisk leaves the file system to host: whatever else names a path would
// look at it twice.
func checkDisk(f *File) []Breach {
	if f.Test || slices.ContainsFunc(diskUsers, func(room string) bool { return within(f.Folder, room) }) {
		return nil
	}
	var out []Breach
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && f.selects(e, "os", onDisk...) {
			out = append(out, f.breach(n.Pos(), "%s must not use files by os, resources/host does", f.Folder))
		}
		return true
	})

	return out
}

// checkRemoval refuses os.RemoveAll, which crosses mounts.
func checkRemoval(f *File) []Breach {
	if f.Test || within(f.Folder, "testing") {
		return nil
	}
	var out []Breach
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok && f.selects(e, "os", "RemoveAll") {
			out = append(out, f.breach(n.Pos(), "use paths.RemoveTree, os.RemoveAll crosses mounts"))
		}
		return true
	})

	return out
}

// checkGoroutines refuses the go statement. A sync.WaitGroup starts goroutines, so its owner can wait for
// them.
func checkGoroutines(f *File) []Breach {
	if f.Test || within(f.Folder, "testing") {
		return nil
	}
	var out []Breach
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			out = append(out, f.breach(g.Pos(), "start it by WaitGroup.Go, and wait for it"))
		}
		return true
	})

	return out
}
