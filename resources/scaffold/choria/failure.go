package choria

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/scaffold"
	"github.com/musterfleet/muster/resources/scaffold/choria/render"
)

// failure is what the library says of templates that are not valid, or fail. It
// names templates by the last element of their paths, and files where they are
// only while they are rendered.
type failure struct {
	*process
	dir, text string
	// before is what it says before the innermost place.
	before string
	// needles are what stands at the place, where that is no more than a line.
	needles []string
	hint    string
}

// said is an error in other words.
type said struct {
	message string
	err     error
}

func (s said) Error() string { return s.message }
func (s said) Unwrap() error { return s.err }

// err gives the place of a failure, what is wrong and what to do about it.
func (f *failure) err() error {
	base, line, offset, message := f.innermost()
	message = f.words(message)
	if f.failed != nil && strings.Contains(f.text, f.failed.Error()) {
		f.needles = append(f.needles, f.asked)
	}
	pos := model.Position{File: f.current()}
	switch {
	case base != "":
		pos = f.position(base, line, offset)
	case len(f.needles) > 0:
		pos = f.search(pos.File)
	}
	out := message
	if !pos.IsZero() {
		out = pos.String() + ": " + out
	}
	if f.hint != "" {
		out += " (" + f.hint + ")"
	}
	if f.failed != nil && strings.Contains(f.text, f.failed.Error()) {
		return said{out, f.failed}
	}

	return said{out, nil}
}

// current is the template that was being rendered.
func (f *failure) current() string {
	if at := f.hearing.Reached; at < len(f.tree.templates) {
		return f.tree.templates[at].name
	}

	return ""
}

// innermost takes what the library says apart: a template that another one
// renders has its place in the error of that.
func (f *failure) innermost() (base string, line, offset int, message string) {
	found := regexp.MustCompile(`(?s)^(.*)template: /?([^:\n]+):(\d+)(?::(\d+))?: (?:executing ".*?" at <(.*?)>: )?(.*)$`).FindStringSubmatch(f.text)
	jet := regexp.MustCompile(`(?s)^(.*)(?:Jet Runtime Error|called in) \("/?([^"\n]+)":(\d+)(?:@(\d+))?\): ()(.*)$`).FindStringSubmatch(f.text)
	if found == nil || jet != nil && len(jet[1]) > len(found[1]) {
		found = jet
	}
	if found == nil || len(f.named(found[2])) == 0 {
		return "", 0, -1, f.text
	}
	f.before, base, message = found[1], found[2], found[6]
	line, _ = strconv.Atoi(found[3])
	offset, err := strconv.Atoi(found[4])
	if err != nil {
		offset = -1
	}
	if found[5] != "" {
		f.needles = append(f.needles, found[5])
		message = "`" + found[5] + "`: " + message
	}

	return base, line, offset, message
}

// named are the templates whose path ends with a name.
func (f *failure) named(base string) []string {
	var out []string
	for name := range f.tree.texts {
		if path.Base(name) == base {
			out = append(out, name)
		}
	}
	slices.Sort(out)

	return out
}

// position finds the template that a name is of, and the place in it. The
// offset is one in the line, or without a line one in the whole text; -1 is none.
func (f *failure) position(base string, line, offset int) model.Position {
	candidates := f.candidates(base)
	holding := slices.DeleteFunc(slices.Clone(candidates), func(name string) bool {
		_, text := lineAt(f.tree.texts[name], line, offset)
		return len(f.needles) == 0 || !strings.Contains(text, f.needles[0])
	})
	if len(holding) > 0 {
		candidates = holding
	}
	number, text := lineAt(f.tree.texts[candidates[0]], line, offset)
	pos := model.Position{File: strings.Join(candidates, " or "), Line: number}
	switch {
	case len(candidates) > 1:
	case line > 0 && offset >= 0:
		pos.Column = 1 + utf8.RuneCountInString(text[:min(offset, len(text))])
	default:
		left, _ := f.spec.Delimiters()
		pos.Column = columnOf(text, append(f.needles, left))
	}

	return pos
}

// candidates are the templates that a name may be of, as far as what stands
// before it in the error tells: that which was being rendered, or the one that
// this renders.
func (f *failure) candidates(base string) []string {
	named := f.named(base)
	if !regexp.MustCompile(`(?:^|: )render: $|calling render: (?:parsing template .* failed: )?$`).MatchString(f.before) {
		if slices.Contains(named, f.current()) {
			return []string{f.current()}
		}
		return named
	}
	rendered := regexp.MustCompile(`(?s)^.*<[^<]*render "([^"]+)"[^<]*>`).FindStringSubmatch(f.before)
	if rendered != nil && slices.Contains(named, path.Clean(rendered[1])) {
		return []string{path.Clean(rendered[1])}
	}

	return named
}

// search finds the one place in all templates, or else in the current one, where
// there is what an error names.
func (f *failure) search(current string) model.Position {
	for _, needle := range f.needles {
		for _, names := range [][]string{slices.Sorted(maps.Keys(f.tree.texts)), {current}} {
			var at []model.Position
			for _, name := range names {
				for i, text := range strings.Split(f.tree.texts[name], "\n") {
					if n := strings.Count(text, needle); n > 0 {
						at = append(at, slices.Repeat([]model.Position{{File: name, Line: 1 + i, Column: columnOf(text, []string{needle})}}, n)...)
					}
				}
			}
			if len(at) == 1 {
				return at[0]
			}
		}
	}

	return model.Position{File: current}
}

