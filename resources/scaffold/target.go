package scaffold

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/resource"
)

// file is a file of the scaffold.
type file struct {
	path    string
	content []byte
	digest  string
	mode    fs.FileMode
	// by is the template of the file. written reports that the function write made it.
	by      string
	written bool
	// secret reports that the content depends on a secret.
	secret bool
	// before is the existing file at the path.
	before files.Entry
}

// wanted returns the attributes: the running user, and the mode of the template.
func (f *file) wanted() files.Attrs { return files.OwnAttrs(f.mode) }

// target is an observed target with its wanted files.
type target struct {
	env   resource.Env
	spec  *Spec
	state *State
	past  record
	files []file
	// due are the files to write.
	due []file
	// there holds the entries of the target except directories.
	there map[string]fs.FileMode
	// shown is the size in bytes of all diffs.
	shown int
}

func (t *target) exists() bool { return t.state.Metadata.TargetExists }

func (t *target) absent() bool { return t.spec.Ensure == model.EnsureAbsent }

// compare finds the stable files, the files to write, and the other files of the target.
func (t *target) compare(ctx context.Context) error {
	meta := t.state.Metadata
	if t.exists() {
		w := walker{left: maxWalked, mayVanish: true, visit: func(path string, kind fs.FileMode) error { t.there[path] = kind; return nil }}
		if err := w.walk(ctx, t.spec.Name); err != nil {
			return err
		}
	}
	others := maps.Clone(t.there)
	for _, f := range t.files {
		delete(others, f.path)
		changes, err := t.changes(ctx, &f)
		switch {
		case err != nil:
			return err
		case len(changes) == 0:
			meta.Stable = append(meta.Stable, f.path)
			continue
		case !t.absent():
			t.due, t.state.Due = append(t.due, f), append(t.state.Due, changes)
			t.noteAttributes(f)
		case f.before.Kind != files.File && f.before.Kind != files.Link:
			continue
		}
		if t.exists() {
			meta.Changed = append(meta.Changed, f.path)
		}
	}
	meta.Purged = slices.Sorted(maps.Keys(others))
	if !t.exists() {
		return nil
	}
	t.checkPermissions()
	if t.state.Obstacle == nil {
		t.state.Obstacle = t.checkMounts(t.removed(), t.due)
	}

	return nil
}

// noteAttributes records the effect of writing a file on its extended attributes.
func (t *target) noteAttributes(f file) {
	if f.before.Kind != files.File {
		return
	}
	carried := t.env.Host.Carried(f.path, f.wanted(), false)
	if carried.Err != nil {
		t.obstruct(carried.Err)
	}
	kept, lost := carried.Effects(false)
	for verb, names := range map[string][]string{"preserved the ": kept, "removed the ": lost} {
		for _, name := range names {
			t.state.Attributes[verb+name] = append(t.state.Attributes[verb+name], f.path)
		}
	}
}

// removed returns the paths that ensure: absent or purge would remove.
func (t *target) removed() []string {
	switch meta := t.state.Metadata; {
	case t.absent():
		return slices.Concat(meta.Changed, meta.Stable)
	case t.spec.Purge:
		return meta.Purged
	default:
		return nil
	}
}

// checkMounts returns paths.ErrMounted if a path to remove is on another mount than the target,
// or if a file to write is a mount point.
func (t *target) checkMounts(removed []string, due []file) error {
	if len(removed) == 0 && len(due) == 0 {
		return nil
	}
	points, err := files.MountsBelow(t.spec.Name)
	if err != nil {
		return err
	}
	for _, point := range points {
		at := filepath.Join(t.spec.Name, point.Path)
		on := func(path string) bool { return paths.IsWithin(path, at) }
		if i := slices.IndexFunc(removed, on); i >= 0 {
			return fmt.Errorf("could not remove %s: %w", removed[i], point.Err())
		}
		if slices.ContainsFunc(due, func(f file) bool { return f.path == at }) {
			return point.Err()
		}
	}

	return nil
}

