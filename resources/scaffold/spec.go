// Package scaffold is the resource type for directories that are rendered from
// a directory of templates.
package scaffold

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/web"
	"github.com/musterfleet/muster/resources/resource"
)

// The template engines.
const (
	EngineGo  = "go"
	EngineJet = "jet"
)

// Spec holds the properties of a scaffold.
type Spec struct {
	model.Common
	Source         string              `json:"source,omitempty" jsonschema_description:"Directory of templates; a relative one is taken from the manifest's directory. http(s):// and obj:// fetch a tar.gz of it"`
	Engine         string              `json:"engine,omitempty" literal:"true" jsonschema:"enum=go,enum=jet,default=jet" jsonschema_description:"Language of the templates"`
	SkipEmpty      bool                `json:"skip_empty,omitempty" jsonschema_description:"Skip files that render to nothing but blank space"`
	LeftDelimiter  string              `json:"left_delimiter,omitempty" literal:"true" jsonschema_description:"Left delimiter of actions; default {{ for go and [[ for jet"`
	RightDelimiter string              `json:"right_delimiter,omitempty" literal:"true" jsonschema_description:"Right delimiter of actions; default }} for go and ]] for jet"`
	Purge          bool                `json:"purge,omitempty" jsonschema_description:"Remove files below the target that no template creates"`
	Post           []map[string]string `json:"post,omitempty" line:"any" sensitive:"true" jsonschema_description:"Commands by file name pattern: run for each written file that matches, with its path in place of {} or at the end"`
	Validator      string              `json:"validate,omitempty" line:"any" filled:"true" sensitive:"true" jsonschema_description:"A command that must accept the rendered files before they take their places, with {} for a directory of all of them: nginx -tc {}/nginx.conf"`
	Data           map[string]any      `json:"data,omitempty" sensitive:"true" jsonschema_description:"Data for these templates, instead of the manifest's data"`
}

// Delimiters returns the delimiters of actions.
func (s *Spec) Delimiters() (left, right string) {
	left, right = "[[", "]]"
	if s.Engine == EngineGo {
		left, right = "{{", "}}"
	}

	return cmp.Or(s.LeftDelimiter, left), cmp.Or(s.RightDelimiter, right)
}

// IsURL reports whether the source is fetched.
func (s *Spec) IsURL() bool { return strings.Contains(s.Source, "://") }

// Templates returns the directory of templates, empty if it is fetched or not needed.
func (s *Spec) Templates() string {
	if s.IsURL() || s.Ensure == model.EnsureAbsent {
		return ""
	}

	return s.Source
}

// PostCommands returns the commands for a file in order, each as program and arguments.
func (s *Spec) PostCommands(path string) [][]string {
	var out [][]string
	for _, entry := range s.Post {
		for _, pattern := range sortedKeys(entry) {
			if matched, err := filepath.Match(pattern, filepath.Base(path)); err != nil || !matched {
				continue
			}
			if words, err := command.Split(entry[pattern]); err == nil {
				out = append(out, resource.WithPath(words, path))
			}
		}
	}

	return out
}

// Secrets returns the credentials of a URL.
func (s *Spec) Secrets() []model.Secret {
	if !s.IsURL() {
		return nil
	}
	u, err := url.Parse(s.Source)
	if err != nil {
		return []model.Secret{model.NewSecret(s.Source)}
	}

	return web.Secrets(u)
}

// State is the observed state of a scaffold.
type State struct {
	model.CommonState
	Metadata *Metadata `json:"metadata,omitempty" jsonschema_description:"Result of rendering the templates"`

	// Due are the changes of each file to write.
	Due [][]model.Change `json:"-"`
	// Attributes maps an effect on extended attributes, such as "preserved the capabilities of", to the
	// paths of the files.
	Attributes map[string][]string `json:"-"`
	// Obstacle is why muster cannot render into the target.
	Obstacle error `json:"-"`
}

// Metadata describes a target and its files, by absolute path in order. It has no files for a missing
// target.
type Metadata struct {
	Name         string   `json:"name" jsonschema_description:"The target"`
	Provider     string   `json:"provider"`
	TargetExists bool     `json:"target_exists" jsonschema_description:"Whether the target is a directory"`
	Changed      []string `json:"changed,omitempty" jsonschema_description:"Files that are missing or differ; with absent, those that exist"`
	Purged       []string `json:"purged,omitempty" jsonschema_description:"Files that no template creates"`
	Stable       []string `json:"stable,omitempty" jsonschema_description:"Files that are up to date"`
	Engine       string   `json:"engine" jsonschema_description:"Language of the templates"`
}

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
