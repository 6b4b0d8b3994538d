package resource_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/resource"
)

type spec struct {
	model.Common
	Text   string            `json:"text,omitempty" alias:"words" jsonschema:"enum=a,enum=b,default=a" jsonschema_description:"What it says" sensitive:"true"`
	Maybe  *string           `json:"maybe,omitempty"`
	Flag   bool              `json:"flag,omitempty"`
	Codes  []int             `json:"codes,omitempty"`
	List   []string          `json:"list,omitempty"`
	Map    map[string]string `json:"map,omitempty"`
	Any    map[string]any    `json:"any,omitempty"`
	hidden string
}

// Secrets is the token in Map.
func (s *spec) Secrets() []model.Secret {
	if token := s.Map["token"]; token != "" {
		return []model.Secret{model.NewSecret(token)}
	}
	return nil
}

func (s *spec) Validate() (p model.Problems) {
	_ = s.hidden
	if s.Name == "needy" && len(s.List) == 0 {
		p.Property("list", "", "list is required")
	}
	if s.Text == "bad" {
		p.Property("text", "write good", "text is bad")
	}
	return p
}

type state struct{ model.CommonState }

type provider struct {
	name     string
	priority int
	ok       bool
	err      error
}

func (p provider) Name() string { return p.name }

func (p provider) IsManageable(model.Facts, resource.Spec) (bool, int, error) {
	return p.ok, p.priority, p.err
}

type contract struct{}

func (contract) Info() resource.Info {
	return resource.Info{Name: "toy", Ensures: []string{"present", "absent"}, NameHelp: "a toy's name"}
}
func (contract) New() *spec { return &spec{Text: "default"} }
func (contract) Status(context.Context, resource.Env, provider, *spec) (*state, error) {
	return &state{}, nil
}
func (contract) Plan(*spec, *state, bool) (resource.Plan, error) { return resource.Plan{}, nil }
func (contract) Apply(context.Context, resource.Env, provider, *spec, resource.Plan) (resource.Outcome, error) {
	return resource.Outcome{}, nil
}

func toy() *resource.Type {
	return resource.Of[*spec, *state, provider](contract{}, provider{name: "wood", ok: true, priority: 1})
}

func str(s string) document.Value { return document.Value{Kind: document.String, Text: s, Pos: at(7)} }
func at(line int) model.Position  { return model.Position{File: "m.yaml", Line: line, Column: 3} }
func list(items ...document.Value) document.Value {
	return document.Value{Kind: document.List, Items: items, Pos: at(8)}
}
func props(kv ...any) document.Value {
	v := document.Value{Kind: document.Map, Pos: at(1)}
	for i := 0; i < len(kv); i += 2 {
		v.Entries = append(v.Entries, document.Entry{Key: kv[i].(string), Pos: at(5), Value: kv[i+1].(document.Value)})
	}
	return v
}

func TestDecodeKeepsTextAsWritten(t *testing.T) {
	r, problems := resource.Decode(toy(), props(
		"name", str("x"), "words", document.Value{Kind: document.Number, Text: "0644"}, "maybe", str(""),
		"flag", document.Value{Kind: document.Bool, Text: "true"}, "codes", list(str("0"), str("2")), "list", list(str("1.10")),
		"map", props("k", str("v")), "any", props("n", document.Value{Kind: document.Number, Text: "3"}),
		"timeout", str("30s"), "require", list(str("toy#y")), "control", props("if", str("true")),
	), at(1))
	if problems != nil {
		t.Fatal(problems)
	}
	got := r.Spec.(*spec)
	empty := ""
	want := &spec{
		Common: model.Common{Name: "x", Ensure: "present", Require: []model.Ref{{Type: "toy", Name: "y"}}, Timeout: model.Duration(30e9), Control: model.Control{If: "true"}},
		Text:   "0644", Maybe: &empty, Flag: true, Codes: []int{0, 2}, List: []string{"1.10"}, Map: map[string]string{"k": "v"}, Any: map[string]any{"n": 3},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v\n%+v", got, want)
	}
}

func TestDecodeNullMeansNotSet(t *testing.T) {
	r, problems := resource.Decode(toy(), props("name", str("x"), "text", document.Value{}, "maybe", document.Value{}), at(1))
	if problems != nil || r.Spec.(*spec).Text != "default" || r.Spec.(*spec).Maybe != nil {
		t.Fatal(problems, r)
	}
}

