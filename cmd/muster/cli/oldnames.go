package cli

import (
	"fmt"

	"github.com/choria-io/fisk"
)

// newName returns the name that a flag has now, empty for one that never had another.
func newName(old string) string {
	switch old {
	case "within":
		return "timeout"
	case "in-group":
		return "group"
	case "dry-run":
		return "noop"
	default:
		return ""
	}
}

// OldFlag adds the old name of a flag, which still works: help does not show it, and who gives it is told
// the new one. Its value is that of the other flag.
func OldFlag(cmd *fisk.CmdClause, old string) *fisk.FlagClause {
	return cmd.Flag(old, "Old name of --"+newName(old)).Hidden()
}

// FlagNames returns the names of the flags that a command has by now.
func FlagNames(cmd *fisk.CmdClause) []string {
	var names []string
	for _, f := range cmd.Model().Flags {
		names = append(names, f.Name)
	}

	return names
}

// noteOldNames notes of each old name that is given the flag that it is, and logs the new name. The error is
// that both are given: one of them may be meant for the resource, whose flag once had the new name.
func (e *Env) noteOldNames(old []string, cmd *fisk.CmdClause) error {
	isCompletion := e.given[CompletionFlag]
	for _, o := range old {
		now := newName(o)
		if e.given[now] && !isCompletion {
			hint := ""
			if cmd != nil && cmd.GetFlag(typeFlag(cmd.Model().Name, now)) != nil {
				hint = fmt.Sprintf("; that of the resource is --%s", typeFlag(cmd.Model().Name, now))
			}
			return fmt.Errorf("--%s is --%s now, give one of them%s", o, now, hint)
		}
	}
	for _, o := range old {
		e.given[newName(o)] = true
		if !isCompletion {
			e.Log.Warn(fmt.Sprintf("--%s is --%s now", o, newName(o)))
		}
	}

	return nil
}
