package scaffold

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

const (
	// writtenMode is the mode of the files of the function write.
	writtenMode = 0o644
	// defaultTimeout applies to a resource without a timeout.
	defaultTimeout = time.Minute
	// maxStarts limits how often the child starts for one rendering.
	maxStarts = 100
)

// The errors of a rendering.
var (
	errEndless    = errors.New("the templates render one another without end, or nest too deep")
	errMemory     = fmt.Errorf("the templates need more than %d MiB of memory, or more than the address space limit of muster leaves (ulimit -v)", maxMemory>>20)
	errUnstable   = errors.New("the templates call functions of the manifest with other arguments each time, so they have no result")
	errHidden     = errors.New("it uses a secret, so its error is not shown")
	errSecretPath = errors.New("the path of a file that a template writes depends on a secret, and paths are shown (give it another name)")
)

// rendering renders the templates of one scaffold.
type rendering struct {
	env    resource.Env
	spec   *Spec
	source []sourceFile
	names  template.Names
	// secret holds the templates that use a secret. flows reports that the path of a file may
	// depend on a secret.
	secret map[string]bool
	flows  bool
	// used reports whether a function returned a secret since the last call of used; it may be nil.
	used func() bool
	// failed are the errors of functions.
	failed []error

	// The result of the last start of the child: files, the indexes of written files by name, calls without an
	// answer, an error, and the index of the next template.
	files   []file
	written map[string]int
	calls   []call
	problem string
	next    int
}

// render returns the files of the templates, sorted by path. It reads the source and changes nothing.
func (p Choria) render(ctx context.Context, env resource.Env, spec *Spec) ([]file, error) {
	source, err := p.readSource(ctx, env, spec)
	if err != nil {
		return nil, err
	}
	timeout := cmp.Or(spec.Timeout.Std(), defaultTimeout)
	tooLong := fmt.Errorf("the templates took longer than %s", timeout)
	limited, cancel := context.WithTimeoutCause(ctx, timeout, tooLong)
	defer cancel()
	r := &rendering{env: env, spec: spec, source: source, secret: map[string]bool{}}
	r.learnNames(limited)
	err = r.run(limited)
	switch {
	case context.Cause(ctx) != nil:
		return nil, context.Cause(ctx)
	case context.Cause(limited) != nil:
		return nil, r.in(tooLong)
	case err != nil:
		return nil, err
	}

	return r.result()
}

// run starts the child until all calls of functions have answers.
func (r *rendering) run(ctx context.Context) error {
	request := request{
		Go: r.spec.Engine == EngineGo, Target: r.spec.Name, Source: r.source,
		Functions: slices.Collect(maps.Keys(r.names.Functions())), Answers: map[string]answer{},
	}
	request.Left, request.Right = r.spec.Delimiters()
	var err error
	if request.Values, err = encode(r.names.Values()); err != nil {
		return fmt.Errorf("could not render the templates: %w", err)
	}
	for range maxStarts {
		if err := r.start(ctx, request); err != nil || len(r.calls) == 0 {
			return err
		}
		known := len(request.Answers)
		for _, c := range r.calls {
			if _, answered := request.Answers[c.key()]; !answered && ctx.Err() == nil {
				r.next = c.Template
				request.Answers[c.key()] = r.answer(c)
			}
		}
		if len(request.Answers) == known {
			break
		}
	}

	return errUnstable
}

