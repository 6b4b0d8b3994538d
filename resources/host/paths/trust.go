package paths

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Party is the user who may replace files in a directory, or redirect a path by a link: the number of an
// untrusted user, or one of these values.
type Party int64

const (
	// Trusted means root and the running user.
	Trusted Party = -1
	// Anybody means that all users may write to a directory without the sticky bit.
	Anybody Party = -2
)

// PartyOf returns the party of a directory, link or file by its mode and owner.
func PartyOf(mode, uid uint32) Party {
	switch {
	case mode&unix.S_IFMT == unix.S_IFDIR && isOpen(mode):
		return Anybody
	case isTrusted(uid):
		return Trusted
	default:
		return Party(uid)
	}
}

// isOpen reports whether a mode lets all users write, without the sticky bit.
func isOpen(mode uint32) bool { return mode&(unix.S_IWOTH|unix.S_ISVTX) == unix.S_IWOTH }

func isTrusted(uid uint32) bool { return uid == 0 || uid == uint32(os.Geteuid()) }

// MayLead reports whether a walk may continue from a directory or link of the party to another directory or
// file.
func (p Party) MayLead(mode, uid uint32) bool {
	switch p {
	case Trusted:
		return true
	case Anybody:
		return PartyOf(mode, uid) == Anybody
	default:
		return Party(uid) == p
	}
}

// Keeps reports whether the owner of a file in a directory of the party has put the file there. Otherwise the
// party may have moved it: in the directory of a user, files of other users; in a directory of anybody, files
// that not all users may read.
func (p Party) Keeps(mode, uid uint32) bool {
	if p == Anybody {
		return mode&unix.S_IROTH != 0
	}

	return p.MayLead(mode, uid)
}

// In describes the party of a directory, as a clause after "belongs to ann, but".
func (p Party) In(dir string) string {
	if p == Anybody {
		return "everybody may write to " + dir
	}

	return dir + " to " + OwnerName(uint32(p))
}

// Remedy returns the change that makes a directory of the party safe.
func (p Party) Remedy(dir string) string {
	if p == Anybody {
		return "take the right to write from others, or set the sticky bit of " + dir
	}

	return "give both the same owner"
}

// OwnerName returns the name and the number of a user.
func OwnerName(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return fmt.Sprintf("%s (%s)", u.Username, number)
	}

	return "user " + number
}

// ErrUntrusted is returned for a file or directory that an untrusted user may change.
var ErrUntrusted = errors.New("untrusted owner or mode")

// Author is the user, besides root and the running user, who may control muster. A user who may write to a
// manifest may also write to the files that it evaluates. The zero value adds no user.
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
// a user may change the file who is neither trusted nor the author.
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
		return fmt.Errorf("%w: %s, so others may replace %s and change what muster does: %s", ErrUntrusted, in.In(dir), path, in.Remedy(dir))
	default:
		return nil
	}
}
