package edits_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/edits"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/typetest"
)

func settingType() *resource.Type { return edits.Setting(edits.Posix{}) }

// of returns a function that adds properties to others.
func of(base properties) func(more properties) properties {
	return func(more properties) properties {
		out := properties{}
		for _, from := range []properties{base, more} {
			for key, value := range from {
				out[key] = value
			}
		}
		return out
	}
}

const php = `; About php.ini

[PHP]
engine = On
; memory_limit is the limit of a script.
memory_limit = 128M  
;max_input_time = 60

; About dates
[Date]
date.timezone = UTC
`

func TestSettingINI(t *testing.T) {
	ini := of(properties{"format": "ini", "section": "PHP", "key": "memory_limit", "value": "256M"})
	top := of(properties{"format": "ini", "key": "a", "value": "1"})
	try(t, settingType(), []row{
		{name: "the same", before: php, properties: ini(properties{"value": "128M"}), lines: []int{6}},
		{name: "another value, blanks stay", before: php, properties: ini(nil), after: strings.Replace(php, "128M  ", "256M  ", 1), message: "Would have changed memory_limit from 128M to 256M", lines: []int{6}},
		{name: "a value of true", before: "[s]\na = true\n", properties: ini(properties{"section": "s", "key": "a", "value": true})},
		{name: "a number", before: "[s]\na = 1\n", properties: ini(properties{"section": "s", "key": "a", "value": 10}), after: "[s]\na = 10\n", message: "Would have changed a from 1 to 10"},
		{name: "no key: below the commented-out one", before: php, properties: ini(properties{"key": "max_input_time", "value": "90"}), after: strings.Replace(php, ";max_input_time = 60\n", ";max_input_time = 60\nmax_input_time = 90\n", 1), message: "Would have added max_input_time to [PHP]"},
		{name: "no key: at the end of the section", before: php, properties: ini(properties{"key": "x", "value": "y"}), after: strings.Replace(php, ";max_input_time = 60\n", ";max_input_time = 60\nx = y\n", 1), message: "Would have added x to [PHP]"},
		{name: "no key: at the end of the last section", before: "[s]\na=1\n\n", properties: ini(properties{"section": "s", "key": "b", "value": "2"}), after: "[s]\na=1\nb=2\n\n", message: "Would have added b to [s]"},
		{name: "no key: an empty section", before: "[s]\n[t]\na=1\n", properties: ini(properties{"section": "s", "key": "b", "value": "2"}), after: "[s]\nb=2\n[t]\na=1\n", message: "Would have added b to [s]"},
		{name: "no key: the comment belongs to the section", before: "[s]\na=1\n# end\n[t]\n", properties: ini(properties{"section": "s", "key": "b", "value": "2"}), after: "[s]\na=1\n# end\nb=2\n[t]\n", message: "Would have added b to [s]"},
		{name: "the key of another section", before: "[s]\n[t]\nb=1\n", properties: ini(properties{"section": "s", "key": "b", "value": "2"}), after: "[s]\nb=2\n[t]\nb=1\n", message: "Would have added b to [s]"},
		{name: "no section", before: "[s]\na=1\n", properties: ini(properties{"section": "t", "key": "b", "value": "2"}), after: "[s]\na=1\n\n[t]\nb=2\n", message: "Would have added [t] with b"},
		{name: "no section in an empty file", before: "", properties: ini(properties{"section": "t", "key": "b", "value": "2"}), after: "[t]\nb = 2\n", message: "Would have added [t] with b"},
		{name: "no section, no final newline, CRLF", before: "[s]\r\na=1", properties: ini(properties{"section": "t", "key": "b", "value": "2"}), after: "[s]\r\na=1\r\n\r\n[t]\r\nb=2\r\n", message: "Would have added [t] with b"},
		{name: "before the first section", before: "a = 0\n\n[s]\na = 2\n", properties: top(nil), after: "a = 1\n\n[s]\na = 2\n", message: "Would have changed a from 0 to 1"},
		{name: "before the first section, added", before: "# about\n\n[s]\na = 2\n", properties: top(nil), after: "# about\na = 1\n\n[s]\na = 2\n", message: "Would have added a"},
		{name: "names compare exactly", before: "A = 0\n", properties: top(nil), after: "A = 0\na = 1\n", message: "Would have added a"},
		{name: "a byte order mark", before: "\uFEFFa = 0\n", properties: top(nil), after: "\uFEFFa = 1\n", message: "Would have changed a from 0 to 1"},
		{name: "CRLF", before: "a = 0 \r\n", properties: top(nil), after: "a = 1 \r\n", message: "Would have changed a from 0 to 1"},
		{name: "quotes are part of the value", before: "a = \"1\"\n", properties: top(nil), after: "a = 1\n", message: "Would have changed a from \"1\" to 1"},
		{name: "a key without a value", before: "a\n", properties: top(nil), after: "a = 1\n", message: "Would have changed a from  to 1"},
		{name: "an empty value", before: "a =  \n", properties: top(nil), after: "a =  1\n", message: "Would have changed a from  to 1"},
		{name: "an empty value is wanted", before: "a = 1\n", properties: top(properties{"value": ""}), after: "a = \n", message: "Would have changed a from 1 to "},
		{name: "an indented section and key", before: "  [s]\n\ta = 1\n", properties: ini(properties{"section": "s", "key": "a", "value": "2"}), after: "  [s]\n\ta = 2\n", message: "Would have changed a from 1 to 2"},
		{name: "the indentation of the keys", before: "[user]\n\tname = ann\n", properties: ini(properties{"section": "user", "key": "email", "value": "a@b"}), after: "[user]\n\tname = ann\n\temail = a@b\n", message: "Would have added email to [user]"},
		{name: "a section of git", before: "[remote \"o]x\"] # mine\n\turl = a\n", properties: ini(properties{"section": `remote "o]x"`, "key": "url", "value": "b"}), after: "[remote \"o]x\"] # mine\n\turl = b\n", message: "Would have changed url from a to b"},
		{name: "most separators", before: "[s]\na=1\nb=2\nc = 3\n", properties: ini(properties{"section": "s", "key": "d", "value": "4"}), after: "[s]\na=1\nb=2\nc = 3\nd=4\n", message: "Would have added d to [s]"},
		{name: "separator", before: "[s]\na=1\n", properties: ini(properties{"section": "s", "key": "d", "value": "4", "separator": " = "}), after: "[s]\na=1\nd = 4\n", message: "Would have added d to [s]"},
		{name: "an existing separator stays", before: "[s]\na=1\n", properties: ini(properties{"section": "s", "key": "a", "value": "4", "separator": " = "}), after: "[s]\na=4\n", message: "Would have changed a from 1 to 4"},
		{name: "colons", before: "[s]\na: 1\nb: x=y\n", properties: ini(properties{"section": "s", "key": "b", "value": "2"}), after: "[s]\na: 1\nb: 2\n", message: "Would have changed b from x=y to 2"},

		{name: "a continuation", before: "a = x\n  y\nb = 1\n", properties: top(nil), after: "a = 1\nb = 1\n", message: "Would have changed a from x\ny to 1"},
		{name: "an indented key is no continuation", before: "a = x\n  c = y\n", properties: top(nil), after: "a = 1\n  c = y\n", message: "Would have changed a from x to 1"},
		{name: "a comment ends a continuation", before: "a = x\n  # c\n  y\n", properties: top(nil), after: "a = 1\n  # c\n  y\n", message: "Would have changed a from x to 1"},
		{name: "a backslash continues", before: "a = x \\\n--b=1 \\\n--c\nd = 1\n", properties: top(properties{"ensure": "absent", "value": nil}), after: "d = 1\n", message: "Would have removed a"},

		{name: "below a line that continues", before: "b = 1 \\\n", properties: top(nil), err: "line 1 ends with a backslash"},
		{name: "the key several times", before: "a = 1\nb = 1\na = 2\n", properties: top(nil), err: "a is on lines 1 and 3: give a list of values, or use a `line`"},
		{name: "a list, the same", before: "a = 1\nb = 1\na = 2\n", properties: top(properties{"value": []string{"1", "2"}}), lines: []int{1, 3}},
		{name: "a list, one differs", before: "a = 1\nb = 1\na = 2\n", properties: top(properties{"value": []string{"1", "3"}}), after: "a = 1\nb = 1\na = 3\n", message: "Would have changed a from 1, 2 to 1, 3"},
		{name: "a list, more", before: "a = 1\nb = 1\n", properties: top(properties{"value": []string{"1", "2", "3"}}), after: "a = 1\na = 2\na = 3\nb = 1\n", message: "Would have changed a from 1 to 1, 2, 3"},
		{name: "a list, fewer", before: "a = 1\na = 2\nb = 1\na = 3\n  x\n", properties: top(properties{"value": []string{"2"}}), after: "a = 2\nb = 1\n", message: "Would have changed a from 1, 2, 3\nx to 2"},
		{name: "a list, none", before: "b = 1\n", properties: top(properties{"value": []string{"1", "2"}}), after: "b = 1\na = 1\na = 2\n", message: "Would have added a"},

		{name: "a repeated section", before: "[PHP]\n[x]\n[PHP]\n", properties: ini(nil), err: "the section [PHP] is on lines 1 and 3: make it one section"},
		{name: "another repeated section", before: "[x]\n[PHP]\nmemory_limit = 256M\n[x]\n", properties: ini(nil)},

		{name: "absent", before: php, properties: ini(properties{"ensure": "absent", "value": nil}), after: strings.Replace(php, "memory_limit = 128M  \n", "", 1), message: "Would have removed memory_limit from [PHP]", lines: []int{6}},
		{name: "absent, all lines and continuations", before: "a = 1\n  x\nb = 1\na = 2\n", properties: top(properties{"ensure": "absent", "value": nil}), after: "b = 1\n", message: "Would have removed a"},
		{name: "absent already", before: php, properties: ini(properties{"ensure": "absent", "value": nil, "key": "x"})},
		{name: "absent, no section", before: php, properties: ini(properties{"ensure": "absent", "value": nil, "section": "x"})},
		{name: "a section absent", before: php, properties: properties{"format": "ini", "ensure": "absent", "section": "PHP"}, after: "; About php.ini\n\n; About dates\n[Date]\ndate.timezone = UTC\n", message: "Would have removed [PHP]"},
		{name: "the last section absent", before: "[a]\nx=1\n\n[b]\ny=1\n", properties: properties{"format": "ini", "ensure": "absent", "section": "b"}, after: "[a]\nx=1\n", message: "Would have removed [b]"},
		{name: "a section absent already", before: php, properties: properties{"format": "ini", "ensure": "absent", "section": "x"}},
		{name: "sensitive", before: "a = old\n", properties: top(properties{"value": "new", "sensitive": true}), after: "a = new\n", message: "Would have changed a"},
	})
}

