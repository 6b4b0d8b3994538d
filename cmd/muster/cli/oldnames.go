package cli

import (
	"fmt"

	"github.com/choria-io/fisk"
)

// newName returns the current name of a renamed flag, empty for other flags.
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

// OldFlag adds a hidden flag with the old name of a flag. The caller sets its value, which is the value of
// the renamed flag.
func OldFlag(cmd *fisk.CmdClause, old string) *fisk.FlagClause {
	return cmd.Flag(old, "Old name of --"+newName(old)).Hidden()
}

// FlagNames returns the names of the flags that the command already has.
func FlagNames(cmd *fisk.CmdClause) []string {
	var names []string
	for _, f := range cmd.Model().Flags {
		names = append(names, f.Name)
	}

	return names
}

// noteOldNames sets the current flag for each given old name, and logs the new name. It returns an error if
// both are given, because the user may have meant a flag of the resource by the new name.
func (e *Env) noteOldNames(old []string, cmd *fisk.CmdClause) error {
	isCompletion := e.given[CompletionFlag]
	for _, o := range old {
		now := newName(o)
		if e.given[now] && !isCompletion {
			hint := ""
			if cmd != nil && cmd.GetFlag(typeFlag(cmd.Model().Name, now)) != nil {
				hint = fmt.Sprintf("; the flag of the resource is --%s", typeFlag(cmd.Model().Name, now))
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
