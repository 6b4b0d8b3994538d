package manifest

import (
	"errors"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
)

// keepArguments returns properties with command lines in which each inserted value stays one
// argument. It quotes a line that would otherwise split differently, and returns a warning.
func keepArguments(t *resource.Type, properties document.Value) (document.Value, model.Problems) {
	var k argumentKeeper
	provider, _ := properties.Get("provider")
	properties.Entries = slices.Clone(properties.Entries)
	for i := range properties.Entries {
		e := &properties.Entries[i]
		switch p, _ := t.Property(e.Key); {
		case p.Key == "health_checks":
			e.Value = k.within(e.Value, "command", p)
		case isLine(p, provider.Text):
			e.Value = k.within(e.Value, "", p)
		}
	}
	for _, p := range t.Properties {
		line, _ := properties.Get(p.Key)
		list, _ := properties.Get(p.List)
		if p.List == "" || line.Kind != document.Null || list.Kind != document.Null || !isLine(p, provider.Text) {
			continue
		}
		name, _ := properties.Get("name")
		if line = k.line(name, p); line.Text != name.Text {
			properties.Entries = append(properties.Entries, document.Entry{Key: p.Key, Pos: name.Pos, Value: line})
		}
	}

	return properties, k.warnings
}

// shellWarnings returns a warning for each command line without a shell that contains shell syntax.
// It ignores inserted values.
func shellWarnings(t *resource.Type, properties document.Value) (warnings model.Problems) {
	provider, _ := properties.Get("provider")
	name, _ := properties.Get("name")
	for i := range t.Properties {
		p := &t.Properties[i]
		isChecks := p.Key == "health_checks"
		if !isChecks && !isLine(*p, provider.Text) {
			continue
		}
		hint := "run it with `sh -c`, or put it in single quotes"
		if p.Line == "posix" {
			hint = "set `provider: shell`, or put it in single quotes"
		}
		isNamed := p.List != ""
		for _, e := range properties.Entries {
			if p.Is(e.Key) {
				addShellWarnings(&warnings, e.Value, isChecks, hint)
			}
			isNamed = isNamed && !p.Is(e.Key) && e.Key != p.List
		}
		if isNamed {
			addShellWarnings(&warnings, name, false, hint)
		}
	}

	return warnings
}

// addShellWarnings adds the warnings of the command lines in a value. In a list of checks, only the
// key command holds a command line.
func addShellWarnings(warnings *model.Problems, v document.Value, isChecks bool, hint string) {
	for _, item := range v.Items {
		addShellWarnings(warnings, item, isChecks, hint)
	}
	for _, e := range v.Entries {
		if !isChecks || e.Key == "command" {
			addShellWarnings(warnings, e.Value, isChecks, hint)
		}
	}
	if v.Kind != document.String || v.Deferred {
		return
	}
	var inserted [][2]int
	if v.Inserted != nil {
		inserted = *v.Inserted
	}
	if found := command.ShellSyntax(v.Text, inserted...); found != "" {
		word := "`" + found + "`"
		if found == "`" {
			word = "a backtick"
		}
		warnings.Add(v.Pos, hint, "%s is passed to the program as an argument: no shell runs this command", word)
	}
}

// isLine reports whether a property is a command line that the provider splits. An empty provider
// is the default provider.
func isLine(p resource.Property, provider string) bool {
	return p.Line == "any" || p.Line != "" && (provider == "" || provider == p.Line)
}

type argumentKeeper struct{ warnings model.Problems }

// within keeps the arguments of the command lines in a value. In a mapping it handles one key, or
// all keys if key is empty.
func (k *argumentKeeper) within(v document.Value, key string, p resource.Property) document.Value {
	v.Items, v.Entries = slices.Clone(v.Items), slices.Clone(v.Entries)
	for i := range v.Items {
		v.Items[i] = k.within(v.Items[i], key, p)
	}
	for i := range v.Entries {
		if e := &v.Entries[i]; key == "" || e.Key == key {
			e.Value = k.within(e.Value, "", p)
		}
	}

	return k.line(v, p)
}

// line returns a command line that splits into the same arguments without the marks of inserted
// values. A line that cannot be split stays invalid.
func (k *argumentKeeper) line(v document.Value, p resource.Property) document.Value {
	if v.Inserted == nil || v.Text == "" {
		return v
	}
	words, err := command.Split(v.Text, *v.Inserted...)
	plain, plainErr := command.Split(v.Text)
	switch {
	case errors.Is(err, command.ErrNUL), err == nil && plainErr == nil && slices.Equal(words, plain):
	case errors.Is(err, command.ErrNoProgram):
		v.Text = "''"
	case err != nil:
		for _, part := range slices.Backward(*v.Inserted) {
			v.Text = v.Text[:part[0]] + "x" + v.Text[part[1]:]
		}
	default:
		v.Text = command.Join(words)
		hint := "quote the value, or use one expression per argument"
		if p.List != "" {
			hint = "list the arguments in `" + p.List + "`, or quote the value"
		}
		k.warnings.Add(v.Pos, hint, "a value in this command has blanks or quotes, or is empty; it stays one argument")
	}
	v.Inserted = nil

	return v
}