func TestSettingKeyValue(t *testing.T) {
	kv := of(properties{"format": "keyvalue", "key": "A", "value": "1"})
	try(t, settingType(), []row{
		{name: "the same", before: "A=1\n", properties: kv(nil), lines: []int{1}},
		{name: "another value", before: "# x\nA=\"0\"\nB=2\n", properties: kv(nil), after: "# x\nA=1\nB=2\n", message: "Would have changed A from \"0\" to 1"},
		{name: "blanks separate", before: "A 0 \nB\t2\n", properties: kv(nil), after: "A 1 \nB\t2\n", message: "Would have changed A from 0 to 1"},
		{name: "blanks around =", before: "A = 0\n", properties: kv(nil), after: "A = 1\n", message: "Would have changed A from 0 to 1"},
		{name: "a value with =", before: "A x=y\n", properties: kv(nil), after: "A 1\n", message: "Would have changed A from x=y to 1"},
		{name: "added", before: "B=2\n", properties: kv(nil), after: "B=2\nA=1\n", message: "Would have added A"},
		{name: "added to an empty file", before: "", properties: kv(nil), after: "A=1\n", message: "Would have added A"},
		{name: "added with most separators", before: "B 2\nC 3\nD=1\n", properties: kv(nil), after: "B 2\nC 3\nD=1\nA 1\n", message: "Would have added A"},
		{name: "added with separator", before: "B=2\n", properties: kv(properties{"separator": " "}), after: "B=2\nA 1\n", message: "Would have added A"},
		{name: "added below the commented-out one", before: "#A=0\nB=2\n", properties: kv(nil), after: "#A=0\nA=1\nB=2\n", message: "Would have added A"},
		{name: "a comment about the key", before: "# A is a key\nB=2\n", properties: kv(properties{"value": "is a key2"}), after: "# A is a key\nA=is a key2\nB=2\n", message: "Would have added A"},
		{name: "colons", before: "A: 0\n", properties: kv(properties{"separator": ": "}), after: "A: 1\n", message: "Would have changed A from 0 to 1"},
		{name: "brackets are no section", before: "[x]\n", properties: kv(nil), after: "[x]\nA=1\n", message: "Would have added A"},
		{name: "several times", before: "A=1\nA=2\n", properties: kv(nil), err: "A is on lines 1 and 2"},
		{name: "a list", before: "A 1\nA 2\n", properties: kv(properties{"value": []any{1, 3}}), after: "A 1\nA 3\n", message: "Would have changed A from 1, 2 to 1, 3"},
		{name: "absent", before: "A=1\nB=2\n", properties: kv(properties{"ensure": "absent", "value": nil}), after: "B=2\n", message: "Would have removed A"},
		{name: "Latin-1", before: "# \xfc\nA=\xff\n", properties: kv(nil), after: "# \xfc\nA=1\n", message: "Would have changed A from \xff to 1"},
	})
}