// start runs the child once. It sets the files, or the calls without an answer.
func (r *rendering) start(ctx context.Context, request request) error {
	input, err := json.Marshal(request)
	if err != nil {
		return err
	}
	// The pipe keeps only the last content of a file that is written often.
	output, stdout := io.Pipe()
	var received error
	var receiving sync.WaitGroup
	receiving.Go(func() {
		received = r.receive(tar.NewReader(output))
		_, _ = io.Copy(io.Discard, output) // the child must not block
	})
	result, err := r.env.Host.Run(ctx, command.Command{
		// This runs the same program even if its file was replaced.
		Argv: []string{"/proc/self/exe", "--log-level=error", RenderCommand},
		Dir:  "/", Stdin: bytes.NewReader(input), Stdout: stdout, Tied: true, OnlyEnv: true,
		// GORACE saves the race detector a second at the end.
		Env: []string{"GOTRACEBACK=none", "GORACE=atexit_sleep_ms=0"},
	})
	stdout.Close()
	receiving.Wait()
	switch {
	case err != nil:
		return fmt.Errorf("could not render the templates: %w", err)
	case result.ExitCode != 0 || received != nil:
		return r.in(ended(result, received))
	case r.problem != "":
		return r.failure(r.problem)
	default:
		return nil
	}
}

// receive reads the tar of the child. A tar without its last entry is an error.
func (r *rendering) receive(in *tar.Reader) error {
	r.files, r.written, r.calls, r.problem, r.next = nil, map[string]int{}, nil, "", 0
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		name := header.Name
		if header.Size > maxBytes || !filepath.IsLocal(name) {
			return fmt.Errorf("invalid entry %q", name)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		by := r.current()
		if header.PAXRecords[recordSecret] != "" {
			r.secret[by], r.flows = true, true
		}
		f := file{path: filepath.Join(r.spec.Name, name), content: content, digest: digestOf(content), by: by}
		switch header.PAXRecords[recordKind] {
		case kindRendered:
			f.mode = r.source[r.next].Mode
			r.files, r.next = append(r.files, f), r.next+1
		case kindWritten:
			f.mode, f.written = writtenMode, true
			if at, again := r.written[name]; again {
				r.files[at] = f
				continue
			}
			r.written[name] = len(r.files)
			r.files = append(r.files, f)
		case kindCalls:
			return json.Unmarshal(content, &r.calls)
		case kindError:
			r.problem = string(content)
			return nil
		case kindEnd:
			return nil
		default:
			return fmt.Errorf("invalid entry %q", name)
		}
	}
}

// current returns the name of the template that the child renders, if any.
func (r *rendering) current() string {
	if r.next < len(r.source) && !r.source[r.next].Partial {
		return string(r.source[r.next].Name)
	}

	return ""
}

func (r *rendering) in(err error) error {
	if name := r.current(); name != "" {
		return fmt.Errorf("%s: %w", name, err)
	}

	return err
}

func (r *rendering) answer(c call) (out answer) {
	args, _ := decode(c.Args).([]any)
	fail := func(err error) answer {
		r.failed = append(r.failed, r.missing(c.Function, args, err))
		return answer{Failed: true, Error: err.Error(), Secret: r.used != nil && r.used()}
	}
	defer func() {
		if p := recover(); p != nil {
			out = fail(fmt.Errorf("%v", p))
		}
	}()
	value, err := r.names.Call(c.Function, args)
	if err == nil {
		value, err = encode(value)
	}
	if err != nil {
		return fail(err)
	}

	return answer{Value: value, Secret: r.used != nil && r.used()}
}

// missing marks the error of a file that does not exist: another resource may provide it.
func (r *rendering) missing(function string, args []any, err error) error {
	if (function != "readFile" && function != "file") || len(args) == 0 || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	path := fmt.Sprint(args[0])
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.env.Scope.Dir, path)
	}

	return resource.PrerequisiteError{Needs: []string{resource.PathNeed(filepath.Clean(path))}, Err: err}
}

// failure returns the error that the child reports. It wraps the error of the function that failed.
func (r *rendering) failure(text string) error {
	out := rewordedError{text: text}
	for _, err := range r.failed {
		if strings.Contains(text, err.Error()) {
			out.cause = err
		}
	}
	if r.secret[r.current()] {
		out.text = r.in(errHidden).Error()
	}

	return out
}

// rewordedError is an error with another text than its cause.
type rewordedError struct {
	text  string
	cause error
}

