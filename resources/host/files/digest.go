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
)

// maxDigests bounds the cache; an entry takes about 200 bytes.
const maxDigests = 1 << 16

// Digest returns the hex SHA-256 of the regular file at path, remembered by
// (device, inode, size, mtime, ctime). It reads with constant memory and
// follows links. Another kind of file wraps ErrNotRegular.
func (d *Disk) Digest(ctx context.Context, path string) (string, error) {
	entry, err := d.Follow(path)
	if err != nil {
		return "", err
	}

	return d.DigestEntry(ctx, entry)
}

// DigestEntry is Digest of an entry of Look or Follow: while its digest is
// remembered, the file is not opened. What was put there since the look wraps
// ErrReplaced; a foreign one is the error of Foreign.
func (d *Disk) DigestEntry(ctx context.Context, entry Entry) (string, error) {
	if err := entry.Foreign(); err != nil {
		return "", err
	}

	digest, _, err := d.digest(ctx, entry)

	return digest, err
}

// Compare is DigestEntry also of a foreign entry, for a digest that nobody is shown.
// It is empty for a file whose owner keeps others from opening it, by a lease (fcntl(2)):
// such a file counts as different.
func (d *Disk) Compare(ctx context.Context, entry Entry) (string, error) {
	digest, _, err := d.CompareText(ctx, entry)

	return digest, err
}

// CompareText is Compare with the content that has the digest, where that was read just
// now and is short; else it is nil. That of a foreign entry must not be shown.
func (d *Disk) CompareText(ctx context.Context, entry Entry) (digest string, text *string, err error) {
	digest, text, err = d.digest(ctx, entry)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return "", nil, nil
	}

	return digest, text, err
}

// maxText is the size up to which a content is kept for who compares it.
const maxText = 4 << 10

// digest returns the digest of an entry, and its text like CompareText. A file that has grown
// since it was looked at is read up to the size that it had then.
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
	if before.Size == entry.Size && stampOf(before) == stampOf(after) && settled(after, began) {
		d.digests.put(after, digest)
	}

	return digest, text, nil
}

// maxUnsized is how much is accepted of a file without a size, such as those of /proc.
const maxUnsized = 64 << 20

// bound returns how much is read of a file that had a size when it was looked at:
// who writes to it could make it grow for as long as it is read.
// Of one without a size it is one byte more than is accepted.
func bound(size int64) int64 { return cmp.Or(size, maxUnsized+1) }

// hash returns the digest of what is read, and that itself where it is short.
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

// settled reports whether any change since began shows in the times of a file.
// File times move in ticks, on some file systems of seconds: a file changed
// within the last tick may change again without a sign.
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

// digestCache remembers digests. The zero value is empty.
type digestCache struct {
	mu      sync.RWMutex
	entries map[fileID]digestEntry
}

// get returns the digest of an entry that is a file.
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
		// Any entry will do: a run too large for the cache reads each file once, and
		// would need the least recently used one next.
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
