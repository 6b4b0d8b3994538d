package scaffold_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
	"github.com/musterfleet/muster/testing/typetest"
	"golang.org/x/sys/unix"
)

func scaffoldType() *resource.Type { return scaffold.New(scaffold.Choria{}) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type setup = func(t *testing.T, dir string)

func all(setups ...setup) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		for _, s := range setups {
			s(t, dir)
		}
	}
}

// put makes files in the case's directory, name and content in turn, with a mode
// after the name where it is not 0644: bin/run 0755.
func put(files ...string) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		for i := 0; i < len(files); i += 2 {
			name, bits, _ := strings.Cut(files[i], " ")
			mode := fs.FileMode(0o644)
			if bits != "" {
				_, err := fmt.Sscanf(bits, "%o", &mode)
				check(t, err)
			}
			path := filepath.Join(dir, name)
			check(t, os.MkdirAll(filepath.Dir(path), 0o755))
			check(t, os.WriteFile(path, []byte(files[i+1]), 0o600))
			check(t, os.Chmod(path, mode))
		}
	}
}

func link(name, target string) setup {
	return func(t *testing.T, dir string) {
		check(t, os.Symlink(strings.ReplaceAll(target, "DIR", dir), filepath.Join(dir, name)))
	}
}

func directory(name string) setup {
	return func(t *testing.T, dir string) { check(t, os.MkdirAll(filepath.Join(dir, name), 0o755)) }
}

// has checks the files below a directory, as put makes them: no others are there.
func has(name string, files ...string) setup {
	return func(t *testing.T, dir string) {
		t.Helper()
		var got []string
		root := filepath.Join(dir, name)
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || path == root {
				return err
			}
			rel := strings.TrimPrefix(path, root+"/")
			if d.IsDir() {
				got = append(got, rel+"/", "")
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if mode := info.Mode().Perm(); mode != 0o644 {
				rel = fmt.Sprintf("%s %04o", rel, mode)
			}
			content := []byte("-> a link")
			if d.Type().IsRegular() {
				content, err = os.ReadFile(path)
			}
			got = append(got, rel, string(content))
			return err
		})
		if os.IsNotExist(err) {
			got = []string{"nothing"}
		} else {
			check(t, err)
		}
		if !slices.Equal(got, files) {
			t.Errorf("%s has\n%q, not\n%q", name, got, files)
		}
	}
}

// of gives properties of DIR/out from DIR/src, more of them in turn.
func of(more ...any) func(dir string) typetest.Properties {
	return func(dir string) typetest.Properties {
		p := typetest.Properties{"name": dir + "/out", "source": "src", "data": map[string]any{"name": "app"}}
		for i := 0; i < len(more); i += 2 {
			value := more[i+1]
			if text, ok := value.(string); ok {
				value = strings.ReplaceAll(text, "DIR", dir)
			}
			p[more[i].(string)] = value
		}
		return p
	}
}

func post(entries ...string) []any {
	var out []any
	for i := 0; i < len(entries); i += 2 {
		out = append(out, map[string]any{entries[i]: entries[i+1]})
	}

	return out
}

// changed and removed are the words of the table "Noop Mode".
func changed(n int) string { return "Would have changed " + count(n) }
func removed(n int) string { return "Would have removed " + count(n) }

func count(n int) string {
	if n == 1 {
		return "1 scaffold file"
	}

	return fmt.Sprintf("%d scaffold files", n)
}

func TestContract(t *testing.T) {
	cases := slices.Concat(decisionCases(), engineCases(), removalCases(), postCases(), validateCases(), obstacleCases())
	// It touches nothing but memory.
	renders := typetest.Only("/proc/self/exe --log-level=error render-scaffold")
	typetest.Run(t, typetest.Config{Type: scaffoldType(), Facts: model.Facts{"os": "debian"}, Cases: cases, ReadOnly: renders})
}

// two are the templates of most cases.
func two() setup {
	return put("src/app.conf", "name = [[ Data.name ]]\n", "src/bin/run 0755", "#!/bin/sh\n# [[ facts.os ]]\n")
}

