package signatures

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/fleetcmd/fleetcli"
	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet"
	"github.com/musterfleet/muster/fleet/signing"
	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/document/assigned"
)

// Preview is what people see of a statement before they sign it, derived from that
// alone.
type Preview struct {
	statement signed.Statement
	content   fleet.Content
	// bundle is its digest, empty for none.
	bundle string
}

// NewPreview reads what a statement assigns. The error is that nodes reject it, or that
// of a bundle that is missing, or has other bytes than its digest says.
func NewPreview(ctx context.Context, s *fleetcli.Store, statement signed.Statement) (Preview, error) {
	out := Preview{statement: statement}
	if statement.Action == signed.Remove {
		return out, nil
	}
	value := []byte(statement.Content)
	a, problems := assigned.DecodeContent(statement.Target, value)
	if problems != nil {
		return out, errors.New(fleet.Invalid(problems))
	}
	out.bundle = a.Bundle
	var err error
	out.content, err = s.Content(ctx, model.Entry{Key: statement.Target, Value: value})

	return out, err
}

// ShowContent shows the content as it is, and the files of its bundle.
func (p Preview) ShowContent(to print.Printer) {
	remarkLines(to, fleet.Readable(p.statement.Target, []byte(p.statement.Content)))
	if p.bundle == "" {
		return
	}
	to.Remark("# bundle %s", print.Text(p.bundle))
	files := p.content.Files()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		to.Remark("  - %s, %s", print.Text(name), print.Count(int(files[name]), "byte"))
	}
}

// ShowDiff shows the changes since a revision, all of it since one that cannot be read.
func (p Preview) ShowDiff(ctx context.Context, to print.Printer, s *fleetcli.Store, since model.Entry) {
	before, err := s.Content(ctx, since)
	if err != nil {
		to.Remark("# revision %d cannot be read: %s", since.Revision, print.Text(err.Error()))
		before = fleet.Content{}
	}
	diff := before.Diff(p.content)
	if diff == "" {
		diff = "# none"
	}
	remarkLines(to, diff)
}

// remarkLines shows a text that anybody may have written.
func remarkLines(to print.Printer, text string) {
	for line := range strings.Lines(text) {
		to.Remark("%s", print.Text(strings.TrimRight(line, "\n")))
	}
}

// Line describes what a proposal does, when, and who signed it.
func Line(p signing.Proposal) string {
	issued, by := "now", "nobody yet"
	if !p.Statement.Issued.IsZero() {
		issued = print.Time(p.Statement.Issued)
	}
	if len(p.By) > 0 {
		by = shortKeys(p.By)
	}

	return fmt.Sprintf("%s %s, fleet %s, issued %s, valid until %s, signed by %s", p.Statement.Action, p.Statement.Target, p.Statement.Fleet, issued, print.Time(p.Statement.Expires), by)
}