// lineAt gives a line with its number, or without one the line of an offset.
func lineAt(text string, line, offset int) (int, string) {
	if line == 0 {
		line = 1 + strings.Count(text[:max(0, min(offset, len(text)))], "\n")
	}
	lines := strings.SplitN(text, "\n", line+1)
	if line > len(lines) {
		return line, ""
	}

	return line, lines[line-1]
}

// columnOf is where the first needle begins that a line has.
func columnOf(text string, needles []string) int {
	for _, needle := range needles {
		if before, _, found := strings.Cut(text, needle); found {
			return 1 + utf8.RuneCountInString(before)
		}
	}

	return 1
}

// words puts what the library says into words of muster: with names of the
// source and the target, and with what to do.
func (f *failure) words(message string) string {
	temporary, _ := f.done["temporary"].(string)
	source := filepath.Join(f.dir, render.Source)
	for _, rule := range []struct {
		pattern string
		tell    func(found []string) string
	}{
		{`^(?:.*: )?identifier "(\w+)" not available in current .*$`, f.unknown},
		{`can't use (\w+) as field name in struct type reflect.Value$`, f.dotted},
		{`template \S+ could not be found.*$`, f.included},
		{`^(?:render: )*(.*)render: (\S.*) is not in source directory .*$`, f.outside("render", "source")},
		{`^(?:render: )*(.*calling render: |)(\S.*) is not in source directory .*$`, f.outside("render", "source")},
		{`^(?:render: )*(.*write: |)` + regexp.QuoteMeta(path.Dir(temporary)) + `/(\S.*) is not in target directory .*$`, f.outside("write", "target")},
		{`^(?:render: )*(.*calling render: |)open ` + regexp.QuoteMeta(source) + `/(.*): no such file or directory$`, f.noTemplate},
		{`^(?:.*: )?(?:open|mkdir) ` + regexp.QuoteMeta(temporary) + `/(.*): (?:is a directory|not a directory)$`, f.fileAndDirectory},
		{`^(?:render: )*(?:.*calling render: |)read ` + regexp.QuoteMeta(source) + `(?:/(.*))?: is a directory$`, f.directory},
		{`^(?:.*: )?open ` + regexp.QuoteMeta(temporary) + `: is a directory$`, f.target},
		{`^(?:.*: )?write .*: file too large$`, f.tooLarge},
	} {
		if found := regexp.MustCompile(`(?s)` + rule.pattern).FindStringSubmatch(message); found != nil {
			message = rule.tell(found)
			break
		}
	}
	for _, dir := range []string{temporary, source, f.dir} {
		if dir != "" {
			message = strings.ReplaceAll(message, dir+"/", "")
		}
	}

	return regexp.MustCompile(`^(?:render: )+`).ReplaceAllString(message, "")
}

func (f *failure) unknown(found []string) string {
	name := found[1]
	f.needles = []string{name}
	if _, is := f.names[name]; is {
		f.hint = "a template that is rendered has it when it is given all there is: render(\"path\", .)"
	} else {
		f.hint = document.DidYouMean(name, slices.Sorted(maps.Keys(f.names)))
	}

	return "unknown name `" + name + "`"
}

// dotted is a value below the dot: the dot is the variables, of which the
// library lets nobody see the inside.
func (f *failure) dotted(found []string) string {
	for name := range f.names {
		f.needles = append(f.needles, "."+name+"."+found[1])
	}
	f.hint = "write [[ Data.x ]], without a dot before it"

	return "the dot has no values within"
}

func (f *failure) included([]string) string {
	f.needles = []string{"include ", "import ", "extends "}
	f.hint = `write [[ render("path", .) ]], with the path in the source`

	return "include, import and extends find no other template"
}

func (f *failure) outside(function, of string) func([]string) string {
	return func(found []string) string {
		name := found[2]
		if function == "write" {
			name = path.Join("..", name)
		}
		f.call(function, name)
		return fmt.Sprintf("%s is not in the %s: the path leads out of it", name, of)
	}
}

func (f *failure) noTemplate(found []string) string {
	f.call("render", found[2])

	return "there is no template " + found[2] + " in the source"
}

func (f *failure) fileAndDirectory(found []string) string {
	f.call("write", found[1])

	return filepath.Join(f.spec.Name, found[1]) + " is a file and a directory"
}

func (f *failure) directory(found []string) string {
	if found[1] == "" {
		f.itself("render")
		return "the source is a directory, not a template: render needs the path of one in it"
	}
	f.call("render", found[1])

	return found[1] + " in the source is a directory, not a template"
}

func (f *failure) target([]string) string {
	f.itself("write")

	return "the target is a directory: write needs the path of a file in it"
}

// itself says what stands where a function is called with a path that is no more
// than the source, or the target.
func (f *failure) itself(function string) {
	var needles []string
	for _, name := range []string{"", "/", "."} {
		f.call(function, name)
		needles = append(needles, f.needles...)
	}
	f.needles = needles
}

func (f *failure) tooLarge([]string) string {
	return fmt.Sprintf("it gives a file of more than %d bytes", render.FileLimit())
}

// call says what stands where a function is called with a path.
func (f *failure) call(function, name string) {
	if f.spec.Engine == scaffold.EngineGo {
		f.needles = []string{function + ` "` + name + `"`}
	} else {
		f.needles = []string{function + `("` + name + `"`}
	}
}
