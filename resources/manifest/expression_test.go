package manifest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// dataHead are the data of the expression tests.
const dataHead = `# What the expressions of these tests see.
data:
  name: app
  port: 8080
  ratio: 1.5
  version: 1.10
  mode: 0644
  debug: true
  none: null
  list: [a, b]
  nested: {deep: {x: 1}}
  "key.with.dots": dotted
  users:
    - {name: ann, age: 30}
    - {name: bob, age: 40}
`

func kv(_ context.Context, bucket, key string) ([]byte, error) {
	if bucket != "config" || key != "app/greeting" {
		return nil, errors.New("key not found")
	}

	return []byte("hello"), nil
}

// TestExpressions checks the results of expressions in the content of a file.
func TestExpressions(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "motd"), []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ in, want string }{
		"dollar":            {`"${ Data.name }"`, "app"},
		"braces":            {`"{{ Data.name }}"`, "app"},
		"no blanks":         {`"${Data.name}{{Data.name}}"`, "appapp"},
		"inside":            {`"a ${ Data.name } b {{ Data.port }} c"`, "a app b 8080 c"},
		"number inside":     {`"${ Data.ratio } ${ Data.port / 2 } ${ 1e21 } ${ 3.0 }"`, "1.5 4040 1e+21 3"},
		"boolean inside":    {`"${ Data.debug }"`, "true"},
		"text kept":         {`"${ Data.version } ${ Data.mode }"`, "1.10 0644"},
		"whole text kept":   {`"${ Data.version }"`, "1.10"},
		"lookup text kept":  {`"v${ lookup('data.mode') }"`, "v0644"},
		"escape":            {`"$${PATH} $${ Data.name }"`, "${PATH} ${ Data.name }"},
		"escaped escape":    {`"$$${x}"`, "$${x}"},
		"brace escape":      {`"{{ '{{' }} x }}"`, "{{ x }}"},
		"lone signs":        {`"$ $x {x} } }} $(y) { {"`, "$ $x {x} } }} $(y) { {"},
		"map in expression": {`'${ {"a": {"b": "}"}}.a.b }'`, "}"},
		"map in braces":     {`'{{ {"a": {"b": 1}}.a.b }}'`, "1"},
		"map at the end":    {`'{{ toJSON({"a": 1}) + toJSON({"b":{}}) }}'`, "{\n  \"a\": 1\n}{\n  \"b\": {}\n}"},
		"quotes":            {"'${ \"it''s \\\"}\\\"\" + \"}\" + `}` }'", "it's \"}\"}}"},
		"comment":           {`'${ 1 /* } */ + 1 }'`, "2"},
		"line comment":      {"|-\n              ${ 1 // }\n              + 1 }\n", "2"},
		"lookup":            {`"${ lookup('data.nested.deep.x') }"`, "1"},
		"lookup list":       {`"${ lookup('data.list.1') }"`, "b"},
		"lookup default":    {`"${ lookup('data.nope', 'd') }"`, "d"},
		"lookup null":       {`"${ lookup('data.none', 'd') }"`, "d"},
		"lookup facts":      {`"${ lookup('facts.host.name') }"`, "web01"},
		"lookup environ":    {`"${ lookup('environ.STAGE') }"`, "prod"},
		"lookup query":      {`"${ lookup('data.users.#(age>35).name') }"`, "bob"},
		"lookup count":      {`"${ lookup('data.users.#') }"`, "2"},
		"lookup each":       {`"${ join(lookup('data.users.#.name'), ',') }"`, "ann,bob"},
		"lookup wildcard":   {`"${ lookup('data.na*') }"`, "app"},
		"lookup escaped":    {`'${ lookup("data.key\\.with\\.dots") }'`, "dotted"},
		"lookup numbers":    {`"${ lookup('data.users.#.age')[0] + 1 }"`, "31"},
		"facts":             {`"${ Facts.os == 'debian' ? 'deb' : 'rpm' }"`, "deb"},
		"environ":           {`"${ Environ.STAGE }"`, "prod"},
		"nil coalesced":     {`"x${ Data.nope ?? 'y' }"`, "xy"},
		"optional chain":    {`"x${ Data.nope?.more ?? 'y' }"`, "xy"},
		"readFile":          {`"${ readFile('motd') }"`, "from a file\n"},
		"file":              {`"<${ trim(file('./motd')) }>"`, "<from a file>"},
		"absolute":          {`"${ readFile('` + dir + `/motd') }"`, "from a file\n"},
		"kvGet":             {`"${ kvGet('config', 'app/greeting') }"`, "hello"},
		"kvGet twice":       {`"${ kvGet('config', 'app/greeting') + kvGet('config', 'app/greeting') }"`, "hellohello"},
		"duration":          {`"${ duration('90s') }"`, "1m30s"},
		"joined list":       {`"${ join(Data.list, ' ') }"`, "a b"},
		"pipes":             {`"${ Data.users | filter(.age > 35) | map(.name) | first() }"`, "bob"},
		"query of mappings": {`"${ lookup('data.users|@reverse')[0].age + lookup('data.users.#(name==\"ann\")').age } ${ lookup('data.[ratio,port]')[0] }"`, "70 1.5"},
		"bytes":             {`"${ b'abc' }"`, "abc"},
		"date":              {`"${ date('2024-01-02').Year() }"`, "2024"},
		"comment, no end":   {`"a${ 1 // }` + "\\n" + `+1 }"`, "a2"},
		"loops":             {`"${ sum(map(filter(1..1000, # % 2 == 0), # * 2)) } ${ all(Data.users, .age > 1) && any(Data.list, # == 'b') } ${ count(1..10, # > 5) } ${ reduce(Data.list, #acc + #, '') } ${ find(Data.users, .name == 'bob').age } ${ join(map(sortBy(Data.users, .age, 'desc'), .name)) } ${ groupBy(Data.users, .name).ann[0].age }"`, "501000 true 5 ab 40 bobann 30"},
		"repeat":            {`"${ repeat('ab', 3) }"`, "ababab"},
		"variable":          {`"${ let x = Data.port; x + 1 }"`, "8081"},
		"unset":             {`"${ Data.none }"`, ""},
		"explicitly unset":  {`"${ Data.nope ?? nil }"`, ""},
		"unicode":           {`"ä${ '€' + Data.name }ö"`, "ä€appö"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.KV = kv
			if got := one(t, dataHead+content(tc.in), o, manifest.Inputs{Dir: dir}).Content; got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// TestTypesKept checks that a single expression keeps its type.
func TestTypesKept(t *testing.T) {
	in := dataHead + `
muster:
  resources:
    - file:
        - "/srv/${ Data.name }":
            force: "${ Data.debug }"
            count: "${ Data.port }"
            args: "${ concat(Data.list, [Data.name]) }"
            env: "${ {'A': string(Data.port), 'B': 'x'} }"
            data:
              all: "${ Data.nested }"
              ratio: ${ Data.ratio }
              "${ Data.name }": {{expr}}
            require: ["package#${ Data.name }"]
`
	in = strings.Replace(in, "{{expr}}", `"{{ Data.users[0] }}"`, 1)
	got := outcome(t, in, options(), manifest.Inputs{Known: func(model.Ref) bool { return true }})
	want := `file {"name":"/srv/app","ensure":"present","require":["package#app"],"force":true,"count":8080,"args":["a","b","app"],"env":{"A":"8080","B":"x"},"data":{"all":{"deep":{"x":1}},"app":{"age":30,"name":"ann"},"ratio":1.5}}` + "\nwarning: m.yaml:22:20: a count of 8080 is a lot (use less)"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestExpressionProblems checks the errors of expressions and their positions.
func TestExpressionProblems(t *testing.T) {
	const escape = " (write `$${` for a literal `${`)"
	const braces = " (write `{{ '{{' }}` for a literal `{{`)"
	dir := t.TempDir()
	for name, tc := range map[string]struct{ in, want string }{
		"unknown name":       {`"${PATH}"`, "m.yaml:20:23: the expression is not valid: unknown name `PATH`" + escape},
		"unknown in braces":  {`"x {{ .Values.x }}"`, "m.yaml:20:25: the expression is not valid: unexpected `.`" + braces},
		"dot in braces":      {`"x {{ .Data.name }}"`, "m.yaml:20:25: the expression is not valid: unexpected `.` (did you mean `Data.name`? or write `{{ '{{' }}` for a literal `{{`)"},
		"name of data":       {`"{{ users }}"`, "m.yaml:20:23: the expression is not valid: unknown name `users` (did you mean `Data.users`? or write `{{ '{{' }}` for a literal `{{`)"},
		"near name":          {`"${ facts.os }"`, "m.yaml:20:23: the expression is not valid: unknown name `facts` (did you mean `Facts`? or write `$${` for a literal `${`)"},
		"near function":      {`"${ lookip('data.x') }"`, "m.yaml:20:23: the expression is not valid: unknown name `lookip` (did you mean `lookup`? or write `$${` for a literal `${`)"},
		"shell default":      {`"${VAR:-x}"`, "m.yaml:20:23: the expression is not valid: unexpected `:`" + escape},
		"empty":              {`"a ${ }"`, "m.yaml:20:25: the expression is not valid: the expression is empty" + escape},
		"unterminated":       {`"a ${ Data.name"`, "m.yaml:20:25: the expression that begins here does not end (close it with `}`, or write `$${` for a literal `${`)"},
		"unterminated brace": {`"a {{ Data.name }"`, "m.yaml:20:25: the expression that begins here does not end (close it with `}}`, or write `{{ '{{' }}` for a literal `{{`)"},
		"open string":        {`"${ 'x }"`, "m.yaml:20:23: the expression that begins here does not end (close it with `}`, or write `$${` for a literal `${`)"},
		"nil member":         {`"${ Data.none.x }"`, "m.yaml:20:23: the expression fails: `Data.none` is not set (write `Data.none?.x` where it may be unset)"},
		"missing":            {`"${ Data.nam }"`, "m.yaml:20:23: the expression fails: `Data.nam` is not set (did you mean `name`? or write `Data.nam ?? nil` where it may be unset)"},
		"missing deep":       {`"${ Data.nested.x }"`, "m.yaml:20:23: the expression fails: `Data.nested.x` is not set (write `Data.nested.x ?? nil` where it may be unset)"},
		"missing inside":     {`"a${ Data.nam }"`, "m.yaml:20:24: the expression fails: `Data.nam` is not set (did you mean `name`? or write `Data.nam ?? nil` where it may be unset)"},
		"types":              {`"${ Data.name + 1 }"`, "m.yaml:20:23: the expression fails: invalid operation: string + int"},
		"list and list":      {`"${ Data.list + [1] }"`, "m.yaml:20:23: the expression is not valid: invalid operation: + (mismatched types any and list)" + escape},
		"index":              {`"${ Data.list[5] }"`, "m.yaml:20:23: the expression fails: index out of range: 5 (array length is 2)"},
		"nil inside":         {`"a ${ Data.none }"`, "m.yaml:20:25: the expression gives nothing, which is not allowed inside a text (give it a default with `??`)"},
		"list inside":        {`"a ${ Data.list }"`, "m.yaml:20:25: the expression gives a list, which is not allowed inside a text (use join() or toJSON(), or argv for the arguments of an exec)"},
		"map inside":         {`"a ${ Data.nested }"`, "m.yaml:20:25: the expression gives a mapping, which is not allowed inside a text (use join() or toJSON())"},
		"list for text":      {`"${ Data.list }"`, "m.yaml:20:22: `content` must be a string, not a list"},
		"function":           {`"${ lookup }"`, "m.yaml:20:23: the expression fails: gives a function, which a document cannot contain"},
		"open comment":       {`"${ 1 /* }"`, "m.yaml:20:23: the expression that begins here does not end (close it with `}`, or write `$${` for a literal `${`)"},
		"infinity":           {`"${ 1 / 0 }"`, "m.yaml:20:23: the expression fails: gives +Inf, which a document cannot contain"},
		"lookup unknown":     {`"${ lookup('data.nested.dep.x') }"`, "m.yaml:20:23: the expression fails: `data.nested.dep.x` is not known (did you mean `data.nested.deep`?)"},
		"lookup far":         {`"${ lookup('data.zzzzzz') }"`, "m.yaml:20:23: the expression fails: `data.zzzzzz` is not known (give lookup a default as its second argument where it may be missing)"},
		"lookup root":        {`"${ lookup('fact.os') }"`, "m.yaml:20:23: the expression fails: lookup takes a path under facts., data. or environ., not `fact` (did you mean `facts`?)"},
		"lookup no root":     {`"${ lookup('hostname') }"`, "m.yaml:20:23: the expression fails: lookup takes a path under facts., data. or environ., not `hostname` (for example lookup('data.name'))"},
		"near fact":          {`"${ Facts.hots.name }"`, "m.yaml:20:23: the expression fails: `Facts.hots` is not set (did you mean `host`? or write `Facts.hots?.name` where it may be unset)"},
		"missing fact":       {`"${ Facts.nosuch.deeper.still }"`, "m.yaml:20:23: the expression fails: `Facts.nosuch` is not set (write `Facts.nosuch?.deeper` where it may be unset)"},
		"within a fact":      {`"${ upper(Facts.host.nam.x) }"`, "m.yaml:20:23: the expression fails: `Facts.host.nam` is not set (did you mean `name`? or write `Facts.host.nam?.x` where it may be unset)"},
		"second of two":      {`"${ (Facts.nosuch ?? 'a') + Facts.hots.name }"`, "m.yaml:20:23: the expression fails: `Facts.hots` is not set (did you mean `host`? or write `Facts.hots?.name` where it may be unset)"},
		"key in brackets":    {`"${ Facts['hots']['name'] }"`, "m.yaml:20:23: the expression fails: `Facts.hots` is not set (did you mean `host`? or write `Facts.hots?.name` where it may be unset)"},
		"item of nothing":    {`"${ Facts.hots[0] }"`, "m.yaml:20:23: the expression fails: `Facts.hots` is not set (did you mean `host`? or write `Facts.hots?.[0]` where it may be unset)"},
		"key of a text":      {`"${ Facts.os.x.y }"`, "m.yaml:20:23: the expression fails: `Facts.os` is a string and has no key `x` (write `Facts.os` for its value)"},
		"optional of a text": {`"${ upper(Facts.host.name?.x) }"`, "m.yaml:20:23: the expression fails: `Facts.host.name` is a string and has no key `x` (write `Facts.host.name` for its value)"},
		"key of a number":    {`"${ Data.port.x }"`, "m.yaml:20:23: the expression fails: `Data.port` is a number and has no key `x` (write `Data.port` for its value)"},
		"key of a list":      {`"${ Data.list.x }"`, "m.yaml:20:23: the expression fails: `Data.list` is a list and has no key `x` (read an item, such as `Data.list[0]`)"},
		"item of a mapping":  {`"${ Data.nested[0] }"`, "m.yaml:20:23: the expression fails: `Data.nested` is a mapping and has no key `[0]` (read a key, such as `Data.nested.deep`)"},
		"key of a result":    {`"${ lookup('data.name').x }"`, "m.yaml:20:23: the expression fails: `lookup(\"data.name\")` has no key `x`"},
		"key of no result":   {`"${ lookup('data.nope', nil).x }"`, "m.yaml:20:23: the expression fails: `lookup(\"data.nope\", nil)` is not set (write `?.x` where it may be unset)"},
		"key of an item":     {`"${ map(Data.list, .x) }"`, "m.yaml:20:23: the expression fails: `#` has no key `x`"},
		"key of a variable":  {`"${ let a = Facts.nope; a.x }"`, "m.yaml:20:23: the expression fails: `a` is not set (write `?.x` where it may be unset)"},
		"missing in lookup":  {`"${ lookup('facts.hots.name') }"`, "m.yaml:20:23: the expression fails: `facts.hots.name` is not known (did you mean `facts.host`?)"},
		"default no root":    {`"${ lookup('hostname', 'none') }"`, "m.yaml:20:23: the expression fails: lookup takes a path under facts., data. or environ., not `hostname` (for example lookup('data.name'))"},
		"lookup arguments":   {`"${ lookup('data.x', 1, 2) }"`, "m.yaml:20:23: the expression fails: lookup takes a path and one default"},
		"lookup type":        {`"${ lookup(1) }"`, "m.yaml:20:23: the expression is not valid: cannot use int as argument (type string) to call lookup" + escape},
		"no file":            {`"${ readFile('nope') }"`, "m.yaml:20:23: the expression fails: open " + dir + "/nope: no such file or directory"},
		"directory":          {`"${ readFile('.') }"`, "m.yaml:20:23: the expression fails: " + dir + " is not a regular file"},
		"kvGet":              {`"${ kvGet('config', 'nope') }"`, "m.yaml:20:23: the expression fails: kvGet config/nope: key not found"},
		"registrations":      {`"${ registrations('a', 'b', 'c', 'd') }"`, "m.yaml:20:23: the expression fails: registrations needs a NATS connection (give --server or --context, or let an agent run it)"},
		"few words":          {`"${ registrations('a', 'b', 'c') }"`, "m.yaml:20:23: the expression is not valid: not enough arguments to call registrations" + escape},
		"secret of a list":   {`"${ secret(Data.list) }"`, "m.yaml:20:23: the expression fails: secret takes a text, not a list"},
		"endless loop":       {`"${ reduce(1..999999, #acc + 'xxxxxxxxxx', '') }"`, "m.yaml:20:23: the expression fails: it exceeds the work limit (use join() to build a text from a list, or compute the value elsewhere)"},
		"doubled":            {`"${ reduce(1..40, #acc + #acc, 'x') }"`, "m.yaml:20:23: the expression fails: it exceeds the work limit (use join() to build a text from a list, or compute the value elsewhere)"},
		"nested loops":       {`"${ sum(map(1..999, count(1..999, any(1..999, # == 0)))) }"`, "m.yaml:20:23: the expression fails: memory budget exceeded"},
		"large range":        {`"${ len(1..100000000) }"`, "m.yaml:20:23: the expression fails: memory budget exceeded"},
		"repeat too much":    {`"${ repeat(repeat('x', 999999), 999999) }"`, "m.yaml:20:23: the expression fails: repeat would exceed the limit of 16777216 bytes"},
		"second of a text":   {`"${ Data.name } ${ nope }"`, "m.yaml:20:38: the expression is not valid: unknown name `nope`" + escape},
		"after an escape":    {`"$${x} {{ '{{' }} ${ nope }"`, "m.yaml:20:40: the expression is not valid: unknown name `nope`" + escape},
		"in a literal":       {"|\n              first ${ Data.name }\n                second ${ nope }\n", "m.yaml:22:24: the expression is not valid: unknown name `nope`" + escape},
		"in a folded":        {">-\n              first ${ Data.name }\n              second ${ nope }\n", "m.yaml:22:22: the expression is not valid: unknown name `nope`" + escape},
		"in quotes":          {"\"first \\n\n              ä ${ nope }\"\n", "m.yaml:21:17: the expression is not valid: unknown name `nope`" + escape},
		"in plain":           {"first\n              ${ nope }\n", "m.yaml:21:15: the expression is not valid: unknown name `nope`" + escape},
		"two at a time":      {`"${ a } ${ b }"`, "m.yaml:20:23: the expression is not valid: unknown name `a`" + escape + "\nm.yaml:20:30: the expression is not valid: unknown name `b`" + escape},
		"several lines":      {"|\n              ${ 1 +\n                 }\n", "m.yaml:21:15: the expression is not valid: it is not complete" + escape},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			o.KV = kv
			if got := outcome(t, dataHead+content(tc.in), o, manifest.Inputs{Dir: dir}); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestUnavailable checks expressions that need a missing option of the loader.
func TestUnavailable(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"kv":            {`"${ kvGet('a', 'b') }"`, "m.yaml:5:23: the expression fails: kvGet needs a NATS connection (give --server or --context, or let an agent run it)"},
		"directory":     {`"${ readFile('x') }"`, "m.yaml:5:23: the expression fails: \"x\" is relative, and this manifest has no directory (deliver manifest and files as a bundle, or give an absolute path)"},
		"facts":         {`"${ Facts.os }"`, "m.yaml:5:23: the expression fails: facts: not available here"},
		"facts, lookup": {`"${ lookup('facts.os') }"`, "m.yaml:5:23: the expression fails: facts: not available here"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(t, content(tc.in), manifest.Options{Types: testTypes()}, manifest.Inputs{}); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestFactsOnce counts the reads of facts.
func TestFactsOnce(t *testing.T) {
	calls := 0
	o := options()
	o.Facts = func(ctx context.Context) (model.Facts, error) {
		calls++
		return node(ctx)
	}
	in := content(`"${ Facts.os } ${ lookup('facts.os') } ${ Facts.cores }"`)
	if got := one(t, in, o, manifest.Inputs{}).Content; got != "debian debian 4" || calls != 1 {
		t.Errorf("got %q, facts asked %d times", got, calls)
	}
	if one(t, content("plain"), o, manifest.Inputs{}); calls != 1 {
		t.Error("facts were asked for without need")
	}
	if got := one(t, in, o, manifest.Inputs{Facts: model.Facts{"os": "x", "cores": 1}}).Content; got != "x x 1" || calls != 1 {
		t.Errorf("got %q, facts asked %d times", got, calls)
	}
	failing := errors.New("no facts today")
	o.Facts = func(context.Context) (model.Facts, error) { return nil, failing }
	got := outcome(t, in, o, manifest.Inputs{})
	if want := "m.yaml:5:23: the expression fails: facts: no facts today"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestStatic checks which documents always resolve to the same.
func TestStatic(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]bool{
		`plain`:                                  true,
		`"${ Data.name ?? '' }"`:                 true,
		`"${ lookup('data.x', 'y') }"`:           true,
		`"${ upper('x') }"`:                      true,
		`"${ Facts.os }"`:                        false,
		`"${ lookup('facts.os') }"`:              false,
		`"${ Environ.STAGE }"`:                   false,
		`"${ lookup('environ.STAGE') }"`:         false,
		`"${ readFile('f') }"`:                   false,
		`"${ kvGet('config', 'app/greeting') }"`: false,
		`"${ now() }"`:                           false,
	} {
		o := options()
		o.KV = kv
		r, err := resolve(t, content(in), o, manifest.Inputs{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if r.Static != want {
			t.Errorf("%s: static %v", in, r.Static)
		}
	}
}

// TestNow checks that now is a time that documents can contain.
func TestNow(t *testing.T) {
	for _, in := range []string{`"${ now() }"`, `"at ${ now() }"`, `"${ string(now()) }"`, `"${ toJSON([now()]) }"`} {
		if got := outcome(t, content(in), options(), manifest.Inputs{}); strings.Contains(got, "m=") || !strings.Contains(got, "20") {
			t.Errorf("%s gives %s", in, got)
		}
	}
}
