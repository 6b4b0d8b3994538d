package bounded

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
)

// checkNull returns an error for an argument that is or contains null, which fmt would print as <nil>.
func checkNull(function string, args []any) error {
	for i, arg := range args {
		switch path, found := FindNull(arg); {
		case found && path == "":
			return fmt.Errorf("argument %d of %s is null", i+1, function)
		case found:
			return fmt.Errorf("argument %d of %s is null at `%s`", i+1, function, path)
		}
	}

	return nil
}

// FindNull returns the path of the first null value in a tree of mappings and lists, empty if
// the tree itself is null.
func FindNull(v any) (path string, found bool) {
	path, found = findNull(v)

	return strings.TrimPrefix(path, "."), found
}

func findNull(v any) (path string, found bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if path, found := findNull(v[key]); found {
				return "." + key + path, true
			}
		}
	case []any:
		for i := range v {
			if path, found := findNull(v[i]); found {
				return fmt.Sprintf("[%d]%s", i, path), true
			}
		}
	}

	return "", false
}

// addPrinters replaces the functions that print values of any type.
func addPrinters(functions template.FuncMap) {
	for name, print := range map[string]func(...any) string{
		"print": fmt.Sprint, "println": fmt.Sprintln, "html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	} {
		functions[name] = func(args ...any) (string, error) {
			if err := checkNull(name, args); err != nil {
				return "", err
			}
			return print(args...), nil
		}
	}
	toString := functions["toString"].(func(any) string)
	functions["toString"] = func(v any) (string, error) {
		if err := checkNull("toString", []any{v}); err != nil {
			return "", err
		}
		return toString(v), nil
	}
}