const daemon = `{
    "log-driver": "json-file",
    "log-opts": {
        "max-size": "10m"
    },
    "dns": ["192.0.2.1", "192.0.2.2"],
    "mtu": 1.50e3
}
`

func TestSettingJSON(t *testing.T) {
	js := of(properties{"format": "json", "key": "log-driver", "value": "journald"})
	replaced := func(old, new string) string { return strings.Replace(daemon, old, new, 1) }
	try(t, settingType(), []row{
		{name: "the same", before: daemon, properties: js(properties{"value": "json-file"}), lines: []int{2}},
		{name: "another value", before: daemon, properties: js(nil), after: replaced("json-file", "journald"), message: "Would have changed log-driver from json-file to journald", lines: []int{2}},
		{name: "nested", before: daemon, properties: js(properties{"key": []string{"log-opts", "max-size"}, "value": "20m"}), after: replaced("10m", "20m"), message: "Would have changed log-opts.max-size from 10m to 20m"},
		{name: "numbers are equal", before: daemon, properties: js(properties{"key": "mtu", "value": 1500})},
		{name: "another type", before: daemon, properties: js(properties{"key": "mtu", "value": "1500"}), after: replaced("1.50e3", `"1500"`), message: "Would have changed mtu from 1.50e3 to 1500"},
		{name: "a list is equal", before: daemon, properties: js(properties{"key": "dns", "value": []string{"192.0.2.1", "192.0.2.2"}})},
		{name: "a list on one line", before: daemon, properties: js(properties{"key": "dns", "value": []string{"192.0.2.1", "192.0.2.3"}}), after: replaced("192.0.2.2", "192.0.2.3"), message: `Would have changed dns from ["192.0.2.1","192.0.2.2"] to ["192.0.2.1","192.0.2.3"]`},
		{name: "an object", before: daemon, properties: js(properties{"key": "log-opts", "value": properties{"max-file": 3}}), after: replaced(`"max-size": "10m"`, `"max-file": 3`), message: `Would have changed log-opts from {"max-size":"10m"} to {"max-file":3}`},
		{name: "added", before: daemon, properties: js(properties{"key": "debug", "value": true}), after: replaced("1.50e3", "1.50e3,\n    \"debug\": true"), message: "Would have added debug"},
		{name: "added, nested", before: daemon, properties: js(properties{"key": []string{"log-opts", "max-file"}, "value": "3"}), after: replaced(`"10m"`, "\"10m\",\n        \"max-file\": \"3\""), message: "Would have added log-opts.max-file"},
		{name: "missing parents", before: daemon, properties: js(properties{"key": []string{"a", "b", "c"}, "value": []string{"x"}}), after: replaced("1.50e3", "1.50e3,\n    \"a\": {\n        \"b\": {\n            \"c\": [\n                \"x\"\n            ]\n        }\n    }"), message: "Would have added a.b.c"},
		{name: "an empty object", before: "{}\n", properties: js(nil), after: "{\n  \"log-driver\": \"journald\"\n}\n", message: "Would have added log-driver"},
		{name: "an empty file", before: "", properties: js(nil), after: "{\n  \"log-driver\": \"journald\"\n}\n", message: "Would have added log-driver"},
		{name: "an empty object inside", before: "{\n\t\"a\": {}\n}", properties: js(properties{"key": []string{"a", "b"}, "value": nil, "ensure": "absent"})},
		{name: "added to an empty object inside", before: "{\n\t\"a\": {}\n}", properties: js(properties{"key": []string{"a", "b"}, "value": 1}), after: "{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}", message: "Would have added a.b"},
		{name: "one line", before: `{"a": 1, "b": {}}`, properties: js(properties{"key": []string{"b", "c"}, "value": properties{"d": []int{1, 2}}}), after: `{"a": 1, "b": {"c": {"d": [1, 2]}}}`, message: "Would have added b.c"},
		{name: "one line without blanks", before: `{"a":1}`, properties: js(properties{"value": []string{"x, y", "z"}}), after: `{"a":1,"log-driver":["x, y","z"]}`, message: "Would have added log-driver"},
		{name: "CRLF", before: "{\r\n  \"a\": 1\r\n}\r\n", properties: js(properties{"value": properties{"b": 1}}), after: "{\r\n  \"a\": 1,\r\n  \"log-driver\": {\r\n    \"b\": 1\r\n  }\r\n}\r\n", message: "Would have added log-driver"},
		{name: "a byte order mark", before: "\uFEFF{\"log-driver\": 1}", properties: js(nil), after: "\uFEFF{\"log-driver\": \"journald\"}", message: "Would have changed log-driver from 1 to journald"},
		{name: "an escaped key", before: `{"log\u002ddriver": 1}`, properties: js(nil), after: `{"log\u002ddriver": "journald"}`, message: "Would have changed log-driver from 1 to journald"},
		{name: "braces in texts", before: `{"a": "}\"{", "log-driver": [{"x": "]"}]}`, properties: js(nil), after: `{"a": "}\"{", "log-driver": "journald"}`, message: `Would have changed log-driver from [{"x":"]"}] to journald`},
		{name: "a dot is no path", before: `{"a": {"b": 1}}`, properties: js(properties{"key": "a.b", "value": 2}), after: `{"a": {"b": 1}, "a.b": 2}`, message: "Would have added a.b"},

		{name: "absent, the first", before: daemon, properties: js(properties{"ensure": "absent", "value": nil}), after: replaced("\"log-driver\": \"json-file\",\n    ", ""), message: "Would have removed log-driver"},
		{name: "absent, the last", before: daemon, properties: js(properties{"ensure": "absent", "value": nil, "key": "mtu"}), after: replaced(",\n    \"mtu\": 1.50e3", ""), message: "Would have removed mtu"},
		{name: "absent, the only one", before: daemon, properties: js(properties{"ensure": "absent", "value": nil, "key": []string{"log-opts", "max-size"}}), after: replaced("{\n        \"max-size\": \"10m\"\n    }", "{}"), message: "Would have removed log-opts.max-size"},
		{name: "absent already", before: daemon, properties: js(properties{"ensure": "absent", "value": nil, "key": []string{"x", "y"}})},
		{name: "absent in an empty file", before: "", properties: js(properties{"ensure": "absent", "value": nil})},

		{name: "a parent is no object", before: daemon, properties: js(properties{"key": []string{"dns", "x"}}), err: "dns is a list, not an object"},
		{name: "a nested parent is no object", before: daemon, properties: js(properties{"key": []string{"log-opts", "max-size", "x"}}), err: "log-opts.max-size is a text, not an object"},
		{name: "no object", before: "[1]\n", properties: js(nil), err: "the document is a list, not an object"},
		{name: "comments", before: "{\n// x\n\"a\": 1}\n", properties: js(nil), err: "is not JSON on line 2: files with comments are not edited"},
		{name: "a comma too many", before: "{\n\"a\": 1,\n}\n", properties: js(nil), err: "is not JSON on line 3: invalid character '}'"},
		{name: "cut off", before: "{\n\"a\": 1\n", properties: js(nil), err: "is not JSON on line 2: unexpected end"},
		{name: "a key twice", before: "{\"x\": [{\n\"a\": 1,\n\"a\": 2}]}", properties: js(nil), err: "a key occurs twice, on line 3"},
	})
}

