package paths

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrUntrusted is returned for a file or directory that an untrusted user may change.
var ErrUntrusted = errors.New("untrusted owner or mode")

// Author is the user who may control what muster does, besides root and the running user. A user who may
// write to a manifest may also write to the files that it evaluates. The zero value adds no user.
type Author struct {
	// UID is the owner of the manifest. GID is its group, which may write to it if GroupWrites is set.
	// Everybody means that all users may write to it.
	UID, GID               uint32
	GroupWrites, Everybody bool
	// Private is a directory that no other user can enter, empty for none. Modes below it do not matter.
	Private string
}

// AuthorOf returns the author of a manifest with these attributes in a directory of
// a party.
func AuthorOf(st *unix.Stat_t, in Party) Author {
	return Author{UID: st.Uid, GID: st.Gid, GroupWrites: st.Mode&unix.S_IWGRP != 0, Everybody: in == Anybody || isOpen(st.Mode)}
}

// AuthorIn returns the author of a request without a manifest: the user who may write to the
// directory.
func AuthorIn(dir string) (Author, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return Author{}, &fs.PathError{Op: "stat", Path: dir, Err: err}
	}

	return AuthorOf(&st, Trusted), nil
}

// Check returns ErrUntrusted, with the remedy, for a file with these attributes in a directory of a party if
// a user who is neither trusted nor the author may change the file.
func (a Author) Check(path string, st *unix.Stat_t, in Party) error {
	if a.Everybody {
		return nil
	}
	var remedies []string
	if !isTrusted(st.Uid) && st.Uid != a.UID {
		remedies = append(remedies, "chown root "+path)
	}
	mayGroup := a.GroupWrites && st.Gid == a.GID
	isPrivate := a.Private != "" && strings.HasPrefix(filepath.Clean(path), a.Private+"/")
	if !isPrivate && (st.Mode&unix.S_IWOTH != 0 || st.Mode&unix.S_IWGRP != 0 && !mayGroup) {
		remedies = append(remedies, "chmod go-w "+path)
	}
	switch {
	case len(remedies) > 0:
		return fmt.Errorf("%w: %s belongs to %s and has mode %04o, so others may change what muster does: %s", ErrUntrusted, path, OwnerName(st.Uid), st.Mode&0o7777, strings.Join(remedies, " && "))
	case in == Anybody:
		dir, err := filepath.Abs(filepath.Dir(path))
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: %s, so others may exchange %s and change what muster does: %s", ErrUntrusted, in.In(dir), path, in.Remedy(dir))
	default:
		return nil
	}
}
