package scaffold

import (
	"archive/tar"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
	"time"
	"unicode/utf8"

	"github.com/CloudyKit/jet/v6"
	library "github.com/choria-io/scaffold"
	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/template"
)

// RenderCommand is the hidden command of the child process that renders templates.
const RenderCommand = "render-scaffold"

// The limits of the child process.
const (
	// maxMemory is the memory that the child may use in addition to its memory at the start.
	maxMemory = 1 << 30
	// maxBytes limits the size of all files together.
	maxBytes = 128 << 20
	maxFiles = 100_000
	maxStack = 16 << 20
)

// request is the input of the child, as JSON.
type request struct {
	Go          bool
	Left, Right string
	// Target is the directory of the files, for error messages.
	Target string
	// Source are the templates, partials at the end.
	Source []sourceFile
	// Values are the names that are not functions, in the form of encode.
	Values any
	// Functions are the names of the functions of the manifest.
	Functions []string
	// Answers are the known results of functions, by call.key.
	Answers map[string]answer
}

// call is a call of a function of the manifest. Args is a list in the form of encode.
type call struct {
	Function string
	Args     any
	// Template is the index of the template that needs the result.
	Template int
}

func (c call) key() string {
	args, _ := json.Marshal(c.Args)

	return c.Function + string(args)
}

// answer is the result of a call.
type answer struct {
	Value any
	// Error is the message of an error, and Failed reports that there was one.
	Error  string
	Failed bool
	// Secret reports that the result is or contains a secret.
	Secret bool
}

// The kinds of entries in the tar that the child writes.
const (
	kindRendered = "rendered" // the result of a template
	kindWritten  = "written"  // a file of the function write
	kindCalls    = "calls"    // the calls without an answer, as JSON: start the child again
	kindError    = "error"    // the reason for a failure
	kindEnd      = "end"      // all files are complete

	recordKind   = "MUSTER.kind"
	recordSecret = "MUSTER.secret"
)

// pending is the result of a call without an answer. The templates continue with pending, so one
// start of the child finds many calls.
const pending = "~muster pending 7d0c2f9e41~"

// child renders the templates of one request.
type child struct {
	request request
	texts   map[string]string
	library *library.Scaffold
	tar     *tar.Writer
	// current is the index of the template that yields a file.
	current int
	// secret reports that a function returned a secret to the current template.
	secret bool
	// missing are the calls without an answer.
	missing []call
	// sizes are the sizes of the files so far by name, and bytes is their sum.
	sizes map[string]int
	bytes int
}

// RenderMain renders the templates of a request, writes a tar of the files, and ends the process. It is the
// child process: a template that renders itself overflows the stack, which ends the process.
func RenderMain(in io.Reader, out io.Writer) {
	c := &child{texts: map[string]string{}, sizes: map[string]int{}, tar: tar.NewWriter(out)}
	err := contain()
	if err == nil {
		err = json.NewDecoder(in).Decode(&c.request)
	}
	if err == nil {
		err = c.render()
	}
	c.exit(err)
}

// exit writes the last entry, and ends the process: the missing calls, the error or the end.
func (c *child) exit(err error) {
	switch {
	case len(c.missing) > 0:
		calls, _ := json.Marshal(c.missing)
		err = c.emit(kindCalls, kindCalls, string(calls))
	case err != nil:
		err = c.emit(kindError, kindError, err.Error())
	default:
		err = c.emit(kindEnd, kindEnd, "")
	}
	if errors.Join(err, c.tar.Close()) != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// contain sets the limits of the process. The kernel ends a process that exceeds them.
func contain() error {
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(maxMemory / 4 * 3)
	// The kernel should end this process first. Some systems do not allow this setting.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	var pages uint64
	size, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(size), &pages)
	}
	var now unix.Rlimit
	if err = errors.Join(err, unix.Getrlimit(unix.RLIMIT_AS, &now)); err != nil {
		return err
	}
	most := min(pages*uint64(os.Getpagesize())+maxMemory, now.Max)

	return unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: most, Max: most})
}

// render renders all templates. Each template gets a copy of the values.
func (c *child) render() error {
	for _, f := range c.request.Source {
		c.texts[string(f.Name)] = string(f.Text)
	}
	if err := c.load(); err != nil {
		return err
	}
	for i, f := range c.request.Source {
		if f.Partial {
			continue
		}
		c.current, c.secret = i, false
		text, err := c.one(string(f.Name), c.values())
		if err != nil && len(c.missing) == 0 {
			return err
		}
		if err := c.add(kindRendered, string(f.Name), text); err != nil {
			return err
		}
	}

	return nil
}

