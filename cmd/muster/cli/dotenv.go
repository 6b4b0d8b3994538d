package cli

import (
	"log/slog"

	"github.com/choria-io/fisk"

	"github.com/musterfleet/muster/resources/manifest"
)

// AddReadEnv adds --read-env to a command, which is on by default.
func (e *Env) AddReadEnv(cmd *fisk.CmdClause) {
	cmd.Flag("read-env", "Read variables for expressions from .env in the working directory").Default("true").BoolVar(&e.environFile.isRead)
}

// environFile is the file of variables.
type environFile struct {
	// isRead is --read-env.
	isRead bool
	// variables caches the content, nil before the first read.
	variables map[string]string
}

// environ returns the variables for expressions. The environment of the process takes precedence over the
// file.
func (f *environFile) environ(log *slog.Logger) map[string]string {
	out := Environ()
	if !f.isRead {
		return out
	}
	if f.variables == nil {
		f.variables = manifest.ReadEnvironFile(log)
	}
	for name, value := range f.variables {
		if _, set := out[name]; !set {
			out[name] = value
		}
	}

	return out
}
