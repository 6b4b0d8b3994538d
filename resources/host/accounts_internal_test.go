package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/resources/host/command"
)

func TestParseAccounts(t *testing.T) {
	text := strings.Join([]string{
		"root:x:0:0:root:/root:/bin/bash",
		"# comment:x:1:",
		"+nis:x:2:",
		"-nis:x:3:",
		"",
		"short:x",
		"notanumber:x:x1:0",
		"negative:x:-1:0",
		"signed:x:+5:0",
		"toolarge:x:4294967295:0",
		"largest:x:4294967294:0",
		":x:6:0",
		"toor:x:0:0:a second name:/root:/bin/sh",
		"root:x:7:7:a second root:/root:/bin/sh",
		"last:x:8:",
	}, "\n")
	table := parseAccounts(text)
	ids := map[string]uint32{"root": 0, "largest": 4294967294, "toor": 0, "last": 8}
	names := map[uint32]string{0: "root", 4294967294: "largest", 8: "last", 7: "root"}
	for name, want := range ids {
		if id, ok := table.ids[name]; !ok || id != want {
			t.Errorf("%s is %d, %v", name, id, ok)
		}
	}
	for id, want := range names {
		if table.names[id] != want {
			t.Errorf("%d is %q, want %q", id, table.names[id], want)
		}
	}
	if len(table.ids) != len(ids) || len(table.names) != len(names) {
		t.Errorf("there is more: %v", table)
	}
}

func FuzzParseAccounts(f *testing.F) {
	for _, seed := range []string{"root:x:0:0:root:/root:/bin/bash\n", "wheel:x:10:a,b", "::::\n+::0:0", "a:b:4294967295:c", "\x00:x:1:\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		table := parseAccounts(text)
		for name, id := range table.ids {
			if name == "" || strings.ContainsAny(name, ":\n") || id > MaxAccountID {
				t.Errorf("%q is %d", name, id)
			}
			if _, ok := table.names[id]; !ok {
				t.Errorf("%d of %q has no name", id, name)
			}
		}
	})
}

// accountHost has separate account tables, and a getent that records its calls.
func accountHost(t *testing.T) (a *Accounts, dir string) {
	t.Helper()
	dir = t.TempDir()
	getent := `#!/bin/sh
printf '%s %s\n' "$1" "$2" >> ` + dir + `/asked
case "$1 $2" in
"passwd alice"|"passwd 5000") echo 'alice:x:5000:5000::/home/alice:/bin/sh' ;;
"passwd DOMAIN\bob") echo 'bob:x:5001:5000::/:/bin/sh' ;;
"group staff") echo 'staff:x:5002:alice' ;;
"initgroups local") echo 'local                 1001 1010 5002' ;;
*) exit 2 ;;
esac
`
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "passwd"), []byte("root:x:0:0:root:/:/bin/sh\nlocal:x:1000:1000::/:/bin/sh\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "group"), []byte("root:x:0:\nlocal:x:1001:\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "getent"), []byte(getent), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))

	return NewAccounts(dir, command.New(nil), slog.New(slog.DiscardHandler)), dir
}

func asked(t *testing.T, dir string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "asked"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}

	return string(content)
}

func TestAccountsOfTheFilesAndOfGetent(t *testing.T) {
	h, dir := accountHost(t)
	ctx := t.Context()
	for range 2 {
		for _, c := range []struct {
			get  func(context.Context, string) (uint32, error)
			name string
			want uint32
		}{
			{h.UID, "root", 0}, {h.GID, "root", 0}, {h.UID, "local", 1000}, {h.GID, "local", 1001},
			{h.UID, "alice", 5000}, {h.UID, `DOMAIN\bob`, 5001}, {h.UID, "bob", 5001}, {h.GID, "staff", 5002},
			{h.UID, "0", 0}, {h.GID, "007", 7}, {h.UID, "4294967294", 4294967294},
		} {
			if id, err := c.get(ctx, c.name); err != nil || id != c.want {
				t.Errorf("%s is %d, want %d: %v", c.name, id, c.want, err)
			}
		}
		for _, c := range []struct{ got, want string }{
			{h.UserName(ctx, 1000), "local"}, {h.UserName(ctx, 5000), "alice"}, {h.UserName(ctx, 777), "777"},
			{h.GroupName(ctx, 1001), "local"}, {h.GroupName(ctx, 778), "778"},
		} {
			if c.got != c.want {
				t.Errorf("the name is %q, want %q", c.got, c.want)
			}
		}
	}
	want := "passwd alice\npasswd DOMAIN\\bob\ngroup staff\npasswd 777\ngroup 778\n"
	if got := asked(t, dir); got != want {
		t.Errorf("getent was asked %q, want %q", got, want)
	}
}

