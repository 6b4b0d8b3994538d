package agentcmd

import (
	"strings"

	"github.com/musterfleet/muster/model"
)

// ofFlags adds the name of the overriding flag to problems of configuration keys.
func ofFlags(problems model.Problems) model.Problems {
	for i, p := range problems {
		if flag := flagOf(p.Property); flag != "" {
			problems[i].Message = "--" + flag + ": " + p.Message
		}
	}

	return problems
}

// flagOf returns the flag that overrides a key, or an empty string.
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
