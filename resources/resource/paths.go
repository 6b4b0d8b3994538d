package resource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/host/watch"
)

// CheckPath reports a path that is not absolute and clean. what names the path in the problem, such as
// "file path".
func CheckPath(out *model.Problems, property, what, path string) {
	if !filepath.IsAbs(path) {
		out.Property(property, "begin it with /, for example /etc/motd", "%s must be absolute: %q", what, path)
	}
	if clean := filepath.Clean(path); clean != path {
		out.Property(property, "write it as "+clean, "%s must be clean, without . or .. or a / too many: %q", what, path)
	}
	switch {
	case strings.ContainsRune(path, 0):
		out.Property(property, "", "%s must not contain a NUL byte", what)
	case strings.ContainsFunc(path, unicode.IsControl):
		out.Property(property, "", "%s must not contain control characters: %q", what, path)
	}
}

// MayWrite returns why muster cannot change entries of a directory, as a PrerequisiteError: the resource that
// manages the directory may allow it.
func MayWrite(h *host.Host, dir string) error {
	err := h.MayWrite(dir)
	if err == nil || paths.IsAbsent(err) {
		return nil
	}

	return PrerequisiteError{Needs: []string{PathNeed(dir)}, Err: err}
}

// MayReplace checks that muster may write to the directory of an existing path. It returns
// paths.ErrMounted if the path or anything below it is a mount point.
func MayReplace(h *host.Host, path string) error {
	if err := MayWrite(h, filepath.Dir(path)); err != nil {
		return err
	}

	return files.MayReplace(path)
}

// NoSource returns the error of a missing source: a PrerequisiteError that wraps fs.ErrNotExist.
func NoSource(path string) error {
	return PrerequisiteError{Needs: []string{PathNeed(path)}, Err: fmt.Errorf("the source %s: %w (correct `source`, or create it before this resource)", path, fs.ErrNotExist)}
}

// Obstacle returns why muster cannot create an absent path: an ancestor is not a directory or, unless
// muster also creates missing parents, the parent is missing, which is a PrerequisiteError. Both errors
// wrap files.ErrNoParent.
func Obstacle(h *host.Host, path string, createsParents bool) error {
	for parent := filepath.Dir(path); ; parent = filepath.Dir(parent) {
		if h.MayWrite(parent) == nil {
			return nil
		}
		entry, err := h.Follow(parent)
		switch {
		case err != nil:
			return err
		case entry.Kind == files.Directory:
			return MayWrite(h, parent)
		case entry.Kind != files.Absent:
			return fmt.Errorf("%s %w", parent, files.ErrNoParent)
		case !createsParents:
			return PrerequisiteError{Needs: []string{PathNeed(parent)}, Err: fmt.Errorf("%s %w, it does not exist", parent, files.ErrNoParent)}
		case parent == filepath.Dir(parent):
			return nil
		}
	}
}

// The files of accounts.
const (
	userFile  = "/etc/passwd"
	groupFile = "/etc/group"
)

// AccountNeeds returns what an owner and a group need: the account, or its file. A number needs nothing, and
// root always exists.
func AccountNeeds(owner, group string) []Need {
	var out []Need
	needs := func(name string, words ...string) {
		if name != "" && name != "root" && !host.IsAccountNumber(name) {
			out = append(out, Needs(words...)...)
		}
	}
	needs(owner, UserNeed(owner), PathNeed(userFile))
	needs(group, GroupNeed(group), PathNeed(groupFile))

	return out
}

// ResolveAccounts returns the numbers of an owner and a group. The error for an unknown name is a
// PrerequisiteError that wraps host.ErrNoAccount.
func ResolveAccounts(ctx context.Context, h *host.Host, owner, group string) (uid, gid uint32, err error) {
	if uid, err = h.UID(ctx, owner); err != nil {
		return 0, 0, missingAccount(err, UserNeed(owner), userFile)
	}
	if gid, err = h.GID(ctx, group); err != nil {
		return 0, 0, missingAccount(err, GroupNeed(group), groupFile)
	}

	return uid, gid, nil
}

// RunAs returns the account of a command. The defaults are the running user and the primary group of the user. Its
// errors are the errors of ResolveAccounts.
func RunAs(ctx context.Context, h *host.Host, user, group string) (*command.Account, error) {
	account, err := h.User(ctx, cmp.Or(user, strconv.Itoa(os.Geteuid())))
	if err != nil {
		return nil, missingAccount(err, UserNeed(user), userFile)
	}
	if group != "" {
		if account.GID, err = h.GID(ctx, group); err != nil {
			return nil, missingAccount(err, GroupNeed(group), groupFile)
		}
	}
	if account.GID == host.NoGroup {
		err := fmt.Errorf("%w: user %s has no account and so no primary group: set `group` too", host.ErrNoAccount, user)
		return nil, missingAccount(err, UserNeed(user), userFile)
	}

	return account, nil
}

func missingAccount(err error, need, file string) error {
	if errors.Is(err, host.ErrNoAccount) {
		return PrerequisiteError{Needs: []string{need, PathNeed(file)}, Err: err}
	}

	return err
}

// CheckAccount reports a missing owner or group, unless ensure is absent, and a number that is not
// a valid account.
func CheckAccount(out *model.Problems, ensure, property, value string) {
	switch _, valid := host.ParseAccountID(value); {
	case value == "" && ensure == model.EnsureAbsent:
	case strings.TrimSpace(value) == "":
		out.Property(property, "for example "+property+": root", "`%s` is required unless ensure is absent", property)
	case host.IsAccountNumber(value) && !valid:
		out.Property(property, fmt.Sprintf("numbers go up to %d", uint32(host.MaxAccountID)), "invalid %s %q", property, value)
	}
}

// WatchPaths returns the points of paths. It ignores empty paths and URLs. Relative paths are
// relative to the manifest: PointsBeside completes them.
func WatchPaths(paths ...string) []watch.Point { return watchAll(watch.Path, paths) }

// WatchTrees returns the points of directories with everything below them, as WatchPaths does.
func WatchTrees(paths ...string) []watch.Point { return watchAll(watch.Tree, paths) }

// PointsBeside completes relative paths of points with the directory of the manifest. Without a
// directory it drops them.
func PointsBeside(points []watch.Point, dir string) []watch.Point {
	var out []watch.Point
	for _, p := range points {
		if p.Kind != watch.Unit && !filepath.IsAbs(p.Name) {
			if dir == "" {
				continue
			}
			p.Name = filepath.Join(dir, p.Name)
		}
		out = append(out, p)
	}

	return out
}

func watchAll(kind watch.Kind, paths []string) []watch.Point {
	var out []watch.Point
	for _, path := range paths {
		if path != "" && !strings.Contains(path, "://") {
			out = append(out, watch.Point{Kind: kind, Name: filepath.Clean(path)})
		}
	}

	return out
}
