package main

import (
	"reflect"
	"slices"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/model"
	documents "github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/resource"
)

// addTypeCommands gives parent a command for each type, with a flag for each
// of its properties, and calls act with what was given. Everything is derived
// from the registered types.
func (a *app) addTypeCommands(parent *fisk.CmdClause, act func(typ *resource.Type, properties resource.Value) error) {
	for _, t := range a.types {
		cmd := parent.Command(t.Name, t.Summary)
		flags := newPropertyFlags(cmd, t)
		cmd.Action(a.action(func() error { return act(t, flags.value()) }))
	}
}

// propertyFlags are the flags of one type's command.
type propertyFlags struct {
	name  string
	flags []*propertyFlag
}

// propertyFlag is one property as a flag.
type propertyFlag struct {
	property resource.Property
	set      bool
	text     string
	flag     bool
	items    []string
}

func newPropertyFlags(cmd *fisk.CmdClause, t *resource.Type) *propertyFlags {
	p := &propertyFlags{}
	help := t.NameHelp
	if help == "" {
		help = "What it is about"
	}
	cmd.Arg("name", help).Required().StringVar(&p.name)
	for _, property := range ownFirst(t.Properties()) {
		// What is one structure (control) is for manifests only.
		if property.Key == "name" || property.GoType.Kind() == reflect.Struct {
			continue
		}
		p.add(cmd, property)
	}

	return p
}

// ownFirst gives properties in the order of a type's help: what there shall be,
// what the type is about, and then what every resource has.
func ownFirst(properties []resource.Property) []resource.Property {
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

	return slices.SortedStableFunc(slices.Values(properties), func(a, b resource.Property) int { return rank(a) - rank(b) })
}

// hasStructures says that a property is a list of structures, of which each is
// given as a document.
func hasStructures(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && t.Elem() != reflect.TypeFor[model.Ref]()
}

func (p *propertyFlags) add(cmd *fisk.CmdClause, property resource.Property) {
	f := &propertyFlag{property: property}
	help := property.Help
	if hasStructures(property.GoType) {
		help += "; each a mapping in YAML or JSON"
	}
	clause := cmd.Flag(strings.ReplaceAll(property.Key, "_", "-"), help).IsSetByUser(&f.set)
	switch property.GoType.Kind() {
	case reflect.Bool:
		clause.BoolVar(&f.flag)
	case reflect.Slice:
		word := "VALUE…"
		switch {
		case hasStructures(property.GoType):
			word = "{KEY: VALUE…}"
		case property.GoType.Elem().Kind() == reflect.Map:
			word = "KEY=VALUE…"
		}
		clause.PlaceHolder(word).StringsVar(&f.items)
	case reflect.Map:
		clause.PlaceHolder("KEY=VALUE…").StringsVar(&f.items)
	default:
		clause.PlaceHolder(placeHolder(property)).HintOptions(property.Enum...).StringVar(&f.text)
	}
	p.flags = append(p.flags, f)
}

func placeHolder(property resource.Property) string {
	switch {
	case len(property.Enum) > 0:
		return strings.Join(property.Enum, "|")
	case property.GoType == reflect.TypeFor[model.Duration]():
		return "DURATION"
	default:
		return strings.ToUpper(property.Key)
	}
}

// value gives what was set as a mapping of properties; the place of each is its flag.
func (p *propertyFlags) value() resource.Value {
	v := resource.Value{Kind: resource.Map}
	v.Entries = append(v.Entries, resource.Entry{Key: "name", Value: resource.Value{Kind: resource.String, Text: p.name, Pos: model.Position{File: "the name"}}})
	for _, f := range p.flags {
		if f.set {
			pos := model.Position{File: "--" + strings.ReplaceAll(f.property.Key, "_", "-")}
			v.Entries = append(v.Entries, resource.Entry{Key: f.property.Key, Pos: pos, Value: f.value(pos)})
		}
	}

	return v
}

func (f *propertyFlag) value(pos model.Position) resource.Value {
	switch f.property.GoType.Kind() {
	case reflect.Bool:
		text := "false"
		if f.flag {
			text = "true"
		}
		return resource.Value{Kind: resource.Bool, Text: text, Pos: pos}
	case reflect.Slice:
		v := resource.Value{Kind: resource.List, Pos: pos}
		for _, item := range f.items {
			switch {
			case hasStructures(f.property.GoType):
				v.Items = append(v.Items, structure(item, pos))
			case f.property.GoType.Elem().Kind() == reflect.Map:
				v.Items = append(v.Items, pairs([]string{item}, pos))
			default:
				v.Items = append(v.Items, resource.Value{Kind: resource.String, Text: item, Pos: pos})
			}
		}
		return v
	case reflect.Map:
		return pairs(f.items, pos)
	default:
		return resource.Value{Kind: resource.String, Text: f.text, Pos: pos}
	}
}

// structure reads a document. A text that is none is given as it is, for it to
// be refused.
func structure(text string, pos model.Position) resource.Value {
	v, problems := documents.Read(pos.File, []byte(text), int64(len(text)))
	if len(problems) > 0 {
		return resource.Value{Kind: resource.String, Text: text, Pos: pos}
	}

	return v
}

// pairs makes a mapping of key=value texts; the last of a key counts. A text that
// is none is given as it is, for it to be refused.
func pairs(items []string, pos model.Position) resource.Value {
	v := resource.Value{Kind: resource.Map, Pos: pos}
	for _, item := range items {
		key, text, isPair := strings.Cut(item, "=")
		if !isPair {
			return resource.Value{Kind: resource.String, Text: item, Pos: pos}
		}
		v.Entries = slices.DeleteFunc(v.Entries, func(e resource.Entry) bool { return e.Key == key })
		v.Entries = append(v.Entries, resource.Entry{Key: key, Pos: pos, Value: resource.Value{Kind: resource.String, Text: text, Pos: pos}})
	}

	return v
}
