// Command muster keeps machines in their desired state: one machine by hand, or
// a fleet through NATS.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/cmd/muster/agentcmd"
	"github.com/musterfleet/muster/cmd/muster/cli"
	"github.com/musterfleet/muster/cmd/muster/demo"
	"github.com/musterfleet/muster/cmd/muster/fleetcmd"
	"github.com/musterfleet/muster/cmd/muster/localcmd"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/health/goss"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
)

func main() {
	runtime.MemProfileRate = 0 // nobody reads the profile, which takes half a megabyte of an agent
	os.Exit(run(resources.All(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs muster with these types and streams, and returns the exit code.
func run(types resource.Types, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	stop := cli.NewInterrupt()
	defer stop.Watch(cancel)()
	out := print.NewOutput(stdout)
	err := print.WithoutReader(execute(ctx, cli.NewEnv(types, stdin, out, stderr, stop), args))
	code := cli.Report(stderr, err)
	if failure := out.Failure(); failure != nil && !errors.Is(err, failure) {
		fmt.Fprintf(stderr, "muster: cannot write all of the output: %v\n", failure)
		code = cmp.Or(code, cli.ExitFailed)
	}

	return stop.ExitCode(code)
}

// execute parses the command line and runs the command that it names.
func execute(ctx context.Context, env *cli.Env, args []string) error {
	defer env.Close()
	app := commands(env)
	args, isDescribed := completing(args)
	line := newLine(app, args)
	app.PreAction(completer{env, app, line, isDescribed}.complete)
	if slices.Equal(args, []string{helpMan}) {
		return printMan(env.Print.Out, app, line.parsed)
	}
	if printed, err := printScript(env.Print.Out, args); printed {
		return err
	}
	code, err := cli.ExitOK, line.misread()
	if err == nil {
		if code, err = parse(app, args); err != nil {
			err = line.explain(err)
		}
	}
	if err != nil {
		return cli.Usagef("%w (see %s --help)", err, line.command)
	}
	ran, err := env.Run(ctx)
	if !ran && code != cli.ExitOK {
		return &cli.ExitError{Code: code}
	}

	return err
}

// commands declares the command line.
func commands(env *cli.Env) *fisk.Application {
	app := fisk.New("muster", "Keep machines in their desired state: one machine, or a fleet over NATS")
	// A value such as @reboot is that value, not the name of a file of arguments.
	fisk.EnableFileExpansion = false
	app.Version(cli.Version())
	app.Writer(print.DiscardErrors{Writer: env.Print.Out})
	app.UsageWriter(print.DiscardErrors{Writer: env.Print.Out})
	app.ErrorWriter(print.DiscardErrors{Writer: env.Print.Err})
	app.HelpFlag.Short('h')
	env.AddGlobals(app)
	localcmd.Add(env, app)
	agentcmd.Add(env, app)
	fleetcmd.Add(env, app)
	fleetcmd.AddRegistration(env, app)
	fleetcmd.AddTrust(env, app)
	demo.Add(env, app, execute)
	app.Command("version", "Show the version").Action(env.Action(func(context.Context) error {
		_, err := fmt.Fprintln(env.Print.Out, cli.Version())
		return err
	}))
	addHidden(env, app)

	return app
}

// addHidden adds the commands by which muster starts itself.
func addHidden(env *cli.Env, app *fisk.Application) {
	app.Command(cli.GossCommand, "Evaluate goss rules, given as JSON on standard input").Hidden().Action(env.Action(func(context.Context) error {
		if code := goss.Main(env.Stdin, env.Print.Out); code != cli.ExitOK {
			return &cli.ExitError{Code: code}
		}
		return nil
	}))
	app.Command(scaffold.RenderCommand, "Render scaffold templates, as the muster that started this requests").Hidden().Action(env.Action(func(context.Context) error {
		scaffold.RenderMain(os.Stdin, os.Stdout)
		return nil
	}))
}

// terminated is how fisk ends after it printed help or the version.
type terminated struct{ code int }

// parse parses the command line. The code is the one with which fisk ends by itself.
func parse(app *fisk.Application, args []string) (code int, err error) {
	// fisk expects that this does not return.
	app.Terminate(func(code int) { panic(terminated{code}) })
	defer func() {
		switch v := recover().(type) {
		case nil:
		case terminated:
			code, err = v.code, nil
		default:
			panic(v)
		}
	}()
	_, err = app.Parse(args)

	return cli.ExitOK, err
}
