// Package render renders the templates of a scaffold by the library
// choria-io/scaffold. It is for a process of its own: the library renders
// without any bound, and writes what it renders to the disk
// (docs/decisions/0007).
package render

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/CloudyKit/jet/v6"
	library "github.com/choria-io/scaffold"
	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/template"
)

// Command is the command that muster starts itself by to render.
const Command = "render-scaffold"

// The limits of one rendering.
const (
	// MaxMemory is what it may take more than the process has at its beginning.
	MaxMemory = 1 << 30
	// MaxBytes is how much all of its files may hold, and each.
	MaxBytes = 128 << 20
	// MaxFiles is how many files there may be.
	MaxFiles = 100_000
	// maxStack is far more than templates need that come to an end.
	maxStack = 16 << 20
	// MaxDirectories is how many directories templates may have made by write.
	MaxDirectories = 1000
)

// The directories of a rendering, in the one that it is given.
const (
	// Source has the templates.
	Source = "source"
	// Target has the files once it is done.
	Target = "target"
)

// first is a template that comes before all others: where the library renders
// to is known from it.
const first = "\x01"

// Request is what is to be rendered.
type Request struct {
	// Dir is a directory that is empty.
	Dir         string
	Go          bool
	Left, Right string
	// Texts are all templates, those that only others render too.
	Texts map[string]string
	// Templates are those that give files, in the order of filepath.WalkDir.
	Templates []string
	Values    map[string]any
	// Functions are those that muster is asked for.
	Functions []string
	// Directories are those that templates have perhaps written into before: with
	// them nothing is rendered again for each.
	Directories []string
}

// Send sends the request.
func (r Request) Send(w io.Writer) error {
	return Send(w, map[string]any{"dir": r.Dir, "go": r.Go, "left": r.Left, "right": r.Right, "texts": r.Texts, "templates": r.Templates, "values": r.Values, "functions": r.Functions, "directories": r.Directories})
}

// Main renders what stdin asks for, and asks stdout for what functions give. It
// says first that it is there; what comes last is a mapping: of "error", empty
// when all is done, "temporary", where it rendered to, and "written", the files
// that templates have written by their function. The exit code says nothing.
func Main(stdin io.Reader, stdout io.Writer) int {
	c := &child{in: bufio.NewReader(stdin), out: stdout}
	err := errors.Join(contain(), say(stdout, "ready"))
	if err == nil {
		c.message, err = receive(c.in)
	}
	if err == nil {
		err = c.render()
	}
	c.end(err)

	return 0
}

// contain bounds this process: what needs more is ended by the system.
func contain() error {
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(MaxMemory / 4 * 3)
	// Where memory is scarce this ends first. Not every system lets it say so.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	// An error is said, in place of a signal.
	signal.Ignore(unix.SIGXFSZ)
	var pages uint64
	size, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(size), &pages)
	}

	return errors.Join(err, bound(unix.RLIMIT_AS, pages*uint64(os.Getpagesize())+MaxMemory), bound(unix.RLIMIT_FSIZE, MaxBytes))
}

// bound sets a limit of this process, which may have a lower one already.
func bound(of int, most uint64) error {
	most = min(most, hard(of))

	return unix.Setrlimit(of, &unix.Rlimit{Cur: most, Max: most})
}

// hard is a limit that this process cannot raise.
func hard(of int) uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(of, &limit) != nil {
		return unix.RLIM_INFINITY
	}

	return limit.Max
}

// FileLimit is how large a file may be, also by the limits of this process.
func FileLimit() uint64 { return min(MaxBytes, hard(unix.RLIMIT_FSIZE)) }

// AddressSpace is a limit of this process that the renderer inherits; false is none.
func AddressSpace() (limit uint64, limited bool) {
	limit = hard(unix.RLIMIT_AS)

	return limit, limit != unix.RLIM_INFINITY
}

// child is one rendering.
type child struct {
	in  *bufio.Reader
	out io.Writer
	// message is the request, which is read anew for every try.
	message []byte
	request Request
	// made are the directories that templates write into.
	made []string
	// values are those of the request, which no template has, and restore gives
	// templates the same again.
	values  map[string]any
	restore func() error
	// temporary is the directory that the library renders to.
	temporary string
	reached   int
	bytes     int64
	sizes     map[string]int64
	written   map[string]bool
}

// end says what came of it.
func (c *child) end(err error) {
	out := map[string]any{"error": "", "temporary": c.temporary, "written": slices.Sorted(maps.Keys(c.written))}
	if err != nil {
		out["error"] = err.Error()
	}
	_ = say(c.out, out) // whoever is to hear it is gone
}

