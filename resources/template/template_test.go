package template_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/template"
	"github.com/musterfleet/muster/testing/racing"
)

var errNoFile = errors.New("no such file")

// names are what the tests let templates see.
func names() template.Names {
	facts := map[string]any{"nul": nil, "nulls": []any{1, nil}, "os": "debian", "list": []any{"a", "b"}, "host": map[string]any{"name": "web01"}}

	return template.Names{
		"Facts": facts, "Environ": map[string]any{"STAGE": "prod"},
		"lookup": func(path string, def ...any) (any, error) {
			switch {
			case path == "facts.os":
				return "debian", nil
			case path == "facts.none":
				return nil, nil
			case len(def) == 1:
				return def[0], nil
			default:
				return nil, fmt.Errorf("%s: %w", path, errNoFile)
			}
		},
		"repeat": func(text string, n int) (string, error) { return strings.Repeat(text, n), nil },
		"plain":  func() string { return "p" },
	}
}

func load(path string) (string, error) {
	switch path {
	case "/d/part.jet":
		return "part of [[ Facts.os ]]", nil
	case "/d/bad.jet":
		return "one\n  [[ Nope ]]", nil
	case "/d/broken.jet":
		return "one\n  [[ if ]]", nil
	case "/d/self.jet":
		return `[[ include "self.jet" ]]`, nil
	default:
		return "", fmt.Errorf("%s: %w", path, errNoFile)
	}
}

func jet(t *testing.T, text string) (string, error) {
	t.Helper()

	return template.Jet(t.Context(), template.Template{Name: "d/main.jet", Text: text}, names(), load, template.Limits{Bytes: 1000, Steps: 100_000})
}

func goText(t *testing.T, text string) (string, error) {
	t.Helper()

	return template.Go(t.Context(), template.Template{Name: "d/main.tmpl", Text: text}, names(), template.Limits{Bytes: 1000, Steps: 100_000})
}

// resultOf returns a text, or the error with its hint.
func resultOf(text string, err error) string {
	if err == nil {
		return text
	}
	if e := new(template.Error); errors.As(err, &e) && e.Hint != "" {
		return err.Error() + " (" + e.Hint + ")"
	}

	return err.Error()
}

