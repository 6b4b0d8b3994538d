package fleetcmd

import (
	"context"
	"strings"
	"time"

	"github.com/choria-io/fisk"
	"github.com/kballard/go-shellquote"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/ask"
	"github.com/musterfleet/muster/fleet/view"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/resource"
)

// execCommand is muster fleet exec.
type execCommand struct {
	ensureCommand
	words []string
	shell bool
}

// endGrace is how long nodes may take to tell that a command was ended.
const endGrace = 5 * time.Second

// addExec adds muster fleet exec: an ensure of exec for people, whose answers are shown
// together where they are equal.
func addExec(env *cli.Env, parent *fisk.CmdClause) {
	c := &execCommand{ensureCommand: newEnsure(env, "exec")}
	c.grace, c.show = endGrace, c.printGrouped
	cmd := parent.Command("exec", "Run a command on many nodes, now, and show equal output once")
	cmd.HelpLong("Runs the command with its arguments on each target node; --shell passes their text to a shell there. Write -- before the command, so that muster does not read its flags. Exit code 0: every node answered, and the command exited with 0 on each.\n\n" +
		"  muster fleet exec --all -- uptime -p\n" +
		"  muster fleet exec --group web --shell -- 'df -h / | tail -1'\n" +
		"  muster fleet exec --on 'state == \"failed\"' --check -- systemctl --failed\n" +
		"  muster fleet exec --node web01 --timeout 10m -- apt-get update")
	cmd.Arg("command", "Command and its arguments, after --").StringsVar(&c.words)
	c.AddRequest(env, cmd)
	cmd.Flag("shell", "Pass the text to a shell").UnNegatableBoolVar(&c.shell)
	cmd.Flag("timeout", "Time limit, of each batch; a command is ended after it").Default("2m").DurationVar(&c.timeout)
	cli.OldFlag(cmd, "within").DurationVar(&c.timeout)
	cmd.Flag("noop", "Show what would run, and run nothing").UnNegatableBoolVar(&c.noop)
	cmd.Flag("check", "Do not count the command as a change").UnNegatableBoolVar(&c.check)
	c.addBatches(cmd)
	c.addSent(cmd)
	c.addKill(cmd)
	c.AddSignKey(cmd)
	c.AddFormat(cmd)
	cmd.Action(env.Action(c.run))
}

func (c *execCommand) run(ctx context.Context) error {
	isResumed, isCancelled := c.Env.Given("resume"), c.Env.Given("cancel")
	switch {
	case isCancelled && (isResumed || len(c.words) > 0):
		return cli.Usagef("--cancel sends no command: leave it and --resume out")
	case isCancelled:
		return c.cancel(ctx)
	case c.kill:
		return cli.Usagef("--kill is for --cancel ID")
	case isResumed && len(c.words) > 0:
		return cli.Usagef("--resume sends nothing: leave the command out")
	case isResumed:
		return c.resume(ctx)
	case len(c.words) == 0:
		return cli.Usagef("no command: write it behind --, as in muster fleet exec --all -- uptime (see muster fleet exec --help)")
	}
	if err := c.oneWord(); err != nil {
		return err
	}
	queued := []string{"exec", shellquote.Join(c.words...)}
	if c.shell {
		queued = []string{"exec", "--provider", "shell", strings.Join(c.words, " ")}
	}
	c.queueCommand = (&requestCommand{verb: "ensure", TargetFlags: c.TargetFlags}).command(queued...)
	properties := commandLine(c.words, c.shell, c.timeout)
	typ, _ := c.Types.Get("exec")
	if _, problems := resource.Decode(typ, properties, properties.Pos); len(problems) > 0 {
		return &cli.ExitError{Code: cli.ExitUsage, Err: problems}
	}
	encoded, err := model.EncodeJSON(properties.Plain())
	if err != nil {
		return err
	}

	return c.ensureCommand.run(ctx, model.EnsureRequest{Protocol: model.ProtocolEnsureRequest, Type: typ.Name, Properties: encoded}, properties)
}

// oneWord returns the error of a whole command that is given as one word: no program is called so. One that is may be
// named with its directory.
func (c *execCommand) oneWord() error {
	if c.shell || len(c.words) != 1 || !strings.ContainsAny(strings.TrimSpace(c.words[0]), " \t\n") || strings.Contains(strings.Fields(c.words[0])[0], "/") {
		return nil
	}
	word := c.words[0]
	if strings.ContainsAny(word, "|&;<>$`*?(){}[]~'\"\\\n") {
		return cli.Usagef("%q is one word, and no program: give --shell, for pipes, quotes and variables, as in --shell -- %s", word, shellquote.Join(word))
	}

	return cli.Usagef("%q is one word, and no program: write its words behind --, as in -- %s; or give --shell", word, strings.Join(strings.Fields(word), " "))
}

// commandLine returns the properties of a command with arguments, or of a text for a shell,
// that is ended after the time.
func commandLine(words []string, shell bool, timeout time.Duration) document.Value {
	text := func(s string) document.Value { return document.Value{Kind: document.String, Text: s} }
	entry := func(key string, v document.Value) document.Entry { return document.Entry{Key: key, Value: v} }
	out := document.Value{Kind: document.Map, Entries: []document.Entry{entry("timeout", text(timeout.String()))}}
	if shell {
		out.Entries = append(out.Entries, entry("name", text(strings.Join(words, " "))), entry("provider", text("shell")))
		return out
	}
	argv := document.Value{Kind: document.List}
	for _, word := range words {
		argv.Items = append(argv.Items, text(word))
	}
	out.Entries = append(out.Entries, entry("name", text(shellquote.Join(words...))), entry("argv", argv))

	return out
}

// streams returns what a command printed.
func streams(r model.EnsureResponse) []string {
	return []string{output(r.State, "stdout"), output(r.State, "stderr")}
}

// printGrouped prints answers, equal ones once.
func (c *execCommand) printGrouped(r *ask.Ensured) {
	for _, group := range GroupEqual(r, streams) {
		summary := inWords(view.DescribeAnswer(group.Value), output(group.Value.State, "stderr"))
		c.printSummary(print.Some(group.Nodes, "--json has all"), summary, group.Value)
	}
}

// inWords rewords the summary of a resource for a command: it has no desired state, and its output follows in separate
// lines.
func inWords(summary, stderr string) string {
	summary = strings.TrimPrefix(summary, model.ErrDesiredStateFailed.Error()+": ")
	if strings.HasPrefix(summary, "exit code ") {
		return strings.TrimSuffix(strings.Replace(summary, ", expected 0", "", 1), ": "+strings.TrimRight(stderr, "\r\n"))
	}
	if rest, is := strings.CutPrefix(summary, "Would have "); is {
		return "would have " + rest
	}

	return summary
}