// render renders until there is every directory that a template writes into.
// Only the library can write what a template does, and it makes none.
func (c *child) render() error {
	if err := c.read(); err != nil {
		return err
	}
	if err := c.prepare(); err != nil {
		return err
	}
	c.made = c.request.Directories
	guessed := len(c.made) > 0
	for tries := 0; ; tries++ {
		err := c.try()
		dir := c.missing(err)
		switch {
		case dir == "" && err != nil && guessed:
			// A directory may be in the way of what is a file now.
			guessed, c.made = false, nil
		case dir == "":
			return err
		case tries == MaxDirectories:
			return fmt.Errorf("templates write into more than %d directories that the source does not have", MaxDirectories)
		default:
			c.made = append(c.made, dir)
		}
		if err := c.read(); err != nil {
			return err
		}
	}
}

// read reads the request.
func (c *child) read() error {
	v, err := decode(c.message)
	if err != nil {
		return err
	}
	of := v.(map[string]any)
	r := Request{Dir: of["dir"].(string), Go: of["go"].(bool), Left: of["left"].(string), Right: of["right"].(string), Texts: map[string]string{}, Values: of["values"].(map[string]any)}
	for name, text := range of["texts"].(map[string]any) {
		r.Texts[name] = text.(string)
	}
	for _, name := range of["templates"].([]any) {
		r.Templates = append(r.Templates, name.(string))
	}
	for _, name := range of["functions"].([]any) {
		r.Functions = append(r.Functions, name.(string))
	}
	if c.values, err = copied(r.Values); err != nil {
		return err
	}
	for _, name := range of["directories"].([]any) {
		r.Directories = append(r.Directories, name.(string))
	}
	c.request, c.temporary, c.reached, c.bytes = r, "", 0, 0
	c.sizes, c.written = map[string]int64{}, map[string]bool{}

	return nil
}

// prepare writes the templates where the library reads them.
func (c *child) prepare() error {
	source := filepath.Join(c.request.Dir, Source)
	if err := os.Mkdir(source, 0o700); err != nil {
		return err
	}
	if _, taken := c.request.Texts[first]; taken {
		return fmt.Errorf("a template cannot be called %q", first)
	}
	c.request.Texts[first] = ""
	for name, text := range c.request.Texts {
		path := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}

	return nil
}