func rendered() []string {
	return []string{"app.conf", "name = app\n", "bin/", "", "bin/run 0755", "#!/bin/sh\n# debian\n"}
}

func renderedBelow(prefix string) setup {
	return put(prefix+"/app.conf", "name = app\n", prefix+"/bin/run 0755", "#!/bin/sh\n# debian\n")
}

// decisionCases are the rows of the tables "Decision Table", "Noop Mode" and
// "State Checks", and of "Result Categorization".
func decisionCases() []typetest.Case {
	done, one := all(two(), renderedBelow("out")), all(two(), renderedBelow("out"), put("out/app.conf", "old\n"))
	extra := put("out/extra", "x", "out/bin/more", "y")

	return []typetest.Case{
		{Name: "absent, no target", Setup: two(), Properties: of("ensure", "absent")},
		{Name: "absent, target, no changed files", Setup: all(two(), directory("out/bin")), Properties: of("ensure", "absent"), Check: has("out", "bin/", "")},
		{Name: "absent, target, purged files only", Setup: all(two(), extra), Properties: of("ensure", "absent", "purge", true), Check: has("out", "bin/", "", "bin/more", "y", "extra", "x")},
		{Name: "absent, stable files", Setup: done, Properties: of("ensure", "absent"), Message: removed(2), Check: has("out", "nothing")},
		{Name: "absent, a changed file", Setup: one, Properties: of("ensure", "absent"), Message: removed(2), Check: has("out", "nothing")},
		{Name: "absent, one of two", Setup: all(two(), put("out/app.conf", "old\n")), Properties: of("ensure", "absent"), Message: removed(1), Check: has("out", "nothing")},
		{Name: "absent, files and purged files", Setup: all(done, extra), Properties: of("ensure", "absent"), Message: removed(2), Check: has("out", "bin/", "", "bin/more", "y", "extra", "x")},
		{Name: "absent, files and purged files, purge", Setup: all(done, extra), Properties: of("ensure", "absent", "purge", true), Message: removed(4), Check: has("out", "bin/", "", "bin/more", "y", "extra", "x")},
		{Name: "present, stable", Setup: done, Properties: of(), Check: has("out", rendered()...)},
		{Name: "present, stable, purge", Setup: done, Properties: of("purge", true)},
		{Name: "present, purged files, no purge", Setup: all(done, extra), Properties: of(), Check: has("out", "app.conf", "name = app\n", "bin/", "", "bin/more", "y", "bin/run 0755", "#!/bin/sh\n# debian\n", "extra", "x")},
		{Name: "present, purged files, purge", Setup: all(done, extra), Properties: of("purge", true), Message: changed(2), Check: has("out", rendered()...)},
		{Name: "present, a changed file", Setup: one, Properties: of(), Message: changed(1), Check: has("out", rendered()...)},
		{Name: "present, a changed and purged files", Setup: all(one, extra), Properties: of(), Message: changed(1)},
		{Name: "present, a changed and purged files, purge", Setup: all(one, extra), Properties: of("purge", true), Message: changed(3), Check: has("out", rendered()...)},
		{Name: "present, a missing file", Setup: all(two(), put("out/app.conf", "name = app\n")), Properties: of(), Message: changed(1), Check: has("out", rendered()...)},
		{Name: "present, no target", Setup: two(), Properties: of(), Message: changed(2), Check: has("out", rendered()...)},
		{Name: "present, no target, purge", Setup: two(), Properties: of("purge", true), Message: changed(2)},
		{Name: "present, no target, deep", Setup: two(), Properties: of("name", "DIR/a/b/out"), Message: changed(2), Check: has("a/b/out", rendered()...)},
		{Name: "present, no target, no templates", Setup: directory("src"), Properties: of(), Message: changed(0), Check: has("out")},
		{Name: "present, empty target, no templates", Setup: all(directory("src"), directory("out")), Properties: of()},
		{Name: "another mode", Setup: all(done, put("out/app.conf 0600", "name = app\n")), Properties: of(), Message: changed(1), Check: has("out", rendered()...)},
		{Name: "purged links are removed, not followed", Setup: all(done, put("other/x", "kept"), link("out/link", "DIR/other")), Properties: of("purge", true), Message: changed(1), Check: all(has("out", rendered()...), has("other", "x", "kept"))},
	}
}