// one renders one template. Its error begins with the name and the line.
func (c *child) one(name string, dot any) (text string, err error) {
	defer func() {
		// The library does not recover from all panics.
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			err = errors.New(place(name, c.texts[name], err.Error()))
		}
	}()
	prepared, err := c.request.prepare(c.texts[name])
	if err != nil {
		return "", err
	}

	return c.library.RenderString(prepared, dot)
}

// values returns a new copy of the values, so a template does not see the changes of another template.
func (c *child) values() any {
	values, _ := decode(c.request.Values).(map[string]any)
	if c.request.Go {
		return values
	}
	variables := jet.VarMap{}
	for name, v := range values {
		variables.Set(name, v)
	}

	return variables
}

func (c *child) load() (err error) {
	// The child calls no function of the library that uses these directories.
	config := library.Config{SourceDirectory: ".", TargetDirectory: os.DevNull + "/none", MergeTargetDirectory: true, CustomLeftDelimiter: c.request.Left, CustomRightDelimiter: c.request.Right}
	if c.request.Go {
		functions := template.GoFunctions(c.functions())
		functions["getHostByName"] = func(string) (string, error) { return "", errors.New("templates have no access to the network") }
		functions[namePrinted] = func(source string, v any) (any, error) { return v, template.CheckGo(source, v) }
		c.library, err = library.New(config, functions)
		return err
	}
	functions := template.JetFunctions(c.functions())
	for name, fn := range functions {
		functions[name] = withName(name, fn)
	}
	functions[nameInOrder], functions[namePrinted] = template.InOrder, printedByJet
	c.library, err = library.NewJet(config, functions)

	return err
}

// functions returns the functions of the manifest and the functions of scaffolds.
func (c *child) functions() template.Names {
	values, _ := decode(c.request.Values).(map[string]any)
	out := template.Names{"Environ": values["Environ"], own + "write": c.write, own + "render": c.include}
	for _, name := range c.request.Functions {
		out[name] = func(args ...any) (any, error) { return c.call(name, args) }
	}

	return out
}

// withName adds the name of a function of Jet to its error. Go templates add it themselves.
func withName(name string, fn jet.Func) jet.Func {
	return func(args jet.Arguments) reflect.Value {
		defer func() {
			if p := recover(); p != nil {
				panic(fmt.Errorf("%s: %v", name, p))
			}
		}()
		return fn(args)
	}
}

// call returns the answer to a call, or pending if there is no answer yet. It does not report a call
// with pending in its arguments.
func (c *child) call(name string, args []any) (any, error) {
	encoded, err := encode(args)
	if err != nil {
		return nil, err
	}
	wanted := call{Function: name, Args: encoded, Template: c.current}
	a, known := c.request.Answers[wanted.key()]
	switch {
	case known && a.Failed:
		err = errors.New(a.Error)
	case !known:
		if !strings.Contains(wanted.key(), pending) {
			c.missing = append(c.missing, wanted)
		}
		return pending, nil
	}
	c.secret = c.secret || a.Secret

	return decode(a.Value), err
}

// write adds a file. A template could catch an error, so a limit ends the process.
func (c *child) write(name, content string) (string, error) {
	path := filepath.Join(c.request.Target, name)
	below, is := strings.CutPrefix(path, c.request.Target+"/")
	if !is {
		return "", fmt.Errorf("%s is not in target directory %s", path, c.request.Target)
	}
	if err := c.add(kindWritten, below, content); err != nil {
		c.exit(err)
	}

	return "", nil
}

func (c *child) include(name string, dot any) (string, error) {
	path := strings.TrimPrefix(filepath.Clean(name), "/")
	if _, have := c.texts[path]; !have {
		return "", fmt.Errorf("there is no template %q in the source", name)
	}

	return c.one(path, dot)
}

// add writes a file to the tar. It returns an error if the files exceed the limits. A file that is written again
// counts once.
func (c *child) add(kind, name, content string) error {
	by := c.request.Source[c.current].Name
	c.bytes += len(content) - c.sizes[name]
	c.sizes[name] = len(content)
	switch {
	case c.bytes > maxBytes:
		return fmt.Errorf("%s: the templates yield more than %d bytes in all files", by, maxBytes)
	case len(c.sizes) > maxFiles:
		return fmt.Errorf("%s: the templates yield more than %d files", by, maxFiles)
	default:
		return c.emit(kind, name, content)
	}
}

