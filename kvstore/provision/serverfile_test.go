package provision_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/musterfleet/muster/kvstore"
	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/testing/loopback"
)

// writeConfig writes a configuration and the files that it includes.
func writeConfig(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	allowed, err := provision.NodePermissions(kvstore.JoinedAPI, "", "web02", []string{"web"})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"nats.conf": text, "web02.conf": allowed.ServerConfig(), "web03.conf": allowed.ServerConfig(),
		"users.conf": "users: [{user: old, password: old}]\n", "password.conf": "password: old\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	return filepath.Join(dir, "nats.conf")
}

func parse(t *testing.T, text string) (path string, f *provision.ServerFile) {
	t.Helper()
	path = writeConfig(t, text)
	f, err := provision.ParseServerFile(path, []byte(text))
	if err != nil {
		t.Fatal(err)
	}

	return path, f
}

// connects has a server with the configuration accept a user.
func connects(t *testing.T, path string, edit provision.ServerFileEdit, users ...string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(edit.Text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := edit.Check(path); err != nil {
		t.Fatalf("%v\n%s", err, edit.Text)
	}
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatalf("%v\n%s", err, edit.Text)
	}
	address := loopback.Address(t)
	opts.Host, opts.Port, opts.NoLog, opts.NoSigs = "127.0.0.1", int(address.Port()), true, true
	srv, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	if !srv.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	for _, user := range users {
		name, password, _ := strings.Cut(user, " ")
		nc, err := nats.Connect("nats://"+address.String(), nats.UserInfo(name, password), nats.Timeout(time.Minute))
		if err != nil {
			t.Errorf("user %s: %v\n%s", name, err, edit.Text)
			continue
		}
		nc.Close()
	}
}

const (
	two = `{user: "web02", password: "p\"w\\ $2", include "web02.conf"}`
	old = "{user: old, password: old}"
)

// TestUsersAreAdded checks where the new user is: the mark → shows it.
func TestUsersAreAdded(t *testing.T) {
	for name, text := range map[string]string{
		"one a line":          "accounts: {\n  NODES: {\n    users: [\n      " + old + "→\n      @\n    ]\n  }\n}\n",
		"after a comment":     "accounts: {\n NODES: {users: [\n  # nodes } ] \"\n\t" + old + ", # the first }→\n\t@\n ]}\n}\n",
		"in one line":         "accounts {NODES {users [" + old + "→, @]}}\n",
		"an empty list":       "accounts: {NODES: {users: []}}\n",
		"an empty list below": "accounts = {NODES = {users = [→\n      @\n  ]}}\n",
		"with strings":        "server_name: \"a{[#b\"\naccounts: {NODES: {users: [\n  {user: old, password: \"a}]#\"}→\n  @\n]}}\n",
		"keys in quotes":      "{\"accounts\": {\"NODES\": {\"Users\": [\n  {\"user\": \"old\", \"password\": \"old\"}→\n  @\n]}}}\n",
		"a block of a user":   "accounts: {\n  NODES: {\n    users: [\n      {\n        user: old\n        password: old\n      }→\n      @\n    ]\n  }\n}\n",
		"other accounts":      "accounts: {A: {users: [{user: a, password: a}]}, NODES: {users: [\n  " + old + "→\n  @\n]}, Z: {users: [{user: z, password: z}]}}\n",
		"two blocks":          "accounts: {NODES: {users: [{user: gone, password: a}]}}\naccounts: {NODES: {users: [\n" + old + "→\n@\n]}}\n",
		"lines of Windows":    "accounts: {\r\n  NODES: {\r\n    users: [\r\n      " + old + "→\n      @\r\n    ]\r\n  }\r\n}\r\n",
		"no final newline":    "accounts: {NODES: {users: [" + old + "→, @]}}",
		"letters of others":   "# ünïcödé → ←\nserver_name: \"größe\"; accounts: {NODES: {users: [" + old + "→, @]}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := text
			if name == "letters of others" {
				text = strings.Replace(text, "→ ←", "€", 1)
			}
			before, after, isShown := strings.Cut(text, "→")
			added, rest, _ := strings.Cut(after, "@")
			if !isShown {
				rest = ""
			}
			path, f := parse(t, before+rest)
			edit, err := f.Add("NODES", []provision.NewUser{{Name: "web02", Password: `p"w\ $2`, Include: "web02.conf"}})
			if err != nil {
				t.Fatal(err)
			}
			if isShown && edit.Text != before+added+two+rest {
				t.Errorf("it is\n%s", edit.Text)
			}
			connects(t, path, edit, `web02 p"w\ $2`)
		})
	}
}

