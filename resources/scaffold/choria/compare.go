package choria

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/scaffold"
)

// comparison is one look at a target.
type comparison struct {
	provider Provider
	env      resource.Env
	spec     *scaffold.Spec
	found    *found
	// parents are the directories below the target that were looked at, with what
	// is wrong with each.
	parents map[string]error
}

// compare sorts what the templates give into what is stable and what is due.
func (c *comparison) compare(ctx context.Context, rendered []file) error {
	meta := c.found.state.Metadata
	given := make(map[string]bool, len(rendered))
	for _, f := range rendered {
		given[f.path] = true
		stable, err := c.file(ctx, &f)
		switch {
		case err != nil:
			return err
		case stable:
			meta.Stable = append(meta.Stable, f.path)
			continue
		case c.absent() && f.before.Kind != files.File && f.before.Kind != files.Link:
			continue
		case !c.absent():
			c.found.due = append(c.found.due, f)
		}
		if meta.TargetExists {
			meta.Changed = append(meta.Changed, f.path)
		}
	}
	if !meta.TargetExists {
		return nil
	}
	err := c.purged(given)
	c.permitted()

	return err
}

func (c *comparison) absent() bool { return c.spec.Ensure == model.EnsureAbsent }

// permitted looks whether what is due may be done, where there is something due.
func (c *comparison) permitted() {
	meta := c.found.state.Metadata
	paths := meta.Changed
	if c.absent() {
		paths = slices.Concat(paths, meta.Stable)
	} else if c.spec.Purge {
		paths = slices.Concat(paths, meta.Purged)
	}
	seen := map[string]bool{}
	for _, path := range paths {
		if dir := filepath.Dir(path); !seen[dir] && c.found.state.Obstacle == nil {
			seen[dir] = true
			c.found.state.Obstacle = resource.Obstacle(c.env.Host, path, true)
		}
	}
}

// purged lists what no template gives. No link is followed.
func (c *comparison) purged(given map[string]bool) error {
	meta := c.found.state.Metadata

	return filepath.WalkDir(c.spec.Name, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !given[path] {
			meta.Purged = append(meta.Purged, path)
		}
		return err
	})
}

// file says whether a file is as it must be. What must not be replaced is the
// obstacle of the scaffold.
func (c *comparison) file(ctx context.Context, f *file) (stable bool, err error) {
	if !c.found.state.Metadata.TargetExists {
		return false, nil
	}
	if err := c.parent(filepath.Dir(f.path)); err != nil {
		c.obstacle(err)
		return false, nil
	}
	if f.before, err = c.env.Host.Look(f.path); err != nil {
		return false, err
	}
	switch f.before.Kind {
	case files.Directory, files.Other:
		c.obstacle(fmt.Errorf("%s: path exists as a %s, not as a regular file", f.path, f.before.Kind))
		return false, nil
	case files.File:
		digest, err := c.env.Host.DigestEntry(ctx, f.before)
		if err != nil {
			return false, fmt.Errorf("could not read a file of the scaffold: %w", err)
		}
		return c.isStable(f, digest), nil
	default:
		return false, nil
	}
}

// isStable compares content and attributes with what was rendered, or with what
// the post commands left of just that.
func (c *comparison) isStable(f *file, digest string) bool {
	commands := c.spec.PostCommands(f.path)
	if len(commands) == 0 {
		return digest == f.digest && attributesOf(f.before) == wanted(f)
	}
	past, ok := c.found.past.Files[f.path]

	return ok && past.Rendered == f.digest && past.Mode == f.mode && past.Post == digestOf(commands) &&
		past.Left == digest && past.Attributes == attributesOf(f.before)
}

// obstacle notes what is in the way of a file; it is not in the way of removing others.
func (c *comparison) obstacle(err error) {
	if c.found.state.Obstacle == nil && !c.absent() {
		c.found.state.Obstacle = err
	}
}

