package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterfleet/muster/resources/host/paths"
)

// maxDigests limits the cache. An entry takes about 200 bytes.
const maxDigests = 1 << 16

// Digest returns the hex SHA-256 of the regular file at path, cached by (device, inode, size, mtime, ctime),
// unless others may write to the file. It uses constant memory and follows links. Another kind of file is ErrNotRegular.
func (d *Disk) Digest(ctx context.Context, path string) (string, error) {
	entry, err := d.Follow(path)
	if err != nil {
		return "", err
	}

	return d.DigestEntry(ctx, entry)
}

// DigestEntry returns the digest of an entry of Look or Follow. With a cached digest it does not open the
// file. A file replaced since the look is ErrReplaced. A foreign entry returns the error of Foreign.
func (d *Disk) DigestEntry(ctx context.Context, entry Entry) (string, error) {
	if err := entry.Foreign(); err != nil {
		return "", err
	}

	digest, _, err := d.digest(ctx, entry)

	return digest, err
}

// Compare returns the digest like DigestEntry, also of a foreign entry, and the content if it was read now and
// is short, otherwise nil. Do not show digest and content of a foreign entry. The digest is empty for a file
// that its owner protects by a lease (fcntl(2)); such a file counts as different.
func (d *Disk) Compare(ctx context.Context, entry Entry) (digest string, text *string, err error) {
	digest, text, err = d.digest(ctx, entry)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return "", nil, nil
	}

	return digest, text, err
}

// maxText is the largest content that is returned for a comparison.
const maxText = 4 << 10

// digest returns the digest of an entry, and its content like Compare. If the file has grown since the
// look, digest reads up to the earlier size.
func (d *Disk) digest(ctx context.Context, entry Entry) (digest string, text *string, err error) {
	if digest, ok := d.digests.get(entry); ok {
		return digest, nil, nil
	}
	f, before, _, err := entry.descriptor()
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	began := time.Now()
	digest, text, err = d.buffers.hash(ctx, io.LimitReader(f, bound(entry.Size)))
	if err != nil {
		return "", nil, err
	}
	if entry.Size == 0 && f.position() > maxUnsized {
		return "", nil, fmt.Errorf("%s: %w: it has no size, and more than %d bytes", entry.Path, ErrTooLarge, maxUnsized)
	}
	after, err := f.stat()
	if err != nil {
		return "", nil, err
	}
	if before.Size == entry.Size && stampOf(before) == stampOf(after) && settled(after, began) && !othersMayWrite(after) {
		d.digests.put(after, digest)
	}

	return digest, text, nil
}

// maxUnsized limits the bytes of a file without a size, such as files of /proc.
const maxUnsized = 64 << 20

// bound limits the bytes to read. A file with a size at the look is read up to this size, because a writer
// could make it grow without end. Without a size the limit is one byte more than the maximum.
func bound(size int64) int64 { return cmp.Or(size, maxUnsized+1) }

// hash returns the digest of the bytes, and the bytes if they are short.
func (b *buffers) hash(ctx context.Context, f io.Reader) (digest string, text *string, err error) {
	buffer := b.get()
	defer b.pool.Put(buffer)
	sum := sha256.New()
	var short []byte
	for read := 0; ; {
		if err := context.Cause(ctx); err != nil {
			return "", nil, err
		}
		n, err := f.Read(buffer[:])
		sum.Write(buffer[:n])
		if read += n; read <= maxText {
			short = append(short, buffer[:n]...)
		}
		switch {
		case errors.Is(err, io.EOF):
			if read <= maxText {
				text = new(string(short))
			}
			return hex.EncodeToString(sum.Sum(nil)), text, nil
		case err != nil:
			return "", nil, err
		}
	}
}

// othersMayWrite reports whether a user besides root and the running user may write to a file. A write through mapped
// memory does not change the times of the file.
func othersMayWrite(st *unix.Stat_t) bool {
	return st.Mode&(unix.S_IWGRP|unix.S_IWOTH) != 0 || paths.PartyOf(st.Mode, st.Uid) != paths.Trusted
}

// settled reports whether a file's times would show a change since began. The clock of file times moves in
// ticks, on some file systems of seconds: a file that changed within the last tick may change again without
// another time.
func settled(st *unix.Stat_t, began time.Time) bool {
	tick := 20 * time.Millisecond
	if st.Ctim.Nsec == 0 {
		tick = 2 * time.Second
	}

	return time.Unix(st.Ctim.Unix()).Before(began.Add(-tick))
}

// fileID identifies a file of the machine, stamp changes with its content.
type (
	fileID struct{ dev, inode uint64 }
	stamp  struct {
		size         int64
		mtime, ctime unix.Timespec
	}
	digestEntry struct {
		stamp  stamp
		digest string
	}
)

func idOf(st *unix.Stat_t) fileID { return fileID{dev: uint64(st.Dev), inode: st.Ino} }

func stampOf(st *unix.Stat_t) stamp { return stamp{size: st.Size, mtime: st.Mtim, ctime: st.Ctim} }

// digestCache caches digests. The zero value is empty.
type digestCache struct {
	mu      sync.RWMutex
	entries map[fileID]digestEntry
}

func (c *digestCache) get(entry Entry) (string, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	e, ok := c.entries[entry.id]

	return e.digest, ok && entry.Kind == File && e.stamp == entry.stamp
}

func (c *digestCache) put(st *unix.Stat_t, digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[fileID]digestEntry{}
	}
	if len(c.entries) >= maxDigests {
		// Remove any entry. A run that is too large for the cache reads each file once, so the least recently
		// used entry is needed next.
		for id := range c.entries {
			delete(c.entries, id)
			break
		}
	}
	c.entries[idOf(st)] = digestEntry{stamp: stampOf(st), digest: digest}
}

func (c *digestCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = nil
}
