package edits_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/edits"
	"github.com/musterfleet/muster/resources/resource"
)

func lineType() *resource.Type { return edits.Line(edits.Posix{}) }

const sshd = "# sshd\n#Port 22\nPermitRootLogin yes\nMatch User git\n"

func TestLine(t *testing.T) {
	port := properties{"line": "Port 2222", "match": "^#?Port "}
	with := func(p properties, more properties) properties {
		out := properties{}
		for _, from := range []properties{p, more} {
			for key, value := range from {
				out[key] = value
			}
		}
		return out
	}
	twice := "Port 1\nx\nPort 2\n"
	try(t, lineType(), []row{
		{name: "a matching line is equal", before: "a\nPort 2222\n", properties: port, lines: []int{2}},
		{name: "an equal line without match", before: "a\nb\nc\n", properties: properties{"line": "b"}, lines: []int{2}},
		{name: "the place is not enforced", before: "b\na\n", properties: properties{"line": "b", "after": "^a"}},
		{name: "a matching line differs", before: sshd, properties: port, after: "# sshd\nPort 2222\nPermitRootLogin yes\nMatch User git\n", message: "Would have changed line 2", lines: []int{2}},
		{name: "added at the end", before: "a\nb\n", properties: properties{"line": "c"}, after: "a\nb\nc\n", message: "Would have added a line after line 2"},
		{name: "added at the end, with match", before: "a\nb\n", properties: port, after: "a\nb\nPort 2222\n", message: "Would have added a line after line 2"},
		{name: "added at the start", before: "a\nb\n", properties: properties{"line": "c", "at": "start"}, after: "c\na\nb\n", message: "Would have added a line before line 1"},
		{name: "added after the last match", before: sshd + "b\n", properties: properties{"line": "x", "after": "^(#|P)"}, after: "# sshd\n#Port 22\nPermitRootLogin yes\nx\nMatch User git\nb\n", message: "Would have added a line after line 3"},
		{name: "added before the first match", before: sshd, properties: properties{"line": "x", "before": "^(M|P)"}, after: "# sshd\n#Port 22\nx\nPermitRootLogin yes\nMatch User git\n", message: "Would have added a line after line 2"},
		{name: "nothing matches after", before: sshd, properties: properties{"line": "x", "after": "^y"}, err: "no line matches `after`, \"^y\": correct it, or remove it to add at the end"},
		{name: "nothing matches before", before: sshd, properties: properties{"line": "x", "before": "^y"}, err: "no line matches `before`"},
		{name: "not added", before: "a\n", properties: with(port, properties{"add": false})},
		{name: "not added, but changed", before: "Port 1\n", properties: with(port, properties{"add": false}), after: "Port 2222\n", message: "Would have changed line 1"},
		{name: "to an empty file", before: "", properties: properties{"line": "a"}, after: "a\n", message: "Would have added a line"},
		{name: "an empty line", before: "a\n", properties: properties{"line": ""}, after: "a\n\n", message: "Would have added a line after line 1"},
		{name: "an empty line is there", before: "a\n\nb\n", properties: properties{"line": ""}, lines: []int{2}},

		{name: "several matches", before: twice, properties: port, err: "`match` matches lines 1 and 3: make it match one line, or set `matches` to first, last or all"},
		{name: "several matches, one equal", before: "Port 2222\n#Port 22\n", properties: port, err: "`match` matches lines 1 and 2"},
		{name: "the first match", before: twice, properties: with(port, properties{"matches": "first"}), after: "Port 2222\nx\nPort 2\n", message: "Would have changed line 1"},
		{name: "the first match is equal", before: "Port 2222\nPort 1\n", properties: with(port, properties{"matches": "first"}), lines: []int{1}},
		{name: "the last match", before: twice, properties: with(port, properties{"matches": "last"}), after: "Port 1\nx\nPort 2222\n", message: "Would have changed line 3"},
		{name: "all matches", before: twice, properties: with(port, properties{"matches": "all"}), after: "Port 2222\nx\nPort 2222\n", message: "Would have changed lines 1 and 3", lines: []int{1, 3}},
		{name: "all matches, one equal", before: "Port 2222\nPort 1\n", properties: with(port, properties{"matches": "all"}), after: "Port 2222\nPort 2222\n", message: "Would have changed line 2"},

		{name: "expand", before: "GRUB=\"quiet\"\n", properties: properties{"match": `^GRUB="(?:(.*) )?quiet"$`, "line": `GRUB="\1splash"`, "expand": true}, after: "GRUB=\"splash\"\n", message: "Would have changed line 1"},
		{name: "expand a named group", before: "a 1\nb\n", properties: properties{"match": `^a (?P<n>\d)$`, "line": `a \g<n>\\\g<0>\q`, "expand": true}, after: "a 1\\a 1\\q\nb\n", message: "Would have changed line 1"},
		{name: "expand adds nothing", before: "a\n", properties: properties{"match": "^b(.)", "line": `b\1`, "expand": true}},
		{name: "expand is equal", before: "bc\n", properties: properties{"match": "^b(.)", "line": `b\1`, "expand": true}, lines: []int{1}},
		{name: "expand grows", before: "a\n", properties: properties{"match": "^(a+)$", "line": `\1a`, "expand": true}, after: "aa\n", message: "Would have changed line 1", endless: true},

		{name: "absent, equal lines", before: "a\nb\na\n", properties: properties{"ensure": "absent", "line": "a"}, after: "b\n", message: "Would have removed lines 1 and 3", lines: []int{1, 3}},
		{name: "absent, matching lines", before: "x\na1\nb\na2\na3\n", properties: properties{"ensure": "absent", "match": "^a"}, after: "x\nb\n", message: "Would have removed lines 2, 4 and 5"},
		{name: "absent, both", before: "x\na1\nb\n", properties: properties{"ensure": "absent", "match": "^a", "line": "b"}, after: "x\n", message: "Would have removed lines 2 and 3"},
		{name: "absent, the last line of the file", before: "a\nb", properties: properties{"ensure": "absent", "line": "b"}, after: "a\n", message: "Would have removed line 2"},
		{name: "absent, the only line", before: "a", properties: properties{"ensure": "absent", "line": "a"}, after: "", message: "Would have removed line 1"},
		{name: "absent already", before: "a\n", properties: properties{"ensure": "absent", "line": "b"}},
		{name: "absent, one of several", before: "a\na\n", properties: properties{"ensure": "absent", "match": "a", "matches": "one"}, err: "matches lines 1 and 2"},
		{name: "absent, many", before: strings.Repeat("a\n", 12), properties: properties{"ensure": "absent", "line": "a"}, after: "", message: "Would have removed lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more"},
	})
}