func TestJet(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"value":               {"[[ Facts.host.name ]]", "web01"},
		"value with a dot":    {"[[ .Facts.host.name ]]", "web01"},
		"no actions":          {"{{ x }} <&>", "{{ x }} <&>"},
		"not escaped":         {`[[ "<&>" ]]`, "<&>"},
		"trimmed":             {"a [[- 1 -]] b", "a1b"},
		"loop":                {"[[ range i, v := Facts.list ]][[ i ]]=[[ v ]] [[ end ]]", "0=a 1=b "},
		"condition":           {`[[ if Facts.os == "debian" ]]deb[[ else ]]rpm[[ end ]]`, "deb"},
		"variable":            {"[[ x := 1 ]][[ x = x + 1 ]][[ x ]]", "2"},
		"block":               {`[[ block b(n=1) ]]<[[ n ]]>[[ end ]][[ yield b(n=2) ]]`, "<1><2>"},
		"function":            {`[[ lookup("facts.os") ]]`, "debian"},
		"function, default":   {`[[ lookup("facts.no", "d") ]]`, "d"},
		"function, nothing":   {`<[[ lookup("facts.none") ]]>`, "<>"},
		"function, piped":     {`[[ "facts.os" | lookup ]]`, "debian"},
		"function, a number":  {`[[ repeat("ab", 2) ]]`, "abab"},
		"function, one value": {"[[ plain() ]]", "p"},
		"caught":              {`[[ try ]][[ lookup("no") ]][[ catch e ]]caught[[ end ]]`, "caught"},
		"included":            {`<[[ include "part.jet" ]]>`, "<part of debian>"},
		"no key":              {"<[[ Facts.no ]]>", "<>"},

		"unknown name":        {"a\n é[[ Fact ]]", "d/main.jet:2: unknown name `Fact` (did you mean `Facts`?)"},
		"unknown field":       {"[[ Facts.no.more ]]", "d/main.jet:1: there is no field or method 'no' in map[string]interface {} (Facts.no.more)"},
		"function fails":      {"a\n\n[[ x := 1 ]]\n [[ lookup(\"no\") ]]", "d/main.jet:4: no: no such file"},
		"wrong argument":      {"[[ lookup(1) ]]", "d/main.jet:1: wrong arguments: lookup takes a string as number 1, not a float64"},
		"too few arguments":   {`[[ repeat("x") ]]`, "d/main.jet:1: wrong arguments: repeat takes 2, not 1"},
		"too many arguments":  {`[[ repeat("x", 1, 2) ]]`, "d/main.jet:1: wrong arguments: repeat takes 2, not 3"},
		"out of range":        {"[[ Facts.list[5] ]]", "d/main.jet:1: index out of range: 5"},
		"division by zero":    {"[[ 1 / 0 ]]", "d/main.jet: division by zero"},
		"in a loop":           {"[[ range Facts.list ]]\n[[ Nope ]][[ end ]]", "d/main.jet:2: unknown name `Nope`"},
		"not valid":           {"a\n  [[ if ]]", "d/main.jet:2: parsing if: unexpected token ']]' (expected term)"},
		"not closed":          {"a\n  [[ Facts.os", "d/main.jet:2: parsing pipeline: unexpected token 'unclosed action' (expected pipe or right delimiter)"},
		"no end":              {"[[ if true ]] x", "d/main.jet:1: unexpected EOF"},
		"included fails":      {`[[ include "bad.jet" ]]`, "d/bad.jet:2: unknown name `Nope`"},
		"included not valid":  {`[[ include "broken.jet" ]]`, "d/broken.jet:2: parsing if: unexpected token ']]' (expected term)"},
		"included is missing": {`[[ include "no.jet" ]]`, "d/main.jet:1: /d/no.jet: no such file"},
		"includes itself":     {`[[ include "self.jet" ]]`, "d/self.jet:1: it recurses too deep"},
		"yields itself":       {"[[ block a() ]][[ yield a() ]][[ end ]]", "d/main.jet:1: it recurses too deep"},
		"a mapping in itself": {`[[ x := map("a", 1) ]][[ x.a = slice(x) ]][[ x ]]`, "d/main.jet:1: a mapping cannot hold itself"},
		"itself, deeper":      {"[[ x := map(\"a\", map(\"b\", 1)) ]]\n[[ x.a.b = map(\"c\", x) ]][[ x ]]", "d/main.jet:2: a mapping cannot hold itself"},
		"itself, of a dot":    {`[[ block b() ]][[ .a = map("c", .); . ]][[ end ]][[ yield b() map("a", 1) ]]`, "d/main.jet:1: a mapping cannot hold itself"},
		"itself, in an if":    {`[[ x := map("a", 1) ]][[ if x.a = x; x.a ]][[ x ]][[ end ]]`, "d/main.jet:1: a mapping cannot hold itself"},
		"itself, by a loop":   {`[[ x := map("a", 1) ]][[ y := map("b", 2) ]][[ k := 0 ]][[ range k, x.a = slice(y, y) ]][[ y.b = x ]][[ end ]]`, "d/main.jet:1: a mapping cannot hold itself"},
		"itself, ranged over": {`[[ x := map("a", 1) ]][[ y := map("b", 2) ]][[ k := 0 ]][[ range k, x.a = slice(1, y) ]][[ if x.a == 1 ]][[ y.b = x ]][[ end ]][[ x ]][[ end ]]`, "d/main.jet:1: a mapping cannot hold itself"},
		"a key, looked up":    {`[[ x := map("a", 1) ]][[ y := map("k", 2) ]][[ ok := true ]][[ x.a, ok = y["k"] ]][[ x.a ]][[ ok ]][[ x.a, ok = y["no"] ]][[ ok ]]`, "2truefalse"},
		"a key, of a mapping": {`[[ x := map("a", 1) ]][[ x.a = map("b", 2) ]][[ x.a.b = x.a.b + 1 ]][[ x.c = x.a ]][[ x.c.b ]]`, "3"},
		"too much of replace": {`[[ x := repeat("x", 100000) ]][[ replace(x, "x", x, -1) ]]`, "d/main.jet:1: it would make more than is allowed"},
		"doubles a text":      {`[[ x := "x" ]][[ range ints(0, 60) ]][[ x = x + x ]][[ end ]]`, "its values take too much memory"},
		"endless":             {"[[ range ints(0, 1000000000) ]][[ end ]]", "d/main.jet:1: it exceeds the work limit"},
		"too long":            {"[[ range ints(0, 1000000000) ]]xyz[[ end ]]", "d/main.jet: it gives more than is allowed: 1000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			// The position of an error about memory may vary.
			if got := resultOf(jet(t, tc.in)); got != tc.want && !(strings.HasSuffix(tc.want, "memory") && strings.HasSuffix(got, ": "+tc.want)) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// doubling is a template that calls one twice, which calls another twice, and so on.
func doubling(levels int) string {
	text := `{{ define "0" }}{{ end }}`
	for i := range levels {
		text += fmt.Sprintf(`{{ define "%d" }}{{ template "%d" }}{{ template "%d" }}{{ end }}`, i+1, i, i)
	}

	return text + fmt.Sprintf(`{{ template "%d" }}`, levels)
}

func TestGo(t *testing.T) {
	t.Setenv("SECRET_OF_MUSTER", "x")
	for name, tc := range map[string]struct{ in, want string }{
		"value":                     {"{{ .Facts.host.name }}", "web01"},
		"not escaped":               {`{{ "<&>" }}`, "<&>"},
		"loop":                      {"{{ range $i, $v := .Facts.list }}{{ $i }}={{ $v }} {{ else }}none{{ end }}", "0=a 1=b "},
		"condition":                 {`{{ if eq .Facts.os "debian" }}deb{{ else }}{{ range .Facts.list }}x{{ end }}{{ end }}`, "deb"},
		"with":                      {`{{ with .Facts.host }}{{ .name }}{{ end }}`, "web01"},
		"function":                  {`{{ lookup "facts.os" }}`, "debian"},
		"default":                   {`{{ lookup "facts.no" "d" }}`, "d"},
		"sprig":                     {`{{ .Facts.list | join "," | upper }}`, "A,B"},
		"sprig's repeat":            {`{{ "x" | repeat 3 }}`, "xxx"},
		"too much of repeat":        {`{{ repeat 2000000000 "x" }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <repeat 2000000000 \"x\">: error calling repeat: it would make more than is allowed"},
		"too much of repeat, empty": {`{{ repeat 2000000000 "" }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <repeat 2000000000 \"\">: error calling repeat: it would make more than is allowed"},
		"too much of indent":        {`{{ indent 2000000000 "x" }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <indent 2000000000 \"x\">: error calling indent: it would make more than is allowed"},
		"too much of nindent":       {`{{ nindent 2000000000 "x" }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <nindent 2000000000 \"x\">: error calling nindent: it would make more than is allowed"},
		"too much of until":         {`{{ until 2000000000 }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <until 2000000000>: error calling until: it would make more than is allowed"},
		"too much of untilStep":     {`{{ untilStep 0 2000000000 1 }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <untilStep 0 2000000000 1>: error calling untilStep: it would make more than is allowed"},
		"too much of seq":           {`{{ seq 2000000000 }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <seq 2000000000>: error calling seq: it would make more than is allowed"},
		"too much of seq, two":      {`{{ seq 1 2000000000 }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <seq 1 2000000000>: error calling seq: it would make more than is allowed"},
		"too much of seq, three":    {`{{ seq 1 1 2000000000 }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <seq 1 1 2000000000>: error calling seq: it would make more than is allowed"},
		"too much of randAlphaNum":  {`{{ randAlphaNum 2000000000 }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <randAlphaNum 2000000000>: error calling randAlphaNum: it would make more than is allowed"},
		"too much of randBytes":     {`{{ randBytes 2000000000 }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <randBytes 2000000000>: error calling randBytes: it would make more than is allowed"},
		"counts":                    {`{{ until 3 }} {{ untilStep 0 6 2 }} {{ seq 3 }} {{ indent 2 "x" }} {{ len (randAlphaNum 5) }}`, "[0 1 2] [0 2 4] 1 2 3   x 5"},
		"missing, get":              {`{{ get .Facts "no" | default "d" }}`, "d"},
		"environment":               {`{{ env "STAGE" }} {{ expandenv "$STAGE" }}`, "prod prod"},
		"no other":                  {`<{{ env "SECRET_OF_MUSTER" }}{{ expandenv "${SECRET_OF_MUSTER}" }}>`, "<>"},
		"defined":                   {`{{ define "a" }}<{{ . }}>{{ end }}{{ template "a" 1 }}`, "<1>"},
		"missing":                   {"a\n é {{ .Facts.no }}", "d/main.tmpl:2: executing \"d/main.tmpl\" at <.Facts.no>: map has no entry for key \"no\" (write {{ lookup \"data.name\" \"default\" }}, or {{ get .Data \"no\" }}, where it may be missing)"},
		"unknown":                   {"a\n  {{ nope }}", "d/main.tmpl:2: function \"nope\" not defined"},
		"name service":              {`{{ getHostByName "x" }}`, "d/main.tmpl:1: function \"getHostByName\" not defined"},
		"function fails":            {"a\n{{ lookup \"no\" }}", "d/main.tmpl:2: executing \"d/main.tmpl\" at <lookup \"no\">: error calling lookup: no: no such file"},
		"not valid":                 {"a\n {{ if }}", "d/main.tmpl:2: missing value for if"},
		"not closed":                {"a\n {{ if true }}", "d/main.tmpl:2: unexpected EOF"},
		"out of range":              {"{{ index .Facts.list 9 }}", "d/main.tmpl:1: executing \"d/main.tmpl\" at <index .Facts.list 9>: error calling index: index out of range: 9"},
		"endless":                   {"a\n{{ range 1000000000 }}{{ end }}", "d/main.tmpl:2: it exceeds the work limit"},
		"too long":                  {"{{ range 1000000000 }}xyz{{ end }}", "d/main.tmpl: it gives more than is allowed: 1000 bytes"},
		"calls itself":              {`{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`, "d/main.tmpl:1: it recurses too deep"},
		"too much of replace":       {`{{ $x := repeat 100000 "x" }}{{ $x | replace "x" $x }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <replace \"x\" $x>: error calling replace: it would make more than is allowed"},
		"too much of join":          {`{{ until 1000000 | join (repeat 1000 "x") }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <join (repeat 1000 \"x\")>: error calling join: it would make more than is allowed"},
		"too much of printf":        {`{{ printf "%900000d" 1 }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <printf \"%900000d\" 1>: error calling printf: it would make more than is allowed"},
		"too much of printf, star":  {`{{ printf "%-*d" 900000 1 }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <printf \"%-*d\" 900000 1>: error calling printf: it would make more than is allowed"},
		"texts":                     {`{{ "aba" | replace "a" "cc" }} {{ list 1 2 | join "-" }} {{ printf "%05d %s %% %[1]x" 10 "x" }}`, "ccbcc 1-2 00010 x % a"},
		"a mapping in itself":       {`{{ $d := dict }}{{ $_ := set $d "a" (list $d) }}{{ $d }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <set $d \"a\" (list $d)>: error calling set: a mapping cannot hold itself"},
		"merged into itself":        {`{{ $d := dict }}{{ $_ := mergeOverwrite $d (dict "a" $d) }}{{ $d }}`, "d/main.tmpl:1: executing \"d/main.tmpl\" at <mergeOverwrite $d (dict \"a\" $d)>: error calling mergeOverwrite: a mapping cannot hold itself"},
		"mappings":                  {`{{ $d := dict "a" 1 }}{{ $_ := set $d "b" (dict) }}{{ $_ := mustMerge $d (dict "c" 3) }}{{ $d }}`, "map[a:1 b:map[] c:3]"},
		"doubles a text":            {`{{ $x := "x" }}{{ range 60 }}{{ $x = print $x $x }}{{ end }}`, "its values take too much memory"},
		"doubles a text, no loop":   {`{{ $x := "x" }}` + strings.Repeat(`{{ $x = print $x $x }}`, 60), "its values take too much memory"},
		"doubles a list":            {`{{ $x := list 1 }}{{ range 60 }}{{ $x = concat $x $x }}{{ end }}`, "its values take too much memory"},
		"calls itself, nested":      {`{{ define "a" }}{{ if 1 }}{{ with 1 }}{{ range 1 }}{{ block "b" . }}{{ template "a" }}{{ end }}{{ end }}{{ end }}{{ end }}{{ end }}{{ template "a" }}`, "d/main.tmpl:1: it recurses too deep"},
		"calls itself, with an end": {`{{ define "a" }}{{ if . }}{{ len . }}{{ template "a" (substr 1 -1 .) }}{{ end }}{{ end }}{{ template "a" "abc" }}`, "321"},
		"doubles, and says nothing": {doubling(30), "d/main.tmpl:1: it exceeds the work limit"},
		"endless, nested":           {`{{ if true }}{{ with 1 }}{{ range 100000 }}{{ range 100000 }}{{ end }}{{ end }}{{ end }}{{ end }}`, "d/main.tmpl:1: it exceeds the work limit"},
	} {
		t.Run(name, func(t *testing.T) {
			// The position of an error about memory may vary.
			if got := resultOf(goText(t, tc.in)); got != tc.want && !(strings.HasSuffix(tc.want, "memory") && strings.HasSuffix(got, ": "+tc.want)) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestNullInPrinted checks that a printed mapping or list with null in it is an error.
func TestNullInPrinted(t *testing.T) {
	for name, tc := range map[string]struct {
		render     func(*testing.T, string) (string, error)
		text, want string
	}{
		"go, list":     {goText, "\n{{ list 1 (list nil) }}", "d/main.tmpl:2: `list 1 (list nil)` is null at `[1][0]` (give it a value, or write {{ list 1 (list nil) | toJson }})"},
		"go, mapping":  {goText, "{{ $d := dict \"b\" 1 \"a\" nil }}{{ $d }}", "d/main.tmpl:1: `$d` is null at `a` (give it a value, or write {{ $d | toJson }})"},
		"go, function": {goText, "{{ print (list nil) }}", "d/main.tmpl:1: executing \"d/main.tmpl\" at <print (list nil)>: error calling print: argument 1 of print is null at `[0]`"},
		"go, as JSON":  {goText, "{{ list 1 nil | toJson }}", "[1,null]"},
		"jet, list":    {jet, "\n[[ Facts.nulls ]]", "d/main.jet:2: `Facts.nulls` is null at `[1]` (give it a value, or write [[ writeJson(Facts.nulls) ]])"},
		"jet, as JSON": {jet, "[[ writeJson(Facts.nulls) ]]", "[1,null]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := resultOf(tc.render(t, tc.text)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// What stands within one another is bounded: the libraries call themselves for it.
func TestNested(t *testing.T) {
	far := racing.Less(1_000_000, 20_000)
	many := func(n int, open, middle, end string) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(end, n)
	}
	for name, tc := range map[string]struct {
		render func(*testing.T, string) (string, error)
		text   string
		deep   bool
	}{
		"jet, parentheses":         {jet, "[[ " + many(far, "(", "1", ")") + " ]]", true},
		"jet, parentheses only":    {jet, "[[ " + strings.Repeat("(", far), true},
		"jet, hidden in texts":     {jet, "[[ " + strings.Repeat(`len(")" + `, far), true},
		"jet, a false end":         {jet, `[[ "]]" + ` + strings.Repeat("(", far), true},
		"jet, brackets":            {jet, "[[ " + strings.Repeat("Facts[", far), true},
		"jet, not":                 {jet, "[[ " + strings.Repeat("!", far) + "true ]]", true},
		"jet, not in words":        {jet, "[[ " + strings.Repeat("not ", far) + "true ]]", true},
		"jet, choices":             {jet, "[[ " + strings.Repeat("true ? 1 : ", far) + "2 ]]", true},
		"jet, conditions":          {jet, many(far, "[[ if true ]]", "x", "[[ end ]]"), true},
		"jet, trimmed":             {jet, many(far, "[[- if true -]]", "x", "[[- end -]]"), true},
		"jet, else if":             {jet, "[[ if true ]]" + strings.Repeat("[[ else if true ]]", far) + "[[ end ]]", true},
		"jet, blocks":              {jet, many(far, "[[ block a() ]]", "x", "[[ end ]]"), true},
		"jet, content":             {jet, "[[ block a() ]][[ end ]]" + many(far, "[[ yield a() content ]]", "x", "[[ end ]]"), true},
		"jet, tries":               {jet, many(far, "[[ try ]]", "x", "[[ end ]]"), true},
		"jet, after a comment":     {jet, "{* [[ \" *}" + many(far, "[[ if true ]]", "x", "[[ end ]]"), true},
		"jet, side by side":        {jet, strings.Repeat("[[ if (true) ]][[ else if !true ]][[ else ]][[ end ]]", 5_000), false},
		"jet, a thousand":          {jet, many(999, "[[ if true ]]", "x", "[[ end ]]"), false},
		"jet, in texts":            {jet, `[[ len("` + strings.Repeat("(", 5_000) + `") ]]` + strings.Repeat("(", 2) + "{* " + strings.Repeat("[[ (", 5_000) + " *}", false},
		"go, parentheses":          {goText, "{{ " + many(far, "(", "1", ")") + " }}", true},
		"go, conditions":           {goText, many(far, "{{ if true }}", "x", "{{ end }}"), true},
		"go, else if":              {goText, "{{ if true }}" + strings.Repeat("{{ else if true }}", far) + "{{ end }}", true},
		"go, else with":            {goText, "{{ with 1 }}" + strings.Repeat("{{else with 1}}", far) + "{{ end }}", true},
		"go, after a comment":      {goText, "{{/* don't ( */}}" + many(far, "{{ if true }}", "x", "{{ end }}"), true},
		"go, a comment that trims": {goText, "{{- /* don't ( */ -}}" + many(far, "{{ if true }}", "x", "{{ end }}"), true},
		"go, side by side":         {goText, strings.Repeat("{{ if (true) }}{{ else if false }}{{ else }}{{ end }}", 5_000), false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tc.render(t, tc.text); errors.Is(err, template.ErrTooNested) != tc.deep || !tc.deep && err != nil {
				t.Error(err)
			}
		})
	}
}

// The error of a function differs from other errors, and the error of an invalid template from the error
// of a failing template.
func TestErrors(t *testing.T) {
	for name, render := range map[string]func(*testing.T, string) (string, error){"jet": jet, "go": goText} {
		open, end := "[[", "]]"
		call := `lookup("no")`
		if name == "go" {
			open, end, call = "{{", "}}", `lookup "no"`
		}
		var e *template.Error
		_, err := render(t, open+call+end)
		if !errors.Is(err, errNoFile) || !errors.As(err, &e) || e.Syntax {
			t.Errorf("%s: a function that fails gives %v", name, err)
		}
		_, err = render(t, open+" if "+end)
		if !errors.As(err, &e) || !e.Syntax {
			t.Errorf("%s: what is not valid gives %v", name, err)
		}
	}
	if _, err := jet(t, `[[ include "no.jet" ]]`); !errors.Is(err, errNoFile) {
		t.Error("a file that is missing gives", err)
	}
	if _, err := template.Jet(t.Context(), template.Template{Name: "x", Text: `[[ include "y" ]]`}, nil, nil, template.Limits{}); err == nil {
		t.Error("without a loader something was included")
	}
}

// A rendering ends with its context, whatever it is doing.
func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errNoFile)
	loops := map[string]func() (string, error){
		"jet": func() (string, error) {
			return template.Jet(ctx, template.Template{Name: "x", Text: "[[ range ints(0, 1000000000) ]][[ end ]]"}, nil, nil, template.Limits{})
		},
		"go": func() (string, error) {
			return template.Go(ctx, template.Template{Name: "x", Text: "{{ range 1000000000 }}{{ end }}"}, nil, template.Limits{})
		},
	}
	for name, loop := range loops {
		if _, err := loop(); !errors.Is(err, errNoFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No template ends the process, and every error has a place.
func FuzzJet(f *testing.F) {
	for _, text := range []string{"[[ Facts.os ]]", "[[ if x ]]", "[[ range i, v := Facts.list ]][[ v ]][[ end ]]", "{* c *}", `[[ include "part.jet" ]]`, "[[ block b() ]][[ yield b() ]][[ end ]]", `[[ import "bad.jet" ]]`, `[[ extends "part.jet" ]]`, "[[ map(1) ]]", "[[ 1 | lookup: 2 ]]", "[[ nil.x ]]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := template.Jet(t.Context(), template.Template{Name: "d/main.jet", Text: text}, names(), load, template.Limits{Bytes: 1000})
		var e *template.Error
		if err != nil && (!errors.As(err, &e) || e.Pos.File == "") {
			t.Errorf("%q: %v", text, err)
		}
	})
}

func FuzzGo(f *testing.F) {
	for _, text := range []string{"{{ .Facts.os }}", "{{ if", "{{ range .Facts.list }}{{ . }}{{ end }}", `{{ define "a" }}{{ end }}`, "{{/* c */}}", "{{ printf \"%d\" .Facts }}", "{{ break }}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := template.Go(t.Context(), template.Template{Name: "d/main.tmpl", Text: text}, names(), template.Limits{Bytes: 1000})
		var e *template.Error
		if err != nil && (!errors.As(err, &e) || e.Pos.File == "") {
			t.Errorf("%q: %v", text, err)
		}
	})
}