func (c *child) emit(kind, name, content string) error {
	records := map[string]string{recordKind: kind}
	if c.secret {
		records[recordSecret] = "true"
	}
	err := c.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), Format: tar.FormatPAX, PAXRecords: records})
	if err == nil {
		_, err = io.WriteString(c.tar, content)
	}

	return errors.Join(err, c.tar.Flush())
}

// The names of functions in prepared templates. The prefix own distinguishes the functions write and
// render from the functions of the library, which use the disk and cannot be replaced.
const (
	own         = "__"
	namePrinted = own + "printed"
	nameInOrder = own + "in_order"
)

// prepare returns a template that calls the functions of the child, checks printed values and sorts
// mappings in ranges. The lines stay the same.
func (r *request) prepare(text string) (string, error) {
	if !strings.Contains(text, r.Left) {
		return text, nil
	}
	insertions, err := r.insertions(text)
	if err != nil {
		return "", err
	}
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(insertions))) {
		text = text[:at] + insertions[at] + text[at:]
	}
	if !r.Go && strings.Contains(text, "range") {
		text = inOrder(r.Left, r.Right, text)
	}

	return text, nil
}

// insertions returns the insertions for a template by position: prefixes of function names, and a
// check of each printed value.
func (r *request) insertions(text string) (map[int]string, error) {
	out := map[int]string{}
	call := func(name string, pos int) {
		if name == "write" || name == "render" {
			out[pos] += own
		}
	}
	if !r.Go {
		t, err := jet.NewSet(jet.NewInMemLoader(), jet.WithDelims(r.Left, r.Right)).Parse("string", text)
		if err != nil {
			return nil, err
		}
		template.Visit(t.Root, func(node any) {
			switch n := node.(type) {
			case *jet.IdentifierNode:
				call(n.Ident, int(n.Pos))
			case *jet.ActionNode:
				if source := template.PrintedByJet(n); source != "" && n.Set == nil {
					out[int(n.Pos)] = fmt.Sprintf("%s: %q, %d, ", namePrinted, source, n.Line) + out[int(n.Pos)]
				}
			}
		})
		return out, nil
	}
	all, t := map[string]*parse.Tree{}, parse.New("string")
	// The library checks the names of functions.
	t.Mode = parse.SkipFuncCheck
	_, err := t.Parse(text, r.Left, r.Right, all)
	for _, t := range all {
		template.Visit(t.Root, func(node any) {
			switch n := node.(type) {
			case *parse.IdentifierNode:
				call(n.Ident, int(n.Pos))
			case *parse.ActionNode:
				if source := template.PrintedByGo(n); source != "" {
					out[endOfAction(text, r.Right, int(n.Pos))] = fmt.Sprintf(" | %s %q", namePrinted, source)
				}
			}
		})
	}

	return out, err
}

// quoted matches the strings and characters of an action.
var quoted = regexp.MustCompile("\"(?:\\\\.|[^\"\\\\])*\"|'(?:\\\\.|[^'\\\\])*'|`[^`]*`")

// endOfAction returns the position after the last word of the Go action at a position.
func endOfAction(text, right string, at int) int {
	blank := quoted.ReplaceAllStringFunc(text[at:], func(s string) string { return strings.Repeat("_", len(s)) })
	action, _, _ := strings.Cut(blank, right)
	if strings.HasSuffix(action, " -") {
		action = strings.TrimSuffix(action, "-")
	}

	return at + len(strings.TrimRight(action, " \t\r\n"))
}

// printedByJet returns its last argument, a printed value. It panics if the value is or contains null.
func printedByJet(args jet.Arguments) reflect.Value {
	v := args.Get(2)
	if err := template.CheckJet(args.Get(0).String(), v); err != nil {
		// The library does not report the line of a call.
		const jetError = "Jet Runtime Error"
		panic(fmt.Errorf("%s (\"string\":%v): %w", jetError, args.Get(1), err))
	}

	return v
}

// inOrder wraps the operand of each range of a Jet template in a call of a function that sorts
// mappings. Jet visits mappings in a random order, and has no option for this.
func inOrder(left, right, text string) string {
	// The operand may contain the right delimiter in a string. It does not begin with the delimiter: then
	// the operand is missing.
	first := "[^\"'`\\s" + regexp.QuoteMeta(string([]rune(right)[:1])) + "]"
	operand := "(" + first + "(?:\"(?:\\\\.|[^\"\\\\])*\"|'(?:\\\\.|[^'\\\\])*'|`[^`]*`|[^\"'`])*?)"
	ranges := regexp.MustCompile(`(?s)(` + regexp.QuoteMeta(left) + `(?:- )?\s*range\s+(?:[\w.]+\s*(?:,\s*\w+\s*)?:?=\s*)?)` + operand + `(\s*(?: -)?` + regexp.QuoteMeta(right) + `)`)

	return ranges.ReplaceAllString(text, "${1}"+nameInOrder+"(${2})${3}")
}