// engineCases are the rows of "Template Engines", "Properties", "Engine
// Selection", "Source Resolution" and "Template Environment".
func engineCases() []typetest.Case {
	gone := func(text string) setup { return put("src/f", text) }
	partial := all(put("src/_partials/p", "p [[ .x ]]"), put("src/sub/_partials/q", "q"))

	return []typetest.Case{
		{Name: "jet is the default", Setup: gone("[[ Data.name ]] {{ x }}"), Properties: of(), Message: changed(1), Check: has("out", "f", "app {{ x }}")},
		{Name: "jet", Setup: gone("[[ data.name | upper ]]"), Properties: of("engine", "jet"), Message: changed(1), Check: has("out", "f", "APP")},
		{Name: "go", Setup: gone("{{ .Data.name | upper }} [[ x ]]"), Properties: of("engine", "go"), Message: changed(1), Check: has("out", "f", "APP [[ x ]]")},
		{Name: "go, facts", Setup: gone("{{ .Facts.os }} {{ .facts.os }}"), Properties: of("engine", "go"), Message: changed(1), Check: has("out", "f", "debian debian")},
		{Name: "jet, facts", Setup: gone("[[ Facts.os ]] [[ facts.os ]]"), Properties: of(), Message: changed(1), Check: has("out", "f", "debian debian")},
		{Name: "go, delimiters", Setup: gone("<< .Data.name >> {{ x }}"), Properties: of("engine", "go", "left_delimiter", "<<", "right_delimiter", ">>"), Message: changed(1), Check: has("out", "f", "app {{ x }}")},
		{Name: "jet, delimiters", Setup: gone("<< Data.name >> [[ x ]]"), Properties: of("left_delimiter", "<<", "right_delimiter", ">>"), Message: changed(1), Check: has("out", "f", "app [[ x ]]")},
		{Name: "skip_empty", Setup: put("src/a", "[[ if false ]]x[[ end ]] \n", "src/b", "b"), Properties: of("skip_empty", true), Message: changed(1), Check: has("out", "b", "b")},
		{Name: "skip_empty, go", Setup: put("src/a", "{{ if false }}x{{ end }} \n", "src/b", "b"), Properties: of("skip_empty", true, "engine", "go"), Message: changed(1), Check: has("out", "b", "b")},
		{Name: "skip_empty, absent", Setup: put("src/a", "[[ if false ]]x[[ end ]]", "src/b", "b", "out/a", "own", "out/b", "old"), Properties: of("skip_empty", true, "ensure", "absent"), Message: removed(1), Check: has("out", "a", "own")},
		{Name: "delimiters of partials", Setup: put("src/f", `<< render("_partials/p", .) >>`, "src/_partials/p", "<< Data.name >> [[ x ]]"), Properties: of("left_delimiter", "<<", "right_delimiter", ">>"), Message: changed(1), Check: has("out", "f", "app [[ x ]]")},
		{Name: "delimiters of go partials", Setup: put("src/f", `<< render "_partials/p" . >>`, "src/_partials/p", "<< .Data.name >> {{ x }}"), Properties: of("engine", "go", "left_delimiter", "<<", "right_delimiter", ">>"), Message: changed(1), Check: has("out", "f", "app {{ x }}")},
		{Name: "no skip_empty", Setup: put("src/a", "[[ if false ]]x[[ end ]] \n", "src/b", "b"), Properties: of(), Message: changed(2), Check: has("out", "a", " \n", "b", "b")},
		{Name: "skip_empty, purge", Setup: put("src/a", "[[ if false ]]x[[ end ]]", "out/a", "old"), Properties: of("skip_empty", true, "purge", true), Message: changed(1), Check: has("out")},
		{Name: "an absolute source", Setup: two(), Properties: of("source", "DIR/src"), Message: changed(2), Check: has("out", rendered()...)},
		{Name: "a source that is a link", Setup: all(two(), link("linked", "src")), Properties: of("source", "linked", "purge", true), Message: changed(2), Check: has("out", rendered()...)},
		{Name: "a source that ends in /", Setup: two(), Properties: of("source", "DIR/src/"), Message: changed(2), Check: has("out", rendered()...)},
		{Name: "bytes", Setup: gone("\xff\xfe\x00[[ 1 ]]\r\n"), Properties: of(), Message: changed(1), Check: has("out", "f", "\xff\xfe\x001\r\n")},
		{Name: "jet, partials", Setup: all(partial, gone(`[[ render("_partials/p", map("x", 1)) ]]`)), Properties: of(), Message: changed(1), Check: has("out", "f", "p 1")},
		{Name: "go, partials", Setup: put("src/_partials/p", "p {{ .Data.name }}", "src/f", `{{ render "_partials/p" . }}`), Properties: of("engine", "go"), Message: changed(1), Check: has("out", "f", "p app")},
		{Name: "partials see the same", Setup: put("src/_partials/p", "p [[ Data.name ]]", "src/f", `[[ render("_partials/p", .) ]]`), Properties: of(), Message: changed(1), Check: has("out", "f", "p app")},
		{Name: "jet, written", Setup: put("src/d/keep", "k", "src/f", `[[ range i, n := Data.list ]][[ write("d/" + n, n + "!") ]][[ end ]]`), Properties: of("data", map[string]any{"list": []any{"a", "b"}}, "skip_empty", true), Message: changed(3), Check: has("out", "d/", "", "d/a", "a!", "d/b", "b!", "d/keep", "k")},
		{Name: "go, written", Setup: gone(`{{ write "w" "x" }}f`), Properties: of("engine", "go"), Message: changed(2), Check: has("out", "f", "f", "w", "x")},
		{Name: "jet, a partial's own dot", Setup: put("src/f", `[[ render("_partials/p", "x") ]]`, "src/_partials/p", "[[ . ]] [[ isset(Data) ]]"), Properties: of(), Message: changed(1), Check: has("out", "f", "x false")},
		{Name: "jet, renders itself with an end", Setup: gone(`x[[ if isset(.n) && .n < 3 ]][[ render("f", map("n", .n + 1)) ]][[ else if !isset(.n) ]][[ render("f", map("n", 0)) ]][[ end ]]`), Properties: of(), Message: changed(1), Check: has("out", "f", "xxxxx")},
		{Name: "go, renders itself with an end", Setup: gone(`x{{ if not (kindIs "int" .) }}{{ render "f" 0 }}{{ else if lt . 3 }}{{ render "f" (add1 . | int) }}{{ end }}`), Properties: of("engine", "go"), Message: changed(1), Check: has("out", "f", "xxxxx")},
		{Name: "written into a directory of its own", Setup: gone(`[[ write("users/ann", "a") ]]`), Properties: of("skip_empty", true), Message: changed(1), Check: has("out", "users/", "", "users/ann", "a")},
		{Name: "written again", Setup: gone(`[[ write("w", "x") ]][[ write("w", "y") ]]f`), Properties: of(), Message: changed(2), Check: has("out", "f", "f", "w", "y")},
		{Name: "written, stable", Setup: put("src/f", `[[ write("w", "x") ]]f`, "out/f", "f", "out/w", "x"), Properties: of("purge", true)},
	}
}

