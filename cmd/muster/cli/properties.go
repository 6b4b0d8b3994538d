package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
)

// Decode decodes properties, as resource.Decode does.
type Decode func(*resource.Type, document.Value, model.Position) (*resource.Resource, model.Problems)

// TypeCommands describes the commands that AddTypes adds.
type TypeCommands struct {
	// Taken lists reserved flag names, besides the global flags. A property with one of these names gets the flag
	// --TYPE-PROPERTY.
	Taken []string
	// Decode checks the properties.
	Decode Decode
	// Evaluated reports whether Act evaluates expressions in values; nil means that values are literal.
	Evaluated func() bool
	// Question marks commands that only observe. They set no defaults and accept no second argument.
	Question bool
	// More, if set, adds flags to the command of a type. It returns a function that adds the values of these flags to
	// the properties.
	More func(cmd *fisk.CmdClause, typ *resource.Type) func(document.Value) (document.Value, error)
	// Act runs the command with the properties that are set.
	Act func(ctx context.Context, typ *resource.Type, properties document.Value) error
}

// AddTypes adds to parent a command for each resource type, with a flag for each of its properties.
func (e *Env) AddTypes(parent *fisk.CmdClause, o TypeCommands) {
	taken := slices.AppendSeq(slices.Clone(o.Taken), maps.Keys(e.globals))
	for _, t := range e.Types {
		cmd := parent.Command(t.Name, t.Summary)
		var name string
		cmd.Arg("name", cmp.Or(t.NameHelp, "Name of the resource")).Required().StringVar(&name)
		flags := addProperties(cmd, t, taken)
		var second *propertyFlag
		more := func(v document.Value) (document.Value, error) { return v, nil }
		if o.More != nil {
			more = o.More(cmd, t)
		}
		if t.Abbreviation != "" {
			cmd.Alias(t.Abbreviation)
		}
		if t.Argument != "" && !o.Question {
			second = addArgument(cmd, t)
		}
		cmd.Action(e.Action(func(ctx context.Context) error {
			v, err := given(name, flags, second)
			if err == nil {
				v, err = more(v)
			}
			if err != nil {
				return err
			}
			if !o.Question {
				v.Entries = withDefaults(t, splitOwner(t, v))
			}
			if o.Evaluated == nil || !o.Evaluated() || !holdsExpression(v) {
				if _, problems := o.Decode(t, v, v.Pos); len(problems) > 0 {
					return &ExitError{Code: ExitUsage, Err: withFlags(problems, flags)}
				}
			}
			err = o.Act(ctx, t, v)
			if problems, is := errors.AsType[model.Problems](err); is {
				return withFlags(problems, flags)
			}
			return err
		}))
	}
}

// given returns the properties on the command line. second is nil if the command has no second argument.
func given(name string, flags []*propertyFlag, second *propertyFlag) (document.Value, error) {
	v := document.Value{Kind: document.Map}
	v.Entries = append(v.Entries, document.Entry{Key: "name", Value: text(name, model.Position{File: "the name"})})
	for _, f := range flags {
		if !f.set {
			continue
		}
		if err := f.checkPairs(); err != nil {
			return v, err
		}
		v.Entries = append(v.Entries, document.Entry{Key: f.Key, Pos: f.pos(), Value: f.value()})
	}
	if second != nil && second.set {
		if _, twice := v.Get(second.Key); twice {
			return v, Usagef("%s is given twice: as the argument %q and as --%s", second.Key, second.text, second.Key)
		}
		v.Entries = append(v.Entries, document.Entry{Key: second.Key, Pos: second.pos(), Value: second.value()})
	}

	return v, nil
}

// addArgument adds the second argument, which sets the property t.Argument.
func addArgument(cmd *fisk.CmdClause, t *resource.Type) *propertyFlag {
	p, _ := t.Property(t.Argument)
	f := &propertyFlag{Property: p, name: flagOf(p.Key)}
	cmd.Arg(f.name, "The same as --"+f.name).IsSetByUser(&f.set).StringVar(&f.text)

	return f
}

// splitOwner splits an owner such as user:group into the properties owner and group, unless the group is given. It ignores
// colons in expressions.
func splitOwner(t *resource.Type, v document.Value) document.Value {
	owner, _ := v.Get("owner")
	_, hasGroup := v.Get("group")
	if _, known := t.Property("group"); !known || hasGroup || owner.Kind != document.String {
		return v
	}
	rest := expressions.ReplaceAllStringFunc(owner.Text, func(e string) string { return strings.Repeat("x", len(e)) })
	at := strings.IndexByte(rest, ':')
	if at <= 0 || at == len(rest)-1 {
		return v
	}
	for i := range v.Entries {
		if v.Entries[i].Key == "owner" {
			v.Entries[i].Value.Text = owner.Text[:at]
		}
	}
	v.Entries = append(v.Entries, document.Entry{Key: "group", Pos: owner.Pos, Value: text(owner.Text[at+1:], owner.Pos)})

	return v
}

