package edits

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

// Posix edits files with system calls.
type Posix struct{}

// Name is posix.
func (Posix) Name() string { return "posix" }

// IsManageable accepts every path.
func (Posix) IsManageable(model.Facts, resource.Spec) (bool, int, error) { return true, 1, nil }

// source is a file before an edit. Without a file the text is empty.
type source struct {
	entry   files.Entry
	content string
	text    Text
	// creator is the part that creates a missing file, nil for none.
	creator Part
}

// read reads the file of parts, which are observed or changed together.
func read(h *host.Host, parts []Part) (s source, err error) {
	path := parts[0].path()
	if s.entry, err = h.Look(path); err != nil {
		return s, err
	}
	switch s.entry.Kind {
	case files.Absent:
		if i := slices.IndexFunc(parts, creates); i >= 0 {
			s.creator = parts[i]
		}
		return s, nil
	case files.File:
	case files.Link:
		return s, fmt.Errorf("%s %w, which is not followed: set path to the file that it leads to", path, files.ErrLink)
	default:
		return s, fmt.Errorf("%s is a %s: it %w", path, s.entry.Kind, files.ErrNotRegular)
	}
	content, err := s.entry.Read(maxBytes)
	if err != nil {
		return s, fmt.Errorf("could not read the file: %w", err)
	}
	s.content = string(content)
	if s.text, err = Parse(s.content); err != nil {
		return s, fmt.Errorf("%s %w", path, err)
	}

	return s, nil
}

func isPresent(p Part) bool { return p.isComplete() && p.Meta().Ensure != model.EnsureAbsent }

func creates(p Part) bool { return isPresent(p) && p.creation().Create }

// isMissing reports whether there is no file, and no part creates it.
func (s source) isMissing() bool { return s.entry.Kind == files.Absent && s.creator == nil }

// missing returns the error of a part that is present in a file that does not exist.
func missing(path string) error {
	return resource.PrerequisiteError{
		Needs: []string{resource.PathNeed(path)},
		Err:   fmt.Errorf("%s: %w (set create: true, or manage it with a file resource before this one)", path, fs.ErrNotExist),
	}
}

// attributes returns the attributes of the existing or new file for a write. It returns an error if a write would
// lose an attribute.
func (s source) attributes(ctx context.Context, h *host.Host) (files.Attrs, error) {
	if s.creator != nil {
		c := s.creator.creation()
		uid, gid, err := resource.ResolveAccounts(ctx, h, c.Owner, c.Group)
		if err != nil {
			return files.Attrs{}, err
		}
		mode, err := resource.ParseMode(c.Mode)
		return files.Attrs{UID: uid, GID: gid, Mode: fs.FileMode(mode)}, err
	}
	attrs := files.Attrs{UID: s.entry.UID, GID: s.entry.GID, Mode: fs.FileMode(s.entry.Mode & resource.MaxMode)}
	if special := s.entry.Mode &^ resource.MaxMode; special != 0 {
		return attrs, fmt.Errorf("%s has the mode %s, and an edit would lose its special bits: remove them (chmod)", s.entry.Path, resource.FormatMode(s.entry.Mode))
	}

	return attrs, nil
}

// obstacle returns why the file cannot be written.
func (s source) obstacle(ctx context.Context, h *host.Host) error {
	path := s.entry.Path
	if s.creator != nil {
		return resource.Obstacle(h, path, false)
	}
	attrs, err := s.attributes(ctx, h)
	if err == nil {
		err = resource.MayReplace(h, path)
	}
	if err != nil {
		return err
	}
	carried := h.Carried(path, attrs, false)
	if len(carried.Lost) > 0 {
		return fmt.Errorf("%s would lose its %s", path, strings.Join(carried.Lost, " and "))
	}

	return carried.Err
}

