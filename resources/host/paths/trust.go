package paths

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// Party is who may exchange what is in a directory, or lead a path elsewhere by a
// link: the number of an untrusted user, or one of these.
type Party int64

const (
	// Trusted are root and the running user.
	Trusted Party = -1
	// Anybody may write to a directory without the sticky bit.
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

// MayLead reports whether a party may lead a walk to a directory, or by its link to
// a file.
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

// Keeps reports whether what is in a directory of the party may be taken for what
// its owner has put there. It may not where the party can have moved it there: in
// the directory of a user, what is not theirs; in one of anybody, what not
// everybody may read.
func (p Party) Keeps(mode, uid uint32) bool {
	if p == Anybody {
		return mode&unix.S_IROTH != 0
	}

	return p.MayLead(mode, uid)
}

// In returns whose a directory of the party is, as a clause that follows "belongs to
// ann, but".
func (p Party) In(dir string) string {
	if p == Anybody {
		return "everybody may write to " + dir
	}

	return dir + " to " + OwnerName(uint32(p))
}

// Remedy returns what makes a directory of the party safe to pass.
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
