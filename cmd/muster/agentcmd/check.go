package agentcmd

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/model"
)

func addCheck(env *cli.Env, parent *fisk.CmdClause) {
	c := &runCommand{Env: env}
	cmd := parent.Command("check", "Check the configuration and the state directory of the agent, and change nothing")
	cmd.HelpLong("Prints each problem with its position, one per line, and exits with code 1 if there is one. The file given with --config or --config-dir must exist. Without a file it shows the defaults. It connects to nothing and may run beside the agent, so a new version of muster can be tried with the configuration and state of the old one.")
	cmd.Flag("config", "Configuration file").PlaceHolder("FILE").StringVar(&c.file)
	cmd.Action(env.Action(c.check))
}

// isMissing reports whether there is no configuration file. A missing file is an error if a flag names its
// directory.
func (c *runCommand) isMissing() (bool, error) {
	_, err := os.Stat(c.path())
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return false, nil // reading the file reports other errors
	case c.Given("config-dir"):
		return true, cli.FileError("configuration", c.path(), err)
	default:
		return true, nil
	}
}

func (c *runCommand) check(context.Context) error {
	missing, err := c.isMissing()
	if err != nil {
		return err
	}
	config, err := c.config()
	if err != nil {
		return err
	}
	var problems model.Problems
	reach := reachOf(config.NATS)
	for _, exposed := range reach.Exposed() {
		c.Log.Warn("secret readable by others", "error", reach.Named(exposed))
	}
	for _, err := range reach.Check() {
		problems.Add(model.Position{File: c.path()}, "", "%s", cli.Plain(reach.Named(err)))
	}
	problems.Append(agent.State(config)...)
	if len(problems) > 0 {
		return problems
	}
	from := c.path()
	if missing {
		from = "defaults"
		groups := strings.Join(append(slices.Clone(config.Groups), model.GroupAll), ", ")
		c.Print.Printf("no configuration at %s, an agent starts with defaults: node %s, groups %s, NATS at %s\n", c.path(), config.Node, groups, reach.Target())
	}
	c.Print.Printf("no problems: %s, %s\n", from, config.StateDir)
	c.Print.Printf("not checked: the connection to NATS\n")

	return nil
}

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