// Bytes that are not edited stay.
func TestLineBytes(t *testing.T) {
	try(t, lineType(), []row{
		{name: "a new line has the end of its neighbor", before: "a\r\nb\r\n", properties: properties{"line": "c"}, after: "a\r\nb\r\nc\r\n", message: "Would have added a line after line 2"},
		{name: "CR does not count", before: "a\r\nb\r\n", properties: properties{"line": "b"}, lines: []int{2}},
		{name: "CR does not count for match", before: "a 1\r\n", properties: properties{"line": "a 2", "match": "^a .$"}, after: "a 2\r\n", message: "Would have changed line 1"},
		{name: "mixed ends", before: "a\nb\r\nc\n", properties: properties{"line": "x", "after": "^b"}, after: "a\nb\r\nx\r\nc\n", message: "Would have added a line after line 2"},
		{name: "mixed ends, before", before: "a\r\nb\n", properties: properties{"line": "x", "at": "start"}, after: "x\r\na\r\nb\n", message: "Would have added a line before line 1"},
		{name: "no final newline", before: "a\nb", properties: properties{"line": "c"}, after: "a\nb\nc\n", message: "Would have added a line after line 2"},
		{name: "no final newline, CRLF", before: "a\r\nb", properties: properties{"line": "c"}, after: "a\r\nb\r\nc\r\n", message: "Would have added a line after line 2"},
		{name: "no final newline, one line", before: "a", properties: properties{"line": "c"}, after: "a\nc\n", message: "Would have added a line after line 1"},
		{name: "no final newline, not added after it", before: "a\nb", properties: properties{"line": "c", "after": "^a"}, after: "a\nc\nb", message: "Would have added a line after line 1"},
		{name: "no final newline, changed", before: "a\nb 1", properties: properties{"line": "b 2", "match": "^b"}, after: "a\nb 2", message: "Would have changed line 2"},
		{name: "a CR at the end of the file", before: "a\nb\r", properties: properties{"line": "c"}, after: "a\nb\r\nc\n", message: "Would have added a line after line 2"},
		{name: "byte order mark", before: "\uFEFFa\nb\n", properties: properties{"line": "a"}, lines: []int{1}},
		{name: "byte order mark and match", before: "\uFEFFa 1\n", properties: properties{"line": "a 2", "match": "^a"}, after: "\uFEFFa 2\n", message: "Would have changed line 1"},
		{name: "byte order mark and start", before: "\uFEFFa\n", properties: properties{"line": "b", "at": "start"}, after: "\uFEFFb\na\n", message: "Would have added a line before line 1"},
		{name: "Latin-1", before: "# gr\xfc\xdfe\nport 1\n# \xff\n", properties: properties{"line": "port 2", "match": "^port"}, after: "# gr\xfc\xdfe\nport 2\n# \xff\n", message: "Would have changed line 2"},
		{name: "tabs and blanks", before: "\ta  \n", properties: properties{"line": "a"}, after: "\ta  \na\n", message: "Would have added a line after line 1"},
	})
}

