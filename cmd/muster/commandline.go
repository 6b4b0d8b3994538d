package main

import (
	"fmt"
	"strings"

	"github.com/choria-io/fisk"
)

const (
	fleetExec = "muster fleet exec"
	// dashesHint explains -- after fisk read a flag of the user's command as a flag of muster.
	dashesHint = "put -- before the command, so that its flags are its own, as in " + fleetExec + " --all -- uname -s"
)

// commandHint returns how to write a command line that muster runs, empty if the line has no word of one.
func (l line) commandHint() string {
	switch {
	case !l.hasArgument():
		return ""
	case l.command == fleetExec && len(l.args) == len(l.given):
		return ": " + dashesHint
	case strings.HasPrefix(l.command, "muster ") && strings.HasSuffix(l.command, " exec") && l.command != fleetExec:
		return ": put the command in quotes, as in " + l.command + " 'uname -s'"
	default:
		return ""
	}
}

// hasArgument reports whether an argument was parsed before the error.
func (l line) hasArgument() bool {
	for _, e := range l.parsed.Elements {
		if _, is := e.Clause.(*fisk.ArgClause); is {
			return true
		}
	}

	return false
}

// checkCommand returns an error if fisk may read flags of the command of fleet exec as flags of muster. Flags of muster
// either precede or follow the command, unless -- is before it.
func (l line) checkCommand() error {
	if l.command != fleetExec || len(l.args) < len(l.given) {
		return nil
	}
	words, before, after := 0, false, ""
	for _, e := range l.parsed.Elements {
		switch clause := e.Clause.(type) {
		case *fisk.CmdClause:
			before = false // global flags
		case *fisk.FlagClause:
			before = before || words == 0
			if words > 0 && after == "" {
				after = clause.Model().Name
			}
		case *fisk.ArgClause:
			if words++; after != "" {
				return fmt.Errorf("--%s is between the words of the command: %s", after, dashesHint)
			}
		}
	}
	if before && after != "" {
		return fmt.Errorf("--%s follows the command: %s", after, dashesHint)
	}

	return nil
}
