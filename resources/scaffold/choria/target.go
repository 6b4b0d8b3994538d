package choria

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
)

// target is an observed target, with the files that it should have.
type target struct {
	env   resource.Env
	spec  *scaffold.Spec
	state *scaffold.State
	past  record
	files []file
	// due are the files to write.
	due []file
	// parents are the directories below the target that were looked at, with what
	// is wrong with each.
	parents map[string]error
}

func newTarget(env resource.Env, spec *scaffold.Spec, exists bool) *target {
	state := &scaffold.State{Metadata: &scaffold.Metadata{Name: spec.Name, Provider: name, TargetExists: exists, Engine: spec.Engine}}
	state.Ensure = model.EnsureAbsent
	if exists {
		state.Ensure = model.EnsurePresent
	}

	return &target{env: env, spec: spec, state: state, parents: map[string]error{}}
}

func (t *target) exists() bool { return t.state.Metadata.TargetExists }

func (t *target) absent() bool { return t.spec.Ensure == model.EnsureAbsent }

// compare sorts the files into stable ones and those that are due, and finds
// what else is in the target.
func (t *target) compare(ctx context.Context) error {
	meta, given := t.state.Metadata, make(map[string]bool, len(t.files))
	for _, f := range t.files {
		given[f.path] = true
		stable, err := t.isStable(ctx, &f)
		switch {
		case err != nil:
			return err
		case stable:
			meta.Stable = append(meta.Stable, f.path)
			continue
		case !t.absent():
			t.due = append(t.due, f)
		case f.before.Kind != files.File && f.before.Kind != files.Link:
			continue
		}
		if t.exists() {
			meta.Changed = append(meta.Changed, f.path)
		}
	}
	if !t.exists() {
		return nil
	}
	// No link is followed.
	err := filepath.WalkDir(t.spec.Name, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !given[path] {
			meta.Purged = append(meta.Purged, path)
		}
		return err
	})
	t.checkPermissions()

	return err
}

// isStable reports whether a file is in its desired state. What must not be
// replaced is an obstacle.
func (t *target) isStable(ctx context.Context, f *file) (stable bool, err error) {
	if !t.exists() {
		return false, nil
	}
	if err := t.parent(filepath.Dir(f.path)); err != nil {
		t.obstruct(err)
		return false, nil
	}
	if f.before, err = t.env.Host.Look(f.path); err != nil {
		return false, err
	}
	switch f.before.Kind {
	case files.Absent, files.Link:
		return false, nil
	case files.File:
		digest, err := t.env.Host.DigestEntry(ctx, f.before)
		if err != nil {
			return false, fmt.Errorf("could not read a file of the scaffold: %w", err)
		}
		if commands := t.spec.PostCommands(f.path); len(commands) > 0 {
			return t.past.Files[f.path] == pastOf(*f, commands, digest, f.before), nil
		}
		return digest == f.digest && attributesOf(f.before) == wanted(f), nil
	default:
		t.obstruct(fmt.Errorf("%s: path exists as a %s, not as a regular file", f.path, f.before.Kind))
		return false, nil
	}
}

// obstruct records the first obstacle to writing. It is none to removing other files.
func (t *target) obstruct(err error) {
	if t.state.Obstacle == nil && !t.absent() {
		t.state.Obstacle = err
	}
}

// parent returns what is wrong with a directory of files: nothing goes through
// a link below the target.
func (t *target) parent(dir string) error {
	if dir == t.spec.Name {
		return nil
	}
	if err, known := t.parents[dir]; known {
		return err
	}
	err := t.parent(filepath.Dir(dir))
	if err == nil {
		var entry files.Entry
		switch entry, err = t.env.Host.Look(dir); {
		case err != nil:
		case entry.Kind == files.Link:
			err = fmt.Errorf("%s %w, and a scaffold does not go through links", dir, files.ErrLink)
		case entry.Kind != files.Directory && entry.Kind != files.Absent:
			err = fmt.Errorf("%s %w", dir, files.ErrNotDirectory)
		}
	}
	t.parents[dir] = err

	return err
}

// checkPermissions looks for an obstacle to the changes that are due.
func (t *target) checkPermissions() {
	meta, seen := t.state.Metadata, map[string]bool{}
	paths := append([]string{}, meta.Changed...)
	switch {
	case t.absent():
		paths = append(paths, meta.Stable...)
	case t.spec.Purge:
		paths = append(paths, meta.Purged...)
	}
	for _, path := range paths {
		if dir := filepath.Dir(path); !seen[dir] && t.state.Obstacle == nil {
			seen[dir] = true
			t.state.Obstacle = resource.Obstacle(t.env.Host, path, true)
		}
	}
}

// maxDiffs is the size in bytes of all diffs of a scaffold: they travel in one report.
const maxDiffs = 128 << 10

// describe puts the changes of each due file into the state. The content of a
// file that depends on a secret is not shown.
func (t *target) describe(ctx context.Context) error {
	size := 0
	for _, f := range t.due {
		d := scaffold.Difference{Path: f.path}
		content, err := t.contentChange(ctx, f, size < maxDiffs)
		if err != nil {
			return err
		}
		size += len(content.Diff)
		if content.From != content.To {
			d.Changes = append(d.Changes, content)
		}
		if before, after := attributesOf(f.before), wanted(&f); f.before.Kind == files.File && before != after {
			d.Changes = append(d.Changes, change(f, before.String(), after.String()))
		}
		if len(d.Changes) == 0 {
			d.Changes = append(d.Changes, change(f, "post not run", "post run"))
		}
		t.state.Due = append(t.state.Due, d)
	}

	return nil
}

func change(f file, from, to string) model.Change {
	return model.Change{Action: "scaffold", Property: f.path, From: from, To: to}
}

func (t *target) contentChange(ctx context.Context, f file, diff bool) (out model.Change, err error) {
	before := resource.Content{Absent: f.before.Kind != files.File, Size: f.before.Size}
	from := f.before.Kind.String()
	if !before.Absent {
		if before.Digest, err = t.env.Host.DigestEntry(ctx, f.before); err != nil {
			return out, err
		}
		from = resource.DigestWord(before.Digest)
	}
	out = change(f, from, resource.DigestWord(f.digest))
	switch {
	case before.Digest == f.digest:
	case t.spec.Sensitive:
	case f.secret:
		out.From, out.To = "", model.Redacted
	case diff:
		if !before.Absent {
			before.Snippet = resource.ReadSnippet(f.before)
		}
		out.Diff = resource.Diff(f.path, before, resource.Content{Snippet: resource.SnippetOf(string(f.content)), Size: int64(len(f.content)), Digest: f.digest})
	}

	return out, nil
}

// attributes are those of a file beside its content.
type attributes struct {
	UID  uint32 `json:"uid"`
	GID  uint32 `json:"gid"`
	Mode uint32 `json:"mode"`
}

func (a attributes) String() string {
	return fmt.Sprintf("mode %04o, owner %d, group %d", a.Mode, a.UID, a.GID)
}

func attributesOf(e files.Entry) attributes { return attributes{UID: e.UID, GID: e.GID, Mode: e.Mode} }

// wanted are those of the running user, with the mode of the template.
func wanted(f *file) attributes {
	return attributes{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Mode: uint32(f.mode)}
}
