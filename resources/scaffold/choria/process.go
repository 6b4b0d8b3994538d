package choria

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
	"github.com/musterfleet/muster/resources/scaffold"
	"github.com/musterfleet/muster/resources/scaffold/choria/render"
	"github.com/musterfleet/muster/resources/template"
)

const (
	// defaultTimeout holds where the resource has no timeout.
	defaultTimeout = time.Minute
	// maxEvent is the size of the largest message, which carries one file.
	maxEvent = render.MaxBytes + 1<<20
)

// The errors of a renderer that the system ends.
var (
	errEndless = errors.New("the templates render one another without end, or nest too deep")
	errMemory  = fmt.Errorf("the templates need more than %d MiB of memory, or more than the address space limit of muster leaves (ulimit -v)", render.MaxMemory>>20)
)

// process renders one tree in a process of its own.
type process struct {
	env   resource.Env
	spec  *scaffold.Spec
	tree  *tree
	dir   string
	names template.Names
	// secret are the templates that use a secret, flows whether one may be in the path of a file.
	secret map[string]bool
	flows  bool
	// used reports whether a function has returned a secret since it was last called; nil where none can.
	used func() bool

	files []file
	// rendered counts the templates that are done.
	rendered int
	// failed is the last error of a function.
	failed error
	// noValue reports that a function returned these words.
	noValue bool
	end     *render.Event
}

// The errors of templates that use a secret.
var (
	errHidden     = errors.New("it uses a secret, so its error is not shown")
	errSecretPath = errors.New("the path of a file that a template writes depends on a secret, and paths are shown (give it another name)")
)

// run runs the process to its end.
func (p *process) run(ctx context.Context) error {
	timeout := cmp.Or(p.spec.Timeout.Std(), defaultTimeout)
	tooLong := fmt.Errorf("the templates took longer than %s", timeout)
	limited, cancel := context.WithTimeoutCause(ctx, timeout, tooLong)
	defer cancel()
	p.learnNames(limited)
	request, err := p.request()
	if err != nil {
		return err
	}
	result, err, served := p.start(limited, request)
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case context.Cause(limited) != nil:
		return p.in(tooLong)
	case err != nil:
		return fmt.Errorf("could not render the templates: %w", err)
	case served != nil:
		return p.in(served)
	case p.end == nil:
		return p.in(ended(result))
	case p.end.Error != "":
		return p.failure(p.end.Error)
	}

	return nil
}

// start starts the process with a socket as its standard input, and returns
// when it has ended.
func (p *process) start(ctx context.Context, request render.Request) (result command.Result, err, served error) {
	source := filepath.Join(p.dir, "source")
	if err := os.Mkdir(source, 0o700); err != nil {
		return result, err, nil
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return result, fmt.Errorf("no socket: %w", err), nil
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "muster"), os.NewFile(uintptr(pair[1]), "renderer")
	var running sync.WaitGroup
	running.Go(func() {
		// Nothing more arrives once the process has ended.
		defer theirs.Close()
		result, err = p.env.Host.Run(ctx, command.Command{
			// Muster itself, also after its file was replaced. No other program knows the flag.
			Argv: []string{"/proc/self/exe", "--log-level=error", render.Command},
			Dir:  source, Stdin: theirs, Tied: true, OnlyEnv: true,
			// The last of these spares a muster with the race detector a second at its end.
			Env: []string{"TMPDIR=" + p.dir, "GOTRACEBACK=none", "GORACE=atexit_sleep_ms=0"},
		})
	})
	served = p.serve(ctx, ours, request)
	ours.Close()
	running.Wait()

	return result, err, served
}

