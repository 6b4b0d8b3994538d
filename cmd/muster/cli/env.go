// Package cli contains the shared parts of muster's commands: streams, global flags, the log, the machine,
// the connection to NATS, and errors with exit codes.
package cli

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/choria-io/fisk"
	shellquote "github.com/kballard/go-shellquote"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/resource"
)

// Env is the environment of a command.
type Env struct {
	Prompt
	*Completion
	Print print.Printer
	Types resource.Types
	Stop  *Interrupt
	Flags Flags
	Log   *slog.Logger

	environFile environFile
	given       map[string]bool
	chosen      func(context.Context) error
	host        *host.Host
	store       *kvstore.Store
	// commands, flags and args are the words of the command line. They hold no clauses of fisk, which would keep
	// all commands in memory. globals are the global flags.
	commands []string
	flags    []flagWords
	args     []string
	globals  map[string]bool
}

// flagWords are the words of one flag of the command line.
type flagWords struct {
	name  string
	words []string
}

// NewEnv returns an environment; types are the resource types that muster knows.
func NewEnv(types resource.Types, stdin io.Reader, stdout, stderr io.Writer, stop *Interrupt) *Env {
	e := &Env{Prompt: Prompt{newInput(stdin, stop.Requested()), stderr}, Print: print.Printer{Out: stdout, Err: stderr}, Types: types, Stop: stop, given: map[string]bool{}, globals: map[string]bool{}}
	e.Completion = &Completion{connect: e.openUnasked}

	return e
}

// Action sets f as the command that Run runs.
func (e *Env) Action(f func(context.Context) error) fisk.Action {
	return func(*fisk.ParseContext) error {
		e.chosen = f
		return nil
	}
}

// Run runs the command of the command line. It adds the remedy to an error of NATS. It returns false if the
// command line only requests help or the version.
func (e *Env) Run(ctx context.Context) (ran bool, err error) {
	if e.chosen == nil {
		return false, nil
	}

	return true, e.ConnectHint(e.chosen(ctx))
}

// Given reports whether one of these flags is on the command line. A default or
// an environment variable does not count.
func (e *Env) Given(flags ...string) bool {
	return slices.ContainsFunc(flags, func(f string) bool { return e.given[f] })
}

// CommandLine returns this command line with another flag. It omits global flags, which may be set by
// environment variables, and the named flags.
func (e *Env) CommandLine(flag, value string, without ...string) string {
	words := append(append([]string{"muster"}, e.commands...), "--"+flag, value)
	for _, f := range e.flags {
		if !e.globals[f.name] && f.name != flag && !slices.Contains(without, f.name) {
			words = append(words, f.words...)
		}
	}
	if len(e.args) > 0 {
		words = append(append(words, "--"), e.args...)
	}

	return shellquote.Join(words...)
}

// wordsOf returns the words of a flag with its value.
func wordsOf(flag *fisk.FlagModel, value string) flagWords {
	f := flagWords{name: flag.Name}
	switch {
	case flag.IsBoolFlag() && value == "false":
		f.words = []string{"--no-" + f.name}
	case flag.IsBoolFlag():
		f.words = []string{"--" + f.name}
	case strings.HasPrefix(value, "-"):
		f.words = []string{"--" + f.name + "=" + value}
	default:
		f.words = []string{"--" + f.name, value}
	}

	return f
}

// formats are the output format flags.
var formats = []string{"dot", "env", "json", "prometheus", "yaml"}

// prepare records the command line. At most one may be a format.
func (e *Env) prepare(c *fisk.ParseContext) error {
	var chosen, old []string
	for _, element := range c.Elements {
		switch clause := element.Clause.(type) {
		case *fisk.CmdClause:
			e.commands = append(e.commands, clause.Model().Name)
		case *fisk.ArgClause:
			e.args = append(e.args, *element.Value)
		case *fisk.FlagClause:
			name := clause.Model().Name
			if slices.Contains(formats, name) && !e.given[name] {
				chosen = append(chosen, "--"+name)
			}
			if clause.Model().Hidden && newName(name) != "" && !e.given[name] {
				old = append(old, name)
			}
			e.given[name] = true
			e.flags = append(e.flags, wordsOf(clause.Model(), *element.Value))
		}
	}
	e.SetLog(print.NewLogger(e.Print.Err, e.Flags.LogFormat, print.Level(e.Flags.LogLevel)))
	if len(chosen) > 1 {
		return fmt.Errorf("give one of %s", strings.Join(chosen, ", "))
	}

	return e.noteOldNames(old, c.SelectedCommand)
}

// SetLog makes l the log of the process.
func (e *Env) SetLog(l *slog.Logger) {
	e.Log = l
	// In another program, such as a test, the standard log belongs to that program.
	if e.Print.Err == os.Stderr {
		log.SetFlags(0)
		log.SetOutput(print.StandardLog{Log: l})
	}
}

// Host returns the machine.
func (e *Env) Host() *host.Host {
	if e.host == nil {
		host.SetUmask()
		e.host = host.New(host.Options{StateDir: e.Flags.StateDir, Log: e.Log})
	}

	return e.host
}

// CleanUp calls f and logs its error.
func CleanUp(log *slog.Logger, f func() error) {
	if err := f(); err != nil {
		log.Warn("cleanup failed", "error", err)
	}
}

// GossCommand is the hidden command that evaluates goss rules.
const GossCommand = "evaluate-goss-rules"

// self is the path of the running program, also after its file was replaced.
const self = "/proc/self/exe"

// Checker returns the health checker. It evaluates goss rules in a process of muster.
func Checker(h *host.Host) engine.Checker { return engine.NewChecker(h, self, GossCommand) }

// release is the version of muster. A build sets another one with
// -ldflags "-X github.com/musterfleet/muster/cmd/muster/cli.release=VERSION".
var release = "0.9.0"

// Version returns the version of this program.
func Version() string { return release }

// Hostname returns the name of this machine.
func Hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}

	return name
}
