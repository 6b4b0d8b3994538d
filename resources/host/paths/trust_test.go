package paths_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

const (
	dir, file, link = unix.S_IFDIR, unix.S_IFREG, unix.S_IFLNK
	sticky          = unix.S_ISVTX
	ann, bob        = 4001, 4002
	staff, users    = 5001, 5002
)

// TestPartyOf has every kind of owner and mode.
func TestPartyOf(t *testing.T) {
	self := uint32(os.Geteuid())
	for name, c := range map[string]struct {
		mode, uid uint32
		want      paths.Party
	}{
		"root's directory":            {dir | 0o755, 0, paths.Trusted},
		"own directory":               {dir | 0o700, self, paths.Trusted},
		"a user's directory":          {dir | 0o755, ann, ann},
		"root's, a group writes":      {dir | 0o775, 0, paths.Trusted},
		"root's, everybody writes":    {dir | 0o777, 0, paths.Anybody},
		"root's, others write":        {dir | 0o702, 0, paths.Anybody},
		"a user's, everybody writes":  {dir | 0o777, ann, paths.Anybody},
		"root's, sticky":              {dir | sticky | 0o777, 0, paths.Trusted},
		"a user's, sticky":            {dir | sticky | 0o777, ann, ann},
		"root's link":                 {link | 0o777, 0, paths.Trusted},
		"a user's link":               {link | 0o777, ann, ann},
		"root's file, everybody's":    {file | 0o666, 0, paths.Trusted},
		"a user's file":               {file | 0o600, ann, ann},
		"the highest number of users": {dir | 0o755, ^uint32(0), paths.Party(^uint32(0))},
	} {
		if got := paths.PartyOf(c.mode, c.uid); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}

// TestParty has the permitted targets of each party, and the permitted contents of its directories.
func TestParty(t *testing.T) {
	for name, c := range map[string]struct {
		p           paths.Party
		mode, uid   uint32
		lead, keeps bool
	}{
		"root to a user's file":             {paths.Trusted, file | 0o600, ann, true, true},
		"root to root's":                    {paths.Trusted, dir | 0o700, 0, true, true},
		"a user to their own":               {ann, file | 0o600, ann, true, true},
		"a user to root's":                  {ann, file | 0o644, 0, false, false},
		"a user to another one's":           {ann, dir | 0o755, bob, false, false},
		"anybody to root's directory":       {paths.Anybody, dir | 0o755, 0, false, true},
		"anybody to root's closed one":      {paths.Anybody, dir | 0o700, 0, false, false},
		"anybody to a directory of anybody": {paths.Anybody, dir | 0o777, 0, true, true},
		"anybody to root's file":            {paths.Anybody, file | 0o644, 0, false, true},
		"anybody to root's secret":          {paths.Anybody, file | 0o640, 0, false, false},
		"anybody to a user's secret":        {paths.Anybody, file | 0o600, ann, false, false},
		"anybody to a link":                 {paths.Anybody, link | 0o777, ann, false, true},
	} {
		if lead, keeps := c.p.MayLead(c.mode, c.uid), c.p.Keeps(c.mode, c.uid); lead != c.lead || keeps != c.keeps {
			t.Errorf("%s: %t, %t", name, lead, keeps)
		}
	}
}

// stat are the attributes of a file.
func stat(mode, uid, gid uint32) *unix.Stat_t { return &unix.Stat_t{Mode: mode, Uid: uid, Gid: gid} }

// TestAuthor has manifests with their permitted evaluations.
func TestAuthor(t *testing.T) {
	const noParty = paths.Trusted
	for name, c := range map[string]struct {
		manifest *unix.Stat_t
		in       paths.Party
		file     *unix.Stat_t
		where    paths.Party
		// words are of the error, empty for none.
		words string
	}{
		"root's of root":                             {stat(file|0o644, 0, 0), noParty, stat(file|0o644, 0, 0), noParty, ""},
		"a user's of root":                           {stat(file|0o644, 0, 0), noParty, stat(file|0o644, ann, staff), ann, "belongs to user 4001 and has mode 0644, so others may change what muster does: chown root /d/f"},
		"a user's of that user":                      {stat(file|0o644, ann, staff), ann, stat(file|0o644, ann, staff), ann, ""},
		"another one's of a user":                    {stat(file|0o644, ann, staff), ann, stat(file|0o644, bob, staff), bob, "belongs to user 4002"},
		"root's of a user":                           {stat(file|0o644, ann, staff), ann, stat(file|0o644, 0, 0), noParty, ""},
		"a group writes, not to the manifest":        {stat(file|0o644, ann, staff), ann, stat(file|0o664, ann, staff), ann, "has mode 0664, so others may change what muster does: chmod go-w /d/f"},
		"a group writes to both":                     {stat(file|0o664, ann, staff), ann, stat(file|0o664, ann, staff), ann, ""},
		"two groups write":                           {stat(file|0o664, ann, staff), ann, stat(file|0o664, ann, users), ann, "chmod go-w /d/f"},
		"others write":                               {stat(file|0o664, ann, staff), ann, stat(file|0o666, ann, staff), ann, "chmod go-w /d/f"},
		"others write, another one's":                {stat(file|0o644, 0, 0), noParty, stat(file|0o646, ann, staff), ann, ": chown root /d/f && chmod go-w /d/f"},
		"others write to both":                       {stat(file|0o666, ann, staff), ann, stat(file|0o666, bob, users), bob, ""},
		"anybody may exchange the file":              {stat(file|0o644, 0, 0), noParty, stat(file|0o644, 0, 0), paths.Anybody, "everybody may write to /d, so others may replace /d/f and change what muster does: take the right to write from others, or set the sticky bit of /d"},
		"anybody may exchange both":                  {stat(file|0o644, 0, 0), paths.Anybody, stat(file|0o644, bob, users), paths.Anybody, ""},
		"a working directory":                        {stat(dir|0o755, ann, staff), noParty, stat(file|0o644, ann, staff), ann, ""},
		"a working directory like /tmp":              {stat(dir|sticky|0o777, 0, 0), noParty, stat(file|0o644, ann, staff), ann, "belongs to user 4001"},
		"a working directory that a group may write": {stat(dir|0o775, ann, staff), noParty, stat(file|0o664, ann, staff), ann, ""},
	} {
		err := paths.AuthorOf(c.manifest, c.in).Check("/d/f", c.file, c.where)
		if (err == nil) != (c.words == "") || err != nil && (!errors.Is(err, paths.ErrUntrusted) || !strings.Contains(err.Error(), c.words)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAuthorOfABundle has files that were unpacked where only muster can reach them.
func TestAuthorOfABundle(t *testing.T) {
	a := paths.Author{Private: "/bundle"}
	for path, words := range map[string]string{
		"/bundle/f": "", "/bundle/d/f": "", "/bundles/f": "chmod go-w", "/bundle": "chmod go-w", "/bundle/../f": "chmod go-w", "/f": "chmod go-w",
	} {
		if err := a.Check(path, stat(file|0o666, 0, 0), paths.Trusted); (err == nil) != (words == "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := a.Check("/bundle/f", stat(file|0o644, ann, staff), paths.Trusted); !errors.Is(err, paths.ErrUntrusted) {
		t.Errorf("a user's: %v", err)
	}
}