func TestDecodeErrors(t *testing.T) {
	cases := map[string]struct {
		v    document.Value
		want string
	}{
		"unknown":        {props("name", str("x"), "txet", str("a")), "m.yaml:5:3: unknown property `txet` of toy (did you mean `text`?)"},
		"twice by alias": {props("name", str("x"), "text", str("a"), "words", str("b")), "`text` is set twice, first at m.yaml:7:3"},
		"no name":        {props("text", str("a")), "the toy needs a name (a toy's name)"},
		"own rule":       {props("name", str("x"), "text", str("bad")), "m.yaml:7:3: text is bad (write good)"},
		"ensure":         {props("name", str("x"), "ensure", str("there")), `m.yaml:7:3: invalid ensure "there" (one of present, absent)`},
		"bool":           {props("name", str("x"), "flag", str("maybe")), "`flag` must be true or false, not \"maybe\""},
		"int":            {props("name", str("x"), "retry", str("1.5")), "`retry` must be a whole number, not \"1.5\""},
		"negative":       {props("name", str("x"), "retry", str("-1")), "retry must not be negative"},
		"list":           {props("name", str("x"), "list", str("a")), "`list` must be a list, not a string (write it as a list: [a])"},
		"list of lists":  {props("name", str("x"), "list", list(list())), "an item of `list` is a list (make one list, in an expression with concat())"},
		"empty item":     {props("name", str("x"), "list", list(document.Value{})), "`list` must be a list without empty items"},
		"string":         {props("name", str("x"), "text", list()), "`text` must be a string, not a list"},
		"duration":       {props("name", str("x"), "timeout", str("30")), "`timeout`: invalid duration \"30\", write it with its unit"},
		"reference":      {props("name", str("x"), "require", list(str("y"))), "`require`: invalid resource reference: \"y\", write it as type#name"},
		"map":            {props("name", str("x"), "map", str("a")), "`map` must be a mapping, not \"a\""},
		"struct":         {props("name", str("x"), "control", props("fi", str("true"))), "unknown key `fi` in `control` (did you mean `if`?)"},
		"ensure empty":   {props("name", str("x"), "ensure", str("")), "m.yaml:7:3: `ensure` is empty (leave it out, or give one of present, absent)"},
		"drift empty":    {props("name", str("x"), "drift", str("")), "m.yaml:7:3: `drift` is empty (leave it out, or give one of repair, report, ignore)"},
		"drift":          {props("name", str("x"), "drift", str("x")), `invalid drift "x" (one of repair, report, ignore)`},
		"provider":       {props("name", str("x"), "provider", str("stone")), `there is no provider "stone" of toy (one of wood)`},
		"no mapping":     {list(), "toy must be a mapping, not a list"},
		"secret":         {props("name", str("x"), "flag", document.Value{Kind: document.String, Text: "hunter2", Secret: true}), `not "[redacted]"`},
		"late name":      {props("name", document.Value{Kind: document.String, Deferred: true}), "`name` must be known before the run"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r, problems := resource.Decode(toy(), c.v, at(1))
			if r != nil || !strings.Contains(problems.Error(), c.want) {
				t.Fatalf("got %v\nwant %s", problems, c.want)
			}
			for _, p := range problems {
				if p.Pos.IsZero() {
					t.Errorf("no place: %v", p)
				}
			}
		})
	}
}

func TestDecodeReportsEverythingAtOnce(t *testing.T) {
	_, problems := resource.Decode(toy(), props("name", str("x"), "nope", str("a"), "flag", str("b"), "text", str("bad"), "ensure", str("c")), at(1))
	if len(problems) != 4 {
		t.Fatal(problems)
	}
	if !errors.Is(problems, model.ErrResourceInvalid) {
		t.Fatal("no sentinel")
	}
}

