package scaffold_test

import (
	"strings"
	"testing"
)

// An error may quote a secret, so the error of a template that uses a secret is not shown.
func TestErrorsShowNoSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		engine, text, want string
		more               []any
	}{
		"go, of it":        {"go", `{{ fail (b64enc .Data.pw) }}`, "f: it uses a secret, so its error is not shown", nil},
		"go, for it":       {"go", "\n" + `{{ if eq .Data.pw "hunter2" }}{{ fail (upper .Data.pw) }}{{ end }}`, "f: it uses a secret, so its error is not shown", nil},
		"jet, of it":       {"jet", `[[ render(upper(Data.pw), .) ]]`, "f: it uses a secret, so its error is not shown", nil},
		"own data":         {"go", `{{ fail (b64enc .Data.own) }}`, "f: it uses a secret, so its error is not shown", []any{"sensitive", true, "data", map[string]any{"own": "mine", "l": []any{"a"}}}},
		"no secret":        {"go", `{{ fail .Data.name }}`, "f:1: <fail .Data.name>: error calling fail: of the manifest", nil},
		"path, of it":      {"jet", `[[ write("d/" + upper(Data.pw), "x") ]]`, "the path of a file that a template writes depends on a secret, and paths are shown (give it another name)", nil},
		"path, verbatim":   {"go", `{{ write .Data.pw "x" }}`, "the path of a file that a template writes depends on a secret, and paths are shown (give it another name)", nil},
		"path, failing":    {"go", `{{ if eq .Data.pw "hunter2" }}{{ write (upper .Data.pw) "x" }}{{ else }}{{ fail "x" }}{{ end }}`, "the path of a file that a template writes depends on a secret, and paths are shown (give it another name)", nil},
		"path, out of all": {"go", `{{ write (printf "../%s" (upper .Data.pw)) "x" }}`, "f: it uses a secret, so its error is not shown", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSubject(t, put("src/f", tc.text), append([]any{"engine", tc.engine}, tc.more...)...)
			s.env.Scope.Origin = origin{host: s.env.Host}
			if tc.more == nil {
				s.spec.Data = nil // it would replace the data of the manifest
			}
			if err, want := s.failsWith(), strings.ReplaceAll(tc.want, "DIR", s.dir); err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// A file that is written or not for a secret has a path that is none.
func TestPathsOfTemplatesAreNoSecrets(t *testing.T) {
	s := newSubject(t, put("src/f", `{{ if eq .Data.pw "hunter2" }}{{ write "w" .Data.pw }}{{ end }}{{ write (print "of-" .Data.name) "x" }}`), "engine", "go")
	s.env.Scope.Origin, s.spec.Data = origin{host: s.env.Host}, nil
	check(t, s.apply())
	has("out", "f", "", "of-of the manifest", "x", "w", "hunter2")(t, s.dir)
	for _, c := range s.plan().Changes {
		if strings.Contains(c.Diff, "hunter2") {
			t.Errorf("%+v", c)
		}
	}
}

// A written file is secret if its template uses a secret. Secrets of other templates do not
// matter.
func TestWrittenFilesAreSecretsOfTheirTemplate(t *testing.T) {
	s := newSubject(t, put("src/a", `{{ write "plain" .Data.name }}`, "src/b", `{{ write "hidden" .Data.pw }}`), "engine", "go")
	s.env.Scope.Origin, s.spec.Data = origin{host: s.env.Host}, nil
	for _, c := range s.plan().Changes {
		if shown := strings.Contains(c.Diff, "+of the manifest"); shown != strings.HasSuffix(c.Property, "/plain") || strings.Contains(c.Diff, "hunter2") {
			t.Errorf("%+v", c)
		}
	}
}
