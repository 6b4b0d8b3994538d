package localcmd

import (
	"regexp"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/resources/manifest/expression"
	"github.com/musterfleet/muster/resources/resource"
)

// The flags of conditions.
const (
	flagIf     = "if"
	flagUnless = "unless"
)

// guard is the property with the guard command of an exec. Its flag is --exec-unless, because --unless is a condition.
const guard = "unless"

// moreFlags are the flags of muster ensure that set properties without a flag of the same name.
type moreFlags struct {
	*ensureCommand
	typ                 *resource.Type
	ifExpr, unless      textFlag
	check, tries, sleep textFlag
	contentFile         textFlag
}

// textFlag is a flag with a text.
type textFlag struct {
	name, text string
	set        bool
}

func (f *textFlag) add(cmd *fisk.CmdClause, name, placeHolder, help string) *fisk.FlagClause {
	f.name = name
	clause := cmd.Flag(name, help).PlaceHolder(placeHolder).IsSetByUser(&f.set)
	clause.StringVar(&f.text)

	return clause
}

// entry returns a property with the value of the flag.
func (f *textFlag) entry(key string) document.Entry {
	pos := model.Position{File: "--" + f.name}

	return document.Entry{Key: key, Pos: pos, Value: document.Value{Kind: document.String, Text: f.text, Pos: pos}}
}

// addMore adds the flags to the command of a type.
func (c *ensureCommand) addMore(cmd *fisk.CmdClause, t *resource.Type) func(document.Value) (document.Value, error) {
	m := &moreFlags{ensureCommand: c, typ: t}
	m.ifExpr.add(cmd, flagIf, "EXPR", "Manage it only when this expression is true")
	m.unless.add(cmd, flagUnless, "EXPR", "Do not manage it when this expression is true")
	m.check.add(cmd, "check", "COMMAND", "Command of one health check").Hidden()
	m.tries.add(cmd, "check-tries", "N", "Maximum number of tries of --check").Hidden()
	m.sleep.add(cmd, "check-sleep", "DURATION", "Time between tries of --check").Hidden()
	if _, has := t.Property("content"); has {
		m.contentFile.add(cmd, "content-file", "FILE", "Read the content from a file, and evaluate its expressions")
	}

	return m.entries
}

// entries adds the entries of the flags to the properties.
func (m *moreFlags) entries(v document.Value) (document.Value, error) {
	for _, add := range []func(document.Value) (document.Value, error){m.conditions, m.healthCheck, m.content} {
		var err error
		if v, err = add(v); err != nil {
			return v, err
		}
	}

	return v, nil
}

// conditions adds the property control. A text in --unless that is not a condition becomes the guard command of an exec.
func (m *moreFlags) conditions(v document.Value) (document.Value, error) {
	control := document.Entry{Key: "control", Value: document.Value{Kind: document.Map}}
	if m.ifExpr.set {
		control.Value.Entries = append(control.Value.Entries, m.ifExpr.entry(flagIf))
	}
	var invalid error
	_, hasGuard := m.typ.Property(guard)
	if m.unless.set && hasGuard {
		invalid = m.Loader(nil).CompileCondition(m.unless.text)
	}
	switch {
	case !m.unless.set:
	case invalid != nil:
		if err := m.checkGuard(v, invalid); err != nil {
			return v, err
		}
		v.Entries = append(v.Entries, m.unless.entry(guard))
	default:
		if hasGuard {
			m.Log.Info("--unless is a condition; a guard command is --exec-unless")
		}
		control.Value.Entries = append(control.Value.Entries, m.unless.entry(flagUnless))
	}
	if len(control.Value.Entries) == 0 {
		return v, nil
	}
	first := control.Value.Entries[0]
	if m.raw {
		return v, cli.Usagef("--raw evaluates no expressions: remove --raw or --%s", first.Key)
	}
	control.Pos, control.Value.Pos = first.Pos, first.Pos
	v.Entries = append(v.Entries, control)

	return v, nil
}

// checkGuard warns about a guard command in --unless, and rejects an invalid condition.
func (m *moreFlags) checkGuard(v document.Value, invalid error) error {
	if _, twice := v.Get(guard); twice {
		return cli.Usagef("two guard commands: remove --unless or --exec-unless")
	}
	if conditionLike.MatchString(cli.OutsideExpressions(m.unless.text)) {
		return cli.Usagef("--unless is not a valid expression: %w; correct it, or give a guard command with --exec-unless", invalid)
	}
	m.Log.Warn("--unless takes an expression; running its text as a guard command, write --exec-unless")

	return nil
}

// conditionLike matches texts that probably are expressions: they contain Facts, Data, Environ or lookup, or begin with a
// function call.
var conditionLike = regexp.MustCompile(`^\W*(Facts|Data|Environ)\b|^\W*\w+\(|\b(Facts|Data|Environ)\.\w|\blookup\(`)

// healthCheck adds the check of --check.
func (m *moreFlags) healthCheck(v document.Value) (document.Value, error) {
	const key = "health_checks"
	for _, f := range []*textFlag{&m.tries, &m.sleep} {
		if f.set && !m.check.set {
			return v, cli.Usagef("--%s applies to --check; give --check COMMAND", f.name)
		}
	}
	if !m.check.set {
		return v, nil
	}
	command := m.check.entry("command")
	check := document.Value{Kind: document.Map, Pos: command.Pos, Entries: []document.Entry{command}}
	if m.tries.set {
		check.Entries = append(check.Entries, m.tries.entry("tries"))
	}
	if m.sleep.set {
		check.Entries = append(check.Entries, m.sleep.entry("try_sleep"))
	}
	for i := range v.Entries {
		if v.Entries[i].Key == key {
			v.Entries[i].Value.Items = append(v.Entries[i].Value.Items, check)
			return v, nil
		}
	}
	v.Entries = append(v.Entries, document.Entry{Key: key, Pos: command.Pos, Value: document.Value{Kind: document.List, Pos: command.Pos, Items: []document.Value{check}}})

	return v, nil
}

// content adds the content of --content-file. muster evaluates its expressions, so it rejects a file that users other than
// the caller, root and the owner of the working directory may write to.
func (m *moreFlags) content(v document.Value) (document.Value, error) {
	const key = "content"
	if !m.contentFile.set {
		return v, nil
	}
	if _, twice := v.Get(key); twice {
		return v, cli.Usagef("give one of --content and --content-file")
	}
	if expression.MayHoldExpression(m.contentFile.text) {
		return v, cli.Usagef("--content-file %q: the path cannot hold expressions", m.contentFile.text)
	}
	text, err := m.readContent()
	if err != nil {
		return v, cli.FileError("--content-file", m.contentFile.text, err)
	}
	entry := m.contentFile.entry(key)
	entry.Value.Text = string(text)
	v.Entries = append(v.Entries, entry)

	return v, nil
}

func (m *moreFlags) readContent() ([]byte, error) {
	if m.raw {
		return files.Read(m.contentFile.text, manifest.DefaultMaxBytes)
	}
	// Expressions of the file read whatever the caller can read.
	return files.ReadTrusted(m.contentFile.text, manifest.DefaultMaxBytes, paths.Author{})
}