func TestParse(t *testing.T) {
	for content, want := range map[string]string{
		"a\x00b": "NUL byte", "\xff\xfea\x00": "UTF-16", "\xfe\xff\x00a": "UTF-16", strings.Repeat("\n", 2<<20): "more than 2097152 lines",
	} {
		if _, err := edits.Parse(content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.10q: %v, without %q", content, err, want)
		}
	}
	for _, content := range []string{"", "a", "\n", "\r\n\r\n", "\uFEFF", "\uFEFFa\r\nb", "\r", "\xff\n"} {
		parse(t, content)
	}
}

func TestLineProblems(t *testing.T) {
	tryProblems(t, lineType(), []problem{
		{properties{"name": "port", "line": "a"}, "`path` is required", "for example path: /etc/app.conf"},
		{properties{"path": "etc/x", "line": "a"}, "must be absolute", ""},
		{properties{"name": "/etc/../x", "line": "a"}, "must be clean", "write it as /x"},
		{properties{}, "`line` is required", ""},
		{properties{"ensure": "absent"}, "needs `line` or `match`", ""},
		{properties{"line": "a\nb"}, "no line ends", "use a `block`"},
		{properties{"line": "Port 2222", "match": "^Port 22$"}, "`match` does not match `line`: each run would add the line again", "change one of them"},
		{properties{"line": "a", "match": "a(b"}, "`match` is no regular expression, at character 2: missing closing )", "RE2"},
		{properties{"line": "a", "match": "a)"}, "at character 2: unexpected )", "RE2"},
		{properties{"line": "a", "match": "^a(?=b)"}, "at character 3", "no lookaround"},
		{properties{"line": "a", "match": `(a)\1`}, "at character 4: invalid escape", "no backreferences"},
		{properties{"line": "a", "after": "[a"}, "`after` is no regular expression, at character 1: missing closing ]", ""},
		{properties{"line": "a", "after": "a", "before": "b"}, "`after` and `before` exclude each other", "keep one"},
		{properties{"line": "a", "after": "a", "at": "end"}, "`after` and `at` exclude each other", "keep one"},
		{properties{"line": "a", "at": "top"}, "invalid `at`", "one of start, end"},
		{properties{"line": "a", "match": "a", "matches": "some"}, "invalid `matches`", "one of one, first, last, all"},
		{properties{"line": "a", "matches": "all"}, "`matches` is only for `match`", "set match"},
		{properties{"line": "a", "add": false}, "`add` is only for `match`", "set match"},
		{properties{"line": "a", "expand": true}, "`expand` is only for `match`", "set match"},
		{properties{"line": `\2`, "match": "(a)", "expand": true}, "`match` has no group \"2\"", ""},
		{properties{"line": `\g<x>`, "match": "(?P<y>a)", "expand": true}, "`match` has no group \"x\"", ""},
		{properties{"line": "a", "match": "a", "expand": true, "add": true}, "`expand` adds no line", "remove it"},
		{properties{"line": "a", "match": "a", "add": false, "after": "b"}, "`after` has no effect if no line is added", "remove it"},
		{properties{"line": "a", "ensure": "absent", "matches": "first"}, "would remove another line in each run", "write all"},
		{properties{"line": "a", "create": true}, "`owner` is required", ""},
		{properties{"line": "a", "create": true, "owner": "root", "group": "root"}, "`mode` is required", ""},
		{properties{"line": "a", "create": true, "owner": "root", "group": "root", "mode": "0999"}, "not octal", ""},
		{properties{"line": "a", "owner": "root"}, "`owner` is only for a new file", "set create: true"},
		{properties{"line": "a", "validate": "visudo -c"}, "does not name the new file", "put {}"},
		{properties{"line": "a", "insertafter": "a"}, "unknown property `insertafter`", "write `after`"},
		{properties{"line": "a", "insertbefore": "a"}, "unknown property `insertbefore`", "write `before`"},
		{properties{"line": "a", "dest": "/f"}, "unknown property `dest`", "write `path`"},
		{properties{"line": "a", "state": "present"}, "unknown property `state`", "write `ensure`"},
		{properties{"line": "a", "backrefs": true}, "unknown property `backrefs`", "write `expand`"},
	})
	if part := partOf(t, lineType(), properties{"line": "a", "regexp": "^a"}).(*edits.LineSpec); part.Match != "^a" {
		t.Errorf("regexp is no alias of match: %q", part.Match)
	}
}

