package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/choria-io/fisk"
)

// helpMan is the flag of fisk that prints the man page.
const helpMan = "--help-man"

// manFiles are the files that the man page lists, each with what it is.
var manFiles = [...][2]string{
	{"/etc/muster/agent.yaml", "Configuration of the agent; muster agent config prints one with a comment for each key."},
	{"/etc/muster/facts.json, facts.yaml, facts.d", "Facts of this machine, beside those that are gathered."},
	{"/var/lib/muster", "State directory of root: locks, the journal, assignments, unpublished reports."},
	{"/var/lib/muster/agent.sock", "Socket of the running agent, which muster agent status asks."},
}

// printMan prints the man page; fisk would print its own.
func printMan(w io.Writer, app *fisk.Application, parsed *fisk.ParseContext) error {
	var page bytes.Buffer
	app.UsageWriter(&page)
	if err := app.UsageForContextWithTemplate(parsed, 2, fisk.ManPageTemplate); err != nil {
		return err
	}
	_, err := w.Write(completeMan(page.Bytes(), app.Model()))

	return err
}

// completeMan returns the man page of fisk with what programs such as apropos read, and with
// the sections that it lacks.
func completeMan(page []byte, app *fisk.ApplicationModel) []byte {
	page = bytes.Replace(page, []byte("\n.SH \"NAME\"\n"+app.Name+"\n"), fmt.Appendf(nil, "\n.SH \"NAME\"\n%s \\- %s\n", app.Name, app.Help), 1)
	var more strings.Builder
	item := func(name, text string) { fmt.Fprintf(&more, ".TP\n\\fB%s\\fR\n%s\n", name, text) }
	more.WriteString(".SH \"ENVIRONMENT\"\nA flag wins over its variable.\n")
	flags := slices.Clone(app.Flags)
	slices.SortFunc(flags, func(a, b *fisk.FlagModel) int { return strings.Compare(a.Envar, b.Envar) })
	for _, f := range flags {
		if f.Envar != "" {
			item(f.Envar, fmt.Sprintf("\\-\\-%s: %s", f.Name, f.Help))
		}
	}
	item("NATS_PASSWORD", "The password of \\-\\-user, except of an agent.")
	item("NO_COLOR", "No colours on a terminal, whatever the value is.")
	more.WriteString(".SH \"FILES\"\n")
	for _, f := range manFiles {
		item(f[0], f[1])
	}

	return append(page, more.String()...)
}
