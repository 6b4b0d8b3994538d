package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/resources"
)

// TestExamplesInHelp: the examples of each command are shown as they are written.
func TestExamplesInHelp(t *testing.T) {
	t.Parallel()
	app := commands(cli.NewEnv(resources.All(), strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, cli.NewInterrupt()))
	examples := 0
	var walk func(of *fisk.CmdGroupModel)
	walk = func(of *fisk.CmdGroupModel) {
		for _, cmd := range of.Commands {
			walk(cmd.CmdGroupModel)
			var out bytes.Buffer
			if code := run(resources.All(), append(strings.Fields(cmd.FullCommand), "--help"), nil, &out, &out); code != 0 {
				t.Errorf("%s --help exits %d", cmd.FullCommand, code)
			}
			for line := range strings.Lines(cmd.HelpLong) {
				if !strings.HasPrefix(line, "  ") {
					continue
				}
				examples++
				if line = strings.TrimSuffix(line, "\n"); !strings.Contains(out.String(), "\n"+line+"\n") {
					t.Errorf("muster %s --help lacks the line %q:\n%s", cmd.FullCommand, line, out.String())
				}
			}
		}
	}
	walk(app.Model().CmdGroupModel)
	if examples < 40 {
		t.Errorf("only %d examples", examples)
	}
}

// TestManPage has what apropos reads, and the sections that readers look for. It is not
// parallel: two command lines at a time would set the library's one switch.
func TestManPage(t *testing.T) {
	var out bytes.Buffer
	if code := run(resources.All(), []string{"--help-man"}, nil, &out, &out); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		".SH \"NAME\"\nmuster \\- Keep machines in their desired state", "\n.SH \"ENVIRONMENT\"\n", "\\fBNATS_URL\\fR\n\\-\\-server: ",
		"\\fBMUSTER_STATE_DIR\\fR\n", "\n.SH \"FILES\"\n", "\\fB/etc/muster/agent.yaml\\fR\n",
	} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("%q is not once in the man page", want)
		}
	}
}