// changes returns the pending changes of a file, none if it is in its desired state. It records an obstacle
// for a path that must not be replaced.
func (t *target) changes(ctx context.Context, f *file) (out []model.Change, err error) {
	if err := t.look(f); err != nil {
		return nil, err
	}
	is, digest := f.before.Kind == files.File, ""
	// A file of another size differs. Reading a huge file would take hours.
	if is && (f.before.Size <= maxBytes || f.before.Size == int64(len(f.content))) {
		if digest, err = t.digest(ctx, f); err != nil {
			return nil, fmt.Errorf("could not read a file of the scaffold: %w", err)
		}
		is = f.before.Kind == files.File
	}
	commands := t.spec.PostCommands(f.path)
	if digest != "" && len(commands) > 0 && t.past.Files[f.path] == pastOf(*f, commands, digest, f.before) {
		return nil, nil
	}
	change := model.Change{Action: "scaffold", Property: f.path}
	if digest != f.digest {
		out = append(out, t.contentChange(change, f, digest))
	}
	if before, after := attributesOf(f.before), f.wanted(); is && (before != after || f.before.Listed) {
		change.From, change.To = describe(before), describe(after)
		out = append(out, change)
	}
	if len(out) == 0 && len(commands) > 0 {
		change.From, change.To = "post not run", "post run"
		out = append(out, change)
	}

	return out, nil
}

// digest returns the digest of an observed file. If the file was removed since, it observes the path again
// and returns no digest.
func (t *target) digest(ctx context.Context, f *file) (string, error) {
	digest, _, err := t.env.Host.Compare(ctx, f.before)
	if errors.Is(err, fs.ErrNotExist) {
		return "", t.look(f)
	}

	return digest, err
}

// look observes the path of a file, and records obstacles.
func (t *target) look(f *file) (err error) {
	if !t.exists() {
		return nil
	}
	// A scaffold never follows a link below the target.
	for dir := filepath.Dir(f.path); dir != t.spec.Name; dir = filepath.Dir(dir) {
		if kind, is := t.there[dir]; is && kind == fs.ModeSymlink {
			t.obstruct(fmt.Errorf("%s %w, and a scaffold does not go through links", dir, files.ErrLink))
			return nil
		} else if is {
			t.obstruct(fmt.Errorf("%s %w", dir, files.ErrNotDirectory))
			return nil
		}
	}
	f.before, err = t.env.Host.Look(f.path)
	if kind := f.before.Kind; kind == files.Directory || kind == files.Other {
		t.obstruct(fmt.Errorf("%s: path exists as a %s, not as a regular file", f.path, kind))
	}

	return err
}

// obstruct records the first obstacle to writing. It does not prevent the removal of other files.
func (t *target) obstruct(err error) {
	if t.state.Obstacle == nil && !t.absent() {
		t.state.Obstacle = err
	}
}

func (t *target) checkPermissions() {
	seen := map[string]bool{}
	for _, path := range slices.Concat(t.state.Metadata.Changed, t.removed()) {
		if dir := filepath.Dir(path); !seen[dir] && t.state.Obstacle == nil {
			seen[dir] = true
			t.state.Obstacle = resource.Obstacle(t.env.Host, path, true)
		}
	}
}

// maxDiffs is the maximum size in bytes of all diffs of a scaffold, because one report contains them.
const maxDiffs = 128 << 10

// contentChange describes a change of content. It hides a content that depends on a secret.
func (t *target) contentChange(out model.Change, f *file, digest string) model.Change {
	before := resource.DiffContent{Absent: f.before.Kind != files.File, Size: f.before.Size, Digest: digest}
	before.Unreadable = !before.Absent && (digest == "" || f.before.Foreign() != nil)
	readable := !before.Absent && !before.Unreadable
	out.From, out.To = f.before.Kind.String(), resource.DigestWord(f.digest)
	if before.Unreadable {
		out.From = "unreadable"
	} else if readable {
		out.From = resource.DigestWord(digest)
	}
	switch {
	case t.spec.Sensitive, t.absent():
	case f.secret:
		out.From, out.To = "", model.Redacted
	case t.shown < maxDiffs:
		if readable {
			before.Snippet = resource.ReadSnippet(f.before)
		}
		out.Diff = resource.Diff(f.path, before, resource.DiffContent{Snippet: resource.SnippetOf(string(f.content)), Size: int64(len(f.content)), Digest: f.digest})
		t.shown += len(out.Diff)
	}

	return out
}