// TestDecodeTellsAMistakeOnce: an unreadable value is one problem.
func TestDecodeTellsAMistakeOnce(t *testing.T) {
	entry := func(kv ...any) document.Value {
		return list(props(append([]any{"cluster", str("c"), "service", str("s"), "protocol", str("http"), "address", str("10.0.0.1")}, kv...)...))
	}
	for want, v := range map[string]document.Value{
		"`register_when_stable.0.port` must be a whole number": props("name", str("x"), "register_when_stable", entry("port", str("http"))),
		"`register_when_stable.0.ttl`: invalid duration":       props("name", str("x"), "register_when_stable", entry("port", str("80"), "ttl", str("30"))),
		"`register_when_stable` must be a mapping":             props("name", str("x"), "register_when_stable", list(str("web"))),
		"`health_checks.0.tries` must be a whole number":       props("name", str("x"), "health_checks", list(props("command", str("true"), "tries", str("abc")))),
		"`health_checks.0.timeout`":                            props("name", str("x"), "health_checks", list(props("command", str("true"), "timeout", str("-1s")))),
		"`health_checks.0.goss_rules` must be a mapping":       props("name", str("x"), "health_checks", list(props("goss_rules", list()))),
		"`health_checks` must be a mapping":                    props("name", str("x"), "health_checks", list(str("/bin/true"))),
		"`list` must be a list":                                props("name", str("needy"), "list", str("a")),
		"`name` must be a string":                              props("name", list(), "text", str("a")),
	} {
		if _, problems := resource.Decode(toy(), v, at(1)); len(problems) != 1 || !strings.Contains(problems.Error(), want) {
			t.Errorf("got %v\nwant %s", problems, want)
		}
	}
}

// TestNamesAreNotSecret: what a resource and its health checks are called is shown.
func TestNamesAreNotSecret(t *testing.T) {
	secret := document.Value{Kind: document.String, Text: "hunter2", Secret: true, Pos: at(7)}
	check := func(kv ...any) document.Value {
		return props("name", str("x"), "sensitive", str("true"), "health_checks", list(props(kv...)))
	}
	for _, c := range []struct {
		v    document.Value
		want string
	}{
		{props("name", str("x"), "alias", secret), "m.yaml:7:3: `alias` cannot be secret (names are shown in logs and reports)"},
		{check("name", secret, "command", str("true")), "m.yaml:7:3: the name of a health check cannot be secret (names are shown in logs and reports)"},
		{check("command", secret), "m.yaml:7:3: a health check with a secret command needs a `name`, or it would be called by its program (names are shown in logs and reports)"},
		{check("command", secret, "name", str("")), "m.yaml:7:3: a health check with a secret command needs a `name`, or it would be called by its program (names are shown in logs and reports)"},
		{check("command", secret, "name", str("login")), ""},
	} {
		if _, problems := resource.Decode(toy(), c.v, at(1)); problems.Error() != c.want {
			t.Errorf("got %v\nwant %s", problems, c.want)
		}
	}
}

func TestDecodeCollectsSecrets(t *testing.T) {
	secret := document.Value{Kind: document.String, Text: "hunter2", Secret: true}
	r, problems := resource.Decode(toy(), props("name", str("x"), "text", secret, "list", list(secret), "any", props("deep", list(secret))), at(1))
	if problems != nil {
		t.Fatal(problems)
	}
	s := r.Spec.(*spec)
	if len(r.Secrets) != 3 || !r.Sensitive() || s.Text != "hunter2" || s.Any["deep"].([]any)[0] != "hunter2" {
		t.Fatalf("%v %+v", r.Secrets, s)
	}
}

func TestDecodeAsksTheSpecForItsSecrets(t *testing.T) {
	properties := props("name", str("x"), "map", props("token", str("hunter2")))
	r, problems := resource.Decode(toy(), properties, at(1))
	if problems != nil || len(r.Secrets) != 1 || !r.Sensitive() {
		t.Fatal(r, problems)
	}
	properties.Entries = append(properties.Entries, document.Entry{Key: "text", Value: str("bad")}, document.Entry{Key: "codes", Value: list(str("hunter2"))})
	if _, problems := resource.Decode(toy(), properties, at(1)); len(problems) != 2 || strings.Contains(problems.Error(), "hunter2") {
		t.Fatal(problems)
	}
	if r, _ := resource.DecodeQuestion(toy(), props("name", str("needy"), "map", props("token", str("hunter2"))), at(1)); len(r.Secrets) != 1 {
		t.Fatal(r.Secrets)
	}
}

