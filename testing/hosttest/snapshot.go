package hosttest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// Item contains the properties of one path.
type Item struct {
	// Mode holds the kind, the permissions and the special bits.
	Mode     fs.FileMode
	UID, GID uint32
	// Size is the size of a file.
	Size    int64
	ModTime time.Time
	// Digest is the SHA-256 of a file's content, or "unreadable" without read permission. Target is the
	// target of a link.
	Digest, Target string
}

// Tree is a directory and everything below it, by path relative to it: the
// directory itself is ".".
type Tree map[string]Item

// Snapshot reads a tree, without following links. It fails the test when
// something cannot be read.
func Snapshot(t testing.TB, dir string) Tree {
	t.Helper()
	tree := Tree{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		item, err := itemOf(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		tree[name] = item
		return err
	})
	if err != nil {
		t.Fatalf("snapshot of %s: %v", dir, err)
	}

	return tree
}

func itemOf(path string) (Item, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return Item{}, err
	}
	item := Item{Mode: info.Mode(), ModTime: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		item.UID, item.GID = st.Uid, st.Gid
	}
	switch {
	case info.Mode().IsRegular():
		item.Size = info.Size()
		if item.Digest, err = digest(path); errors.Is(err, fs.ErrPermission) {
			item.Digest, err = "unreadable", nil
		}
	case info.Mode()&fs.ModeSymlink != 0:
		item.Target, err = os.Readlink(path)
	}

	return item, err
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}

	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// SnapshotDiff says in words what differs between two snapshots, one line a
// difference, in the order of the paths. Nothing means that they are equal.
func SnapshotDiff(before, after Tree) []string {
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		a, was := before[path]
		b, is := after[path]
		switch {
		case !was:
			lines = append(lines, path+": added")
		case !is:
			lines = append(lines, path+": removed")
		default:
			lines = append(lines, itemDiff(path, a, b)...)
		}
	}

	return lines
}

func itemDiff(path string, a, b Item) []string {
	var lines []string
	differ := func(what string, was, is any) {
		if was != is {
			lines = append(lines, fmt.Sprintf("%s: %s was %v, is %v", path, what, was, is))
		}
	}
	differ("mode", a.Mode, b.Mode)
	differ("owner", a.UID, b.UID)
	differ("group", a.GID, b.GID)
	differ("size", a.Size, b.Size)
	differ("digest", a.Digest, b.Digest)
	differ("target", a.Target, b.Target)
	if !a.ModTime.Equal(b.ModTime) {
		differ("time", a.ModTime.UTC().Format(time.RFC3339Nano), b.ModTime.UTC().Format(time.RFC3339Nano))
	}

	return lines
}