// TestSeveralUsersAreAdded to an account without users.
func TestSeveralUsersAreAdded(t *testing.T) {
	const before, after = "accounts: {\n  NODES: {", "default_permissions: {publish: {deny: \">\"}}}\n}\n"
	path, f := parse(t, before+after)
	edit, err := f.Add("NODES", []provision.NewUser{{Name: "web02", Password: "2", Include: "web02.conf"}, {Name: "web03", Password: "3", Include: "web03.conf"}})
	if err != nil {
		t.Fatal(err)
	}
	want := before + "\n    users: [\n      {user: \"web02\", password: \"2\", include \"web02.conf\"}\n      {user: \"web03\", password: \"3\", include \"web03.conf\"}\n    ]\n" + after
	if edit.Text != want {
		t.Errorf("it is\n%s", edit.Text)
	}
	connects(t, path, edit, "web02 2", "web03 3")
}

// TestUsersOfAServerWithoutAccounts are added to its authorization.
func TestUsersOfAServerWithoutAccounts(t *testing.T) {
	path, f := parse(t, "authorization: {\n  users: [\n    {user: admin, password: admin}\n  ]\n}\n")
	if f.HasAccounts() || !f.Has("admin") || f.Has("web02") {
		t.Error("its users are not known")
	}
	edit, err := f.AddToServer([]provision.NewUser{{Name: "web02", Password: "2", Include: "web02.conf"}})
	if err != nil {
		t.Fatal(err)
	}
	connects(t, path, edit, "admin admin", "web02 2")
}

// TestFilesThatCannotBeEdited are refused, with the reason.
func TestFilesThatCannotBeEdited(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "no account NODES",
		"accounts: {nodes: {users: []}}":      "no account NODES",
		"accounts: {NODES: enabled}":          "NODES is not a block",
		"accounts: [NODES]":                   "no account NODES",
		"accounts: {NODES: {users: nobody}}":  "users is not a list",
		"accounts: {NODES: {users: {a: b}}}":  "users is not a list",
		"accounts: {NODES: {users: [a, b]}}":  "the end of its list of users",
		"accounts: {NODES: {users: [$NONE]}}": "NONE",
		"U: [{user: a, password: a}]\naccounts: {NODES: {users: $U}}": "edit it by hand",
		"accounts: {NODES: {include users.conf\n}}":                   "users.conf",
	} {
		path := writeConfig(t, text)
		f, err := provision.ParseServerFile(path, []byte(text))
		var edit provision.ServerFileEdit
		if err == nil {
			edit, err = f.Add("NODES", []provision.NewUser{{Name: "web02", Password: "2", Include: "web02.conf"}})
		}
		if err == nil {
			if err := os.WriteFile(path, []byte(edit.Text), 0o600); err != nil {
				t.Fatal(err)
			}
			err = edit.Check(path)
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, single := range []string{"token: t", "user: a, password: a"} {
		_, f := parse(t, "authorization: {"+single+"}")
		if _, err := f.AddToServer(nil); err == nil || !strings.Contains(err.Error(), "replace it with a list of users") {
			t.Errorf("%s: %v", single, err)
		}
	}
}

// TestPasswordsAreReplaced in each form that the parser accepts. The rest of the file stays.
func TestPasswordsAreReplaced(t *testing.T) {
	for _, form := range []string{`password: "old"`, `password: 'old'`, `password: old`, `"password": "old"`, `pass = old`, `PASSWORD old`, `password: 123`} {
		text := "accounts: {NODES: {users: [\n  {user: a, password: old}\n  {user: old, %s} # old\n]}}\n"
		path, f := parse(t, fmt.Sprintf(text, form))
		edit, err := f.SetPassword("old", "new")
		if form == `password: 123` {
			if err == nil {
				t.Errorf("a number is replaced:\n%s", edit.Text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		if edit.Text != fmt.Sprintf(text, strings.NewReplacer(`"old"`, `"new"`, `'old'`, `"new"`, `old`, `"new"`).Replace(form)) {
			t.Errorf("%s: it is\n%s", form, edit.Text)
		}
		connects(t, path, edit, "a old", "old new")
	}
	for text, want := range map[string]string{
		"":                            "no user web02",
		"users: [{user: web02}]":      "has no password",
		"users: [{user: a, nkey: U}]": "no user web02",
		"P: x\nusers: [{user: web02, password: $P}]":                  "by hand",
		`users: [{user: web02, password: "a\tb"}]`:                    "by hand",
		"users: [{user: web02, include password.conf\n}]":             "password.conf",
		"users: [{user: web02, password: a}, {user: web02, pass: b}]": "2 users web02",
	} {
		before, list, _ := strings.Cut(text, "users:")
		_, f := parse(t, before+"authorization: {users: "+cmp.Or(list, "[]")+"}\n")
		if edit, err := f.SetPassword("web02", "new"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\n%s", text, err, edit.Text)
		}
	}
}
