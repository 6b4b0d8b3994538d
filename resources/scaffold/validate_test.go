package scaffold_test

import (
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/testing/typetest"
)

// TestValidation has the rows of "Path Validation", "Properties" and
// "Post-Processing", and what else is refused.
func TestValidation(t *testing.T) {
	for name, tc := range map[string]struct {
		properties typetest.Properties
		problem    string
	}{
		"valid":              {typetest.Properties{"engine": "go", "left_delimiter": "<<", "right_delimiter": ">>", "skip_empty": true, "purge": true, "post": post("*.go", "go fmt {}", "*.sh", "chmod +x {}"), "data": map[string]any{"a": 1}}, ""},
		"http":               {typetest.Properties{"source": "http://example.com/a.tar.gz"}, ""},
		"https":              {typetest.Properties{"source": "https://example.com/a.tar.gz?x=1"}, ""},
		"obj":                {typetest.Properties{"source": "obj://bucket/a.tar.gz"}, ""},
		"relative target":    {typetest.Properties{"name": "out"}, `target must be absolute: "out" (begin it with /, for example /etc/motd)`},
		"target with dots":   {typetest.Properties{"name": "/a/../b"}, `target must be clean, without . or .. or a / too many: "/a/../b" (write it as /b)`},
		"the root":           {typetest.Properties{"name": "/"}, "the root directory cannot be a scaffold (name another directory)"},
		"no source":          {typetest.Properties{"source": nil}, "`source` is required: it says which files belong to the scaffold, also with ensure: absent (for example source: templates/app)"},
		"no source, absent":  {typetest.Properties{"source": "", "ensure": "absent"}, "`source` is required: it says which files belong to the scaffold, also with ensure: absent (for example source: templates/app)"},
		"NUL":                {typetest.Properties{"source": "a\x00b"}, "source must not contain a NUL byte"},
		"another scheme":     {typetest.Properties{"source": "ftp://x/y"}, `the scheme of the source cannot be "ftp" (a directory, or a URL of http://, https:// or obj://)`},
		"half a URL":         {typetest.Properties{"source": "https://example.com"}, "the URL of the source is not complete (for example https://example.com/app.tar.gz or obj://bucket/app.tar.gz)"},
		"an unreadable URL":  {typetest.Properties{"source": "https://u:p%w@x/y"}, "invalid source, its URL cannot be read (percent-encode special characters, such as / or @ in a password)"},
		"another ensure":     {typetest.Properties{"ensure": "latest"}, `invalid ensure "latest" (one of present, absent)`},
		"another engine":     {typetest.Properties{"engine": "erb"}, `invalid engine "erb" (one of go, jet)`},
		"an empty entry":     {typetest.Properties{"post": []any{map[string]any{}}}, "an entry of `post` is empty (for example \"*.sh\": \"chmod +x {}\")"},
		"an empty pattern":   {typetest.Properties{"post": post("", "true")}, "a pattern of `post` is empty (for example \"*.sh\": \"chmod +x {}\")"},
		"an empty command":   {typetest.Properties{"post": post("*", " ")}, "the command of `post` for \"*\" is empty (for example \"*.sh\": \"chmod +x {}\")"},
		"a pattern of paths": {typetest.Properties{"post": post("a/*", "true")}, "a pattern of `post` has no /: \"a/*\" (it is compared with the last element of the path)"},
		"a wrong pattern":    {typetest.Properties{"post": post("[", "true")}, "invalid pattern \"[\" of `post` (quote special characters with \\)"},
		"an open quote":      {typetest.Properties{"post": post("*", "echo 'x")}, "the command of `post` for \"*\" cannot be split into words: Unterminated single-quoted string (close the quote)"},
		"validate":           {typetest.Properties{"validate": "nginx -tc {}/nginx.conf"}, ""},
		"validate, absent":   {typetest.Properties{"validate": "nginx -tc {}/nginx.conf", "ensure": "absent"}, ""},
		"validate nothing":   {typetest.Properties{"validate": "nginx -t"}, "`validate` does not name the new file (put {} where its path belongs, for example visudo -cf {})"},
		"another provider":   {typetest.Properties{"provider": "puppet"}, `there is no provider "puppet" of scaffold (one of choria)`},
	} {
		t.Run(name, func(t *testing.T) {
			properties := typetest.Properties{"name": "/out", "source": "src"}
			for key, value := range tc.properties {
				properties[key] = value
			}
			if properties["source"] == nil {
				delete(properties, "source")
			}
			_, problems := resource.Decode(scaffoldType(), typetest.Value(properties), model.Position{})
			got := ""
			if err := problems.Err(); err != nil {
				got = err.Error()
			}
			if got != tc.problem {
				t.Errorf("got  %s\nwant %s", got, tc.problem)
			}
		})
	}
}

// A password in a URL is a secret of the resource.
func TestSecretsOfURLs(t *testing.T) {
	r, problems := resource.Decode(scaffoldType(), typetest.Value(typetest.Properties{"name": "/out", "source": "https://joe:hunter2@example.com/a.tar.gz"}), model.Position{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	if !r.Sensitive() || len(r.Secrets) == 0 {
		t.Error("it has no secrets")
	}
}

// TestSelection has the rows of "Provider Selection".
func TestSelection(t *testing.T) {
	typ := scaffoldType()
	p, err := typ.Select(nil, typ.New())
	if err != nil || p.Name() != "choria" {
		t.Fatal(p, err)
	}
	ok, priority, err := p.IsManageable(nil, typ.New())
	if !ok || priority != 1 || err != nil {
		t.Error(ok, priority, err)
	}
}
