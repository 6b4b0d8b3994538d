package main

import (
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
	if wanted == "on" {
		return l.assignedOn()
	}
	isArgument := func(e *fisk.ParseElement) bool { _, is := e.Clause.(*fisk.ArgClause); return is }
	if l.command == "muster fleet exec" && len(l.args) == len(l.given) && slices.ContainsFunc(l.parsed.Elements, isArgument) {
		return ": put -- before the command, so that its flags are its own"
	}

	return ""
}

// assignedOn returns what to write instead of --on where something is assigned, empty for other commands.
func (l line) assignedOn() string {
	switch l.command {
	case "muster fleet push":
		return ": an assignment is for nodes and groups, so that it holds for those that join later; put the nodes into a group, with muster fleet group --on EXPR +GROUP, and give --group GROUP; muster fleet preview --on EXPR shows what it would change"
	case "muster fleet edit", "muster fleet rollback", "muster fleet rm":
		return ": it changes an assignment for all that it is for, nodes and groups; muster fleet ls shows whom; to push to others see muster fleet push --help"
	default:
		return ""
	}
}

// unexpected returns the error of an argument too much.
func (l line) unexpected(err error) error {
	word := l.parsed.Peek().Value
	if _, has := l.flag("node"); has && (!l.hasArguments || l.command == "muster fleet wait") {
		return fmt.Errorf("unexpected argument %s: write --node %s", word, word)
	}

	return err
}

// otherCommand returns the command that other tools call by a word, empty for none.
func (l line) otherCommand(word string) string {
	if slices.Contains([]string{"remove", "delete", "del", "unassign"}, word) {
		for _, c := range l.commands {
			if c.Name == "rm" {
				return ", did you mean rm?"
			}
		}
	}

	return ""
}
