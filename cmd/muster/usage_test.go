package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/resources"
)

// TestWrongUsage calls every command in every wrong way that its declaration permits: the exit code is 64,
// and one line names the problem and the help to read.
func TestWrongUsage(t *testing.T) {
	t.Setenv("MUSTER_STATE_DIR", t.TempDir())
	t.Setenv("MUSTER_CONFIG_DIR", t.TempDir())
	t.Setenv("NATS_URL", "nats://127.0.0.1:1")
	app := commands(cli.NewEnv(resources.All(), strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}, cli.NewInterrupt()))
	tried := 0
	wrong := func(named string, args ...string) {
		t.Helper()
		tried++
		var stdout, stderr bytes.Buffer
		code := run(resources.All(), args, strings.NewReader(""), &stdout, &stderr)
		text := stderr.String()
		if code != cli.ExitUsage || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "muster: ") || !strings.Contains(text, named) || !strings.Contains(text, "--help)\n") {
			t.Errorf("muster %q: exit code %d, %s%s", args, code, &stdout, text)
		}
		for _, phrase := range []string{"strconv", "parsing", "invalid syntax", "enum value"} {
			if strings.Contains(text, phrase) {
				t.Errorf("muster %q: the text has %q: %s", args, phrase, text)
			}
		}
	}
	var walk func(of *fisk.CmdGroupModel, path []string)
	walk = func(of *fisk.CmdGroupModel, path []string) {
		for _, cmd := range of.Commands {
			if cmd.Hidden || cmd.Name == "help" {
				continue
			}
			path := append(path[:len(path):len(path)], cmd.Name)
			with := func(more ...string) []string { return append(path[:len(path):len(path)], more...) }
			valid := with()
			for _, arg := range cmd.Args {
				valid = append(valid, "word")
				if arg.Required {
					wrong(arg.Name, path...)
				}
			}
			wrong("--no-such-flag", with("--no-such-flag")...)
			wrong("-@", with("-@")...)
			if len(cmd.Commands) > 0 {
				wrong("no-such-command", with("no-such-command")...)
			} else if n := len(cmd.Args); n == 0 || !cmd.Args[n-1].IsCumulative() {
				wrong("surplus", append(valid, "surplus")...)
			}
			flags := cmd.Flags
			if cmd.Name == "version" {
				flags = app.Model().Flags
			}
			for _, flag := range flags {
				if flag.Hidden {
					continue
				}
				if flag.IsBoolFlag() {
					if flag.Name != "help" && flag.Name != "version" {
						wrong("--"+flag.Name, with("--"+flag.Name+"=perhaps")...)
					}
					continue
				}
				wrong("--"+flag.Name, append(valid, "--"+flag.Name)...)
				for _, bad := range []string{"x:y", "1.5", ""} {
					if flag.Value.Set(bad) != nil {
						wrong("--"+flag.Name, append(valid, "--"+flag.Name+"="+bad)...)
					}
				}
			}
			walk(cmd.CmdGroupModel, path)
		}
	}
	walk(app.Model().CmdGroupModel, nil)
	if tried < 500 {
		t.Errorf("only %d wrong calls", tried)
	}
}