// removalCases cover "Remove", "File Removal Order" and "Directory Cleanup".
func removalCases() []typetest.Case {
	deep := put("src/a/b/c/f", "1", "src/a/g", "2", "src/h", "3", "src/a/b/i", "4")
	made := put("out/a/b/c/f", "1", "out/a/g", "2", "out/h", "3", "out/a/b/i", "4")

	return []typetest.Case{
		{Name: "deepest first", Setup: all(deep, made), Properties: of("ensure", "absent"), Message: removed(4), Check: has("out", "nothing")},
		{Name: "others keep their directories", Setup: all(deep, made, put("out/a/b/other", "o")), Properties: of("ensure", "absent"), Message: removed(4), Check: has("out", "a/", "", "a/b/", "", "a/b/other", "o")},
		{Name: "empty directories of others stay", Setup: all(deep, made, directory("out/own")), Properties: of("ensure", "absent"), Message: removed(4), Check: has("out", "own/", "")},
		{Name: "links are removed, not followed", Setup: all(deep, put("other/x", "kept"), directory("out"), link("out/h", "DIR/other/x")), Properties: of("ensure", "absent"), Message: removed(1), Check: all(has("out", "nothing"), has("other", "x", "kept"))},
		{Name: "nothing behind links", Setup: all(deep, put("other/g", "2"), directory("out"), link("out/a", "DIR/other")), Properties: of("ensure", "absent"), Check: has("other", "g", "2")},
		{Name: "a target that is a file", Setup: all(deep, put("out", "x")), Properties: of("ensure", "absent")},
		{Name: "a target that is a link", Setup: all(deep, put("other/h", "3"), link("out", "other")), Properties: of("ensure", "absent"), Check: has("other", "h", "3")},
		{Name: "a directory in a file's place", Setup: all(deep, directory("out/h/x")), Properties: of("ensure", "absent"), Check: has("out", "h/", "", "h/x/", "")},
	}
}

