package provision

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/conf"
)

// ErrServerFile reports a configuration file of nats-server that cannot be edited.
var ErrServerFile = errors.New("cannot edit the NATS configuration")

// ServerFile is a configuration file of nats-server with its users.
type ServerFile struct {
	path, text string
	// tree holds the tokens of the parser of nats-server, values only the values.
	tree, values map[string]any
}

// NewUser is a user to add. Include is the file of its permissions, in the directory of the
// configuration.
type NewUser struct{ Name, Password, Include string }

// ServerFileEdit is a change of a ServerFile.
type ServerFileEdit struct {
	// Text is the complete new file.
	Text string
	file *ServerFile
	// undo reverts the change in the values of the new file.
	undo func(values map[string]any) error
}

type fileToken interface {
	Value() any
	Line() int
	Position() int
	SourceFile() string
}

// ParseServerFile parses the file at path, which has this text, and the files that it includes.
func ParseServerFile(path string, text []byte) (*ServerFile, error) {
	tree, err := conf.ParseFileWithChecks(path)
	if err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrServerFile, path, err)
	}
	values, err := conf.ParseFile(path)

	return &ServerFile{path: path, text: string(text), tree: tree, values: values}, err
}

// Check parses the new file at path. It returns an error if the file lacks the change or has
// another one.
func (e ServerFileEdit) Check(path string) error {
	values, err := conf.ParseFile(path)
	if err == nil {
		err = e.undo(values)
	}
	if err == nil && !reflect.DeepEqual(values, e.file.values) {
		err = errors.New("more than this user would change")
	}
	if err != nil {
		return e.file.errorf("%w: edit it by hand", err)
	}

	return nil
}

// Has reports whether an account, or the server without accounts, has a user with this name.
func (f *ServerFile) Has(name string) bool {
	authorization := childToken(f.tree, "authorization", "authentication")

	return len(usersOf(f.tree, name)) > 0 || tokenValue(childToken(authorization, "user", "username")) == name
}

// Add adds users to an account.
func (f *ServerFile) Add(account string, users []NewUser) (ServerFileEdit, error) {
	block := func(tree any) any { return childToken(childToken(tree, "accounts"), account) }
	if block(f.tree) == nil {
		return ServerFileEdit{}, f.errorf("it has no account %s: add the accounts that \"muster fleet accounts\" prints, or give --one-account for a server without accounts", account)
	}

	return f.add(users, block, account)
}

// AddToServer adds users to the server without accounts.
func (f *ServerFile) AddToServer(users []NewUser) (ServerFileEdit, error) {
	block := func(tree any) any { return childToken(tree, "authorization", "authentication") }
	if block(f.tree) == nil {
		return ServerFileEdit{}, f.errorf("it has no block authorization: add one with an administrator, authorization: {users: [{user: admin, password: …}]}")
	}
	for _, single := range []string{"user", "username", "token", "auth_callout"} {
		if childToken(block(f.tree), single) != nil {
			return ServerFileEdit{}, f.errorf("authorization has %s: replace it with a list of users", single)
		}
	}

	return f.add(users, block, "authorization", "authentication")
}

// HasAccounts reports whether the file defines accounts.
func (f *ServerFile) HasAccounts() bool { return childToken(f.tree, "accounts") != nil }

// add adds users to a block with one of these names.
func (f *ServerFile) add(users []NewUser, block func(tree any) any, names ...string) (ServerFileEdit, error) {
	in := block(f.tree)
	if _, is := tokenValue(in).(map[string]any); !is {
		return ServerFileEdit{}, f.errorf("%s is not a block", names[0])
	}
	entries := make([]string, len(users))
	for i, u := range users {
		entries[i] = fmt.Sprintf("{user: %s, password: %s, include %s}", quote(u.Name), quote(u.Password), quote(u.Include))
	}
	list := childToken(in, "users")
	before, isList := tokenValue(list).([]any)
	if list != nil && !isList {
		return ServerFileEdit{}, f.errorf("users is not a list")
	}
	var at int
	var insertion string
	var err error
	switch {
	case list == nil:
		at, insertion, err = f.within(in, names, "{", "    users: [\n      "+strings.Join(entries, "\n      ")+"\n    ]")
	case len(before) == 0:
		at, insertion, err = f.within(list, []string{"users"}, "[", "      "+strings.Join(entries, "\n      "))
	default:
		at, insertion, err = f.following(before[len(before)-1], entries)
	}
	if err != nil {
		return ServerFileEdit{}, err
	}

	return ServerFileEdit{Text: f.text[:at] + insertion + f.text[at:], file: f, undo: func(values map[string]any) error {
		return dropUsers(block(values), users, len(before), list != nil)
	}}, nil
}

// dropUsers removes the users that were added to a block. before is the number of users before.
func dropUsers(block any, users []NewUser, before int, hadList bool) error {
	now, _ := childToken(block, "users").([]any)
	if len(now) != before+len(users) {
		return errors.New("the list of users does not get the new ones")
	}
	for i, u := range users {
		if added := now[before+i]; childToken(added, "user") != u.Name || childToken(added, "password") != u.Password {
			return fmt.Errorf("user %s would not have its name and password", u.Name)
		}
	}
	in := block.(map[string]any)
	if !hadList {
		delete(in, "users")
	}
	for key := range in {
		if strings.ToLower(key) == "users" {
			in[key] = now[:before]
		}
	}

	return nil
}

