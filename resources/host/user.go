package host

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/resources/host/command"
)

// NoGroup is the primary group of a user without an account.
const NoGroup = ^uint32(0)

// The fields of a user in passwd(5), and of a group in group(5).
const (
	fieldGID     = 3
	fieldHome    = 5
	fieldShell   = 6
	userFields   = 7
	fieldMembers = 3
)

// User returns the account of a user for its commands, with the supplementary groups of /etc/group. A name is
// looked up like UID. A number without an account has NoGroup and no home.
func (a *Accounts) User(ctx context.Context, owner string) (*command.Account, error) {
	uid, err := a.UID(ctx, owner)
	if err != nil {
		return nil, err
	}
	account := &command.Account{Name: owner, UID: uid, GID: NoGroup}
	id := strconv.FormatUint(uint64(uid), 10)
	// Several names may have one number.
	err = a.lookUp(ctx, userDatabase, id, func(t accountTable) bool {
		for found, fields := range t.lines() {
			gid, ok := ParseAccountID(fields[fieldGID])
			if found != uid || !ok || len(fields) < userFields || account.GID != NoGroup && fields[0] != owner {
				continue
			}
			account.Name, account.GID, account.Home, account.Shell = fields[0], gid, fields[fieldHome], fields[fieldShell]
		}
		return account.GID != NoGroup
	})
	if err == nil {
		account.Groups, err = a.localGroups(account)
	}
	if err != nil {
		return nil, fmt.Errorf("could not lookup user %q: %w", owner, err)
	}

	return account, nil
}

// localGroups returns the supplementary groups of an account in /etc/group.
func (a *Accounts) localGroups(account *command.Account) (groups []uint32, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	table, err := a.table(groupDatabase)
	for gid, fields := range table.lines() {
		if gid != account.GID && slices.Contains(strings.Split(fields[fieldMembers], ","), account.Name) {
			groups = append(groups, gid)
		}
	}

	return groups, err
}

// initGroups is the database of getent for the groups of a user.
const initGroups = "initgroups"

// JoinGroups adds the supplementary groups that other services than the files of the node know, such as LDAP. It
// asks getent once for each user.
func (a *Accounts) JoinGroups(ctx context.Context, account *command.Account) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.ask(ctx, initGroups, account.Name); err != nil {
		return err
	}
	for line := range strings.Lines(a.answers[initGroups].text) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != account.Name {
			continue
		}
		for text := range strings.FieldsSeq(rest) {
			if gid, ok := ParseAccountID(text); ok && gid != account.GID && !slices.Contains(account.Groups, gid) {
				account.Groups = append(account.Groups, gid)
			}
		}
	}

	return nil
}
