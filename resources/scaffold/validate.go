package scaffold

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
)

// Validate reports every problem of the properties.
func (s *Spec) Validate() model.Problems {
	var out model.Problems
	resource.CheckPath(&out, "name", "target", s.Name)
	if filepath.Clean(s.Name) == "/" {
		out.Property("name", "name another directory", "the root directory cannot be a scaffold")
	}
	s.validateSource(&out)
	if !slices.Contains([]string{EngineGo, EngineJet}, s.Engine) {
		out.Property("engine", "one of go, jet", "invalid engine %q", s.Engine)
	}
	for _, entry := range s.Post {
		validatePost(&out, entry)
	}
	resource.CheckValidator(&out, s.Validator)

	return out
}

// validateSource never quotes a URL, which may contain a password.
func (s *Spec) validateSource(out *model.Problems) {
	switch {
	case strings.TrimSpace(s.Source) == "":
		out.Property("source", "for example source: templates/app", "`source` is required: it says which files belong to the scaffold, also with ensure: absent")
	case strings.ContainsRune(s.Source, 0):
		out.Property("source", "", "source must not contain a NUL byte")
	case s.IsURL():
		u, err := url.Parse(s.Source)
		if err != nil {
			out.Property("source", "percent-encode special characters, such as / or @ in a password", "invalid source, its URL cannot be read")
			return
		}
		if !slices.Contains([]string{"http", "https", "obj"}, u.Scheme) {
			out.Property("source", "a directory, or a URL of http://, https:// or obj://", "the scheme of the source cannot be %q", u.Scheme)
		} else if u.Hostname() == "" || strings.Trim(u.Path, "/") == "" {
			out.Property("source", "for example https://example.com/app.tar.gz or obj://bucket/app.tar.gz", "the URL of the source is not complete")
		}
	}
}

func validatePost(out *model.Problems, entry map[string]string) {
	if len(entry) == 0 {
		out.Property("post", `for example "*.sh": "chmod +x {}"`, "an entry of `post` is empty")
	}
	for _, pattern := range sortedKeys(entry) {
		command := entry[pattern]
		if strings.TrimSpace(pattern) == "" {
			out.Property("post", `for example "*.sh": "chmod +x {}"`, "a pattern of `post` is empty")
		}
		if strings.Contains(pattern, "/") {
			out.Property("post", "it is compared with the last element of the path", "a pattern of `post` has no /: %q", pattern)
		}
		if _, err := filepath.Match(pattern, "x"); err != nil {
			out.Property("post", `quote special characters with \`, "invalid pattern %q of `post`", pattern)
		}
		if strings.TrimSpace(command) == "" {
			out.Property("post", `for example "*.sh": "chmod +x {}"`, "the command of `post` for %q is empty", pattern)
			continue
		}
		resource.CheckCommandLine(out, "post", fmt.Sprintf("the command of `post` for %q", pattern), command)
	}
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
