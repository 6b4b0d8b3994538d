package fleetcmd

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/kvstore/provision"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
)

const (
	// maxServerFile bounds a configuration file of nats-server.
	maxServerFile = 16 << 20
	// maxPassword bounds a file with a password.
	maxPassword = 4 << 10
	// reloadHint follows each change of the configuration.
	reloadHint = "reload the server: nats-server --signal reload (or systemctl reload nats-server, where systemd runs it)"
)

// serverFile is a configuration file of nats-server during an edit. It is locked against other edits by muster.
type serverFile struct {
	*provision.ServerFile
	path  string
	text  []byte
	attrs files.Attrs
	disk  *files.Disk
	lock  *os.File
	// made are the files that are removed again after an error.
	made []string
}

// openServerFile reads a configuration file of nats-server.
func openServerFile(path string) (*serverFile, error) {
	f := &serverFile{path: path, disk: files.New(files.Options{})}
	entry, err := f.disk.Look(path)
	if err == nil {
		err = f.check(entry)
	}
	if err == nil {
		err = checkDir(filepath.Dir(path))
	}
	if err == nil {
		f.lock, err = lockFile(path)
	}
	if err != nil {
		return nil, err
	}
	if entry, err = f.disk.Look(path); err == nil {
		err = f.check(entry)
	}
	if err != nil {
		return nil, errors.Join(err, f.lock.Close())
	}
	f.attrs = files.Attrs{UID: entry.UID, GID: entry.GID, Mode: fs.FileMode(entry.Mode).Perm()}
	if f.text, err = entry.Read(maxServerFile); err == nil {
		f.ServerFile, err = provision.ParseServerFile(path, f.text)
	}
	if err != nil {
		return nil, errors.Join(err, f.lock.Close())
	}

	return f, nil
}

// check returns an error for a file that this user cannot edit, or that a rename would not replace.
func (f *serverFile) check(entry files.Entry) error {
	switch entry.Kind {
	case files.Absent:
		return fmt.Errorf("%s: %w", f.path, fs.ErrNotExist)
	case files.Link:
		target, err := filepath.EvalSymlinks(f.path)
		if err != nil {
			return err
		}
		return fmt.Errorf("%s is a symbolic link: give the file that it leads to, %s", f.path, target)
	case files.File:
	default:
		return fmt.Errorf("%s is not a regular file", f.path)
	}
	if err := unix.Faccessat(unix.AT_FDCWD, f.path, unix.W_OK, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "write", Path: f.path, Err: err}
	}

	if entry.Mode&unix.S_IROTH != 0 {
		return fmt.Errorf("every user may read %s, and it gets a password: run chmod 640 %s, and give the file the group of nats-server (chgrp)", f.path, f.path)
	}

	return f.disk.MayWrite(filepath.Dir(f.path))
}

// checkDir returns an error if another user may exchange files in a directory.
func checkDir(path string) error {
	dir, err := paths.OpenDir(path)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := dir.CheckOwn(); err != nil {
		return fmt.Errorf("%w, or run the command as its owner", err)
	}
	if dir.TakesNames(0) {
		return fmt.Errorf("every user may create files in %s: move the configuration to another directory", path)
	}

	return nil
}