// parent says what is wrong with a directory that a file is to be in: nothing
// goes through a link below the target.
func (c *comparison) parent(dir string) error {
	if dir == c.spec.Name {
		return nil
	}
	if err, known := c.parents[dir]; known {
		return err
	}
	err := c.parent(filepath.Dir(dir))
	if err == nil {
		var entry files.Entry
		entry, err = c.env.Host.Look(dir)
		switch {
		case err != nil:
		case entry.Kind == files.Link:
			err = fmt.Errorf("%s %w, and a scaffold does not go through links", dir, files.ErrLink)
		case entry.Kind != files.Directory && entry.Kind != files.Absent:
			err = fmt.Errorf("%s %w", dir, files.ErrNotDirectory)
		}
	}
	c.parents[dir] = err

	return err
}

// attributes are what a file has beside its content.
type attributes struct {
	UID  uint32 `json:"uid"`
	GID  uint32 `json:"gid"`
	Mode uint32 `json:"mode"`
}

func attributesOf(e files.Entry) attributes { return attributes{UID: e.UID, GID: e.GID, Mode: e.Mode} }

// wanted are those of the running user, with the mode of the template.
func wanted(f *file) attributes {
	return attributes{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Mode: uint32(f.mode)}
}

// maxDiffs is how many bytes of diffs a scaffold may have in all: they have to
// travel in one report.
const maxDiffs = 128 << 10

// describe says of each file that is due what differs. Where a file depends on
// a secret, its content is not told.
func (c *comparison) describe(ctx context.Context) error {
	if len(c.found.due) == 0 {
		return nil
	}
	secret, err := c.secret(ctx)
	if err != nil {
		return err
	}
	told := 0
	for i := range c.found.due {
		f := &c.found.due[i]
		d := scaffold.Difference{Path: f.path}
		content, err := c.content(ctx, f, secret(f), told < maxDiffs)
		if err != nil {
			return err
		}
		told += len(content.Diff)
		if content.From != content.To {
			d.Changes = append(d.Changes, content)
		}
		if before, after := attributesOf(f.before), wanted(f); f.before.Kind == files.File && before != after {
			d.Changes = append(d.Changes, c.change(f, before.String(), after.String()))
		}
		if len(d.Changes) == 0 {
			d.Changes = append(d.Changes, c.change(f, "post not run", "post run"))
		}
		c.found.state.Due = append(c.found.state.Due, d)
	}

	return nil
}

func (a attributes) String() string {
	return fmt.Sprintf("mode %04o, owner %d, group %d", a.Mode, a.UID, a.GID)
}

func (c *comparison) change(f *file, from, to string) model.Change {
	return model.Change{Action: "scaffold", Property: f.path, From: from, To: to}
}

// content is the change of a file's content.
func (c *comparison) content(ctx context.Context, f *file, secret, diff bool) (model.Change, error) {
	before := resource.Content{Absent: f.before.Kind != files.File, Size: f.before.Size}
	from := f.before.Kind.String()
	if !before.Absent {
		var err error
		if before.Digest, err = c.env.Host.DigestEntry(ctx, f.before); err != nil {
			return model.Change{}, err
		}
		from = resource.DigestWord(before.Digest)
	}
	out := c.change(f, from, resource.DigestWord(f.digest))
	switch {
	case before.Digest == f.digest:
	case secret:
		out.From, out.To = "", model.Redacted
	case diff && !c.spec.Sensitive:
		if !before.Absent {
			before.Snippet = resource.ReadSnippet(c.env.Host, f.path)
		}
		out.Diff = resource.Diff(f.path, before, resource.Content{Snippet: resource.SnippetOf(string(f.content)), Size: int64(len(f.content)), Digest: f.digest})
	}

	return out, nil
}

// secret says of which files the content depends on a secret: those that are
// something else when the secrets are masked. Templates that then fail may
// depend on one anywhere.
func (c *comparison) secret(ctx context.Context) (func(*file) bool, error) {
	none := func(*file) bool { return false }
	if !c.found.rendered.secret || c.spec.Sensitive {
		return none, nil
	}
	masked := c.found.rendered.masked
	if masked == nil {
		masked = c.provider.mask(ctx, c.env, c.spec)
	}
	if cause := context.Cause(ctx); cause != nil {
		return none, cause
	}
	if masked.err != nil {
		return func(*file) bool { return true }, nil
	}

	return func(f *file) bool {
		i := slices.IndexFunc(masked.files, func(m file) bool { return m.path == f.path })
		return i < 0 || !bytes.Equal(masked.files[i].content, f.content)
	}, nil
}
