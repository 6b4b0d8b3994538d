package file

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/state"
	"github.com/musterfleet/muster/resources/resource"
)

const (
	// backupFolder is the folder of the state directory with a directory for each path, which holds the copies.
	backupFolder = "backups"
	// copies is the number of copies of a path.
	copies = 3
	// copyName is the name of a copy: when its content was written.
	copyName = "2006-01-02T15-04-05.000000000Z"
	// keptMessage follows the message of a change that keeps a copy.
	keptMessage = " (the old one is kept)"
)

// planCopy adds the copy of the old file to a plan that replaces or removes it, with the message, and returns why
// there can be none.
func (s *State) planCopy(spec *Spec, plan *resource.Plan, message *string) error {
	if !spec.Backup || s.Entry.Kind != files.File {
		return nil
	}
	*message += keptMessage
	action := actionStore
	if spec.Ensure == model.EnsureAbsent {
		action = actionRemove
	}
	plan.Add(model.Change{Action: action, Property: propertyBackup, To: s.want.copy})

	return s.want.noCopy
}

// copyOf returns the path of the copy of a file. A large file is copied only if no other user can choose its size.
func copyOf(stateDir string, old files.Entry) (string, error) {
	switch {
	case stateDir == "":
		return "", fmt.Errorf("backup: %w", state.ErrNone)
	case old.OfOthers() && old.Size > maxOther:
		return "", fmt.Errorf("backup of %s: %w: %s, and others than root may write to it: remove `backup`, or the file", old.Path, files.ErrTooLarge, resource.FormatSize(old.Size))
	default:
		return filepath.Join(stateDir, backupFolder, old.Path, old.ModTime.UTC().Format(copyName)), nil
	}
}

// keepCopy makes the copy of a plan, if it has one.
func keepCopy(ctx context.Context, env resource.Env, path string, plan resource.Plan) error {
	at := slices.IndexFunc(plan.Changes, func(c model.Change) bool { return c.Property == propertyBackup })
	if at < 0 {
		return nil
	}
	old, err := env.Host.Look(path)
	if err == nil {
		_, err = copyOf(env.Host.StateDir(), old)
	}
	if err == nil {
		err = writeCopy(ctx, env, plan.Changes[at].To, old)
	}
	if err != nil {
		return fmt.Errorf("could not keep the old file, so it is not changed: %w", err)
	}

	return nil
}

func writeCopy(ctx context.Context, env resource.Env, to string, old files.Entry) error {
	f, err := old.OpenForeign()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := env.Host.MakeDirectory(filepath.Join(env.Host.StateDir(), backupFolder), files.OwnAttrs(0o700)); err != nil {
		return err
	}
	err = env.Host.WithParents(to, func() error {
		return env.Host.Write(ctx, to, files.Sized{File: f, Size: old.Size}, files.OwnAttrs(0o600))
	})
	if err != nil {
		return err
	}
	if err := removeCopies(ctx, env, to); err != nil {
		env.Log.WarnContext(ctx, "could not remove older copies", "path", old.Path, "error", err)
	}

	return nil
}

// removeCopies removes the older copies beside a new one: those with the same content, and all but the newest.
func removeCopies(ctx context.Context, env resource.Env, newest string) error {
	dir := filepath.Dir(newest)
	names, err := files.Names(dir)
	if err != nil {
		return err
	}
	var found []files.Entry
	for _, name := range names {
		entry, err := env.Host.Look(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if entry.Kind == files.File {
			found = append(found, entry)
		}
	}
	slices.SortFunc(found, func(a, b files.Entry) int { return b.ModTime.Compare(a.ModTime) })
	slices.SortStableFunc(found, func(a, b files.Entry) int { return rank(a, newest) - rank(b, newest) })
	kept := map[string]bool{}
	for _, entry := range found {
		digest, err := env.Host.DigestEntry(ctx, entry)
		if err != nil {
			return err
		}
		if !kept[digest] && len(kept) < copies {
			kept[digest] = true
			continue
		}
		if err := env.Host.Remove(entry.Path); err != nil {
			return err
		}
	}

	return nil
}

// rank is 0 for the newest copy: clocks may go back.
func rank(e files.Entry, newest string) int {
	if e.Path == newest {
		return 0
	}

	return 1
}
