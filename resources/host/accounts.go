package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/musterfleet/muster/resources/host/command"
)

// The databases of getent, which are also the names of their files in /etc.
const (
	userDatabase  = "passwd"
	groupDatabase = "group"
)

// ErrNoAccount means that the node does not know the user or group.
var ErrNoAccount = errors.New("no such account")

// Accounts resolve the users and groups of the node: from the tables and from
// getent. They are safe for concurrent use. Make them with New.
type Accounts struct {
	dir      string
	commands *command.Runner
	log      *slog.Logger

	mu sync.Mutex
	// files are the tables of the files, answers the accounts from getent, asked the keys of its requests. All
	// are valid until ForgetAccounts.
	files, answers map[string]accountTable
	asked          map[[2]string]bool
}

// NewAccounts returns the accounts of the files passwd and group in a directory, and of getent. It reads no
// file.
func NewAccounts(dir string, commands *command.Runner, log *slog.Logger) *Accounts {
	a := &Accounts{dir: dir, commands: commands, log: log}
	a.ForgetAccounts()

	return a
}

// UID returns the number of a user. A number is returned unchanged. A name is looked up in /etc/passwd, then
// once with getent. An unknown name and a number out of range wrap ErrNoAccount.
func (a *Accounts) UID(ctx context.Context, owner string) (uint32, error) {
	id, err := a.id(ctx, userDatabase, owner)
	if err != nil {
		return 0, fmt.Errorf("could not lookup user %q: %w", owner, err)
	}

	return id, nil
}

// GID returns the number of a group, like UID.
func (a *Accounts) GID(ctx context.Context, group string) (uint32, error) {
	id, err := a.id(ctx, groupDatabase, group)
	if err != nil {
		return 0, fmt.Errorf("could not lookup group %q: %w", group, err)
	}

	return id, nil
}

// UserName returns the name of a uid, or its number when it has none.
func (a *Accounts) UserName(ctx context.Context, uid uint32) string {
	return a.name(ctx, userDatabase, uid)
}

// GroupName returns the name of a gid, or its number when it has none.
func (a *Accounts) GroupName(ctx context.Context, gid uint32) string {
	return a.name(ctx, groupDatabase, gid)
}

// ForgetAccounts makes the next lookup read the files and ask getent again.
func (a *Accounts) ForgetAccounts() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.files, a.answers, a.asked = map[string]accountTable{}, map[string]accountTable{}, map[[2]string]bool{}
}

const getentTimeout = 30 * time.Second

// FileWritten discards the tables if the file at path is one of them.
func (a *Accounts) FileWritten(path string) {
	if path == a.path(userDatabase) || path == a.path(groupDatabase) {
		a.ForgetAccounts()
	}
}

func (a *Accounts) path(database string) string { return a.dir + "/" + database }

func (a *Accounts) id(ctx context.Context, database, name string) (uint32, error) {
	if IsAccountNumber(name) {
		id, ok := ParseAccountID(name)
		if !ok {
			return 0, fmt.Errorf("%w: numbers go up to %d", ErrNoAccount, uint32(MaxAccountID))
		}
		return id, nil
	}
	id, known := uint32(0), false
	err := a.lookUp(ctx, database, name, func(t accountTable) bool {
		id, known = t.ids[name]
		return known
	})
	if err == nil && !known {
		err = ErrNoAccount
	}

	return id, err
}

func (a *Accounts) name(ctx context.Context, database string, id uint32) string {
	number := strconv.FormatUint(uint64(id), 10)
	name, known := "", false
	err := a.lookUp(ctx, database, number, func(t accountTable) bool {
		name, known = t.names[id]
		return known
	})
	if err != nil {
		a.log.WarnContext(ctx, "could not look up account", "database", database, "id", id, "error", err)
	}

	return cmp.Or(name, number)
}

// lookUp calls find with the table of a database, then with what getent has answered,
// and once more with its answer about key, until find returns true.
func (a *Accounts) lookUp(ctx context.Context, database, key string, find func(accountTable) bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	table, err := a.table(database)
	if err != nil || find(table) || find(a.answers[database]) {
		return err
	}
	if err := a.ask(ctx, database, key); err != nil {
		return err
	}
	find(a.answers[database])

	return nil
}

func (a *Accounts) table(database string) (accountTable, error) {
	if t, known := a.files[database]; known {
		return t, nil
	}
	content, err := os.ReadFile(a.path(database))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return accountTable{}, err
	}
	a.files[database] = parseAccounts(string(content))

	return a.files[database], nil
}

// ask adds getent's answer about a name or number. Each key is requested once. A machine without getent uses
// only its files.
func (a *Accounts) ask(ctx context.Context, database, key string) error {
	asked := [2]string{database, key}
	if a.asked[asked] || key == "" || strings.HasPrefix(key, "-") || strings.ContainsAny(key, ":\n\x00") {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, getentTimeout, fmt.Errorf("timed out after %s", getentTimeout))
	defer cancel()
	result, err := a.commands.Run(ctx, command.Command{Argv: []string{"getent", database, key}})
	switch {
	case errors.Is(err, command.ErrNotFound):
	case err != nil:
		return err
	case result.ExitCode == 0:
		a.merge(database, key, string(result.Stdout.Head))
	}
	a.asked[asked] = true

	return nil
}

// merge adds an answer of getent. The service may spell the name differently (other case, with its domain),
// so merge also stores the requested key.
func (a *Accounts) merge(database, key, answer string) {
	known, ok := a.answers[database]
	if !ok {
		known = parseAccounts("")
	}
	for name, id := range parseAccounts(answer).ids {
		known.add(name, id)
		if !IsAccountNumber(key) {
			known.add(key, id)
		}
	}
	known.text += answer
	a.answers[database] = known
}

type accountTable struct {
	ids   map[string]uint32
	names map[uint32]string
	// text are the lines of the accounts.
	text string
}

// parseAccounts reads the common format of passwd(5) and group(5): the name in the first field, the
// number in the third. It ignores other lines. The first of several accounts with the same name or
// number wins, as in libc.
func parseAccounts(text string) accountTable {
	t := accountTable{ids: map[string]uint32{}, names: map[uint32]string{}, text: text}
	for id, fields := range t.lines() {
		t.add(fields[0], id)
	}

	return t
}

// lines returns the number and the fields of each account.
func (t accountTable) lines() iter.Seq2[uint32, []string] {
	return func(yield func(uint32, []string) bool) {
		for line := range strings.Lines(t.text) {
			fields := strings.Split(strings.TrimSuffix(line, "\n"), ":")
			// Lines that start with + or - include NIS accounts.
			if len(fields) < 4 || fields[0] == "" || strings.ContainsAny(fields[0][:1], "+-#") {
				continue
			}
			if id, ok := ParseAccountID(fields[2]); ok && !yield(id, fields) {
				return
			}
		}
	}
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
