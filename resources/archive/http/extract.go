package http

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterfleet/muster/resources/archive"
	hostarchive "github.com/musterfleet/muster/resources/host/archive"
	"github.com/musterfleet/muster/resources/host/command"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/resource"
)

const (
	// maxEntries bounds the entries of an archive.
	maxEntries = 1_000_000
	// slowest is the least progress of unpacking in bytes a second, slowestEntry
	// the extra time of an entry.
	slowest      = 10 << 20
	slowestEntry = 10 * time.Millisecond
)

// Extract checks the whole archive and unpacks it when all of it is safe.
func (Provider) Extract(ctx context.Context, env resource.Env, spec *archive.Spec) error {
	format, err := archive.Format(spec.Name)
	if err != nil {
		return err
	}
	limits := hostarchive.Limits{Bytes: int64(spec.MaxSize), Entries: maxEntries}
	index, err := hostarchive.Inspect(ctx, spec.Name, format, spec.ExtractParent, limits)
	if err != nil {
		return fmt.Errorf("%s is not unpacked: %w", spec.Name, err)
	}
	// unzip fails for an empty archive.
	if err := makeTarget(env, spec.ExtractParent); err != nil || index.Entries == 0 {
		return err
	}
	source, remove := spec.Name, func() error { return nil }
	if format == hostarchive.Zip {
		if source, remove, err = hostarchive.PrepareZip(ctx, env.Host.Disk, spec.Name, spec.Preserve); err != nil {
			return err
		}
	}

	return errors.Join(unpack(ctx, env, spec, format, source, index), remove())
}

// unpack runs the tool, and makes durable what it wrote.
func unpack(ctx context.Context, env resource.Env, spec *archive.Spec, format hostarchive.Format, source string, index hostarchive.Index) error {
	limit := timeout(spec) + time.Duration(index.Bytes/slowest)*time.Second + time.Duration(index.Entries)*slowestEntry
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("timed out after %s", limit))
	defer cancel()
	env.Log.InfoContext(ctx, "extracting", "archive", spec.Name, "into", spec.ExtractParent, "entries", index.Entries, "bytes", index.Bytes)
	result, err := env.Host.Run(ctx, command.Command{
		// A tool that outlives muster would interfere with the next run.
		Argv: arguments(format, spec, source), Dir: spec.ExtractParent, Tied: true,
		// A user's settings of the tools must not apply.
		Env: []string{"LC_ALL=C.UTF-8", "TAR_OPTIONS=", "GZIP=", "UNZIP=", "UNZIPOPT="},
	})
	switch {
	case err != nil:
		return fmt.Errorf("could not extract: %w", err)
	case result.ExitCode != 0:
		// unzip reports some errors on stdout.
		output := cmp.Or(command.Excerpt(result.Stderr.String()), command.Excerpt(result.Stdout.String()))
		return resource.CommandError{Err: fmt.Errorf("could not extract: %s ended with exit code %d", archive.Tool(spec.Name), result.ExitCode), Output: output}
	}

	return env.Host.SyncFileSystem(spec.ExtractParent)
}

// makeTarget makes the target directory unless it exists.
func makeTarget(env resource.Env, path string) error {
	entry, err := env.Host.Follow(path)
	if err != nil || entry.Kind == files.Directory {
		return err
	}

	return env.Host.MakeDirectory(path, files.OwnAttrs(0o755))
}

// arguments returns the command that unpacks. Unless preserve is set the
// process owns the files, special bits are not restored, and existing
// directories are left unchanged.
func arguments(format hostarchive.Format, spec *archive.Spec, source string) []string {
	if format == hostarchive.Zip {
		argv := []string{"unzip", "-o"}
		if spec.Preserve {
			argv = append(argv, "-K", "-X")
		}
		return append(argv, "-d", spec.ExtractParent, source)
	}
	flags := "-xf"
	if format == hostarchive.TarGz {
		flags = "-xzf"
	}
	argv := []string{"tar", flags, source, "-C", spec.ExtractParent}
	if spec.Preserve {
		return append(argv, "--same-owner", "--same-permissions")
	}

	return append(argv, "--no-same-owner", "--no-same-permissions", "--no-overwrite-dir")
}
