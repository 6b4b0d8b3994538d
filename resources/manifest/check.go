package manifest

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
	"github.com/musterfleet/muster/resources/resource"
)

// Checked is the result of Check.
type Checked struct {
	// Resources are the resources that do not depend on the node.
	Resources []*resource.Resource
	// Files are the files that the manifest names relative to its directory.
	Files    []File
	Warnings model.Problems
}

// File is a path that a manifest names relative to its own directory.
type File struct {
	Path string
	// Pos is the position of the path. For an expression that reads a file it is the document.
	Pos model.Position
	// HasExpression reports whether Path contains an expression that only the node can evaluate.
	HasExpression bool
}

// Check checks a document without its node. It compiles expressions that depend on the node (facts,
// environment, buckets, files), and assumes that their values are valid. The error is the error of
// Resolve. Checked contains the files also after an error.
func (l *Loader) Check(ctx context.Context, doc *Document, in Inputs) (*Checked, error) {
	s := l.elsewhere(doc, in)
	resolved, err := s.resolve(ctx, in)
	if err != nil {
		return &Checked{Files: s.files()}, err
	}

	return &Checked{Resources: resolved.Resources, Files: s.files(), Warnings: resolved.Warnings}, nil
}

// CheckCondition checks the text of a Condition without its node. The error is the error of
// Condition.
func (l *Loader) CheckCondition(ctx context.Context, name string, v document.Value) error {
	r := resolver{scope: l.elsewhere(emptyDocument(v.Pos.File), Inputs{}).newScope(ctx, inData, nil, nil)}
	r.condition(ctx, name, v)

	return r.problems.Err()
}

// elsewhere returns the session of a document for another machine.
func (l *Loader) elsewhere(doc *Document, in Inputs) *session {
	there := *l
	there.opts.Facts, there.opts.Environ, there.opts.KV, there.opts.Registrations = nil, nil, nil, nil
	in.Facts = nil
	s := there.session(doc, in)
	s.forOtherNode = true

	return s
}

// sourceBeside returns the source of a resource if it is a file beside the manifest.
func sourceBeside(properties document.Value) (document.Value, bool) {
	v, ok := properties.Get(resource.SourceProperty)

	return v, ok && v.IsScalar() && !v.Secret && v.Text != "" && !filepath.IsAbs(v.Text) && !strings.Contains(v.Text, "://")
}

// checkSource reports a file beside a manifest without a directory.
func (b *build) checkSource(properties document.Value) {
	v, beside := sourceBeside(properties)
	if beside && !v.Deferred && b.session.dir == "" && !b.session.forOtherNode {
		b.problems.Add(v.Pos, "make a bundle of the manifest and its files, or give an absolute path", "`source` %s is relative, and this manifest has no directory", v.Text)
	}
}

func (c *Checked) addSource(properties document.Value) {
	v, beside := sourceBeside(properties)
	if !beside {
		return
	}
	// A path that begins with an expression may be absolute.
	if v.Deferred && (strings.HasPrefix(v.Text, "${") || strings.HasPrefix(v.Text, "{{")) {
		return
	}
	c.add(File{Path: v.Text, Pos: v.Pos, HasExpression: v.Deferred})
}

func (c *Checked) add(f File) {
	if !slices.ContainsFunc(c.Files, func(have File) bool { return have.Path == f.Path }) {
		c.Files = append(c.Files, f)
	}
}

// Condition evaluates an expression that must be true or false on the node. v is its text and
// position, name is its name in problems. The expression can use facts and the environment. The
// error is model.Problems.
func (l *Loader) Condition(ctx context.Context, name string, v document.Value, in Inputs) (bool, error) {
	s := l.session(emptyDocument(v.Pos.File), in)
	r := resolver{scope: s.newScope(ctx, inData, nil, nil)}
	yes, _ := r.condition(ctx, name, v)

	return yes, r.problems.Err()
}