func TestSettingProblems(t *testing.T) {
	ini, js := of(properties{"format": "ini", "key": "a", "value": "1"}), of(properties{"format": "json", "key": "a", "value": 1})
	tryProblems(t, settingType(), []problem{
		{properties{"key": "a", "value": "1"}, "`format` is required", "one of ini, keyvalue, json"},
		{properties{"key": "a", "value": "1", "path": "/etc/x.yaml"}, ".yaml files are not edited", "toJSON"},
		{properties{"key": "a", "value": "1", "format": "toml"}, "invalid format \"toml\"", "drop-in"},
		{ini(properties{"key": nil}), "`key` is required", ""},
		{ini(properties{"value": nil}), "`value` is required", ""},
		{ini(properties{"value": []string{}}), "`value` is an empty list", "ensure: absent"},
		{ini(properties{"value": properties{"x": 1}}), "is no text", "list of texts"},
		{ini(properties{"value": "a\nb"}), "no line ends", ""},
		{ini(properties{"value": " a"}), "begins or ends with blanks", "quotes"},
		{ini(properties{"value": `a\`}), "ends with a backslash", "quotes"},
		{ini(properties{"key": []string{"a", "b"}}), "a list of keys is only for JSON", ""},
		{ini(properties{"key": properties{"a": 1}}), "`key` is no key", ""},
		{ini(properties{"key": "a=b"}), "invalid key \"a=b\"", ""},
		{ini(properties{"key": "a:b"}), "the key \"a:b\" has a colon", "write separator: '='"},
		{ini(properties{"key": "#a"}), "invalid key", ""},
		{ini(properties{"key": " a"}), "invalid key", ""},
		{ini(properties{"section": "a]\nb"}), "invalid section", "without brackets"},
		{ini(properties{"section": "[a]"}), "invalid section", "without brackets"},
		{ini(properties{"separator": "->"}), "invalid separator", "for example"},
		{js(properties{"separator": "="}), "invalid separator", ""},
		{js(properties{"section": "x"}), "only ini files have sections", ""},
		{js(properties{"key": []any{}}), "`key` is no key", ""},
		{properties{"format": "keyvalue", "ensure": "absent"}, "`key` is required", ""},
		{properties{"format": "ini", "ensure": "absent"}, "`key` is required", ""},
		{properties{"option": "a"}, "unknown property `option`", "write `key`"},
	})
	got := warnings(t, settingType(), properties{"ensure": "absent", "format": "ini", "key": "a", "value": "x", "separator": "="})
	for _, property := range []string{"value", "separator"} {
		if !strings.Contains(got, "`"+property+"` has no effect") {
			t.Errorf("no warning about %s in %s", property, got)
		}
	}
	for path, format := range map[string]properties{"/x/php.ini": {"section": "PHP", "key": "a", "value": 1}, "/x/daemon.json": {"key": []string{"a"}, "value": properties{"b": 1}}} {
		format["path"] = path
		partOf(t, settingType(), format)
	}
}

// A value keeps its text, and hides secrets in it.
func TestSettingValue(t *testing.T) {
	const manifest = `{name: /f.json, key: a, value: {"n": 1.50, "b": True, "s": "x", "l": [0x10, ~]}, sensitive: true}`
	v, problems := document.Read("", []byte(manifest), 1<<10)
	check(t, problems.Err())
	r, problems := resource.Decode(settingType(), v, model.Position{})
	check(t, problems.Err())
	shown, err := json.Marshal(r.Spec)
	check(t, err)
	if want := `"value":{"n":1.50,"b":true,"s":"x","l":["0x10",null]}`; !strings.Contains(string(shown), want) {
		t.Errorf("%s, without %s", shown, want)
	}
	if !slices.ContainsFunc(r.Secrets, func(s model.Secret) bool { return s.Reveal() == "x" }) {
		t.Errorf("the text in the value is no secret: %v", len(r.Secrets))
	}
	again, problems := resource.Decode(settingType(), v, model.Position{Line: 9})
	check(t, problems.Err())
	if !reflect.DeepEqual(r.Spec, again.Spec) {
		t.Error("equal values at different positions differ")
	}
	for text, want := range map[string]string{"value: True": "True", "value: 010": "010", "value: 1.10": "1.10", "value: no": "no"} {
		v, problems := document.Read("", []byte("{name: /f, format: ini, key: k, "+text+"}"), 1<<10)
		check(t, problems.Err())
		r, problems := resource.Decode(settingType(), v, model.Position{})
		check(t, problems.Err())
		part := r.Spec.(edits.Part)
		if got := part.Edit(parse(t, ""), nil).After.String(); got != "k = "+want+"\n" {
			t.Errorf("%s became %q", text, got)
		}
	}
}

func TestSettingContract(t *testing.T) {
	p := properties{"format": "ini", "section": "s", "key": "a", "value": "1"}
	js := properties{"format": "json", "key": []string{"a", "b"}, "value": []int{1}}
	typetest.Run(t, typetest.Config{Type: settingType(), Cases: append(unsuitable(t, p), []typetest.Case{
		{Name: "added", Setup: holding("[s]\n"), Properties: in(p), Message: "Would have added a to [s]", Check: holds("[s]\na = 1\n", 0o640)},
		{Name: "changed", Setup: holding("[s]\na = 2\n"), Properties: in(p), Message: "Would have changed a from 2 to 1", Drift: renamed("[s]\na = 3\n")},
		{Name: "removed", Setup: holding("[s]\na = 2\n"), Properties: in(properties{"ensure": "absent", "format": "ini", "section": "s", "key": "a"}), Message: "Would have removed a from [s]", Check: holds("[s]\n", 0o640)},
		{Name: "stable", Setup: holding("[s]\na = 1\n"), Properties: in(p)},
		{Name: "created", Properties: created(t, p), Message: "Would have created the file", Check: holds("[s]\na = 1\n", 0o604)},
		{Name: "JSON", Setup: holding("{}"), Properties: in(js), Message: "Would have added a.b", Drift: rewritten(`{"a": {"b": 1}}`)},
		{Name: "JSON, created", Properties: created(t, js), Message: "Would have created the file", Check: holds("{\n  \"a\": {\n    \"b\": [\n      1\n    ]\n  }\n}\n", 0o604)},
		{Name: "JSON, broken", Setup: holding("{"), Properties: in(js), Error: "is not JSON on line 1"},
	}...)})
}