// SetPassword changes the password of a user.
func (f *ServerFile) SetPassword(name, password string) (ServerFileEdit, error) {
	users := usersOf(f.tree, name)
	switch len(users) {
	case 0:
		return ServerFileEdit{}, f.errorf("it has no user %s", name)
	case 1:
	default:
		return ServerFileEdit{}, f.errorf("it has %d users %s", len(users), name)
	}
	field := childToken(users[0], "password", "pass")
	old, isText := tokenValue(field).(string)
	if !isText {
		return ServerFileEdit{}, f.errorf("user %s has no password", name)
	}
	at, err := f.behind(field, []string{"password", "pass"}, "")
	if err != nil {
		return ServerFileEdit{}, err
	}
	rest, size := f.text[at:], 0
	for _, written := range []string{quote(old), "'" + old + "'", old} {
		if size == 0 && strings.HasPrefix(rest, written) {
			size = len(written)
		}
	}
	if size == 0 {
		return ServerFileEdit{}, f.errorf("the password of user %s is a variable or has escapes: change it by hand", name)
	}

	return ServerFileEdit{Text: f.text[:at] + quote(password) + rest[size:], file: f, undo: func(values map[string]any) error {
		users := usersOf(values, name)
		if len(users) != 1 || childToken(users[0], "password", "pass") != password {
			return fmt.Errorf("user %s would not have the new password", name)
		}
		user := users[0].(map[string]any)
		for key := range user {
			if slices.Contains([]string{"password", "pass"}, strings.ToLower(key)) {
				user[key] = old
			}
		}
		return nil
	}}, nil
}

// within returns the offset after the opening bracket of a value, and the text to insert there.
func (f *ServerFile) within(of any, names []string, bracket, lines string) (at int, insertion string, err error) {
	at, err = f.behind(of, names, bracket)
	if err != nil {
		return 0, "", err
	}
	insertion = "\n" + lines
	if line, _, _ := strings.Cut(f.text[at:], "\n"); strings.TrimSpace(line) != "" {
		insertion += "\n"
	}

	return at, insertion, nil
}

// following returns the offset after the last entry of a list, and the text to insert there.
func (f *ServerFile) following(last any, entries []string) (at int, insertion string, err error) {
	at, err = f.offset(last)
	if err == nil && !strings.HasSuffix(f.text[:at], "}") {
		err = f.errorf("the end of its list of users is not found: edit it by hand")
	}
	if err != nil {
		return 0, "", err
	}
	line, _, _ := strings.Cut(f.text[at:], "\n")
	line = strings.TrimSuffix(line, "\r")
	if !lineEnd.MatchString(line) {
		return at, ", " + strings.Join(entries, ", "), nil
	}
	indent := "\n" + leading.FindString(f.text[strings.LastIndexByte(f.text[:at], '\n')+1:])

	return at + len(line), indent + strings.Join(entries, indent), nil
}

var (
	// lineEnd matches the rest of a line without content, except for a comment.
	lineEnd = regexp.MustCompile(`^[ \t]*,?[ \t]*((#|//).*)?$`)
	leading = regexp.MustCompile(`^[ \t]*`)
)

// behind returns the offset after the key of a value and its opening bracket. The key has one of these
// names.
func (f *ServerFile) behind(of any, names []string, bracket string) (int, error) {
	at, err := f.offset(of)
	if err != nil {
		return 0, err
	}
	key := regexp.MustCompile(`^(?i:` + strings.Join(names, "|") + `)["']?\s*[:=]?\s*` + regexp.QuoteMeta(bracket))
	found := key.FindString(f.text[at:])
	if found == "" {
		return 0, f.errorf("%s is not found in it: edit it by hand", names[0])
	}

	return at + len(found), nil
}

// offset returns the offset of a value. In a block it is the offset of the key, in a list the end of
// the value.
func (f *ServerFile) offset(of any) (int, error) {
	t, is := of.(fileToken)
	if !is {
		return 0, f.errorf("its users are not found: edit it by hand")
	}
	if t.SourceFile() != f.path {
		return 0, f.errorf("its users are in %s: edit that by hand", t.SourceFile())
	}
	at := 0
	for range t.Line() - 1 {
		line := strings.IndexByte(f.text[at:], '\n')
		if line < 0 {
			return 0, f.errorf("it changed: run the command again")
		}
		at += line + 1
	}
	// The parser counts from the preceding newline, except in the first line.
	if at > 0 {
		at--
	}
	if at += t.Position(); at > len(f.text) {
		return 0, f.errorf("it changed: run the command again")
	}

	return at, nil
}

func (f *ServerFile) errorf(format string, args ...any) error {
	return fmt.Errorf("%w %s: %w", ErrServerFile, f.path, fmt.Errorf(format, args...))
}

// usersOf returns the users of this name in all lists.
func usersOf(tree any, name string) []any {
	lists := []any{childToken(childToken(tree, "authorization", "authentication"), "users")}
	accounts, _ := tokenValue(childToken(tree, "accounts")).(map[string]any)
	for _, account := range accounts {
		lists = append(lists, childToken(account, "users"))
	}
	var found []any
	for _, list := range lists {
		users, _ := tokenValue(list).([]any)
		for _, u := range users {
			if tokenValue(childToken(u, "user", "username")) == name {
				found = append(found, tokenValue(u))
			}
		}
	}

	return found
}

// childToken returns the value of a key with one of these names. nats-server ignores the case of
// its own keys. Names of accounts have upper case letters and match exactly.
func childToken(of any, names ...string) any {
	block, _ := tokenValue(of).(map[string]any)
	for key, v := range block {
		if slices.Contains(names, key) || slices.Contains(names, strings.ToLower(key)) {
			return v
		}
	}

	return nil
}

func tokenValue(of any) any {
	if t, is := of.(fileToken); is {
		return t.Value()
	}

	return of
}

// quote returns a string as nats-server reads it.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
