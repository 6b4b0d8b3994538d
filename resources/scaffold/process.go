package scaffold

import (
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
)

const (
	// defaultTimeout holds where the resource has no timeout.
	defaultTimeout = time.Minute
	// maxEvent is the size of the largest message, which carries one file.
	maxEvent = maxBytes + 1<<20
)

// The errors of a renderer that the system ends.
var (
	errEndless = errors.New("the templates render one another without end, or nest too deep")
	errMemory  = fmt.Errorf("the templates need more than %d MiB of memory, or more than the address space limit of muster leaves (ulimit -v)", maxMemory>>20)
)

// run renders in a process of its own, to its end.
func (r *rendering) run(ctx context.Context) error {
	timeout := cmp.Or(r.spec.Timeout.Std(), defaultTimeout)
	tooLong := fmt.Errorf("the templates took longer than %s", timeout)
	limited, cancel := context.WithTimeoutCause(ctx, timeout, tooLong)
	defer cancel()
	r.learnNames(limited)
	request, err := r.request()
	if err != nil {
		return err
	}
	result, err, served := r.start(limited, request)
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case context.Cause(limited) != nil:
		return r.in(tooLong)
	case err != nil:
		return fmt.Errorf("could not render the templates: %w", err)
	case r.end == nil:
		return r.in(ended(result, served))
	case r.end.Error != "":
		return r.failure(r.end.Error)
	}

	return nil
}

// start starts the process with a socket as its standard input, and returns
// when it has ended.
func (r *rendering) start(ctx context.Context, request request) (result command.Result, err, served error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return result, fmt.Errorf("no socket: %w", err), nil
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "muster"), os.NewFile(uintptr(pair[1]), "renderer")
	var running sync.WaitGroup
	running.Go(func() {
		// Nothing more arrives once the process has ended.
		defer theirs.Close()
		result, err = r.env.Host.Run(ctx, command.Command{
			// Muster itself, also after its file was replaced. No other program knows the flag.
			Argv: []string{"/proc/self/exe", "--log-level=error", RenderCommand},
			Dir:  "/", Stdin: theirs, Tied: true, OnlyEnv: true,
			// The last of these spares a muster with the race detector a second at its end.
			Env: []string{"GOTRACEBACK=none", "GORACE=atexit_sleep_ms=0"},
		})
	})
	served = r.serve(ctx, ours, request)
	ours.Close()
	running.Wait()

	return result, err, served
}

// serve sends the request, answers calls and receives files until the process
// is done, or is gone.
func (r *rendering) serve(ctx context.Context, conn io.ReadWriter, request request) error {
	registerMessages()
	limited := &io.LimitedReader{R: conn}
	in, out := gob.NewDecoder(limited), gob.NewEncoder(conn)
	err := out.Encode(request)
	// A call may have taken all the time there is.
	for err == nil && ctx.Err() == nil && r.end == nil {
		var e event
		limited.N = maxEvent
		err = in.Decode(&e)
		switch {
		case err != nil:
		case e.Call != nil:
			err = out.Encode(r.answer(*e.Call))
		case e.File != nil:
			r.receive(*e.File)
		default:
			r.end = &e
		}
	}

	return err
}

func (r *rendering) request() (request, error) {
	out := request{
		Go: r.spec.Engine == EngineGo, Target: r.spec.Name, Texts: r.tree.texts, Templates: r.tree.templates,
		Functions: slices.Collect(maps.Keys(r.names.Functions())),
	}
	out.Left, out.Right = r.spec.Delimiters()
	values, err := plain(r.names.Values())
	if err == nil {
		out.Values = values.(map[string]any)
	}

	return out, err
}

// answer calls a function of the manifest.
func (r *rendering) answer(call functionCall) (reply functionReply) {
	args, _ := copyMessage(call.Args).([]any)
	fail := func(err error) functionReply {
		r.failed = r.missing(call.Function, args, err)
		return functionReply{Failed: true, Error: err.Error()}
	}
	defer func() {
		if p := recover(); p != nil {
			reply = fail(fmt.Errorf("%v", p))
		}
	}()
	value, err := r.names.Call(call.Function, args)
	if err == nil {
		value, err = plain(value)
	}
	if err != nil {
		return fail(err)
	}

	return functionReply{Value: value}
}

// missing marks the error of a file that does not exist: another resource may provide it.
func (r *rendering) missing(name string, args []any, err error) error {
	if (name != "readFile" && name != "file") || len(args) == 0 || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	path := fmt.Sprint(args[0])
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.env.Scope.Dir, path)
	}

	return resource.PrerequisiteError{Needs: []string{resource.PathNeed(filepath.Clean(path))}, Err: err}
}

// ended returns why the process ended before it was done.
func ended(result command.Result, served error) error {
	said := result.Stderr.String()
	// The last two are the words of the race detector.
	memory := []string{"out of memory", "cannot allocate memory", "address space", "failed to allocate"}
	switch {
	case strings.Contains(said, "stack overflow"):
		return errEndless
	case slices.ContainsFunc(memory, func(words string) bool { return strings.Contains(said, words) }):
		return errMemory
	case result.Killed:
		return fmt.Errorf("the process that renders was ended by signal %d, perhaps because memory was short", result.ExitCode-128)
	default:
		said, _, _ = strings.Cut(said, "\n")
		return fmt.Errorf("the process that renders ended with exit code %d: %s (%w)", result.ExitCode, said, served)
	}
}
