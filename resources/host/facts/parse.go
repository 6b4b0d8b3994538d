package facts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/musterfleet/muster/model"
)

// Parse reads the text of a fact file: JSON when its name ends in .json, else
// YAML. It must hold a mapping, or nothing. Its error is a model.Problem with
// the place.
func Parse(name string, text []byte) (map[string]any, error) {
	var value any
	var err error
	if filepath.Ext(name) == ".json" {
		value, err = parseJSON(name, text)
	} else {
		value, err = parseYAML(name, text)
	}
	if err != nil {
		return nil, err
	}
	switch facts := value.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return facts, nil
	default:
		return nil, problem(name, 1, 1, "facts must be a mapping", "write them as name: value")
	}
}

func problem(name string, line, column int, message, hint string) model.Problem {
	return model.Problem{Pos: model.Position{File: name, Line: line, Column: column}, Message: message, Hint: hint}
}

func parseJSON(name string, text []byte) (any, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	var value any
	err := decoder.Decode(&value)
	at := decoder.InputOffset()
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return value, nil
		}
		at += int64(len(text[at:]) - len(bytes.TrimLeft(text[at:], " \t\r\n")))
		line, column := place(text, at)
		return nil, problem(name, line, column, "there is more after the end of the facts", "a file holds one mapping")
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at = max(syntax.Offset-1, 0)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		at = int64(len(text))
	}
	line, column := place(text, at)

	return nil, problem(name, line, column, "invalid JSON: "+err.Error(), "")
}

// place gives line and column of an offset, in bytes from 1.
func place(text []byte, offset int64) (line, column int) {
	before := text[:min(offset, int64(len(text)))]

	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

func parseYAML(name string, text []byte) (any, error) {
	var value any
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(&value)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, yamlProblem(name, text, err)
	}
	var next yaml.Node
	if err := decoder.Decode(&next); err == nil {
		return nil, problem(name, next.Line, next.Column, "there is a second document", "a file holds one mapping")
	} else if !errors.Is(err, io.EOF) {
		return nil, yamlProblem(name, text, err)
	}
	value, err = jsonForm(value)
	if err != nil {
		return nil, problem(name, 0, 0, err.Error(), "")
	}

	return value, nil
}

// yamlProblem takes the line out of the words of the YAML library.
func yamlProblem(name string, text []byte, err error) model.Problem {
	var several *yaml.TypeError
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	if errors.As(err, &several) && len(several.Errors) > 0 {
		message = several.Errors[0]
	}
	line := 1
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = message[len(m[0]):]
		// What its parser says, unlike its scanner, counts lines from 0.
		if regexp.MustCompile(`^did not find expected (<|node|'|key|',)`).MatchString(message) {
			line++
		}
	}

	// Something missing at the end is told as standing on the line after it.
	last := 1 + bytes.Count(bytes.TrimRight(text, "\n"), []byte("\n"))

	return problem(name, min(line, last), 0, "invalid YAML: "+message, "")
}

// jsonForm turns what YAML knows and JSON does not into what JSON has for it.
func jsonForm(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		return v, eachValue(v)
	case map[any]any:
		out := make(map[string]any, len(v))
		for key, below := range v {
			out[fmt.Sprint(key)] = below
		}
		return out, eachValue(out)
	case []any:
		for i := range v {
			below, err := jsonForm(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = below
		}
		return v, nil
	case int:
		return float64(v), nil
	case int64:
		return float64(v), nil
	case uint64:
		return float64(v), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("the number %v is not finite", v)
		}
		return v, nil
	case time.Time:
		return strings.TrimSuffix(v.Format(time.RFC3339Nano), "T00:00:00Z"), nil
	default:
		return v, nil
	}
}

func eachValue(m map[string]any) error {
	for key, below := range m {
		plain, err := jsonForm(below)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		m[key] = plain
	}

	return nil
}