func TestLineWarnings(t *testing.T) {
	got := warnings(t, lineType(), properties{"ensure": "absent", "line": "a", "after": "x", "add": true, "expand": true, "create": true, "owner": "root"})
	for _, property := range []string{"after", "add", "expand", "create", "owner"} {
		if !strings.Contains(got, "`"+property+"` has no effect with ensure: absent") {
			t.Errorf("no warning about %s in %s", property, got)
		}
	}
	if got := warnings(t, lineType(), properties{"line": "a", "after": "EOF"}); !strings.Contains(got, "remove it: new lines go to the end") {
		t.Error(got)
	}
}

// FuzzLine checks that a line is idempotent, and that it leaves all other lines alone.
func FuzzLine(f *testing.F) {
	f.Add("a\nb\n", "b", "^b", "", true)
	f.Add("a\r\nb", "Port 1", "^#?Port", "^a", false)
	f.Add("\uFEFFx\xff\n\n", "", "", "x", true)
	f.Fuzz(func(t *testing.T, content, line, match, after string, absent bool) {
		text, err := edits.Parse(content)
		if err != nil {
			return
		}
		spec := &edits.LineSpec{Line: &line, Match: match, Matches: "all", Where: edits.Where{After: after}}
		spec.Name, spec.Ensure = "/f", "present"
		if match == "" {
			spec.Matches = ""
		}
		if absent {
			spec.Ensure = "absent"
		}
		got, valid := editTwice(t, spec, text)
		if !valid {
			return
		}
		before, rest := lines(content), lines(got.After.String())
		if got.Change.Message == "" && !slices.Equal(before, rest) {
			t.Fatalf("%q became %q without a change", content, got.After)
		}
		others := func(all []string) []string {
			return slices.DeleteFunc(all, func(s string) bool { return s == line || match != "" && matches(t, match, s) })
		}
		if !slices.Equal(others(before), others(rest)) {
			t.Fatalf("%q became %q", content, got.After)
		}
	})
}