// serve sends the request, answers calls and receives files until the process
// is done, or is gone.
func (p *process) serve(ctx context.Context, conn io.ReadWriter, request render.Request) error {
	render.Register()
	limited := &io.LimitedReader{R: conn}
	in, out := gob.NewDecoder(limited), gob.NewEncoder(conn)
	err := out.Encode(request)
	// A call may have taken all the time there is.
	for err == nil && ctx.Err() == nil {
		var e render.Event
		limited.N = maxEvent
		if err = in.Decode(&e); err != nil {
			break
		}
		switch {
		case e.Call != nil:
			err = out.Encode(p.answer(*e.Call))
		case e.File != nil:
			p.receive(*e.File)
		default:
			p.end = &e
			return nil
		}
	}
	for _, gone := range []error{io.EOF, io.ErrUnexpectedEOF, unix.EPIPE, unix.ECONNRESET} {
		if errors.Is(err, gone) {
			return nil
		}
	}

	return err
}

func (p *process) request() (out render.Request, err error) {
	out = render.Request{Go: p.spec.Engine == scaffold.EngineGo, Texts: p.tree.texts, Functions: slices.Collect(maps.Keys(p.names.Functions()))}
	out.Left, out.Right = p.spec.Delimiters()
	for _, t := range p.tree.templates {
		out.Templates = append(out.Templates, t.name)
	}
	if p.tree.contains("write") {
		out.Directories = p.directories()
	}
	values, err := render.Plain(p.names.Values())
	if err != nil {
		return out, err
	}
	out.Values = values.(map[string]any)

	return out, err
}

// directories are those of the target: templates have perhaps written into them
// before, and then need not be rendered again for each.
func (p *process) directories() (out []string) {
	// The comparison with the target reports what cannot be read.
	_ = filepath.WalkDir(p.spec.Name, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || len(out) == render.MaxDirectories:
			return fs.SkipAll
		case d.IsDir() && path != p.spec.Name:
			out = append(out, strings.TrimPrefix(path, p.spec.Name+"/"))
		}
		return nil
	})

	return out
}

// answer calls a function of the manifest.
func (p *process) answer(call render.Call) render.Reply {
	args, _ := render.Copy(call.Args).([]any)
	value, err := protected(p.names, call.Function, args)
	if err == nil {
		if text, is := value.(string); is {
			p.noValue = p.noValue || strings.Contains(text, noValue)
		}
		if value, err = render.Plain(value); err == nil {
			return render.Reply{Value: value}
		}
	}
	p.failed = p.missing(call.Function, args, err)

	return render.Reply{Failed: true, Error: p.failed.Error()}
}

// protected calls a function, and returns a panic as an error.
func protected(names template.Names, name string, args []any) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("%v", p)
		}
	}()

	return names.Call(name, args)
}

// missing marks the error of a file that does not exist: another resource may provide it.
func (p *process) missing(name string, args []any, err error) error {
	if (name != "readFile" && name != "file") || len(args) == 0 || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	path := fmt.Sprint(args[0])
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.env.Scope.Dir, path)
	}

	return resource.PrerequisiteError{Needs: []string{resource.PathNeed(filepath.Clean(path))}, Err: err}
}

func (p *process) receive(f render.File) {
	mode := fs.FileMode(writtenMode)
	if !f.Written && p.rendered < len(p.tree.templates) {
		mode = p.tree.templates[p.rendered].mode
		p.takeUsed(f.Name)
		p.rendered++
	}
	p.files = append(p.files, file{path: filepath.Join(p.spec.Name, f.Name), content: f.Content, digest: digestOf(f.Content), mode: mode, written: f.Written, secret: !f.Written && p.secret[f.Name]})
}

// current returns the name of the template that is being rendered, if any.
func (p *process) current() string {
	if p.rendered < len(p.tree.templates) {
		return p.tree.templates[p.rendered].name
	}

	return ""
}

// in adds the template that was being rendered to an error.
func (p *process) in(err error) error {
	if name := p.current(); name != "" {
		return fmt.Errorf("%s: %w", name, err)
	}

	return err
}

// ended returns why the process ended before it was done.
func ended(result command.Result) error {
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
		return fmt.Errorf("the process that renders ended with exit code %d: %s", result.ExitCode, said)
	}
}
