package archive

import (
	"context"
	"errors"
	"fmt"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/resource"
)

// mode is the mode of an archive. Other users must not read a file that needs a password.
const mode = 0o640

// Status reads the archive and resolves the properties on this machine. A
// missing account is a resource.PrerequisiteError.
func (Type) Status(ctx context.Context, env resource.Env, p ArchiveProvider, spec *Spec) (*State, error) {
	state, err := p.Status(ctx, env, spec)
	if err != nil {
		return nil, err
	}
	if state.past, err = recall(env.Host, spec.Name); err != nil {
		return nil, err
	}
	if state.Entry.Kind != files.Absent {
		state.want.obstacle = resource.MayReplace(env.Host, spec.Name)
	}
	if spec.Ensure == model.EnsureAbsent || !spec.describes() {
		return state, nil
	}
	if state.want.attrs, err = attributes(ctx, env, spec); err != nil {
		return nil, err
	}
	if state.Entry.Kind == files.Absent {
		state.want.obstacle = resource.Obstacle(env.Host, spec.Name, false)
	}
	if spec.ExtractParent != "" {
		state.want.target = targetObstacle(env, spec.ExtractParent)
		if created, err := env.Host.Follow(spec.Creates); spec.Creates != "" && err == nil && created.Kind == files.File && state.want.target == nil {
			if err := env.Host.MayReplace(spec.Creates); errors.Is(err, paths.ErrMounted) {
				state.want.target = err
			}
		}
		last, err := recallTarget(env.Host, spec)
		if err != nil {
			return nil, err
		}
		state.outdated = last.outdated(spec, state.past, env.RunID)
	}

	return state, nil
}

func attributes(ctx context.Context, env resource.Env, spec *Spec) (files.Attrs, error) {
	uid, gid, err := resource.ResolveAccounts(ctx, env.Host, spec.Owner, spec.Group)

	return files.Attrs{UID: uid, GID: gid, Mode: mode}, err
}

// targetObstacle returns why muster cannot unpack into a directory.
func targetObstacle(env resource.Env, path string) error {
	entry, err := env.Host.Follow(path)
	switch {
	case err != nil:
		return err
	case entry.Kind == files.Directory:
		return nil
	case entry.Kind != files.Absent:
		return fmt.Errorf("extract_parent %s %w", path, files.ErrNotDirectory)
	}

	return resource.Obstacle(env.Host, path, true)
}