var expressions = regexp.MustCompile(`\{\{.*?\}\}|\$\{.*?\}`)

// withDefaults returns the entries and the default values of flags.
func withDefaults(t *resource.Type, v document.Value) []document.Entry {
	if ensure, _ := v.Get("ensure"); ensure.Text == model.EnsureAbsent {
		return v.Entries
	}
	for _, p := range t.Properties {
		if _, given := v.Get(p.Key); p.FlagDefault != "" && !given {
			v.Entries = append(v.Entries, document.Entry{Key: p.Key, Value: text(p.FlagDefault, model.Position{File: "--" + flagOf(p.Key)})})
		}
	}

	return v.Entries
}

// OutsideExpressions returns a text without the expressions in it.
func OutsideExpressions(text string) string { return expressions.ReplaceAllString(text, "") }

// holdsExpression reports whether a text in a value may contain an expression.
func holdsExpression(v document.Value) bool {
	return v.Kind == document.String && expression.MayHoldExpression(v.Text) ||
		slices.ContainsFunc(v.Items, holdsExpression) ||
		slices.ContainsFunc(v.Entries, func(e document.Entry) bool { return expression.MayHoldExpression(e.Key) || holdsExpression(e.Value) })
}

// withFlags adds the names of missing flags, and examples as flags.
func withFlags(problems model.Problems, flags []*propertyFlag) model.Problems {
	for i, p := range problems {
		for _, f := range flags {
			if p.Property != f.Key {
				continue
			}
			example, is := strings.CutPrefix(p.Hint, "for example "+f.Key+": ")
			switch {
			case is:
				problems[i].Hint = "for example --" + f.name + " " + strings.Trim(example, `"`)
			case !f.set:
				problems[i].Hint = cmp.Or(p.Hint, "give --"+f.name)
			}
		}
	}

	return problems
}

// addProperties adds the flags in the order of a type's help: ensure, the type's properties, and the common
// properties.
func addProperties(cmd *fisk.CmdClause, t *resource.Type, taken []string) []*propertyFlag {
	rank := func(p resource.Property) int {
		switch {
		case p.Key == "ensure":
			return 0
		case !p.Common:
			return 1
		default:
			return 2
		}
	}
	properties := slices.SortedStableFunc(slices.Values(t.Properties), func(a, b resource.Property) int { return rank(a) - rank(b) })
	var flags []*propertyFlag
	for _, p := range properties {
		// A single structure (control) is for manifests only.
		f := &propertyFlag{Property: p, name: flagOf(p.Key)}
		if p.Key != "name" && (p.GoType.Kind() != reflect.Struct || f.isAnyKind()) {
			if slices.Contains(taken, f.name) {
				f.name = typeFlag(t.Name, f.name)
			}
			f.add(cmd)
			flags = append(flags, f)
		}
	}

	return flags
}

// propertyFlag is a property as a flag.
type propertyFlag struct {
	resource.Property
	name  string
	set   bool
	text  string
	flag  bool
	items []string
}

// flagOf returns the name of the flag of a property.
func flagOf(key string) string { return strings.ReplaceAll(key, "_", "-") }

// typeFlag returns the name of the flag of a property whose own name is taken.
func typeFlag(typ, name string) string { return typ + "-" + name }

// TypeFlags returns the flags of a type's properties with taken names.
func TypeFlags(t *resource.Type, taken []string) []string {
	var out []string
	for _, p := range t.Properties {
		if name := flagOf(p.Key); slices.Contains(taken, name) {
			out = append(out, typeFlag(t.Name, name))
		}
	}

	return out
}

func (f *propertyFlag) pos() model.Position { return model.Position{File: "--" + f.name} }

// isStructures reports whether the property is a list of structures, each given
// as a document.
func (f *propertyFlag) isStructures() bool {
	return f.GoType.Kind() == reflect.Slice && f.GoType.Elem().Kind() == reflect.Struct && f.GoType.Elem() != reflect.TypeFor[model.Ref]()
}

// isAnyKind reports whether the property takes a value of any kind.
func (f *propertyFlag) isAnyKind() bool {
	return reflect.PointerTo(f.GoType).Implements(reflect.TypeFor[document.ValueUnmarshaler]())
}

// isMappings reports whether the property is a list of mappings.
func (f *propertyFlag) isMappings() bool {
	return f.GoType.Kind() == reflect.Slice && f.GoType.Elem().Kind() == reflect.Map
}

