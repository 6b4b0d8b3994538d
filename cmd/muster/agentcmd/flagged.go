package agentcmd

import (
	"strings"

	"github.com/musterfleet/muster/model"
)

// ofFlags returns problems of keys of the configuration with the names of the flags that
// override them.
func ofFlags(problems model.Problems) model.Problems {
	for i, p := range problems {
		if flag := flagOf(p.Property); flag != "" {
			problems[i].Message = "--" + flag + ": " + p.Message
		}
	}

	return problems
}

// flagOf returns the name of the flag that overrides a key, empty for none.
func flagOf(key string) string {
	section, rest, _ := strings.Cut(key, ".")
	option, _, _ := strings.Cut(rest, ".")
	switch {
	case section == "node", section == "prefix":
		return section
	case section == "groups":
		return "group"
	case section == "state_dir":
		return "state-dir"
	case section == "log":
		return "log-" + option
	case section == "nats" && option == "servers":
		return "server"
	case section == "nats" && option == "api_prefix":
		return "js-api-prefix"
	case section == "nats":
		return strings.ReplaceAll(option, "_", "-")
	default:
		return ""
	}
}
