package host

import (
	"strconv"
	"strings"
)

// accountTable maps names and numbers of users, or of groups.
type accountTable struct {
	ids   map[string]uint32
	names map[uint32]string
}

// parseAccounts reads the common format of passwd(5) and group(5): the name in the first field, the
// number in the third. It ignores other lines. The first of several accounts with the same name or
// number wins, as in libc.
func parseAccounts(text string) accountTable {
	t := accountTable{ids: map[string]uint32{}, names: map[uint32]string{}}
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		// Lines that start with + or - include NIS accounts.
		if len(fields) < 4 || fields[0] == "" || strings.ContainsAny(fields[0][:1], "+-#") {
			continue
		}
		id, ok := ParseAccountID(fields[2])
		if !ok {
			continue
		}
		t.add(fields[0], id)
	}

	return t
}

func (t accountTable) add(name string, id uint32) {
	if _, ok := t.ids[name]; !ok {
		t.ids[name] = id
	}
	if _, ok := t.names[id]; !ok {
		t.names[id] = name
	}
}

// MaxAccountID is the largest user or group ID. To chown, the next number means "unchanged".
const MaxAccountID = 1<<32 - 2

// ParseAccountID reads the number of a user or group, in decimal digits and nothing else.
func ParseAccountID(s string) (uint32, bool) {
	id, err := strconv.ParseUint(s, 10, 32)

	return uint32(id), err == nil && IsAccountNumber(s) && id <= MaxAccountID
}

// IsAccountNumber reports whether an owner is given as a number, which may be out of range.
func IsAccountNumber(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}