func TestAQuestionNeedsOnlyWhatIsGiven(t *testing.T) {
	r, problems := resource.DecodeQuestion(toy(), props("name", str("x")), at(1))
	if len(problems) > 0 || r.Meta().Name != "x" {
		t.Fatal(problems)
	}
	for name, v := range map[string]document.Value{
		"a given property": props("name", str("x"), "text", str("bad")),
		"an unknown one":   props("name", str("x"), "txet", str("a")),
		"no name":          props("text", str("a")),
	} {
		if r, problems := resource.DecodeQuestion(toy(), v, at(1)); len(problems) == 0 || r != nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if r, problems := resource.DecodeQuestion(toy(), props("name", str("needy")), at(1)); len(problems) > 0 || r == nil {
		t.Error(problems)
	}
}

func TestLateValuesWaitForValidation(t *testing.T) {
	r, problems := resource.Decode(toy(), props("name", str("x"), "text", document.Value{Kind: document.String, Deferred: true}), at(1))
	if problems != nil || r.Meta().Name != "x" {
		t.Fatal(problems)
	}
}

func TestPropertiesAreReadOffTheFields(t *testing.T) {
	var text resource.Property
	common := 0
	for _, p := range toy().Properties {
		if p.Key == "text" {
			text = p
		}
		if p.Common {
			common++
		}
	}
	if text.Help != "What it says" || fmt.Sprint(text.Aliases, text.Enum) != "[words] [a b]" || text.Default != "a" || !text.Sensitive || common == 0 {
		t.Fatalf("%+v", text)
	}
}

func TestSelect(t *testing.T) {
	shell, posix := provider{name: "shell", priority: 99, ok: true}, provider{name: "posix", priority: 1, ok: true}
	off := provider{name: "off"}
	broken := provider{name: "broken", err: errors.New("no such tool")}
	cases := map[string]struct {
		providers []provider
		named     string
		want      string
		err       error
		text      string
	}{
		"the lowest number wins": {[]provider{shell, posix}, "", "posix", nil, ""},
		"a named one":            {[]provider{shell, posix}, "shell", "shell", nil, ""},
		"unknown":                {[]provider{shell, posix}, "wood", "", model.ErrProviderNotFound, "there is shell, posix"},
		"named but unable":       {[]provider{posix, broken}, "broken", "", model.ErrNoSuitableProvider, "no such tool"},
		"none":                   {[]provider{off, broken}, "", "", model.ErrNoSuitableProvider, "off: cannot manage it here; broken: no such tool"},
	}
	missing := provider{name: "unzip", err: resource.PrerequisiteError{Needs: []string{"path:/usr/bin/unzip"}, Err: errors.New("not there")}}
	_, err := resource.Select([]provider{broken, missing}, nil, &spec{})
	if needs := resource.Prerequisites(err); !slices.Equal(needs, []string{"path:/usr/bin/unzip"}) || !strings.HasSuffix(err.Error(), "broken: no such tool; unzip: not there") {
		t.Error(needs, err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := resource.Select(c.providers, nil, &spec{Common: model.Common{Provider: c.named}})
			if got.name != c.want || !errors.Is(err, c.err) || (err != nil && !strings.Contains(err.Error(), c.text)) {
				t.Fatal(got, err)
			}
		})
	}
}

func TestAStateSaysWhoseItIs(t *testing.T) {
	typ := toy()
	got, err := typ.Status(t.Context(), resource.Env{}, provider{}, &spec{Common: model.Common{Name: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if s := got.State(); s.Name != "x" || s.ResourceType != "toy" || s.Protocol != "io.choria.ccm.v1.resource.toy.state" {
		t.Fatalf("%+v", s)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"owner", "group", "mode", "content"}
	for word, want := range map[string]string{"ownr": "owner", "onwer": "owner", "contents": "content", "xyz": "", "Mode": "mode"} {
		if got := document.Nearest(word, known); got != want {
			t.Errorf("%s: got %q, want %q", word, got, want)
		}
	}
}

func TestPlainKeepsSecretsSecret(t *testing.T) {
	v := props("a", document.Value{Kind: document.String, Text: "s", Secret: true}, "b", list(document.Value{Kind: document.Number, Text: "0x10"}), "c", document.Value{Kind: document.Number, Text: "1.5"})
	m := v.Plain().(map[string]any)
	if m["a"] != model.NewSecret("s") || m["b"].([]any)[0] != "0x10" || m["c"] != 1.5 {
		t.Fatalf("%#v", m)
	}
}
