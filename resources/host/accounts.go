package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The words of a kind of account: the database of getent, which is also the
// name of the file, and what a user calls it.
const (
	userDatabase  = "passwd"
	groupDatabase = "group"
)

// UID resolves an owner: a number stands for itself, a name is looked up, in
// /etc/passwd, and where it is not there by getent, once. An unknown name and a
// number that is out of range are errors that wrap ErrNoAccount.
func (h *Host) UID(ctx context.Context, owner string) (uint32, error) {
	id, err := h.accounts.id(ctx, h, userDatabase, owner)
	if err != nil {
		return 0, fmt.Errorf("could not lookup user %q: %w", owner, err)
	}

	return id, nil
}

// GID is UID for groups.
func (h *Host) GID(ctx context.Context, group string) (uint32, error) {
	id, err := h.accounts.id(ctx, h, groupDatabase, group)
	if err != nil {
		return 0, fmt.Errorf("could not lookup group %q: %w", group, err)
	}

	return id, nil
}

// UserName gives the name of a uid, or its number when it has none.
func (h *Host) UserName(ctx context.Context, uid uint32) string {
	return h.accounts.name(ctx, h, userDatabase, uid)
}

// GroupName gives the name of a gid, or its number when it has none.
func (h *Host) GroupName(ctx context.Context, gid uint32) string {
	return h.accounts.name(ctx, h, groupDatabase, gid)
}

// ForgetAccounts makes the next look-up read the account tables again, after
// something ran that may have changed them.
func (h *Host) ForgetAccounts() { h.accounts.forget() }

// getentTimeout is how long a directory service may take to answer.
const getentTimeout = 30 * time.Second

// accountCache keeps the tables and the answers of getent. The zero value is empty.
type accountCache struct {
	// dir is where the tables are, /etc unless set.
	dir string

	mu     sync.Mutex
	tables map[string]accountTable
	// asked are the keys that getent was asked for, by database.
	asked map[[2]string]bool
}

// written forgets the tables when one of their files was written.
func (c *accountCache) written(path string) {
	if path == c.path(userDatabase) || path == c.path(groupDatabase) {
		c.forget()
	}
}

// path is where the file of a database is.
func (c *accountCache) path(database string) string { return cmp.Or(c.dir, "/etc") + "/" + database }

func (c *accountCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tables, c.asked = nil, nil
}

func (c *accountCache) id(ctx context.Context, h *Host, database, name string) (uint32, error) {
	if isNumber(name) {
		id, ok := parseID(name)
		if !ok {
			return 0, fmt.Errorf("%w: numbers go up to %d", ErrNoAccount, uint32(maxID))
		}
		return id, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	table, err := c.table(database)
	if err != nil {
		return 0, err
	}
	if id, ok := table.ids[name]; ok {
		return id, nil
	}
	if err := c.ask(ctx, h, database, name); err != nil {
		return 0, err
	}
	if id, ok := table.ids[name]; ok {
		return id, nil
	}

	return 0, ErrNoAccount
}

func (c *accountCache) name(ctx context.Context, h *Host, database string, id uint32) string {
	number := strconv.FormatUint(uint64(id), 10)
	c.mu.Lock()
	defer c.mu.Unlock()
	table, err := c.table(database)
	if err != nil {
		h.log.WarnContext(ctx, "could not read accounts", "error", err)
		return number
	}
	if name, ok := table.names[id]; ok {
		return name
	}
	if err := c.ask(ctx, h, database, number); err != nil {
		h.log.WarnContext(ctx, "could not look up account", "database", database, "id", id, "error", err)
	}
	if name, ok := table.names[id]; ok {
		return name
	}

	return number
}

// table gives a database's table, read at its first use. A machine without the
// file has no local accounts.
func (c *accountCache) table(database string) (accountTable, error) {
	if t, ok := c.tables[database]; ok {
		return t, nil
	}
	content, err := os.ReadFile(c.path(database))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return accountTable{}, err
	}
	if c.tables == nil {
		c.tables, c.asked = map[string]accountTable{}, map[[2]string]bool{}
	}
	c.tables[database] = parseAccounts(string(content))

	return c.tables[database], nil
}

// ask puts what getent knows of a key, a name or number, into the table. Each
// key is asked for once; a machine without getent has its files only.
func (c *accountCache) ask(ctx context.Context, h *Host, database, key string) error {
	asked := [2]string{database, key}
	if c.asked[asked] || key == "" || strings.HasPrefix(key, "-") || strings.ContainsAny(key, ":\n\x00") {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, getentTimeout, fmt.Errorf("timed out after %s", getentTimeout))
	defer cancel()
	result, err := h.Run(ctx, Command{Argv: []string{"getent", database, key}})
	switch {
	case errors.Is(err, ErrNotFound):
	case err != nil:
		return err
	case result.ExitCode == 0:
		c.merge(database, key, string(result.Stdout.Head))
	}
	c.asked[asked] = true

	return nil
}

// merge takes an answer of getent. The service may spell the name differently
// from the question (other case, with its domain), so the question is kept too.
func (c *accountCache) merge(database, key, answer string) {
	found := parseAccounts(answer)
	for name, id := range found.ids {
		c.tables[database].add(name, id)
		if !isNumber(key) {
			c.tables[database].add(key, id)
		}
	}
}
