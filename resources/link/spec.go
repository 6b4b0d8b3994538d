// Package link is the resource type for symbolic links.
package link

import (
	"path/filepath"
	"strings"
	"unicode"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// Spec are the properties of a link.
type Spec struct {
	model.Common
	Target string `json:"target,omitempty" jsonschema_description:"Where the link leads, relative to its directory or absolute; it need not exist; required except with absent"`
	Force  bool   `json:"force,omitempty" jsonschema_description:"Also replace a file or an empty directory"`
	Owner  string `json:"owner,omitempty" filled:"true" jsonschema_description:"Owner of the link itself, name or numeric id; unset leaves it alone"`
	Group  string `json:"group,omitempty" filled:"true" jsonschema_description:"Group of the link itself, name or numeric id; unset leaves it alone"`
}

// maxTarget is the maximum length of a target on Linux, in bytes.
const maxTarget = 4095

// Validate reports every problem of the properties.
func (s *Spec) Validate() model.Problems {
	var out model.Problems
	resource.CheckPath(&out, "name", "path of a link", s.Name)
	switch {
	case s.Target == "" && s.Ensure != model.EnsureAbsent:
		out.Property("target", "for example target: ../sites-available/app", "`target` is required unless ensure is absent")
	case strings.ContainsFunc(s.Target, unicode.IsControl):
		out.Property("target", "", "target must not contain control characters: %q", s.Target)
	case len(s.Target) > maxTarget:
		out.Property("target", "", "target has %d bytes, the system allows %d", len(s.Target), maxTarget)
	case s.Target != "" && s.destination() == s.Name:
		out.Property("target", "name another path", "%s would lead to itself", s.Name)
	}
	if s.Owner != "" {
		resource.CheckAccount(&out, s.Ensure, "owner", s.Owner)
	}
	if s.Group != "" {
		resource.CheckAccount(&out, s.Ensure, "group", s.Group)
	}

	return out
}

// Warnings returns properties without effect.
func (s *Spec) Warnings() model.Problems {
	var out model.Problems
	if s.Ensure != model.EnsureAbsent {
		return nil
	}
	for _, p := range []struct {
		name  string
		isSet bool
	}{{"target", s.Target != ""}, {"force", s.Force}, {"owner", s.Owner != ""}, {"group", s.Group != ""}} {
		if p.isSet {
			out.Property(p.name, "remove it, or use ensure: present", "`%s` has no effect with ensure: absent", p.name)
		}
	}

	return out
}

// destination returns the absolute path of the target.
func (s *Spec) destination() string {
	if filepath.IsAbs(s.Target) {
		return filepath.Clean(s.Target)
	}

	return filepath.Join(filepath.Dir(s.Name), s.Target)
}

// State is the observed state of a link.
type State struct {
	model.CommonState
	Kind   string `json:"kind,omitempty" jsonschema_description:"Kind of the path: link, file, directory, or fifo, socket or device"`
	Target string `json:"target,omitempty" jsonschema_description:"Where the link leads, as written"`
	Owner  string `json:"owner,omitempty" jsonschema_description:"Owner of the link, name or numeric id"`
	Group  string `json:"group,omitempty" jsonschema_description:"Group of the link, name or numeric id"`

	entry files.Entry
	// uid and gid are the wanted owner and group.
	uid, gid uint32
	// obstacle is why the link cannot be made or removed. isEmpty describes a directory.
	obstacle error
	isEmpty  bool
	// isUnsafe means that the obstacle is the owner of the directory, who could move the link elsewhere.
	isUnsafe bool
}

// Mark returns the path and its mark.
func (s *State) Mark() (path string, mark files.Mark) { return s.Name, s.entry.Mark() }