// postCases cover "Post-Processing" and the decisions in README.
func postCases() []typetest.Case {
	shout := `sh -c "tr a-z A-Z <\"$0\" >\"$0.new\" && mv \"$0.new\" \"$0\""`

	return []typetest.Case{
		{Name: "a file drifts", Setup: two(), Properties: of(), Message: changed(2), Drift: func(t testing.TB, dir string) { check(t, os.WriteFile(dir+"/out/bin/run", []byte("x"), 0o755)) }},
		{Name: "a file to purge comes", Setup: two(), Properties: of("purge", true), Message: changed(2), Drift: func(t testing.TB, dir string) {
			check(t, os.MkdirAll(dir+"/out/new/er", 0o755))
			check(t, os.WriteFile(dir+"/out/new/er/file", nil, 0o644))
		}},
		{Name: "the path at the end", Setup: two(), Properties: of("post", post("*.conf", shout)), Message: changed(2), Check: has("out", "app.conf", "NAME = APP\n", "bin/", "", "bin/run 0755", "#!/bin/sh\n# debian\n")},
		{Name: "the path in place", Setup: two(), Properties: of("post", post("run", `sh -c "echo more >> {}"`)), Message: changed(2), Check: has("out", "app.conf", "name = app\n", "bin/", "", "bin/run 0755", "#!/bin/sh\n# debian\nmore\n")},
		{Name: "attributes", Setup: two(), Properties: of("post", post("*.conf", "chmod 0600 {}")), Message: changed(2), Check: has("out", "app.conf 0600", "name = app\n", "bin/", "", "bin/run 0755", "#!/bin/sh\n# debian\n")},
		{Name: "in order", Setup: put("src/f", "1"), Properties: of("post", post("f", `sh -c "echo 2 >> {}"`, "f*", `sh -c "echo 3 >> {}"`)), Message: changed(1), Check: has("out", "f", "12\n3\n")},
		{Name: "no match", Setup: put("src/f", "1"), Properties: of("post", post("*.go", "false")), Message: changed(1), Check: has("out", "f", "1")},
		{Name: "not on what is stable", Setup: put("src/f", "1", "src/g", "2", "out/f", "1"), Properties: of("post", post("g", `sh -c "echo 3 >> {}"`)), Message: changed(1), Check: has("out", "f", "1", "g", "23\n")},
		{Name: "on what templates write", Setup: put("src/f", `[[ write("d/g.sh", "1\n") ]]2`), Properties: of("post", post("*.sh", `sh -c "echo 3 >> {}"`)), Message: changed(2), Check: has("out", "d/", "", "d/g.sh", "1\n3\n", "f", "2")},
		{Name: "on files below directories", Setup: put("src/a/b/f.sh", "1\n", "src/f", "2"), Properties: of("post", post("*.sh", `sh -c "echo 3 >> {}"`)), Message: changed(2), Check: has("out", "a/", "", "a/b/", "", "a/b/f.sh", "1\n3\n", "f", "2")},
		{Name: "in the target", Setup: put("src/f", "1"), Properties: of("post", post("f", `sh -c "pwd > beside"`)), Message: changed(1)},
	}
}

