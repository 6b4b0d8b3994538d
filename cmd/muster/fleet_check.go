package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/manifest"
)

// checkManifest finds what is wrong with a manifest without its node.
func (a *app) checkManifest(ctx context.Context, data map[string]any) fleet.Check {
	return func(name string, text []byte) ([]fleet.File, error) {
		doc, err := manifest.Parse(name, text)
		if err != nil {
			return nil, err
		}
		in := manifest.Inputs{Data: data}
		if name != fleet.StdinName {
			in.Dir = filepath.Dir(name)
		}
		checked, err := manifest.NewLoader(manifest.Options{Types: a.types}).Check(ctx, doc, in)
		if err != nil {
			return nil, err
		}
		for _, w := range checked.Warnings {
			a.log.Warn(w.Error())
		}
		files := make([]fleet.File, len(checked.Files))
		for i, f := range checked.Files {
			files[i] = fleet.File{Path: f.Path, Pos: f.Pos, Late: f.Late}
		}
		return files, nil
	}
}

// notPushed says with the problems of a manifest that nothing was pushed.
func notPushed(err error) error {
	var problems model.Problems
	if !errors.As(err, &problems) {
		return err
	}

	return &exitError{code: exitFailed, err: problems, note: "nothing was pushed"}
}