func attributesOf(e files.Entry) files.Attrs {
	return files.Attrs{UID: e.UID, GID: e.GID, Mode: fs.FileMode(e.Mode)}
}

func describe(a files.Attrs) string {
	return fmt.Sprintf("mode %04o, owner %d, group %d", uint32(a.Mode), a.UID, a.GID)
}

// apply validates all files, writes the files that differ, runs their post commands, and with purge
// removes files without a template.
func (t *target) apply(ctx context.Context) error {
	err := t.state.Obstacle
	if err == nil && t.spec.Validator != "" {
		err = t.validate(ctx)
	}
	if err == nil {
		_, err = t.env.Host.EnsureDirectory(t.spec.Name)
	}
	if err == nil {
		err = t.store(ctx)
	}
	if err != nil || !t.spec.Purge {
		return err
	}
	purged := t.state.Metadata.Purged
	// Post commands may have mounted something.
	if err := t.checkMounts(purged, nil); err != nil {
		return err
	}
	for _, path := range purged {
		err = errors.Join(err, t.env.Host.Remove(path))
	}

	return err
}

// parallel is the number of files that are written in parallel, so the system syncs many of them at once.
const parallel = 16

// store writes the pending files without post commands in parallel, then the other files one by one.
func (t *target) store(ctx context.Context) error {
	// foreign are the directories in which another user may exchange files.
	foreign := map[string]bool{}
	var plain, posted []file
	for _, f := range t.due {
		dir := filepath.Dir(f.path)
		if _, made := foreign[dir]; !made {
			var err error
			if foreign[dir], err = t.env.Host.EnsureDirectory(dir); err != nil {
				return err
			}
		}
		if len(t.spec.PostCommands(f.path)) > 0 {
			posted = append(posted, f)
		} else {
			plain = append(plain, f)
		}
	}
	if err := t.write(ctx, plain, t.spec.Name); err != nil || len(posted) == 0 {
		return err
	}

	return t.storePosted(ctx, posted, foreign)
}

// write writes files in parallel below root. The directories must exist.
func (t *target) write(ctx context.Context, list []file, root string) error {
	errs := make([]error, len(list))
	var writing errgroup.Group
	writing.SetLimit(parallel)
	for i, f := range list {
		writing.Go(func() error {
			errs[i] = t.env.Host.Write(ctx, t.below(root, f.path), bytes.NewReader(f.content), f.wanted())
			return nil
		})
	}
	_ = writing.Wait() // errs has all errors

	return errors.Join(errs...)
}

func (t *target) below(root, path string) string {
	return root + strings.TrimPrefix(path, t.spec.Name)
}

// validate runs the command of validate on all files, in a directory that no other user can
// reach.
func (t *target) validate(ctx context.Context) error {
	private, err := t.env.Host.TempDir("validate")
	if err != nil {
		return err
	}
	defer t.env.Host.RemoveAll(context.WithoutCancel(ctx), private)
	root := filepath.Join(private, filepath.Base(t.spec.Name))
	dirs := map[string]bool{root: true}
	for _, f := range t.files {
		dirs[filepath.Dir(t.below(root, f.path))] = true
	}
	for dir := range dirs {
		if err := t.env.Host.MakeDirectory(dir, files.OwnAttrs(0o755)); err != nil {
			return err
		}
	}
	if err := t.write(ctx, t.files, root); err != nil {
		return err
	}

	return resource.RunValidator(ctx, t.env, t.spec.Validator, root, t.spec.Name, root)
}

// storePosted writes files and runs their commands. It removes their records first: after a kill
// the commands run again. It also records the finished files if a command fails.
func (t *target) storePosted(ctx context.Context, posted []file, foreign map[string]bool) (err error) {
	for _, f := range posted {
		delete(t.past.Files, f.path)
	}
	if err := t.past.save(ctx, t.env.Host); err != nil {
		return err
	}
	for _, f := range posted {
		if t.past.Files[f.path], err = t.writeAndPost(ctx, f, foreign[filepath.Dir(f.path)]); err != nil {
			delete(t.past.Files, f.path)
			break
		}
	}

	return errors.Join(err, t.past.save(ctx, t.env.Host))
}