// lockFile locks a file. A user without the right to read the file cannot lock it. lockFile returns an error if another
// process replaced the file before the lock was taken.
func lockFile(path string) (*os.File, error) {
	locked, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	err = paths.Retry(func() error { return unix.Flock(int(locked.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	if err == unix.EWOULDBLOCK {
		err = fmt.Errorf("another process edits %s: try again", path)
	}
	if err == nil {
		err = checkSame(locked, path)
	}
	if err != nil {
		return nil, errors.Join(err, locked.Close())
	}

	return locked, nil
}

// checkSame returns an error if an open file is no longer the file at its path.
func checkSame(open *os.File, path string) error {
	opened, err := open.Stat()
	if err != nil {
		return err
	}
	now, err := os.Lstat(path)
	if err == nil && !os.SameFile(opened, now) {
		err = fmt.Errorf("%s changed: run the command again", path)
	}

	return err
}

// save replaces the file, unless it changed since it was read.
func (f *serverFile) save(ctx context.Context, edit provision.ServerFileEdit) error {
	err := f.disk.WriteWith(ctx, f.path, strings.NewReader(edit.Text), f.attrs, files.WriteOptions{Check: func(path string) error {
		if now, err := files.Read(f.path, maxServerFile); err != nil || !bytes.Equal(now, f.text) {
			return errors.Join(err, fmt.Errorf("%s changed: run the command again", f.path))
		}
		return edit.Check(path)
	}})
	if err == nil {
		f.made = nil
	}

	return err
}

// close removes the files of an edit that failed.
func (f *serverFile) close() error {
	var errs []error
	for _, path := range f.made {
		errs = append(errs, f.disk.Remove(path))
	}

	return errors.Join(append(errs, f.lock.Close())...)
}

// beside returns the path of a file in the same directory.
func (f *serverFile) beside(name string) string { return filepath.Join(filepath.Dir(f.path), name) }

// writeNew writes a file beside the configuration. It refuses an existing file with other content.
func (f *serverFile) writeNew(ctx context.Context, path string, content []byte) error {
	entry, err := f.disk.Look(path)
	if err != nil {
		return err
	}
	if entry.Kind != files.Absent {
		if now, err := entry.Read(maxServerFile); err != nil || !bytes.Equal(now, content) {
			return fmt.Errorf("%s exists and has other content: remove it if no user includes it", path)
		}
		return nil
	}
	if err := f.disk.Write(ctx, path, bytes.NewReader(content), f.attrs); err != nil {
		return err
	}
	f.made = append(f.made, path)

	return nil
}

// password returns the password in a file, which it creates if it is missing.
func (f *serverFile) password(ctx context.Context, path string) (string, error) {
	entry, err := f.disk.Look(path)
	if err != nil {
		return "", err
	}
	if entry.Kind == files.Absent {
		f.made = append(f.made, path)
		password := rand.Text()
		return password, f.writePassword(ctx, path, password)
	}
	text, err := files.ReadSecret(path, maxPassword)
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" || strings.ContainsFunc(password, unicode.IsControl) || strings.HasPrefix(password, "$2") {
		return "", fmt.Errorf("%s has no plain password in one line: remove it, and muster writes a new one", path)
	}

	return password, nil
}

// writePassword writes a password to a file that only this user may read.
func (f *serverFile) writePassword(ctx context.Context, path, password string) error {
	return f.disk.Write(ctx, path, strings.NewReader(password), files.OwnAttrs(0o600))
}

// inFlag returns an error with the flag that names the file, and with the remedy for missing rights.
func inFlag(flag string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s: %w: run the command as the owner of the file or as root", flag, err)
	}

	return fmt.Errorf("%s: %w", flag, err)
}

// addUsers adds the users to a configuration file of nats-server.
func (c *permissionsCommand) addUsers(ctx context.Context, users []provision.NamedUser, documents [][]byte) (err error) {
	f, err := openServerFile(c.add)
	if err != nil {
		return inFlag("--add", err)
	}
	defer func() { err = errors.Join(err, f.close()) }()
	for _, u := range users {
		if f.Has(u.Name) {
			err = errors.Join(err, u.Wrong(fmt.Errorf("%s has a user %s: give it other groups with --dir, or a new password with --new-password", c.add, u.Name)))
		}
	}
	if err != nil {
		return err
	}
	added := make([]provision.NewUser, len(users))
	for i, u := range users {
		added[i] = provision.NewUser{Name: u.Name, Include: u.Name + ".conf"}
		if err := f.writeNew(ctx, f.beside(added[i].Include), documents[i]); err != nil {
			return inFlag("--add", err)
		}
		if added[i].Password, err = f.password(ctx, f.beside(u.Name+".password")); err != nil {
			return inFlag("--add", err)
		}
	}
	edit, account, err := c.edit(f, added)
	if err == nil {
		err = f.save(ctx, edit)
	}
	if err != nil {
		return inFlag("--add", err)
	}
	for _, u := range added {
		c.Print.Printf("%s: user %s of %s, with the permissions in %s and the password in %s\n", c.add, u.Name, account, f.beside(u.Include), f.beside(u.Name+".password"))
	}
	c.Print.Printf("%s\n", reloadHint)

	return nil
}

// edit returns the edit that adds users of the role that the flags name.
func (c *permissionsCommand) edit(f *serverFile, users []provision.NewUser) (edit provision.ServerFileEdit, account string, err error) {
	accounts, err := provision.AccountsOf(c.Flags.Prefix)
	if err != nil {
		return edit, "", err
	}
	account = accounts.Nodes.Name
	switch {
	case c.oneAccount && !f.HasAccounts():
		edit, err = f.AddToServer(users)
		return edit, "authorization", err
	case c.oneAccount:
		account = accounts.Fleet.Name
	case len(c.requests) > 0:
		account = accounts.Requesters.Name
	case !c.isOfNode():
		account = accounts.Operators.Name
	}
	edit, err = f.Add(account, users)

	return edit, "the account " + account, err
}

// setPassword gives a user of a configuration file of nats-server a new password.
func (c *permissionsCommand) setPassword(ctx context.Context, u provision.NamedUser) (err error) {
	f, err := openServerFile(c.newPassword)
	if err != nil {
		return inFlag("--new-password", err)
	}
	defer func() { err = errors.Join(err, f.close()) }()
	password, path := rand.Text(), f.beside(u.Name+".password")
	edit, err := f.SetPassword(u.Name, password)
	if err == nil {
		err = f.save(ctx, edit)
	}
	if err == nil {
		err = f.writePassword(ctx, path, password)
	}
	if err != nil {
		return inFlag("--new-password", err)
	}
	c.Print.Printf("%s: user %s has the new password in %s, copy it to the node\n%s\n", c.newPassword, u.Name, path, reloadHint)

	return nil
}