func TestUnknownAccounts(t *testing.T) {
	h, dir := accountHost(t)
	for range 2 {
		for _, name := range []string{"nobody-knows", "", "-s", "a:b", "a\nb", "4294967295", "99999999999"} {
			_, err := h.UID(t.Context(), name)
			if !errors.Is(err, ErrNoAccount) || !strings.Contains(err.Error(), fmt.Sprintf("could not lookup user %q", name)) {
				t.Errorf("user %q: %v", name, err)
			}
			_, err = h.GID(t.Context(), name)
			if !errors.Is(err, ErrNoAccount) || !strings.Contains(err.Error(), "could not lookup group") {
				t.Errorf("group %q: %v", name, err)
			}
		}
	}
	if got, want := asked(t, dir), "passwd nobody-knows\ngroup nobody-knows\n"; got != want {
		t.Errorf("getent was asked %q, want %q", got, want)
	}
}

func TestAccountsAreReadAgainWhenForgotten(t *testing.T) {
	h, dir := accountHost(t)
	known := func() bool {
		_, err := h.UID(t.Context(), "new")
		return err == nil
	}
	if known() {
		t.Fatal("it is known too early")
	}
	if err := os.WriteFile(filepath.Join(dir, "passwd"), []byte("new:x:1:1::/:/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if known() {
		t.Error("the file was read twice")
	}
	h.ForgetAccounts()
	if !known() {
		t.Error("the file was not read again")
	}
}

// TestAFileIsReadAgainWhenItHasChanged in any way that a file shows.
func TestAFileIsReadAgainWhenItHasChanged(t *testing.T) {
	h, dir := accountHost(t)
	path := filepath.Join(dir, "passwd")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want uint32) {
		t.Helper()
		h.ForgetAccounts()
		if id, err := h.UID(t.Context(), "new"); err != nil || id != want {
			t.Errorf("it is %d, want %d: %v", id, want, err)
		}
	}
	write(path, "new:x:1:1::/:/bin/sh\n")
	is(1)
	write(path+".new", "new:x:2:1::/:/bin/sh\n")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	is(2)
	write(path, "new:x:3:1::/:/bin/sh\n") // perhaps in the same tick
	is(3)
}

func TestAccountsWithoutGetentOrFiles(t *testing.T) {
	h, dir := accountHost(t)
	t.Setenv("PATH", t.TempDir())
	if _, err := h.UID(t.Context(), "alice"); !errors.Is(err, ErrNoAccount) {
		t.Errorf("without getent: %v", err)
	}
	h.ForgetAccounts()
	if err := errors.Join(os.Remove(filepath.Join(dir, "passwd")), os.Mkdir(filepath.Join(dir, "passwd"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.UID(t.Context(), "local"); err == nil || errors.Is(err, ErrNoAccount) {
		t.Errorf("a file that cannot be read: %v", err)
	}
	if name := h.UserName(t.Context(), 1000); name != "1000" {
		t.Errorf("a file that cannot be read: %q", name)
	}
	if err := os.Remove(filepath.Join(dir, "passwd")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.UID(t.Context(), "local"); !errors.Is(err, ErrNoAccount) {
		t.Errorf("without a file: %v", err)
	}
}

func TestACancelledLookupIsNotRemembered(t *testing.T) {
	h, _ := accountHost(t)
	stopped := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, err := h.UID(ctx, "alice"); !errors.Is(err, stopped) {
		t.Errorf("the error is %v", err)
	}
	if id, err := h.UID(t.Context(), "alice"); err != nil || id != 5000 {
		t.Errorf("afterwards: %d, %v", id, err)
	}
}

// TestUser reads users from the files and from getent, and their groups from both.
func TestUser(t *testing.T) {
	h, dir := accountHost(t)
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "passwd"), []byte("root:x:0:0:root:/root:/bin/sh\ntoor:x:0:7::/toor:\nlocal:x:1000:1001::/home/local:/bin/bash\nshort:x:1002:1\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "group"), []byte("root:x:0:\nlocal:x:1001:local\nweb:x:1010:root,local\nlog:x:1011:local\n-nis:x:3:local\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"root": "root 0 0 /root /bin/sh [1010]", "toor": "toor 0 7 /toor  []", "0": "root 0 0 /root /bin/sh [1010]",
		"local": "local 1000 1001 /home/local /bin/bash [1010 1011]", "1000": "local 1000 1001 /home/local /bin/bash [1010 1011]",
		"alice": "alice 5000 5000 /home/alice /bin/sh []", "5000": "alice 5000 5000 /home/alice /bin/sh []",
		"short": "short 1002 4294967295   []", "1234": "1234 1234 4294967295   []",
	} {
		u, err := h.User(t.Context(), name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprintf("%s %d %d %s %s %v", u.Name, u.UID, u.GID, u.Home, u.Shell, u.Groups); got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	if _, err := h.User(t.Context(), "nobody-knows"); !errors.Is(err, ErrNoAccount) {
		t.Errorf("an unknown user: %v", err)
	}
	before := asked(t, dir)
	for range 2 {
		u, err := h.User(t.Context(), "local")
		if err == nil {
			err = h.JoinGroups(t.Context(), u)
		}
		if want := []uint32{1010, 1011, 5002}; err != nil || !slices.Equal(u.Groups, want) {
			t.Errorf("the groups are %v, not %v: %v", u.Groups, want, err)
		}
	}
	if got := strings.TrimPrefix(asked(t, dir), before); got != "initgroups local\n" {
		t.Errorf("getent was asked %q", got)
	}
}
