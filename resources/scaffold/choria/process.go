package choria

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
	"github.com/musterfleet/muster/resources/scaffold/choria/render"
	"github.com/musterfleet/muster/resources/template"
	"golang.org/x/sys/unix"
)

// rendererArgv has muster start itself to render, also after its file was
// replaced. Any other program, such as that of a test, does not know the flag.
func rendererArgv() []string { return []string{"/proc/self/exe", "--log-level=error", render.Command} }

// defaultTimeout is how long a rendering may take when the resource does not say it.
const defaultTimeout = time.Minute

// errEndless is of a rendering that needs more stack than there is.
var errEndless = errors.New("the templates render one another without end, or too much stands within one another in one")

// errMemory is of one that needs more memory than it may have.
func errMemory() error {
	own := fmt.Sprintf("the templates need more than %d MiB of memory", render.MaxMemory>>20)
	if limit, limited := render.AddressSpace(); limited {
		return fmt.Errorf("%s, or what the limit of address space of muster leaves them, %d MiB (ulimit -v)", own, limit>>20)
	}

	return errors.New(own)
}

// process renders one tree in a process of its own, which the library may end
// for all that muster minds.
type process struct {
	env  resource.Env
	spec *scaffold.Spec
	tree *tree
	// masking says that the secrets are masked, and compares that it is to be known
	// whether anything depends on one.
	masking, compares bool
	names             template.Names
	// masked are the names with the secrets masked, for comparison.
	masked template.Names

	mu      sync.Mutex
	hearing render.Hearing
	stdin   *os.File
	reader  *os.File
	// secret says that what was rendered may depend on a secret.
	secret bool
	// failed is the last error of a function, and asked what that is called.
	failed error
	asked  string
	// noValue says that a function gave a text that has noValue.
	noValue bool
	// broken is why the process is not understood any more.
	broken error
	// done is what the process has said last.
	done map[string]any
}

// files renders, in memory where there is enough of it.
func (p *process) files(ctx context.Context) ([]file, error) {
	dir, err := p.env.Host.MemoryDir(ctx, "scaffold")
	if err == nil {
		var out []file
		out, err = p.filesIn(ctx, dir)
		if err == nil || !isFull(err) || p.env.Host.StateDir() == "" {
			return out, err
		}
	}
	if p.env.Host.StateDir() == "" {
		return nil, err
	}
	if dir, err = p.env.Host.TempDir("scaffold"); err != nil {
		return nil, err
	}

	return p.filesIn(ctx, dir)
}

func isFull(err error) bool { return strings.Contains(err.Error(), "no space left on device") }

// filesIn renders in a directory, and removes it.
func (p *process) filesIn(ctx context.Context, dir string) ([]file, error) {
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			p.env.Log.WarnContext(ctx, "could not remove what templates were rendered in", "directory", dir, "error", err)
		}
	}()
	p.hearing, p.failed, p.broken, p.done, p.noValue = render.Hearing{}, nil, nil, nil, false
	if err := p.run(ctx, dir); err != nil {
		return nil, err
	}

	return p.read(ctx, dir)
}

// run runs the process to its end.
func (p *process) run(ctx context.Context, dir string) error {
	var err error
	if p.reader, p.stdin, err = os.Pipe(); err != nil {
		return fmt.Errorf("could not make a pipe to the process that renders: %w", err)
	}
	defer p.close()
	limit := cmp.Or(p.spec.Timeout.Std(), defaultTimeout)
	tooLong := fmt.Errorf("the templates took longer than %s", limit)
	limited, cancel := context.WithTimeoutCause(ctx, limit, tooLong)
	defer cancel()
	p.names, p.secret = names(limited, p.env, p.spec, p.masking), false
	if p.compares {
		p.masked = names(limited, p.env, p.spec, true)
		p.secret = !reflect.DeepEqual(p.names.Values(), p.masked.Values())
	}
	result, err := p.env.Host.Run(limited, command.Command{
		Argv: rendererArgv(), Stdin: p.reader, Tied: true, OnlyEnv: true,
		// The last of these is for a muster with the race detector, which would wait a second at its end.
		Env:    []string{"TMPDIR=" + dir, "GOTRACEBACK=none", "GORACE=atexit_sleep_ms=0"},
		OnLine: func(line string, stderr bool) { p.hear(limited, line, stderr, dir) },
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case errors.Is(err, tooLong):
		return p.in(tooLong)
	case err != nil:
		return fmt.Errorf("could not render the templates: %w", err)
	case p.broken != nil:
		return p.in(p.broken)
	case p.done == nil:
		return p.in(ended(result))
	}
	if text, _ := p.done["error"].(string); text != "" {
		f := failure{process: p, dir: dir, text: text}
		return f.err()
	}

	return nil
}

func (p *process) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reader.Close()
	p.stdin.Close()
}

// in says in which template an error was.
func (p *process) in(err error) error {
	if at := p.hearing.Reached; at < len(p.tree.templates) {
		return fmt.Errorf("%s: %w", p.tree.templates[at].name, err)
	}

	return err
}

// outOfMemory is how a process says that it has no more memory. The last two are
// also how one with the race detector does.
func outOfMemory() []string {
	return []string{"out of memory", "cannot allocate memory", "address space", "failed to allocate"}
}

// ended says what ended the process before it was done.
func ended(result command.Result) error {
	said := result.Stderr.String()
	switch {
	case strings.Contains(said, "stack overflow"):
		return errEndless
	case slices.ContainsFunc(outOfMemory(), func(words string) bool { return strings.Contains(said, words) }):
		return errMemory()
	case result.Killed:
		return fmt.Errorf("the process that renders was ended by signal %d, perhaps because memory was short", result.ExitCode-128)
	default:
		said, _, _ = strings.Cut(said, "\n")
		return fmt.Errorf("the process that renders ended with exit code %d: %s", result.ExitCode, said)
	}
}

