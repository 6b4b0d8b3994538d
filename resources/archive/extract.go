package archive

import (
	"context"

	hostarchive "github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/resource"
)

// maxEntries limits the entries of an archive.
const maxEntries = 1_000_000

// Extract checks the whole archive, and unpacks it if it is safe.
func (HTTP) Extract(ctx context.Context, env resource.Env, spec *Spec, content *hostarchive.Archive) error {
	index, err := content.Extract(ctx, env.Host.Disk, spec.ExtractParent, hostarchive.Limits{Bytes: int64(spec.MaxSize), Entries: maxEntries, LinksOut: spec.Links == LinksKeep}, hostarchive.Options{
		Preserve: spec.Preserve, ResolveOwner: func(o hostarchive.Owner) (uid, gid int) { return resolveOwner(ctx, env, o) },
	})
	if err != nil {
		return err
	}
	env.Log.InfoContext(ctx, "extracted", "archive", spec.Name, "into", spec.ExtractParent, "entries", index.Entries, "bytes", index.Bytes)

	return nil
}

// resolveOwner returns the accounts for the names in an archive, as tar does, or else its numbers.
func resolveOwner(ctx context.Context, env resource.Env, o hostarchive.Owner) (uid, gid int) {
	uid, gid = o.UID, o.GID
	if id, err := env.Host.UID(ctx, o.User); o.User != "" && err == nil {
		uid = int(id)
	}
	if id, err := env.Host.GID(ctx, o.Group); o.Group != "" && err == nil {
		gid = int(id)
	}

	return uid, gid
}