// writeAndPost writes a file and runs its commands. If another user may exchange the file, the
// commands run on a private copy, and their result is written.
func (t *target) writeAndPost(ctx context.Context, f file, foreign bool) (past, error) {
	at, dir := f.path, t.spec.Name
	if foreign {
		private, err := t.env.Host.TempDir("post")
		if err != nil {
			return past{}, err
		}
		defer t.env.Host.RemoveAll(context.WithoutCancel(ctx), private)
		at, dir = filepath.Join(private, filepath.Base(f.path)), private
	}
	if err := t.env.Host.Write(ctx, at, bytes.NewReader(f.content), f.wanted()); err != nil {
		return past{}, err
	}
	for _, words := range t.spec.PostCommands(at) {
		if err := resource.RunHook(ctx, t.env, words, dir); err != nil {
			return past{}, fmt.Errorf("post of %s: %w", f.path, err)
		}
	}
	left, err := t.env.Host.Look(at)
	if err == nil && left.Kind != files.File {
		err = fmt.Errorf("a post command left no file at %s", f.path)
	}
	if err == nil && foreign {
		left, err = t.install(ctx, left, f.path)
	}
	if err != nil {
		return past{}, err
	}
	digest, _, err := t.env.Host.Compare(ctx, left)

	return pastOf(f, t.spec.PostCommands(f.path), digest, left), err
}

func (t *target) install(ctx context.Context, from files.Entry, path string) (files.Entry, error) {
	content, err := from.Open()
	if err != nil {
		return files.Entry{}, err
	}
	defer content.Close()
	if err := t.env.Host.Write(ctx, path, content, attributesOf(from)); err != nil {
		return files.Entry{}, err
	}

	return t.env.Host.Look(path)
}

// Remove removes the changed and stable files of a state, then their empty directories, deepest first, and
// the target if it is empty. It continues after an error, and returns all errors.
func (Choria) Remove(ctx context.Context, env resource.Env, spec *Spec, state *State) error {
	paths := slices.Concat(state.Metadata.Changed, state.Metadata.Stable)
	if at := slices.IndexFunc(paths, func(path string) bool { return !filepath.IsAbs(path) }); at >= 0 {
		return fmt.Errorf("the path of a file to remove is not absolute: %q", paths[at])
	}
	var failed error
	var parents []string
	for _, path := range paths {
		if err := context.Cause(ctx); err != nil {
			return errors.Join(failed, err)
		}
		failed = errors.Join(failed, env.Host.Remove(path))
		for dir := filepath.Dir(path); strings.HasPrefix(dir, spec.Name+"/"); dir = filepath.Dir(dir) {
			parents = append(parents, dir)
		}
	}
	slices.Sort(parents)
	for _, dir := range slices.Backward(slices.Compact(parents)) {
		if err := env.Host.Remove(dir); err != nil && !errors.Is(err, files.ErrNotEmpty) {
			failed = errors.Join(failed, err)
		}
	}
	if err := env.Host.Remove(spec.Name); err != nil {
		env.Log.DebugContext(ctx, "target kept", "target", spec.Name, "reason", err)
	}

	return errors.Join(failed, env.Host.Forget(records, spec.Name))
}

// records is the folder of the records in the state directory.
const records = "scaffolds"

// record is the record of the files of a target with post commands, in the state directory.
type record struct {
	Target string          `json:"target"`
	Files  map[string]past `json:"files"`
}

// past is a rendered file, its commands, and the file after the commands.
type past struct {
	Rendered   string      `json:"rendered"`
	Mode       fs.FileMode `json:"mode"`
	Post       string      `json:"post"`
	Left       string      `json:"left"`
	Attributes files.Attrs `json:"attributes"`
}

func pastOf(f file, commands [][]string, left string, entry files.Entry) past {
	return past{Rendered: f.digest, Mode: f.mode, Post: digestOf(fmt.Appendf(nil, "%q", commands)), Left: left, Attributes: attributesOf(entry)}
}

// recall returns the record of a target. A damaged record is empty: then the files are written and the
// commands run once more.
func recall(h *host.Host, target string) (record, error) {
	r, _, err := host.Recall[record](h, records, target)
	if r.Target != target || r.Files == nil {
		r = record{Target: target, Files: map[string]past{}}
	}

	return r, err
}

func (r record) save(ctx context.Context, h *host.Host) error {
	return h.Remember(ctx, records, r.Target, r)
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:])
}
