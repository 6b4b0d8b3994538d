package fleetcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/musterfleet/muster/cmd/muster/print"
	"github.com/musterfleet/muster/fleet/assign"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/signed"
	"github.com/musterfleet/muster/resources/document"
)

// SigningPreview shows a statement to the user before signing. It depends on nothing but the statement.
type SigningPreview struct {
	statement signed.Statement
	content   assign.Content
	// revision is the source of the statement.
	revision model.Entry
	// bundle is the digest of the bundle, or empty.
	bundle string
}

// NewSigningPreview reads the content of a statement about a revision. It returns an error if nodes would
// reject the statement, or if its bundle is missing, refused by nodes or does not match its digest.
func NewSigningPreview(ctx context.Context, s *Store, statement signed.Statement, revision model.Entry) (SigningPreview, error) {
	out := SigningPreview{statement: statement, revision: revision}
	if statement.Action == signed.Remove {
		return out, nil
	}
	value := []byte(statement.Content)
	a, problems := document.DecodeAssignedContent(statement.Target, value)
	if problems != nil {
		return out, errors.New(assign.Invalid(problems))
	}
	out.bundle = a.Bundle
	var err error
	out.content, err = s.Content(ctx, model.Entry{Key: statement.Target, Value: value})

	return out, err
}

// ShowContent prints the content, and lists the files of its bundle.
func (p SigningPreview) ShowContent(to print.Printer) {
	remarkLines(to, assign.Readable(p.statement.Target, []byte(p.statement.Content)))
	if p.bundle == "" {
		return
	}
	to.Remark("# bundle %s", print.Text(p.bundle))
	for _, f := range p.content.Files() {
		to.Remark("  - %s", print.Text(f.String()))
	}
}

// ShowFiles prints the text files of the bundle. It marks each line, so that file content cannot imitate
// output of muster.
func (p SigningPreview) ShowFiles(to print.Printer) {
	if p.bundle == "" {
		return
	}
	for _, f := range p.content.Files() {
		if f.Text == "" {
			continue
		}
		to.Remark("# %s:", print.Text(f.String()))
		for line := range strings.Lines(f.Text) {
			to.Remark("  | %s", print.Text(strings.TrimSuffix(line, "\n")))
		}
	}
	p.showOmitted(to)
}

// ShowDiff prints the changes since a revision, or all content if that revision is unreadable. It returns an
// error only if ctx ended.
func (p SigningPreview) ShowDiff(ctx context.Context, to print.Printer, s *Store, since model.Entry) error {
	before, err := s.Content(ctx, since)
	if err != nil {
		to.Remark("# revision %d cannot be read: %s", since.Revision, print.Text(err.Error()))
		before = assign.Content{}
	}
	diff, err := before.Diff(ctx, p.content)
	if err != nil {
		return err
	}
	if diff == "" {
		diff = "# none"
	}
	remarkLines(to, diff)
	p.showOmitted(to)

	return nil
}

// showOmitted lists the files of which only a digest was shown, with the commands that show them.
func (p SigningPreview) showOmitted(to print.Printer) {
	for _, f := range p.content.Files() {
		if f.Omitted != "" {
			to.Remark("# %s, %s: muster fleet show %s --revision %d --file %s", print.Text(f.String()), f.Digest, p.revision.Key, p.revision.Revision, print.Text(f.Argument()))
		}
	}
}

// remarkLines prints untrusted text.
func remarkLines(to print.Printer, text string) {
	for line := range strings.Lines(text) {
		to.Remark("%s", print.Text(strings.TrimRight(line, "\n")))
	}
}

// SignatureLine describes the action, validity and signers of a proposal.
func SignatureLine(p assign.Proposal) string {
	issued, by := "now", "no key yet"
	if !p.Statement.Issued.IsZero() {
		issued = print.Time(p.Statement.Issued)
	}
	if len(p.By) > 0 {
		by = shortKeys(p.By)
	}

	return fmt.Sprintf("%s %s, fleet %s, issued %s, valid until %s, signed by %s", p.Statement.Action, p.Statement.Target, p.Statement.Fleet, issued, print.Time(p.Statement.Expires), by)
}
