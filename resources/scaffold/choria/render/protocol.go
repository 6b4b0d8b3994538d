package render

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"time"
)

// What goes between muster and the process that renders are values: lists of
// them, mappings, texts of any bytes, numbers of their kinds, times, true, false
// and nothing. What they were they still are on the other side.

// The kinds of values.
const (
	kindNil    = 'n'
	kindTrue   = 't'
	kindFalse  = 'f'
	kindInt    = 'i'
	kindInt64  = 'I'
	kindUint64 = 'U'
	kindFloat  = 'd'
	kindText   = 's'
	kindBytes  = 'b'
	kindTime   = 'T'
	kindList   = 'l'
	kindMap    = 'm'
)

// What a line is, by its first byte.
const (
	linePart    = '+'
	lineLast    = '.'
	lineReached = '@'
)

const (
	// maxDepth is how deep values may stand within one another.
	maxDepth = 1000
	// maxMessage is the longest message of muster, maxSaid of the process that renders.
	maxMessage = 256 << 20
	maxSaid    = 32 << 20
	// piece is how much of a message is in one line, which then has 60 KiB.
	piece = 45 << 10
	// maxFirst is how long a list may claim to be before it is.
	maxFirst = 1 << 10
)

var (
	errDamaged = errors.New("what the process that renders says cannot be read")
	errDeep    = errors.New("a value holds itself, or too much stands within one another in it")
)

// encode appends a value.
func encode(out []byte, v any, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	if at, is := v.(time.Time); is {
		text, err := at.MarshalBinary()
		return appendText(append(out, kindTime), string(text)), err
	}
	r := reflect.ValueOf(v)
	for r.Kind() == reflect.Pointer || r.Kind() == reflect.Interface {
		r = r.Elem()
	}
	switch r.Kind() {
	case reflect.Invalid:
		return append(out, kindNil), nil
	case reflect.Bool:
		if r.Bool() {
			return append(out, kindTrue), nil
		}
		return append(out, kindFalse), nil
	case reflect.Int:
		return binary.AppendVarint(append(out, kindInt), r.Int()), nil
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return binary.AppendVarint(append(out, kindInt64), r.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(append(out, kindUint64), r.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return binary.BigEndian.AppendUint64(append(out, kindFloat), math.Float64bits(r.Float())), nil
	case reflect.String:
		return appendText(append(out, kindText), r.String()), nil
	case reflect.Slice, reflect.Array:
		return encodeList(out, r, depth)
	case reflect.Map:
		return encodeMap(out, r, depth)
	default:
		return nil, fmt.Errorf("a %s cannot be given to templates, nor by them", r.Type())
	}
}

func appendText(out []byte, text string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(text))), text...)
}

func encodeList(out []byte, r reflect.Value, depth int) (_ []byte, err error) {
	if r.Kind() == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8 {
		return appendText(append(out, kindBytes), string(r.Bytes())), nil
	}
	out = binary.AppendUvarint(append(out, kindList), uint64(r.Len()))
	for i := range r.Len() {
		if out, err = encode(out, r.Index(i).Interface(), depth+1); err != nil {
			return nil, err
		}
	}

	return out, nil
}

func encodeMap(out []byte, r reflect.Value, depth int) (_ []byte, err error) {
	if r.Type().Key().Kind() != reflect.String {
		return nil, fmt.Errorf("a %s cannot be given to templates, nor by them: its keys are no texts", r.Type())
	}
	out = binary.AppendUvarint(append(out, kindMap), uint64(r.Len()))
	for all := r.MapRange(); all.Next(); {
		out = appendText(out, all.Key().String())
		if out, err = encode(out, all.Value().Interface(), depth+1); err != nil {
			return nil, err
		}
	}

	return out, nil
}

// decoder reads one value of a message.
type decoder struct{ rest []byte }

func decode(message []byte) (any, error) {
	d := decoder{message}
	v, err := d.value(0)
	if err == nil && len(d.rest) > 0 {
		err = errDamaged
	}

	return v, err
}