// observe returns the states of the parts of one file.
func observe(ctx context.Context, env resource.Env, parts []Part) ([]*State, []error) {
	states, errs := make([]*State, len(parts)), make([]error, len(parts))
	s, err := read(env.Host, parts)
	if err == nil && s.creator != nil {
		_, err = s.attributes(ctx, env.Host)
	}
	after, edits := combine(parts, s.text, parts)
	var obstacle error
	if slices.ContainsFunc(edits, Edit.isDue) {
		obstacle = s.obstacle(ctx, env.Host)
	}
	first := true
	for i, p := range parts {
		switch {
		case err != nil:
			errs[i] = err
			continue
		case s.isMissing() && isPresent(p):
			errs[i] = missing(p.path())
			continue
		case edits[i].Err != nil:
			errs[i] = fmt.Errorf("%s: %w", p.path(), edits[i].Err)
			continue
		}
		e := edits[i]
		states[i] = &State{Path: p.path(), Lines: e.Lines, entry: s.entry, beside: parts}
		if states[i].Ensure = model.EnsureAbsent; e.Present {
			states[i].Ensure = model.EnsurePresent
		}
		if !e.isDue() {
			continue
		}
		if first && s.creator != nil {
			e.Change.Message = "Would have created the file"
		}
		if first {
			e.Change.Diff = s.diff(after, parts)
		}
		first = false
		if p.creation().Validator != "" {
			e.Change.Message += resource.ValidatedFirst
		}
		states[i].change, states[i].obstacle = e.Change, obstacle
	}

	return states, errs
}

// diff returns the change of a file, unless one of its parts is sensitive.
func (s source) diff(after Text, parts []Part) string {
	if slices.ContainsFunc(parts, func(p Part) bool { return p.Meta().Sensitive }) {
		return ""
	}
	before := diffContent(s.content)
	before.Absent, before.Others = s.entry.Kind == files.Absent, true

	return resource.Diff(s.entry.Path, before, diffContent(after.String()))
}

func diffContent(content string) resource.DiffContent {
	sum := sha256.Sum256([]byte(content))

	return resource.DiffContent{Snippet: resource.SnippetOf(content), Size: int64(len(content)), Digest: hex.EncodeToString(sum[:])}
}

// maxWrites is the number of times that a file is edited again after another program changed it.
const maxWrites = 3

type result struct {
	outcome resource.Outcome
	err     error
}

// store applies the due parts of one file and writes it. Another program may change the file between the read and
// the write: then all of it is done again.
func store(ctx context.Context, env resource.Env, due, beside []Part) []result {
	for attempt := 1; ; attempt++ {
		results, err := storeOnce(ctx, env, due, beside)
		if !errors.Is(err, files.ErrReplaced) || attempt == maxWrites {
			return results
		}
	}
}

// storeOnce reads, edits and writes the file of parts. It returns the error of the write, which is also the error
// of the changed parts.
func storeOnce(ctx context.Context, env resource.Env, due, beside []Part) ([]result, error) {
	results := make([]result, len(due))
	s, err := read(env.Host, beside)
	if err == nil && s.isMissing() {
		err = missing(due[0].path())
	}
	var attrs files.Attrs
	if err == nil {
		attrs, err = s.attributes(ctx, env.Host)
	}
	if err != nil {
		for i := range results {
			results[i] = result{resource.Outcome{Untouched: true}, err}
		}
		return results, nil
	}
	after, edits := combine(due, s.text, beside)
	if slices.ContainsFunc(edits, Edit.isDue) {
		err = write(ctx, env, s, after, attrs, beside)
	}
	untouched := false
	if err != nil {
		now, lookErr := env.Host.Look(s.entry.Path)
		untouched = lookErr == nil && now == s.entry
	}
	for i, e := range edits {
		switch {
		case e.Err != nil:
			results[i] = result{resource.Outcome{Untouched: true}, fmt.Errorf("%s: %w", due[i].path(), e.Err)}
		case e.isDue() && err != nil:
			results[i] = result{resource.Outcome{Untouched: untouched}, err}
		default:
			results[i].outcome.Unchanged = !e.isDue()
		}
	}

	return results, err
}

// write writes a text. Each distinct command of validate must accept it first.
func write(ctx context.Context, env resource.Env, s source, after Text, attrs files.Attrs, parts []Part) error {
	var commands []string
	for _, p := range parts {
		if text := p.creation().Validator; text != "" && !slices.Contains(commands, text) {
			commands = append(commands, text)
		}
	}
	path := s.entry.Path
	o := files.WriteOptions{Replaces: &s.entry}
	if len(commands) > 0 {
		o.Check = func(temporary string) error {
			for _, text := range commands {
				if err := resource.RunValidator(ctx, env, text, temporary, path, filepath.Dir(temporary)); err != nil {
					// Single parts are not tried: the command judges the file with all of them.
					return resource.Concluded{Err: err}
				}
			}
			return nil
		}
	}

	return env.Host.WriteWith(ctx, path, strings.NewReader(after.String()), attrs, o)
}
