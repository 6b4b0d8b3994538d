package paths

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

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

// isTrusted reports whether a user is root or the running user.
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