func (e rewordedError) Error() string { return e.text }
func (e rewordedError) Unwrap() error { return e.cause }

// ended returns why the child ended before its last entry.
func ended(result command.Result, received error) error {
	stderr := result.Stderr.String()
	// The race detector writes the last two.
	memory := []string{"out of memory", "cannot allocate memory", "address space", "failed to allocate"}
	switch {
	case strings.Contains(stderr, "stack overflow"):
		return errEndless
	case slices.ContainsFunc(memory, func(words string) bool { return strings.Contains(stderr, words) }):
		return errMemory
	case result.Killed:
		return fmt.Errorf("the process that renders was ended by signal %d, perhaps because memory was short", result.ExitCode-128)
	default:
		stderr, _, _ = strings.Cut(stderr, "\n")
		return fmt.Errorf("the process that renders ended with exit code %d: %s (%w)", result.ExitCode, stderr, received)
	}
}

// result returns the files. Two files with the same path are an error, and so is a file that is a directory of
// another file.
func (r *rendering) result() ([]file, error) {
	slices.SortFunc(r.files, func(a, b file) int { return strings.Compare(a.path, b.path) })
	given := map[string]bool{}
	for i, f := range r.files {
		r.files[i].secret = r.secret[f.by]
		name := []byte(strings.TrimPrefix(f.path, r.spec.Name+"/"))
		if f.written && r.flows && !slices.ContainsFunc(r.source, func(s sourceFile) bool { return bytes.Contains(s.Text, name) }) {
			return nil, errSecretPath
		}
		if given[f.path] {
			return nil, fmt.Errorf("two templates yield %s: the file of one template, and a call of write in another template; rename one of them", f.path)
		}
		for dir := filepath.Dir(f.path); dir != r.spec.Name; dir = filepath.Dir(dir) {
			if given[dir] {
				return nil, fmt.Errorf("%s is a file and a directory", dir)
			}
		}
		given[f.path] = true
	}

	return slices.DeleteFunc(r.files, func(f file) bool {
		return r.spec.SkipEmpty && !f.written && strings.TrimSpace(string(f.content)) == ""
	}), nil
}

// learnNames sets the names that the templates see, and finds the templates that use a secret.
func (r *rendering) learnNames(ctx context.Context) {
	r.names = template.Names{"Facts": r.env.Facts, "Environ": map[string]any{}}
	r.names["facts"], r.names["environ"] = r.names["Facts"], r.names["Environ"]
	var known resource.Secrets
	data := r.spec.Data
	if r.spec.Sensitive && data != nil {
		// Any text may be a secret.
		data, _ = template.Copy(data, func(v any) any {
			if text, is := v.(string); is {
				return model.NewSecret(text)
			}
			return v
		}).(map[string]any)
	}
	if origin := r.env.Scope.Origin; origin != nil {
		r.names, known = origin.Names(ctx, r.env.Facts, data)
	}
	r.used = known.Used
	if r.spec.Data == nil {
		r.judge(known.Data)
		return
	}
	r.names["Data"], r.names["data"] = r.spec.Data, r.spec.Data
	r.judge(data)
}

// renders matches an action that shows another template.
var renders = regexp.MustCompile(`\b(render|include|import|extends)\b`)

// judge finds the templates that use a secret. If there are any, a template that shows another
// template counts as one of them.
func (r *rendering) judge(data map[string]any) {
	if !template.Holds(data) {
		return
	}
	left, right := r.spec.Delimiters()
	for _, f := range r.source {
		j := template.Judge{Data: data}
		j.Text(string(f.Text), left, right, r.spec.Engine != EngineGo)
		r.flows = r.flows || j.Flows
		if j.Found != template.Unused {
			r.secret[string(f.Name)] = true
		}
	}
	for _, f := range r.source {
		if len(r.secret) > 0 && renders.Match(f.Text) {
			r.secret[string(f.Name)] = true
		}
	}
}