func (d *decoder) value(depth int) (any, error) {
	if len(d.rest) == 0 || depth > maxDepth {
		return nil, errDamaged
	}
	kind := d.rest[0]
	d.rest = d.rest[1:]
	switch kind {
	case kindNil:
		return nil, nil
	case kindTrue, kindFalse:
		return kind == kindTrue, nil
	case kindInt, kindInt64:
		n, size := binary.Varint(d.rest)
		if err := d.skip(size); err != nil || kind == kindInt64 {
			return n, err
		}
		return int(n), nil
	case kindUint64:
		n, size := binary.Uvarint(d.rest)
		return n, d.skip(size)
	case kindFloat:
		if len(d.rest) < 8 {
			return nil, errDamaged
		}
		f := math.Float64frombits(binary.BigEndian.Uint64(d.rest))
		return f, d.skip(8)
	case kindText:
		return d.text()
	case kindBytes:
		text, err := d.text()
		return []byte(text), err
	case kindTime:
		text, err := d.text()
		var at time.Time
		if err == nil {
			err = at.UnmarshalBinary([]byte(text))
		}
		return at, err
	case kindList:
		return d.list(depth)
	case kindMap:
		return d.mapping(depth)
	default:
		return nil, errDamaged
	}
}

func (d *decoder) skip(size int) error {
	if size <= 0 || size > len(d.rest) {
		return errDamaged
	}
	d.rest = d.rest[size:]

	return nil
}

func (d *decoder) count() (uint64, error) {
	n, size := binary.Uvarint(d.rest)

	return n, d.skip(size)
}

func (d *decoder) text() (string, error) {
	n, err := d.count()
	if err != nil || n > uint64(len(d.rest)) {
		return "", errDamaged
	}
	out := string(d.rest[:n])
	d.rest = d.rest[n:]

	return out, nil
}

func (d *decoder) list(depth int) (any, error) {
	n, err := d.count()
	out := make([]any, 0, min(n, maxFirst))
	for ; n > 0 && err == nil; n-- {
		var v any
		v, err = d.value(depth + 1)
		out = append(out, v)
	}

	return out, err
}

func (d *decoder) mapping(depth int) (any, error) {
	n, err := d.count()
	out := map[string]any{}
	for ; n > 0 && err == nil; n-- {
		var key string
		if key, err = d.text(); err == nil {
			out[key], err = d.value(depth + 1)
		}
	}

	return out, err
}

// Send writes a value to the process that renders.
func Send(w io.Writer, v any) error {
	message, err := encode(nil, v, 0)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.AppendUvarint(nil, uint64(len(message))), message...))

	return err
}

// receive reads what Send has sent.
func receive(r *bufio.Reader) ([]byte, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil {
		return nil, err
	}
	if n > maxMessage {
		return nil, fmt.Errorf("the templates and their data are larger than %d bytes", maxMessage)
	}
	message := make([]byte, n)
	_, err = io.ReadFull(r, message)

	return message, err
}

// say writes a value to muster, in lines that are short enough to come whole.
func say(w io.Writer, v any) error {
	message, err := encode(nil, v, 0)
	if err != nil {
		return err
	}
	for first := true; first || len(message) > 0; first = false {
		n, mark := len(message), byte(lineLast)
		if n > piece {
			n, mark = piece, linePart
		}
		line := append(base64.StdEncoding.AppendEncode([]byte{mark}, message[:n]), '\n')
		if _, err := w.Write(line); err != nil {
			return err
		}
		message = message[n:]
	}

	return nil
}

// Hearing puts together what the process that renders says line by line.
type Hearing struct {
	message []byte
	// Reached is how many templates have been rendered.
	Reached int
}

// Line takes a line, and gives the value that ends with it.
func (h *Hearing) Line(line string) (v any, ends bool, err error) {
	switch {
	case line == "":
		return nil, false, errDamaged
	case line[0] == lineReached:
		h.Reached++
		return nil, false, nil
	case line[0] != linePart && line[0] != lineLast:
		return nil, false, errDamaged
	}
	if h.message, err = base64.StdEncoding.AppendDecode(h.message, []byte(strings.TrimSpace(line[1:]))); err != nil {
		return nil, false, errDamaged
	}
	if len(h.message) > maxSaid {
		return nil, false, fmt.Errorf("a template gives a function more than %d bytes", maxSaid)
	}
	if line[0] == linePart {
		return nil, false, nil
	}
	v, err = decode(h.message)
	h.message = nil

	return v, true, err
}