// hear takes a line that the process says, and answers it.
func (p *process) hear(ctx context.Context, line string, stderr bool, dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stderr || p.broken != nil {
		return
	}
	v, ends, err := p.hearing.Line(line)
	if err == nil && ends {
		err = p.answer(v, dir)
	}
	// What was asked may have waited for as long as there is.
	if p.done == nil && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	// One that is not there any more to be answered tells why by its end.
	if err != nil && !errors.Is(err, unix.EPIPE) {
		p.broken = err
		// The process ends: nobody answers it any more.
		p.stdin.Close()
	}
}

func (p *process) answer(v any, dir string) error {
	switch v := v.(type) {
	case string:
		// It is there, and has an end of the pipe of its own.
		p.reader.Close()
		return p.request(dir).Send(p.stdin)
	case map[string]any:
		p.done = v
	case []any:
		if len(v) != 2 {
			return fmt.Errorf("the process that renders asks for %d things at a time", len(v))
		}
		name, _ := v[0].(string)
		args, _ := v[1].([]any)
		value, err := p.call(name, args)
		if err == nil {
			if err = render.Send(p.stdin, []any{value, nil}); err == nil {
				return nil
			}
		}
		p.failed, p.asked = err, name
		return render.Send(p.stdin, []any{nil, err.Error()})
	}

	return nil
}

func (p *process) request(dir string) render.Request {
	left, right := p.spec.Delimiters()
	out := render.Request{
		Dir: dir, Go: p.spec.Engine == scaffold.EngineGo, Left: left, Right: right,
		Texts: p.tree.texts, Values: p.names.Values(), Directories: p.directories(),
	}
	for _, t := range p.tree.templates {
		out.Templates = append(out.Templates, t.name)
	}
	for name := range p.names.Functions() {
		out.Functions = append(out.Functions, name)
	}

	return out
}

// directories are those of the target, where templates may write: they have
// perhaps done so before. The library makes none.
func (p *process) directories() (out []string) {
	writes := false
	for _, text := range p.tree.texts {
		writes = writes || strings.Contains(text, "write")
	}
	if !writes {
		return nil
	}
	// What cannot be read is no help, and told by the look at the target.
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

// call calls a function of the manifest, and looks whether it gives the same
// when the secrets are masked.
func (p *process) call(name string, args []any) (any, error) {
	value, err := protected(p.names, name, args)
	if text, is := value.(string); is {
		p.noValue = p.noValue || strings.Contains(text, noValue)
	}
	if p.masked != nil && !p.secret {
		other, otherErr := protected(p.masked, name, args)
		p.secret = !reflect.DeepEqual(value, other) || (err == nil) != (otherErr == nil)
	}

	return value, p.missing(name, args, err)
}

// missing says of a file that a template reads, and that is not there, that
// another resource may bring it.
func (p *process) missing(name string, args []any, err error) error {
	if (name != "readFile" && name != "file") || len(args) == 0 || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	path, is := args[0].(string)
	if !is {
		return err
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.env.Scope.Dir, path)
	}

	return resource.Missing{Need: resource.PathNeed(filepath.Clean(path)), Err: err}
}

// protected makes an error of a panic: no look stands above this that would.
func protected(names template.Names, name string, args []any) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("%s: %v", name, p)
		}
	}()

	return names.Call(name, args)
}

// read reads what was rendered, in the order of the paths.
func (p *process) read(ctx context.Context, dir string) ([]file, error) {
	var out []file
	given := map[string]bool{}
	add := func(name string, mode os.FileMode, isTemplate bool) error {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		content, err := p.env.Host.Read(filepath.Join(dir, render.Target, name), render.MaxBytes)
		if err != nil {
			return err
		}
		given[name] = true
		if isTemplate && p.spec.SkipEmpty && strings.TrimSpace(string(content)) == "" {
			return nil
		}
		out = append(out, file{path: filepath.Join(p.spec.Name, name), content: content, digest: digestOf(content), mode: mode})
		return p.checkValues(name, string(content))
	}
	for _, t := range p.tree.templates {
		if err := add(t.name, t.mode, true); err != nil {
			return nil, err
		}
	}
	for _, name := range p.written() {
		if given[name] {
			return nil, fmt.Errorf("%s is written by a template, and is there as a template too", filepath.Join(p.spec.Name, name))
		}
		if err := add(name, writtenMode, false); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b file) int { return strings.Compare(a.path, b.path) })

	return out, nil
}

// written are the files that templates have written by their function.
func (p *process) written() []string {
	var out []string
	names, _ := p.done["written"].([]any)
	for _, name := range names {
		name, _ := name.(string)
		out = append(out, name)
	}

	return out
}

// checkValues refuses what a Go template writes for a key that is missing, unless
// that may come from elsewhere: the library lets nobody have it refused there.
func (p *process) checkValues(name, text string) error {
	if p.spec.Engine != scaffold.EngineGo || !strings.Contains(text, noValue) || p.hasNoValue() {
		return nil
	}
	before, _, _ := strings.Cut(text, noValue)

	return fmt.Errorf("%s: line %d of what it gives has %s: a key that it names is missing, write {{ get .Data \"name\" | default \"…\" }} where it may be", name, 1+strings.Count(before, "\n"), noValue)
}

// hasNoValue says that a template, the data or a function has the words itself.
func (p *process) hasNoValue() bool {
	for _, text := range p.tree.texts {
		if strings.Contains(text, noValue) {
			return true
		}
	}

	return p.noValue || strings.Contains(fmt.Sprint(p.names.Values()), noValue)
}
