package manifest

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
)

const (
	// environFileName is a file in the working directory with variables for expressions.
	environFileName = ".env"
	// maxEnvironFile is its maximum size in bytes.
	maxEnvironFile = 1 << 20
)

// ReadEnvironFile returns the variables of .env in the working directory. It skips a file that users other than root and the running user may
// write to, with a warning.
func ReadEnvironFile(log *slog.Logger) map[string]string {
	path, err := filepath.Abs(environFileName)
	if err != nil {
		return map[string]string{}
	}
	// The owner of this directory must not change the effect of a manifest of another user.
	text, err := files.ReadTrusted(path, maxEnvironFile, paths.Author{})
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			log.Warn("environment file skipped", "file", path, "error", err)
		}
		return map[string]string{}
	}
	out, invalid := parseEnviron(string(text))
	for _, line := range invalid {
		log.Warn("invalid line of the environment file skipped, write NAME=value", "at", path+":"+strconv.Itoa(line))
	}
	for name := range out {
		if command.IsHidden(name) {
			delete(out, name)
		}
	}

	return out
}

// environLine matches a line of an environment file: a name and a value.
var environLine = regexp.MustCompile(`^(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*(.*)$`)

// parseEnviron returns the variables of an environment file, and the numbers of the invalid
// lines. The last line with a name wins. Variables in values are not expanded.
func parseEnviron(text string) (variables map[string]string, invalid []int) {
	variables = map[string]string{}
	for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		found := environLine.FindStringSubmatch(line)
		value, ok := "", found != nil
		if ok {
			value, ok = environValue(found[2])
		}
		if !ok {
			invalid = append(invalid, i+1)
			continue
		}
		variables[found[1]] = value
	}

	return variables, invalid
}

// environValue returns a value without quotes, escapes and comment. ok is false if a quote is not closed, or text follows it.
func environValue(text string) (value string, ok bool) {
	if text == "" || text[0] != '"' && text[0] != '\'' {
		value, _, _ = strings.Cut(" "+text, " #")
		return strings.TrimSpace(value), true
	}
	quote := text[0]
	var out strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			rest := strings.TrimSpace(text[i+1:])
			return out.String(), rest == "" || rest[0] == '#'
		case c == '\\' && quote == '"' && i+1 < len(text):
			i++
			out.WriteString(unescaped(text[i]))
		default:
			out.WriteByte(c)
		}
	}

	return "", false
}

// unescaped returns the text of an escape sequence.
func unescaped(c byte) string {
	switch c {
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'r':
		return "\r"
	case '"', '\\', '$', '`':
		return string(c)
	default:
		return "\\" + string(c)
	}
}