// try renders all templates by the library.
func (c *child) try() (err error) {
	defer func() {
		// It lets mistakes through that it did not think of.
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	r := c.request
	// Empty files are left out by muster: the library takes an empty partial for one, too.
	cfg := library.Config{SourceDirectory: filepath.Join(r.Dir, Source), TargetDirectory: filepath.Join(r.Dir, Target), CustomLeftDelimiter: r.Left, CustomRightDelimiter: r.Right}
	var data any = r.Values
	var scaffold *library.Scaffold
	c.restore = func() error { return c.restored(r.Values) }
	if r.Go {
		scaffold, err = library.New(cfg, c.goFunctions())
	} else {
		variables := jet.VarMap{}
		c.restore = func() error {
			err := c.restored(r.Values)
			clear(variables)
			for name, v := range r.Values {
				variables.Set(name, v)
			}
			return err
		}
		if err := c.restore(); err != nil {
			return err
		}
		data = variables
		orderMappings()
		scaffold, err = library.NewJet(cfg, c.jetFunctions())
	}
	if err != nil {
		return err
	}
	scaffold.Logger(c)
	_, err = scaffold.Render(data)

	return err
}

// restored puts values back to what they were before a template has changed
// them: no template sees what another one did.
func (c *child) restored(values map[string]any) error {
	if reflect.DeepEqual(c.values, values) {
		return nil
	}
	before, err := copied(c.values)
	clear(values)
	maps.Copy(values, before)

	return err
}

func copied(values map[string]any) (map[string]any, error) {
	message, err := encode(nil, values, 0)
	if err != nil {
		return nil, err
	}
	v, err := decode(message)
	out, _ := v.(map[string]any)

	return out, err
}

// Debugf is told of every file that the library has rendered or written.
func (c *child) Debugf(format string, v ...any) {
	if len(v) != 1 || !strings.HasPrefix(format, "Rendered ") {
		return
	}
	path, _ := v[0].(string)
	if c.temporary == "" {
		c.begin(filepath.Dir(path))
		return
	}
	name := strings.TrimPrefix(path, c.temporary+"/")
	if c.reached < len(c.request.Templates) && c.request.Templates[c.reached] == name {
		c.reached++
		fmt.Fprintf(c.out, "%c\n", lineReached)
	} else {
		c.written[name] = true
	}
	info, err := os.Lstat(path)
	if err == nil && !c.written[name] {
		err = c.restore()
	}
	if err == nil {
		c.bytes += info.Size() - c.sizes[name]
		c.sizes[name] = info.Size()
	}
	switch {
	case err != nil:
	case c.bytes > MaxBytes:
		err = fmt.Errorf("it gives more than is allowed: %d bytes in all files", MaxBytes)
	case len(c.sizes) > MaxFiles:
		err = fmt.Errorf("it gives more than is allowed: %d files", MaxFiles)
	}
	if err != nil {
		// A template could catch what is thrown from here.
		c.end(err)
		os.Exit(1)
	}
}

// Infof has nothing that is of interest.
func (c *child) Infof(string, ...any) {}

// begin makes the directories that templates may write into: all of the source,
// whenever they come there, and those that were missing.
func (c *child) begin(temporary string) {
	c.temporary = temporary
	made := map[string]bool{".": true}
	for _, name := range c.request.Templates {
		c.made = append(c.made, filepath.Dir(name))
	}
	for _, dir := range c.made {
		if !made[dir] {
			made[dir] = true
			_ = os.MkdirAll(filepath.Join(temporary, dir), 0o700) // else write says why
		}
	}
	c.made = slices.Compact(slices.Sorted(maps.Keys(made)))
}

// missing gives the directory that a template wrote into, and that there is not.
func (c *child) missing(err error) string {
	if err == nil || c.temporary == "" {
		return ""
	}
	found := regexp.MustCompile(`open ` + regexp.QuoteMeta(c.temporary) + `/(.+): no such file or directory$`).FindStringSubmatch(err.Error())
	if found == nil {
		return ""
	}
	if dir := filepath.Dir(found[1]); !slices.Contains(c.made, dir) {
		return dir
	}

	return ""
}

// call asks muster for what a function gives.
func (c *child) call(name string, args []any) (any, error) {
	if err := say(c.out, []any{name, args}); err != nil {
		return nil, err
	}
	message, err := receive(c.in)
	if err != nil {
		return nil, err
	}
	v, err := decode(message)
	reply, is := v.([]any)
	if err != nil || !is || len(reply) != 2 {
		return nil, errors.Join(err, errDamaged)
	}
	if text, failed := reply[1].(string); failed {
		return nil, errors.New(text)
	}

	return reply[0], nil
}

// functions are those that muster is asked for, with what is to be seen of the environment.
func (c *child) functions() template.Names {
	environ, _ := c.request.Values["Environ"].(map[string]any)
	out := template.Names{"Environ": maps.Clone(environ)}
	for _, name := range c.request.Functions {
		out[name] = func(args ...any) (any, error) { return c.call(name, args) }
	}

	return out
}

func (c *child) goFunctions() map[string]any {
	out := template.GoFunctions(c.functions())
	out["getHostByName"] = func(string) (string, error) { return "", errors.New("templates ask no name service") }

	return out
}

func (c *child) jetFunctions() map[string]jet.Func {
	out := template.JetFunctions(c.functions())
	for name, fn := range out {
		out[name] = func(args jet.Arguments) reflect.Value {
			defer func() {
				if p := recover(); p != nil {
					if err, is := p.(error); is {
						p = placed(args, err)
					}
					panic(p)
				}
			}()
			return fn(args)
		}
	}

	return out
}

// placed says where in a template a function was called. Jet says that of its own
// errors, and does not tell functions: the place is in what the arguments were
// read from.
func placed(args jet.Arguments, err error) error {
	read := reflect.ValueOf(args).FieldByName("args")
	if read.Kind() != reflect.Struct {
		return err
	}
	exprs := read.FieldByName("Exprs")
	if exprs.Kind() != reflect.Slice || exprs.Len() == 0 {
		return err
	}
	node := reflect.Indirect(exprs.Index(0).Elem())
	if node.Kind() != reflect.Struct {
		return err
	}
	path, at := node.FieldByName("TemplatePath"), node.FieldByName("Pos")
	if path.Kind() != reflect.String || at.Kind() != reflect.Int {
		return err
	}

	return fmt.Errorf("called in (%q:0@%d): %w", path.String(), at.Int(), err)
}
