package bounded

import (
	"fmt"
	"slices"
	"text/template"
)

// checkNull returns an error for a null argument, which fmt would print as <nil>.
func checkNull(function string, args []any) error {
	if i := slices.Index(args, nil); i >= 0 {
		return fmt.Errorf("argument %d of %s is null", i+1, function)
	}

	return nil
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
