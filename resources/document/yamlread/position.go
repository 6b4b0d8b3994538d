package yamlread

import (
	"bytes"
	"unicode/utf8"

	"github.com/musterfleet/muster/model"
)

// PositionAt returns the line and column of a byte offset. Columns count characters.
func PositionAt(name string, data []byte, offset int) model.Position {
	before := data[:min(offset, len(data))]
	start := bytes.LastIndexByte(before, '\n') + 1

	return model.Position{File: name, Line: bytes.Count(before, []byte{'\n'}) + 1, Column: utf8.RuneCount(before[start:]) + 1}
}
