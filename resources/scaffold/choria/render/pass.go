package render

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/CloudyKit/jet/v6"
	library "github.com/choria-io/scaffold"

	"github.com/musterfleet/muster/resources/template"
)

// pass renders templates with one set of values.
type pass struct {
	*child
	library *library.Scaffold
	values  map[string]any
	// target is where the function write puts files; written are their sizes.
	target  string
	written map[string]int64
	// bytes counts what all templates yield.
	bytes int64
	// guessed reports that target has directories that no template asked for.
	guessed bool
	current string
}

// newPass expects that the working directory, the source, is still empty.
func (c *child) newPass(target string, values map[string]any) (*pass, error) {
	source, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	target = filepath.Join(source, target)
	p := &pass{child: c, values: values, target: target, written: map[string]int64{}, guessed: true}
	for _, dir := range append(c.request.Directories, ".") {
		if err := os.MkdirAll(filepath.Join(target, dir), 0o700); err != nil {
			return nil, err
		}
	}
	config := library.Config{SourceDirectory: source, TargetDirectory: target, MergeTargetDirectory: true, CustomLeftDelimiter: c.request.Left, CustomRightDelimiter: c.request.Right}
	names := c.functions()
	if c.request.Go {
		functions := template.GoFunctions(names)
		functions["getHostByName"] = func(string) (string, error) { return "", errors.New("templates ask no name service") }
		p.library, err = library.New(config, functions)
	} else {
		functions := template.JetFunctions(names)
		functions[nameInOrder] = rangeInOrder
		p.library, err = library.NewJet(config, functions)
	}
	if err != nil {
		return nil, err
	}
	p.library.Logger(p)
	// From then on the function render reads the source.
	_, err = p.library.RenderNoop(nil)

	return p, err
}

// functions are those that muster answers, and the environment that is visible.
func (c *child) functions() template.Names {
	environ, _ := Copy(c.request.Values["Environ"]).(map[string]any)
	out := template.Names{"Environ": environ}
	for _, name := range c.request.Functions {
		out[name] = func(args ...any) (any, error) {
			v, err := c.call(Call{Function: name, Args: args})
			if err != nil && !c.request.Go {
				// Jet does not name the function that failed.
				err = fmt.Errorf("%s: %w", name, err)
			}
			return v, err
		}
	}

	return out
}

// render renders one template, again whenever that wrote into a directory that
// did not exist: only the library can write, and it makes no directories.
func (p *pass) render(name string) (text string, err error) {
	p.current = name
	for range MaxDirectories {
		if text, err = p.try(name); err == nil {
			return text, nil
		}
		switch dir := p.missing(err); {
		case dir != "":
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return "", err
			}
		case p.guessed:
			// What was a directory may be a file now.
			p.guessed = false
			p.removeEmpty()
		default:
			return "", err
		}
	}

	return "", err
}

// try renders one template. No template sees what another one did to the values.
func (p *pass) try(name string) (text string, err error) {
	defer func() {
		// The library lets panics through that it did not expect.
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	values := Copy(p.values).(map[string]any)
	if p.request.Go {
		return p.library.RenderString(p.request.Texts[name], values)
	}
	variables := jet.VarMap{}
	for name, v := range values {
		variables.Set(name, v)
	}

	return p.library.RenderString(p.request.Texts[name], variables)
}

// missing returns the directory that a template wrote into and that does not exist.
func (p *pass) missing(err error) string {
	found := regexp.MustCompile(`open (` + regexp.QuoteMeta(p.target) + `/.+): no such file or directory`).FindStringSubmatch(err.Error())
	if found == nil {
		return ""
	}

	return filepath.Dir(found[1])
}

func (p *pass) removeEmpty() {
	dirs := slices.Sorted(slices.Values(p.request.Directories))
	for _, dir := range slices.Backward(dirs) {
		_ = os.Remove(filepath.Join(p.target, dir)) // those that hold files stay
	}
}

// count fails when all files together exceed the limits.
func (p *pass) count(bytes int64) error {
	p.bytes += bytes
	switch {
	case p.bytes > MaxBytes:
		return fmt.Errorf("the templates yield more than %d bytes in all files", MaxBytes)
	case len(p.request.Templates)+len(p.written) > MaxFiles:
		return fmt.Errorf("the templates yield more than %d files", MaxFiles)
	}

	return nil
}

// Debugf counts a file that a template has written. Of the library's events it
// is the only one that has to do with files.
func (p *pass) Debugf(_ string, v ...any) {
	path, _ := v[0].(string)
	name := strings.TrimPrefix(path, p.target+"/")
	info, err := os.Lstat(path)
	if err == nil {
		more := info.Size() - p.written[name]
		p.written[name] = info.Size()
		err = p.count(more)
	}
	if err != nil {
		// A template could catch a panic.
		p.end(fmt.Errorf("%s: %w", p.current, err))
		os.Exit(1)
	}
}

// Infof ignores an event.
func (*pass) Infof(string, ...any) {}

// nameInOrder is the function that ranges of Jet templates go through.
const nameInOrder = "__in_order"

// inOrder passes whatever a Jet template ranges over through a function. Jet
// visits mappings in random order, so a file made of one would always differ,
// and it offers no hook.
func inOrder(left, right string) func(text string) string {
	// A string may hold the right delimiter. Nothing begins with it, not even an
	// expression that is missing.
	first := "[^\"'`\\s" + regexp.QuoteMeta(string([]rune(right)[:1])) + "]"
	expression := "(" + first + "(?:\"(?:\\\\.|[^\"\\\\])*\"|'(?:\\\\.|[^'\\\\])*'|`[^`]*`|[^\"'`])*?)"
	ranges := regexp.MustCompile(`(?s)(` + regexp.QuoteMeta(left) + `(?:- )?\s*range\s+(?:[\w.]+\s*(?:,\s*\w+\s*)?:?=\s*)?)` + expression + `(\s*(?: -)?` + regexp.QuoteMeta(right) + `)`)

	return func(text string) string { return ranges.ReplaceAllString(text, "${1}"+nameInOrder+"(${2})${3}") }
}

func rangeInOrder(args jet.Arguments) reflect.Value {
	of := args.Get(0)
	m := of
	for (m.Kind() == reflect.Interface || m.Kind() == reflect.Pointer) && !m.IsNil() {
		m = m.Elem()
	}
	if m.Kind() != reflect.Map {
		return of
	}

	return reflect.ValueOf(template.InOrder(m))
}
