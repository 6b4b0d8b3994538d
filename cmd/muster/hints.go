package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/choria-io/fisk"
)

// otherFlag returns what to write instead of a flag that other commands have, or other tools; empty where
// nothing is known of it.
func (l line) otherFlag(flag string) string {
	wanted, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
	has := func(name string) bool { _, has := l.flag(name); return has }
	for _, other := range []struct{ wanted, instead, hint string }{
		{"within", "timeout", ", did you mean --timeout?"},
		{"in-group", "group", ", did you mean --group?"},
	} {
		if wanted == other.wanted && has(other.instead) {
			return other.hint
		}
	}
	if wanted == "syntax-check" || wanted == "validate-only" {
		return ": muster validate FILE only checks manifests"
	}
	if hint := otherHints()[l.command+" --"+wanted]; hint != "" {
		return hint
	}
	if wanted == "on" {
		return l.assignedOn()
	}
	if hint := l.selectsBy(flag); hint != "" {
		return hint
	}
	if l.command == fleetExec {
		return l.commandHint()
	}

	return ""
}

// otherHints are what to write instead of flags that one command does not have, by both.
func otherHints() map[string]string {
	const nodes, targets = ": it is of the whole fleet; muster fleet nodes takes --node, --group and --on, and muster fleet describe NODE shows one", ": targets are --node NODE, --group GROUP, --on EXPR and --all"
	return map[string]string{
		"muster fleet history --on":        ": it is of a node (NAME), of groups (--group GROUP), or of the whole fleet",
		"muster fleet history --reverse":   ": the newest is last, --limit N shows the last N",
		"muster fleet status --node":       nodes,
		"muster fleet status --group":      nodes,
		"muster fleet status --on":         nodes,
		"muster fleet exec --limit":        targets,
		"muster fleet run --limit":         targets,
		"muster fleet ensure exec --check": ": muster fleet exec --check -- COMMAND runs a command that only reads",
		"muster fleet exec --queue":        ": muster fleet ensure exec COMMAND --queue DURATION queues a command",
	}
}

// selectsBy returns the expression to write instead of a target flag, where a command takes only that; empty
// for other flags and commands.
func (l line) selectsBy(flag string) string {
	name, value, valued := strings.Cut(strings.TrimLeft(flag, "-"), "=")
	if at := slices.Index(l.args, flag); !valued && at >= 0 && at+1 < len(l.args) && !strings.HasPrefix(l.args[at+1], "-") {
		value = l.args[at+1]
	}
	var expression string
	switch name {
	case "group":
		expression = fmt.Sprintf("group(%q)", cmp.Or(value, "web"))
	case "node":
		expression = fmt.Sprintf("node == %q", cmp.Or(value, "web01"))
	case "all":
		expression = "true"
	default:
		return ""
	}
	switch l.command {
	case "muster fleet label", "muster fleet group", "muster fleet forget":
		return ": it writes about nodes; for those that match now write --on '" + expression + "'"
	case "muster fleet query":
		if name == "all" {
			return ": without an expression all are shown, leave --all out"
		}
		return ": the expression selects, write '" + expression + "'"
	default:
		return ""
	}
}

// assignedOn returns what to write instead of --on where something is assigned, empty for other commands.
func (l line) assignedOn() string {
	switch l.command {
	case "muster fleet push":
		return ": assignments have nodes and groups as targets, so they also apply to nodes that join later; add the nodes to a group with muster fleet group --on EXPR +GROUP, and push with --group GROUP; muster fleet preview --on EXPR shows the changes"
	case "muster fleet edit", "muster fleet rollback", "muster fleet rm":
		return ": it changes an assignment for all its nodes and groups; muster fleet ls lists them; to push to others see muster fleet push --help"
	default:
		return ""
	}
}

// unexpected returns the error of an argument too much.
func (l line) unexpected(err error) error {
	word := l.parsed.Peek().Value
	switch l.command {
	case "muster fleet push":
		return fmt.Errorf("unexpected argument %s: one source is pushed, and its targets are flags, as --group web", word)
	case "muster fleet status":
		return fmt.Errorf("unexpected argument %s: status shows the whole fleet; for a node: muster fleet describe NODE, for a manifest: muster fleet show NAME", word)
	case "muster fleet wait":
		return fmt.Errorf("unexpected argument %s: one manifest is waited for at a time; for a node write --node %s", word, word)
	}
	if hint := l.commandHint(); hint != "" {
		return fmt.Errorf("unexpected argument %s%s", word, hint)
	}
	if _, has := l.flag("node"); has && len(l.arguments) == 0 {
		if _, has := l.flag("manifest"); has {
			return fmt.Errorf("unexpected argument %s: write --node %s for a node, or --manifest %s for a manifest", word, word, word)
		}
		return fmt.Errorf("unexpected argument %s: write --node %s", word, word)
	}

	return err
}

// otherCommand returns the command that other tools call by a word, empty for none.
func (l line) otherCommand(word string) string {
	if l.command == "muster" && slices.Contains([]string{"check", "lint", "syntax-check", "verify"}, word) {
		return ", did you mean validate?"
	}
	if l.command == "muster" && l.isOfFleet(word) {
		return ", did you mean muster fleet " + word + "?"
	}
	if l.command == "muster fleet" && slices.Contains([]string{"check", "lint", "validate"}, word) {
		return ": muster validate FILE checks manifests"
	}
	if slices.Contains([]string{"remove", "delete", "del", "unassign"}, word) {
		for _, c := range l.commands {
			if c.Name == "rm" {
				return ", did you mean rm?"
			}
		}
	}

	return ""
}

// isOfFleet reports whether a word is a command of muster fleet.
func (l line) isOfFleet(word string) bool {
	of := func(all []*fisk.CmdModel, name string) int {
		return slices.IndexFunc(all, func(c *fisk.CmdModel) bool { return c.Name == name && !c.Hidden })
	}
	i := of(l.commands, "fleet")

	return i >= 0 && of(l.commands[i].Commands, word) >= 0
}
