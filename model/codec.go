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

// EncodeAssignment encodes an assignment as JSON that is also valid YAML with the same meaning. The
// manifest's text is unchanged byte for byte.
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

// EncodeJSON encodes JSON without escaping <, > and &, because the size of messages is limited.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)

	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// DecodeJSON decodes like json.Unmarshal in a third of the time. It returns the same errors, with a nil
// value.
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

// unmarshal decodes like json.Unmarshal, with other errors.
func unmarshal(data []byte, into any) error {
	return jsonv2.Unmarshal(data, into, jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))
}

// DecodeStrict decodes one JSON value. Fields that v does not have are an error.
func DecodeStrict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected text after the end of the document")
	}

	return nil
}

// escapeForYAML escapes characters that JSON allows in strings but YAML forbids or reads as line breaks.
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