// obstacleCases are what must not be replaced, and sources that are none.
func obstacleCases() []typetest.Case {
	const endless = "f: the templates render one another without end"
	fifo := func(t *testing.T, dir string) { check(t, unix.Mkfifo(filepath.Join(dir, "out/app.conf"), 0o644)) }

	return []typetest.Case{
		{Name: "a file for a target", Setup: all(two(), put("out", "x")), Properties: of(), Error: "path exists as a file, not as a directory"},
		{Name: "a link for a target", Setup: all(two(), directory("other"), link("out", "other")), Properties: of(), Error: "out is a symbolic link, name the directory itself"},
		{Name: "a file above the target", Setup: all(two(), put("x", "")), Properties: of("name", "DIR/x/out"), Error: "is not a directory"},
		{Name: "a directory for a file", Setup: all(two(), directory("out/app.conf")), Properties: of(), Error: "app.conf: path exists as a directory, not as a regular file"},
		{Name: "a fifo for a file", Setup: all(two(), directory("out"), fifo), Properties: of(), Error: "app.conf: path exists as a special file, not as a regular file"},
		{Name: "a link for a directory", Setup: all(two(), directory("out"), directory("other"), link("out/bin", "DIR/other")), Properties: of(), Error: "out/bin is a symbolic link, and a scaffold does not go through links"},
		{Name: "a file for a directory", Setup: all(two(), put("out/bin", "x")), Properties: of(), Error: "out/bin exists and is not a directory"},
		{Name: "a link for a file", Setup: all(two(), put("other", "kept"), directory("out"), link("out/app.conf", "DIR/other")), Properties: of(), Message: changed(2), Check: all(has("out", rendered()...), func(t *testing.T, dir string) {
			if text, err := os.ReadFile(filepath.Join(dir, "other")); err != nil || string(text) != "kept" {
				t.Error("it was written through the link", string(text), err)
			}
		})},
		{Name: "no source", Properties: of(), Error: "src: file does not exist (correct `source`"},
		{Name: "a source that is a file", Setup: put("src", "x"), Properties: of(), Error: "src is a file, not a directory of templates"},
		{Name: "a link in the source", Setup: all(two(), link("src/l", "/etc/passwd")), Properties: of(), Error: "l in the source is a link or special file: only files and directories are rendered"},
		{Name: "a file called _partials", Setup: all(two(), put("src/_partials", "x")), Properties: of("purge", true), Error: "_partials in the source must be a directory"},
		{Name: "a target within the source", Setup: two(), Properties: of("name", "DIR/src/out"), Error: "must not be within each other"},
		{Name: "a source within the target", Setup: two(), Properties: of("name", "DIR", "purge", true), Error: "must not be within each other"},
		{Name: "a fetched source without a manifest", Properties: of("source", "https://example.com/x.tar.gz"), Error: "a source cannot be fetched here"},
		{Name: "jet, not valid", Setup: put("src/d/f", "a\n  [[ if ]]"), Properties: of(), Error: "d/f:2: parsing if: unexpected token ']]' (expected term)"},
		{Name: "jet, fails", Setup: put("src/d/f", "a\n  [[ Nope ]]"), Properties: of(), Error: "d/f:2: unknown name `Nope`"},
		{Name: "go, not valid", Setup: put("src/d/f", "a\n  {{ if }}"), Properties: of("engine", "go"), Error: "d/f:2: missing value for if"},
		{Name: "go, fails", Setup: put("src/d/f", "a\n  {{ fail \"so\" }}"), Properties: of("engine", "go"), Error: "d/f:2: <fail \"so\">: error calling fail: so"},
		{Name: "go, a missing key", Setup: put("src/f", "a\n{{ .Data.no }}"), Properties: of("engine", "go"), Error: "f:2: `.Data.no` is missing or null"},
		{Name: "a partial fails", Setup: put("src/_partials/p", "[[ Nope ]]", "src/f", `[[ render("_partials/p", .) ]]`), Properties: of(), Error: "f:1: render: _partials/p:1: unknown name `Nope`"},
		{Name: "a partial out of the source", Setup: put("secret", "x", "src/f", `[[ render("../secret", .) ]]`), Properties: of(), Error: `f:1: render: there is no template "../secret" in the source`},
		{Name: "written out of the target", Setup: put("src/f", `[[ write("../w", "x") ]]`), Properties: of(), Error: "/w is not in target directory"},
		{Name: "a partial that is missing", Setup: put("src/f", `[[ render("_partials/no", .) ]]`), Properties: of(), Error: `f:1: render: there is no template "_partials/no" in the source`},
		{Name: "a file in a file", Setup: put("src/f", `[[ write("g/h", "x") ]]`, "src/g", ""), Properties: of(), Error: "out/g is a file and a directory"},
		{Name: "jet, yields itself", Setup: put("src/f", "\n[[ block a() ]][[ yield a() ]][[ end ]]"), Properties: of(), Error: endless},
		{Name: "jet, includes itself", Setup: put("src/f", "\n[[ include \"f\" ]]"), Properties: of(), Error: "f:2: template /f could not be found"},
		{Name: "jet, renders itself", Setup: put("src/f", "x[[ render(\"f\", .) ]]"), Properties: of(), Error: endless},
		{Name: "jet, render one another", Setup: put("src/f", `[[ render("_partials/p", .) ]]`, "src/_partials/p", `[[ render("f", .) ]]`), Properties: of(), Error: endless},
		{Name: "jet, a missing key with a dot", Setup: put("src/f", "a [[ .Data.no ]]"), Properties: of(), Error: "f:1: can't use no as field name"},
		{Name: "go, calls itself", Setup: put("src/f", `{{ define "a" }}{{ if 1 }}{{ with 1 }}{{ template "a" }}{{ end }}{{ end }}{{ end }}{{ template "a" }}`), Properties: of("engine", "go"), Error: endless},
		{Name: "go, renders itself", Setup: put("src/f", "x\n{{ render \"f\" . }}"), Properties: of("engine", "go"), Error: endless},
		{Name: "jet, includes another", Setup: put("src/d/f", "\n[[ include \"../_partials/p\" ]]", "src/_partials/p", ""), Properties: of(), Error: "d/f:2: template /_partials/p could not be found"},
		{Name: "a partial that is given nothing", Setup: put("src/_partials/p", "[[ Data.name ]]", "src/f", `[[ render("_partials/p", 1) ]]`), Properties: of(), Error: "f:1: render: _partials/p:1: unknown name `Data`"},
		{Name: "delimiters, fails", Setup: put("src/f", "a\n  << Nope >>"), Properties: of("left_delimiter", "<<", "right_delimiter", ">>"), Error: "f:2: unknown name `Nope`"},
		{Name: "go, delimiters, not valid", Setup: put("src/f", "a\n  << if >>"), Properties: of("engine", "go", "left_delimiter", "<<", "right_delimiter", ">>"), Error: "f:2: missing value for if"},
		{Name: "written twice", Setup: put("src/f", `[[ write("g", "x") ]]`, "src/g", ""), Properties: of(), Error: "out/g: the file of one template, and a call of write in another template; rename one of them"},
	}
}
