package resource

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
)

// The files of accounts.
const (
	userFile  = "/etc/passwd"
	groupFile = "/etc/group"
)

// AccountNeeds returns the account files that an owner and a group need. A number needs no file, and root
// always exists.
func AccountNeeds(owner, group string) []Need {
	var out []Need
	for _, of := range [][2]string{{userFile, owner}, {groupFile, group}} {
		if file, name := of[0], of[1]; name != "" && name != "root" && !host.IsAccountNumber(name) {
			out = append(out, Need{What: PathNeed(file)})
		}
	}

	return out
}

// ResolveAccounts returns the numbers of an owner and a group. The error for an unknown name is a
// PrerequisiteError that wraps host.ErrNoAccount.
func ResolveAccounts(ctx context.Context, h *host.Host, owner, group string) (uid, gid uint32, err error) {
	if uid, err = h.UID(ctx, owner); err != nil {
		return 0, 0, missingAccount(userFile, err)
	}
	if gid, err = h.GID(ctx, group); err != nil {
		return 0, 0, missingAccount(groupFile, err)
	}

	return uid, gid, nil
}

func missingAccount(file string, err error) error {
	if errors.Is(err, host.ErrNoAccount) {
		return PrerequisiteError{Needs: []string{PathNeed(file)}, Err: err}
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
