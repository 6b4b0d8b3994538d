package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// EncodeAssignment writes an assignment as JSON that YAML parsers read the same, so that a
// manifest's text is kept byte for byte whatever is in it.
func EncodeAssignment(a Assignment) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(a); err != nil {
		return nil, fmt.Errorf("encode assignment: %w", err)
	}

	return escapeForYAML(b.Bytes()), nil
}

// EncodeJSON encodes JSON in which <, > and & stay one byte each: the size of messages
// is limited.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)

	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// DecodeJSON decodes as json.Unmarshal does, in a third of its time: documents of nodes are most of what
// looking at a fleet costs. Its error is that of json.Unmarshal, and what it returns nil then.
func DecodeJSON[T any](data []byte) (*T, error) {
	out := new(T)
	if unmarshal(data, out) == nil {
		return out, nil
	}
	out = new(T)
	if err := json.Unmarshal(data, out); err != nil {
		return nil, err
	}

	return out, nil
}

// unmarshal is json.Unmarshal, but where it makes an error: then which one does not matter.
func unmarshal(data []byte, into any) error {
	return jsonv2.Unmarshal(data, into, jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))
}

// DecodeStrict decodes one JSON value that has no other fields than those of v.
func DecodeStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows its end")
	}

	return nil
}

// escapeForYAML escapes characters that are plain in JSON, and line breaks or
// invalid in YAML. They occur in strings only.
func escapeForYAML(encoded []byte) []byte {
	special := func(r rune) bool {
		return r >= 0x7f && r <= 0x9f || r == '\ufeff' || r == '\ufffe' || r == '\uffff'
	}
	if !bytes.ContainsFunc(encoded, special) {
		return encoded
	}
	out := make([]byte, 0, len(encoded)+64)
	for _, r := range string(encoded) {
		if special(r) {
			out = fmt.Appendf(out, "\\u%04x", r)
			continue
		}
		out = utf8.AppendRune(out, r)
	}

	return out
}
