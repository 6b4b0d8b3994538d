package manifest

import (
	"context"
	"errors"

	"github.com/musterfleet/muster/model"
)

// LoadData fetches a source of data and resolves it: a document with data, and
// hierarchy and overrides where it has them, or a mapping that is the data.
// in.Dir is not used: relative paths are under the directory of the source.
// Its errors are those of Fetch, Parse and Resolve.
func (l *Loader) LoadData(ctx context.Context, source string, in Inputs) (data map[string]any, err error) {
	src, err := l.Fetch(ctx, source)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	doc, err := parseData(src.Name, src.Data, l.opts.MaxBytes)
	if err != nil {
		return nil, err
	}
	in.Dir = src.Dir

	return l.ResolveData(ctx, doc, in)
}

// ParseData is Parse for a source of data, which may be a mapping without a
// data key: then all of it is data.
func ParseData(name string, data []byte) (*Document, error) {
	return parseData(name, data, DefaultMaxBytes)
}

func parseData(name string, data []byte, limit int64) (*Document, error) {
	root, err := readMapping(name, data, limit, "data", "write key: value")
	if err != nil {
		return nil, err
	}
	isDocument := false
	for _, e := range root.Entries {
		switch e.Key {
		case "muster", "ccm":
			return nil, model.ProblemAt(e.Pos, "put it under `data:`, or remove it", "a source of data has no section `%s`", e.Key)
		case "data", "hierarchy", "overrides":
			isDocument = true
		}
	}
	if !isDocument {
		return &Document{name: name, text: data, merge: MergeFirst, data: root}, nil
	}

	return newDocument(name, data, root), nil
}