func (f *propertyFlag) add(cmd *fisk.CmdClause) {
	help := f.Help
	if f.isStructures() {
		help += "; each a mapping in YAML or JSON"
	}
	f.bind(cmd.Flag(f.name, help), f.Short)
	for _, alias := range f.FlagAliases {
		if alias == f.name {
			continue
		}
		f.bind(cmd.Flag(alias, "The same as --"+f.name).Hidden(), "")
	}
}

// bind makes a flag set the property.
func (f *propertyFlag) bind(clause *fisk.FlagClause, short string) {
	clause.IsSetByUser(&f.set).PlaceHolder(f.placeHolder())
	if short != "" {
		clause.Short(rune(short[0]))
	}
	switch f.GoType.Kind() {
	case reflect.Bool:
		clause.BoolVar(&f.flag)
	case reflect.Slice, reflect.Map:
		clause.StringsVar(&f.items)
	default:
		clause.HintOptions(f.Enum...).StringVar(&f.text)
	}
}

func (f *propertyFlag) placeHolder() string {
	switch kind := f.GoType.Kind(); {
	case kind == reflect.Bool:
		return ""
	case f.isStructures():
		return "{KEY: VALUE…}"
	case f.isMappings() || kind == reflect.Map:
		return "KEY=VALUE…"
	case kind == reflect.Slice:
		return "VALUE…"
	case len(f.Enum) > 0:
		return strings.Join(f.Enum, "|")
	case f.GoType == reflect.TypeFor[model.Duration]():
		return "DURATION"
	default:
		return strings.ToUpper(f.Key)
	}
}

// value returns the flag's value. Its position is the flag.
func (f *propertyFlag) value() document.Value {
	switch pos := f.pos(); f.GoType.Kind() {
	case reflect.Bool:
		return document.Value{Kind: document.Bool, Text: strconv.FormatBool(f.flag), Pos: pos}
	case reflect.Slice:
		v := document.Value{Kind: document.List, Pos: pos}
		for _, item := range f.items {
			switch {
			case f.isStructures():
				v.Items = append(v.Items, structure(item, pos))
			case f.isMappings():
				v.Items = append(v.Items, f.pairs(item))
			default:
				v.Items = append(v.Items, text(item, pos))
			}
		}
		return v
	case reflect.Map:
		return f.pairs(f.items...)
	default:
		// A text stays as it is, also in quotes. Numbers, booleans, lists and mappings of JSON are read.
		if f.isAnyKind() && json.Valid([]byte(f.text)) && !strings.HasPrefix(f.text, `"`) && f.text != "null" {
			return structure(f.text, pos)
		}
		return text(f.text, pos)
	}
}

func text(s string, pos model.Position) document.Value {
	return document.Value{Kind: document.String, Text: s, Pos: pos}
}

// structure parses a document. It returns other text unchanged, and validation rejects it later.
func structure(s string, pos model.Position) document.Value {
	v, problems := document.Read(pos.File, []byte(s), int64(len(s)))
	if len(problems) > 0 {
		return text(s, pos)
	}

	return v
}

// checkPairs returns an error for an item without a key and a value. The error omits the item, because it may
// be a secret.
func (f *propertyFlag) checkPairs() error {
	if !f.isMappings() && f.GoType.Kind() != reflect.Map {
		return nil
	}
	for i, item := range f.items {
		if _, _, ok := f.pair(item); !ok {
			return Usagef("--%s: item %d is no pair: write it as %s", f.name, i+1, f.pairForms())
		}
	}

	return nil
}

// isTexts reports whether the property is a mapping of texts, such as headers.
func (f *propertyFlag) isTexts() bool {
	return f.GoType.Kind() == reflect.Map && f.GoType.Elem().Kind() == reflect.String
}

func (f *propertyFlag) pairForms() string {
	if f.isTexts() {
		return "KEY=VALUE or 'KEY: VALUE'"
	}

	return "KEY=VALUE"
}

// pair splits an item at its first equals sign. A mapping of texts may have a colon instead, as
// in the header of an HTTP request.
func (f *propertyFlag) pair(item string) (key, value string, ok bool) {
	if at := strings.IndexAny(item, ":="); f.isTexts() && at >= 0 && item[at] == ':' {
		return item[:at], strings.TrimLeft(item[at+1:], " "), true
	}

	return strings.Cut(item, "=")
}

// pairs returns the mapping of items. The last item of a key wins.
func (f *propertyFlag) pairs(items ...string) document.Value {
	v := document.Value{Kind: document.Map, Pos: f.pos()}
	for _, item := range items {
		key, value, _ := f.pair(item)
		v.Entries = slices.DeleteFunc(v.Entries, func(e document.Entry) bool { return e.Key == key })
		v.Entries = append(v.Entries, document.Entry{Key: key, Pos: v.Pos, Value: text(value, v.Pos)})
	}

	return v
}
