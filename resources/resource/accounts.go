package resource

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/accounts"
)

// The files that accounts stand in.
const (
	userFile  = "/etc/passwd"
	groupFile = "/etc/group"
)

// superuser is the account, and the group, that every machine has.
const superuser = "root"

// AccountNeeds are the needs for an owner and a group: the files that they stand
// in. A number stands for itself, and root is always there.
func AccountNeeds(owner, group string) []Need {
	var out []Need
	if needsAccount(owner) {
		out = append(out, Need{What: PathNeed(userFile)})
	}
	if needsAccount(group) {
		out = append(out, Need{What: PathNeed(groupFile)})
	}

	return out
}

func needsAccount(name string) bool {
	return name != superuser && strings.Trim(name, "0123456789") != ""
}

// ResolveAccounts resolves an owner and a group to their numbers. One that is not
// known is a PrerequisiteError that wraps accounts.ErrNoAccount.
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
	if errors.Is(err, accounts.ErrNoAccount) {
		return PrerequisiteError{Needs: []string{PathNeed(file)}, Err: err}
	}

	return err
}

// CheckAccount reports an owner or group that is not given although ensure is
// not absent, and a number that no account has.
func CheckAccount(out *model.Problems, ensure, property, value string) {
	switch {
	case value == "" && ensure == model.EnsureAbsent:
	case strings.TrimSpace(value) == "":
		out.Property(property, "for example "+property+": root", "`%s` is required unless ensure is absent", property)
	case !accountNumberInRange(value):
		out.Property(property, fmt.Sprintf("numbers go up to %d", uint32(math.MaxUint32-1)), "invalid %s %q", property, value)
	}
}

// accountNumberInRange refuses numbers that the system has no account for; the
// largest of 32 bits means "leave it as it is" to chown(2).
func accountNumberInRange(value string) bool {
	if strings.Trim(value, "0123456789") != "" {
		return true
	}
	n, err := strconv.ParseUint(value, 10, 32)

	return err == nil && n < math.MaxUint32
}
