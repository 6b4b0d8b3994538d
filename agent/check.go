package agent

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterfleet/muster/agent/bounds"
	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/agent/desired"
	"github.com/musterfleet/muster/agent/reporting"
	"github.com/musterfleet/muster/agent/requests"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/engine"
	"github.com/musterfleet/muster/resources/host"
	"github.com/musterfleet/muster/resources/host/files"
	"github.com/musterfleet/muster/resources/host/state"
)

// State returns all problems of the state directory of a valid configuration, each with its file: problems
// that prevent a start, and files that an agent would ignore. A missing directory has no problems if the
// agent can create it. State takes no lock, so a running agent may change the directory at the same time.
func State(c config.Config) model.Problems {
	var out problems
	// Do not read a directory of an unknown format.
	if out.add(c.StateDir, state.New(c.StateDir, slog.New(slog.DiscardHandler)).OpenState(false)); len(out.all) > 0 {
		return out.all
	}
	out.add(c.StateDir, state.CheckWritable(c.StateDir))
	in := func(name string) string { return filepath.Join(c.StateDir, name) }
	for _, err := range reporting.Check(in("outbox")) {
		out.add(in("outbox"), err)
	}
	out.add(in("seen.json"), desired.CheckBucket(in("seen.json")))
	out.add(in("control.json"), desired.CheckControl(in("control.json")))
	out.records(in("assignments"), desired.CheckAssignment)
	out.records(in("requests"), requests.CheckRecord)
	out.records(in("owed"), engine.CheckJournal)
	_, err := desired.OpenGate(desired.GateOptions{
		Host: host.New(host.Options{StateDir: c.StateDir}), Path: in("trust.json"),
		Policy: func() signed.Policy { return c.Policy() }, Times: func() (own, server time.Time) { return time.Now(), time.Now() },
	})
	out.add(in("trust.json"), err)

	return out.all
}

type problems struct{ all model.Problems }

// add adds an error about a file. A missing file is not a problem, because a record may be removed while it
// is read.
func (p *problems) add(path string, err error) {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	if found, are := model.FindProblems(err); are {
		for _, one := range found {
			p.all.Add(model.Position{File: path}, "", "%v", one)
		}
		return
	}
	if failed, is := err.(*fs.PathError); is {
		path, err = failed.Path, failed.Err
	}
	p.all.Add(model.Position{File: path}, "", "%s", strings.ReplaceAll(err.Error(), path+": ", ""))
}

func (p *problems) records(dir string, check func(path string) error) {
	entries, err := os.ReadDir(dir)
	p.add(dir, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") {
			path := filepath.Join(dir, e.Name())
			p.add(path, check(path))
		}
	}
}

// maxUpgrade limits the file with the reason why an upgrade was reverted.
const maxUpgrade = 64 << 10

// reportUpgrade reports a reverted upgrade, which the package records in the file upgrade of the state
// directory (deploy/package/upgrade). A kill in between may repeat the report.
func (a *Agent) reportUpgrade(ctx context.Context) {
	path := filepath.Join(a.Config().StateDir, "upgrade")
	text, err := files.Read(path, maxUpgrade)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		why := strings.TrimSpace(string(text))
		a.log.ErrorContext(ctx, "upgrade undone", "error", why)
		a.report.Node("", model.NodeRefused, bounds.Text(why))
		err = a.host.Remove(path)
	}
	if err != nil {
		a.log.WarnContext(ctx, "cannot report a reverted upgrade", "error", err)
	}
}