var (
	// placed matches an error of the library with a line. The library names every template "string".
	placed = regexp.MustCompile(`(?s)^(?:parsing template string failed: )?(?:template: /?string:|Jet Runtime Error \("/?string":)(\d+)(?::\d+)?\)?: (?:executing "[^"]*" at )?(.*)$`)
	// checked matches the call in an error of a check of a printed value.
	checked = regexp.MustCompile(`(?s)^<` + namePrinted + ` .*?>: error calling ` + namePrinted + `: `)
	// unknown matches an error of Jet that contains the values of all variables.
	unknown = regexp.MustCompile(`(?s)identifier "(\w+)" not available.*`)
)

// place returns an error of the library with the name and the line of the template.
func place(name, text, message string) string {
	message = strings.NewReplacer(own+"write", "write", own+"render", "render").Replace(message)
	message = unknown.ReplaceAllString(message, "unknown name `$1`")
	if found := placed.FindStringSubmatch(message); found != nil {
		return fmt.Sprintf("%s:%s: %s", name, found[1], checked.ReplaceAllString(found[2], ""))
	}
	// Jet does not report the line of a function that fails.
	function, _, _ := strings.Cut(message, ":")
	calls := func(line string) bool { return strings.Contains(line, function) }
	lines := strings.Split(text, "\n")
	at := slices.IndexFunc(lines, calls)
	if at < 0 || slices.ContainsFunc(lines[at+1:], calls) {
		return name + ": " + message
	}

	return fmt.Sprintf("%s:%d: %s", name, at+1, message)
}

// encode returns a value in a form that survives JSON; decode reverses it. Values are null, basic types,
// times, lists and mappings with text as keys. JSON preserves neither the types of numbers and times nor
// bytes that are not UTF-8, so encode writes them as text. The first letter of a text is the type of its value.
func encode(v any) (any, error) {
	if at, is := v.(time.Time); is {
		return "t" + at.Format(time.RFC3339Nano), nil
	}
	var err error
	r := reflect.ValueOf(v)
	switch kind := r.Kind(); {
	case !r.IsValid(), kind == reflect.Pointer && r.IsNil():
		return nil, nil
	case kind == reflect.Pointer:
		return encode(r.Elem().Interface())
	case kind == reflect.Bool:
		return r.Bool(), nil
	case r.CanInt():
		return "i" + strconv.FormatInt(r.Int(), 10), nil
	case r.CanUint():
		return "i" + strconv.FormatUint(r.Uint(), 10), nil
	case r.CanFloat():
		return "f" + strconv.FormatFloat(r.Float(), 'g', -1, 64), nil
	case kind == reflect.String && utf8.ValidString(r.String()):
		return "s" + r.String(), nil
	case kind == reflect.String:
		return "b" + base64.StdEncoding.EncodeToString([]byte(r.String())), nil
	case kind == reflect.Slice || kind == reflect.Array:
		out := make([]any, r.Len())
		for i := 0; i < len(out) && err == nil; i++ {
			out[i], err = encode(r.Index(i).Interface())
		}
		return out, err
	case kind == reflect.Map && r.Type().Key().Kind() == reflect.String:
		out := make(map[string]any, r.Len())
		for all := r.MapRange(); err == nil && all.Next(); {
			out[all.Key().String()], err = encode(all.Value().Interface())
		}
		return out, err
	default:
		return nil, fmt.Errorf("a %T cannot be a value or an argument of templates", v)
	}
}

func decode(v any) any { return template.Copy(v, decodeText) }

func decodeText(v any) any {
	text, is := v.(string)
	if !is || text == "" {
		return v
	}
	switch text = text[1:]; v.(string)[0] {
	case 'i':
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
		n, _ := strconv.ParseUint(text, 10, 64)
		return n
	case 'f':
		n, _ := strconv.ParseFloat(text, 64)
		return n
	case 't':
		at, _ := time.Parse(time.RFC3339Nano, text)
		return at
	case 'b':
		raw, _ := base64.StdEncoding.DecodeString(text)
		return string(raw)
	default:
		return text
	}
}
